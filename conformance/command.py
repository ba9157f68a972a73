"""Command line of programs that record sets of scripts from a real Kafka."""

from __future__ import annotations

import argparse
import asyncio
import signal
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TypeAlias

Record: TypeAlias = Callable[[list[str], str, Path], Awaitable[int]]
"""Called with names of sets, a part of scripts' names, and a folder; returns how many scripts failed."""


def run(what: str, record: Record, folder: Path) -> None:
    """Read the command line, record, and exit with 1 if a script failed. ``folder``: where it goes without --into."""
    parser = argparse.ArgumentParser(description=f"Record {what} from a real Kafka.")
    parser.add_argument("sets", nargs="*", help="sets to record; all without any")
    parser.add_argument("--only", default="", help="only scripts whose name contains this")
    parser.add_argument("--into", type=Path, default=folder, help="the folder below which recordings are written")
    given = parser.parse_args()

    async def count_failed() -> int:
        return await record(given.sets, given.only, given.into)

    signal.signal(signal.SIGTERM, signal.default_int_handler)  # so that brokers are stopped in this case, too
    sys.exit(1 if asyncio.run(count_failed()) else 0)
