"""Chooses between two watches: of coordinators and journals on Spark, or of a cluster without Spark."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Literal, NamedTuple


class WatchOptions(NamedTuple):
    """The options of ``rejoin watch``, as in ``parser``."""

    from_: tuple[str, ...]
    journal: tuple[Path, ...]
    bootstrap_server: str | None
    command_config: Path | None
    group: tuple[str, ...]
    log: tuple[Path, ...]
    timezone: str
    out: Path | None
    once: bool
    every: float | None
    lost: Literal["skip", "fail"]
    master: str | None


def run(given: WatchOptions) -> int:
    """Run the watch that the options ask for; returns the exit code."""
    if given.bootstrap_server is not None and not (given.from_ or given.journal):
        from rejoin.pipeline.commands.watch_cluster import run as run_on_cluster  # noqa: PLC0415

        return run_on_cluster(
            servers=given.bootstrap_server,
            config=given.command_config,
            groups=given.group,
            logs=given.log,
            timezone=given.timezone,
            out=given.out,
            once=given.once,
            every=given.every,
        )
    of_clusters = {
        "--bootstrap-server": given.bootstrap_server,
        "--command-config": given.command_config,
        "--group": given.group,
        "--log": given.log,
    }
    misplaced = [name for name, value in of_clusters.items() if value]
    if misplaced:
        print(
            f"{misplaced[0]} is for clusters: give --bootstrap-server, and neither --from nor --journal",
            file=sys.stderr,
        )
        return 2
    from rejoin.pipeline.commands.watch import run as run_on_spark  # noqa: PLC0415

    return run_on_spark(
        from_=given.from_,
        journal=given.journal,
        out=given.out,
        once=given.once,
        every=1.0 if given.every is None else given.every,
        lost=given.lost,
        master=given.master,
    )
