from __future__ import annotations

import sys
from typing import Final

from rich.console import Console

_WIDE: Final = 130


def printer() -> Console:
    """Prints as wide as the terminal, and into a file wide enough for every column."""
    return Console() if sys.stdout.isatty() else Console(width=_WIDE)
