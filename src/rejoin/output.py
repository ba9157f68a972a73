"""The printer of the commands: what clients chose reaches a terminal, a pipe or a file with visible characters alone.

Control characters and marks that turn the direction of text are written as escapes. No command prints but with this
module, or with :class:`rejoin.console.VisibleConsole` where it draws tables.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from typing import Any

from rejoin.protocol.printable import printable, printable_json

_LAYOUT = ("\n", "\t")


def visible(text: str) -> str:
    """The text with its lines and columns, and with everything else that is not visible as an escape."""
    if text.isprintable():
        return text
    return "".join(each if each in _LAYOUT else printable(each) for each in text)


def print_text(text: object = "", *, end: str = "\n", flush: bool = False) -> None:
    """Print a text on the standard output."""
    print(visible(str(text)), end=end, flush=flush)


def print_json(
    value: Any, *, indent: int | None = None, default: Callable[[Any], Any] | None = None, flush: bool = False
) -> None:
    """Print a value as JSON; in its strings everything that is not visible is an escape of JSON."""
    print(printable_json(json.dumps(value, ensure_ascii=False, indent=indent, default=default)), flush=flush)


def print_progress(text: str) -> None:
    """Print a text on the standard error over the one before, if that is a terminal's last line."""
    print(f"\r{printable(text)}", end="", file=sys.stderr, flush=True)


def print_aside(text: object = "") -> None:
    """Print a text on the standard error, for people, beside an output for programs."""
    print(visible(str(text)), file=sys.stderr, flush=True)
