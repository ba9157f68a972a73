"""``python -m pipeline``: explain what happened, and what would have happened."""

from __future__ import annotations

import sys
from typing import Final

import cyclopts

from pipeline.report_command import report
from pipeline.sweep_command import sweep
from pipeline.watch_command import watch

app: Final = cyclopts.App(
    name="pipeline", help="Rebalances explained: journals and brokers' logs, live or in thousands.", version_flags=[]
)
app.command(report)
app.command(sweep)
app.command(watch)


def main() -> None:
    """The door of the command line."""
    sys.exit(app() or 0)


if __name__ == "__main__":
    main()
