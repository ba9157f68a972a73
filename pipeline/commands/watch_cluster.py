"""``rejoin watch --bootstrap-server``: follow a real cluster over Kafka's protocol, without Spark."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Final
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from rejoin.console import VisibleConsole
from rejoin.error_lines import print_error, refuse
from rejoin.pipeline.commands.interrupts import interrupts
from rejoin.pipeline.commands.options import BadOption, check_out, stopped
from rejoin.pipeline.kafka_cluster.broker_logs import LogTails
from rejoin.pipeline.kafka_cluster.polling import ClusterProblem, polling
from rejoin.pipeline.kafka_cluster.screen import Screen
from rejoin.pipeline.kafka_cluster.store import ClusterStore, WatchFolderProblem
from rejoin.pipeline.kafka_cluster.watching import ClusterWatch

EVERY_SECONDS: Final = 5.0


def run(
    *,
    servers: str,
    config: Path | None,
    groups: Sequence[str],
    logs: Sequence[Path],
    timezone: str,
    out: Path | None,
    once: bool,
    every: float | None,
) -> int:
    """Follow until stopped, or poll once. Options as in ``parser``; returns the exit code."""
    console = VisibleConsole(highlight=False)
    try:
        seconds = EVERY_SECONDS if every is None else every
        tails = _checked(logs, timezone, out, seconds)
        with interrupts(), ExitStack() as closing:
            store = None
            if out is not None:
                store = ClusterStore(out)
                closing.enter_context(store.locked(servers))
            shown = Screen(console, f"watching {servers}")
            where = None if config is None else str(config)
            missing = asyncio.run(_follow(servers, where, groups, store, tails, shown, None if once else seconds))
    except KeyboardInterrupt:
        print_error(stopped(out))
        return 0
    except (BadOption, ClusterProblem, WatchFolderProblem, OSError, ValueError) as problem:
        return refuse(problem)
    if missing:
        names = ", ".join(map(repr, missing))
        return refuse(f"{servers}: there is no group {names}; rejoin groups --list lists all")
    return 0


def _checked(logs: Sequence[Path], timezone: str, out: Path | None, seconds: float) -> LogTails | None:
    """The logs to follow. Raises BadOption and ValueError."""
    if not seconds > 0:
        raise ValueError(f"--every {seconds}: expected a number of seconds above 0")
    missing = [str(path) for path in logs if not path.is_file()]
    if missing:
        raise ValueError(f"--log {missing[0]}: no such file; expected a broker's server.log")
    try:
        ZoneInfo(timezone)
    except (ZoneInfoNotFoundError, ValueError):
        raise BadOption(f"--timezone {timezone}: there is no such zone; expected one such as Europe/Berlin") from None
    if out is not None:
        check_out(out)
    return LogTails(logs, timezone) if logs else None


async def _follow(
    servers: str,
    config: str | None,
    groups: Sequence[str],
    store: ClusterStore | None,
    logs: LogTails | None,
    shown: Screen,
    every: float | None,
) -> Sequence[str]:
    """Follow for ever, or poll once: then it returns the named groups that there are not."""
    async with polling(servers, config, groups) as poller:
        watch = ClusterWatch(poller, store, logs)
        if every is None:
            polled = await watch.poll()
            shown.once(watch, polled)
            return polled.missing
        with shown:
            is_first = not watch.groups
            while True:
                try:
                    shown.update(watch, await watch.poll())
                except ClusterProblem as problem:
                    if is_first:
                        raise
                    shown.note(watch, str(problem))
                is_first = False
                await asyncio.sleep(every)
