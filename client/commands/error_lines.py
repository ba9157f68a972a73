"""How the commands of the client say what is wrong."""

from __future__ import annotations

import sys

from rejoin.protocol.printable import printable_lines


def print_error(problem: object) -> None:
    """Print a line about a problem on the standard error, in the form that all commands share."""
    print(printable_lines(f"rejoin: {problem}"), file=sys.stderr)
