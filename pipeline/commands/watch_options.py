"""Chooses between two watches: of coordinators and journals on Spark, or of a cluster without Spark."""

from __future__ import annotations

from pathlib import Path
from typing import Literal, NamedTuple

from rejoin.error_lines import refuse


class WatchOptions(NamedTuple):
    """The options of ``rejoin watch``, as in ``parser``."""

    from_: tuple[str, ...]
    journal: tuple[Path, ...]
    bootstrap_server: str | None
    command_config: Path | None
    group: tuple[str, ...]
    log: tuple[Path, ...]
    timezone: str | None
    out: Path | None
    once: bool
    every: float | None
    lost: Literal["skip", "fail"] | None
    master: str | None


def run(given: WatchOptions) -> int:
    """Run the watch that the options ask for; returns the exit code."""
    problem = _misplaced(given)
    if problem is not None:
        return refuse(problem)
    if given.bootstrap_server is not None:
        from rejoin.pipeline.commands.watch_cluster import run as run_on_cluster  # noqa: PLC0415

        return run_on_cluster(
            servers=given.bootstrap_server,
            config=given.command_config,
            groups=given.group,
            logs=given.log,
            timezone=given.timezone or "UTC",
            out=given.out,
            once=given.once,
            every=given.every,
        )
    from rejoin.pipeline.commands.watch import run as run_on_spark  # noqa: PLC0415

    return run_on_spark(
        from_=given.from_,
        journal=given.journal,
        out=given.out,
        once=given.once,
        every=1.0 if given.every is None else given.every,
        lost=given.lost or "skip",
        master=given.master,
    )


def _misplaced(given: WatchOptions) -> str | None:
    """Problems of options that do not go together."""
    of_clusters = {
        "--bootstrap-server": given.bootstrap_server,
        "--command-config": given.command_config,
        "--group": given.group,
        "--log": given.log,
        "--timezone": given.timezone,
    }
    named = [name for name, value in of_clusters.items() if value]
    if named and (given.bootstrap_server is None or given.from_ or given.journal):
        return f"{named[0]} is for clusters: give --bootstrap-server, and neither --from nor --journal"
    if given.timezone is not None and not given.log:
        return "--timezone is for brokers' logs: give --log, or leave it out"
    if given.master is not None and given.bootstrap_server is not None:
        return "--master is for Spark, and --bootstrap-server needs none: leave it out"
    if given.lost is not None and not given.from_:
        return "--lost is for coordinators: give --from, or leave it out"
    return None
