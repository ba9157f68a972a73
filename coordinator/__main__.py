"""``python -m coordinator``: run a node, or print the journal's schema."""

from __future__ import annotations

import gc
import sys
from typing import Any


def main() -> None:
    """Read the command line and run."""
    _command_line()(sys.argv[1:])


def _command_line() -> Any:
    """The command line, with all that it needs. Looking for garbage meanwhile finds none and costs a tenth of it."""
    gc.disable()
    try:
        from coordinator.server.cli import app  # noqa: PLC0415
    finally:
        gc.enable()
    return app


if __name__ == "__main__":
    main()
