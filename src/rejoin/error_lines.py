"""Errors of the commands: one line on the standard error, ``rejoin COMMAND: problem; what to do``."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

_PROGRAM = "rejoin"
_names = [_PROGRAM]


@contextmanager
def errors_of(command: str) -> Iterator[None]:
    """Begin the lines that are printed inside with the name of a command."""
    _names.append(f"{_PROGRAM} {command}".rstrip())
    try:
        yield
    finally:
        _names.pop()


def print_error(problem: object) -> None:
    """Print a problem. A text of several lines is several problems; each is one line."""
    from rejoin.protocol.printable import printable  # noqa: PLC0415 (help can do without)

    for line in str(problem).split("\n"):
        print(printable(f"{_names[-1]}: {line}"), file=sys.stderr)


def refuse(problem: object) -> int:
    """Print what is wrong with a command line or an input, and return the exit code."""
    print_error(problem)
    return 2
