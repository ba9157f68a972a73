"""One run of ``rejoin conform-client``: checks what is wanted, plays the troubles, prints, writes."""

from __future__ import annotations

import asyncio
import math
import os
import sys
import uuid
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from rejoin.atomic_file import FileNotWritten, check_writable
from rejoin.client.commands.setting_options import WrongOption, security_from
from rejoin.client.core.errors import KafkaError
from rejoin.client.transports.kafka.address import broker_address
from rejoin.client.transports.security import kafka_security
from rejoin.conform.clients.cluster.real_cluster import RealCluster, real_cluster
from rejoin.conform.clients.observed import ClientOutcome
from rejoin.conform.clients.playing import PlayedTrouble, StartClient, play, play_on
from rejoin.conform.clients.program import ClientProcess, NotStarted
from rejoin.conform.clients.reports import junit, listed, row, summary
from rejoin.conform.clients.stage import PlayedNames, TimeLimits
from rejoin.conform.clients.trouble import ClientTrouble
from rejoin.conform.clients.troubles import BY_NAME, TROUBLES
from rejoin.coordinator.testing.coordinator import GroupCoordinator
from rejoin.coordinator.testing.results import OperationRefused
from rejoin.coordinator.testing.starting import running
from rejoin.error_lines import refuse
from rejoin.output import print_aside, print_progress, print_text
from rejoin.posix import PosixNeeded, stop_signals
from rejoin.protocol.validation import nearest

PASSED, FAILED, NOT_PLAYED, STOPPED = 0, 1, 2, 130
MOST_AT_ONCE: Final = 16
LONGEST_TIMEOUT: Final = 600.0


@dataclass(frozen=True)
class WantedTroubles:
    """The options of the command."""

    command: tuple[str, ...]
    only: tuple[str, ...] = ()
    timeout: float = 30.0
    at_once: int = 2
    junit: Path | None = None
    transcripts: Path | None = None
    lists: bool = False
    proxy: str = ""
    """Servers of a real cluster; none for brokers of ours."""
    command_config: str | None = None


def main(wanted: WantedTroubles) -> int:
    """Run; the exit code."""
    try:
        troubles = chosen(wanted)
        if wanted.lists:
            print_text(listed(troubles))
            return PASSED
        if not wanted.command:
            raise WrongOption("expected a command after --, with its arguments: rejoin conform-client -- COMMAND")
        if wanted.proxy:
            _check_servers(wanted.proxy)
        if os.name == "nt":
            raise PosixNeeded("rejoin conform-client")
        if wanted.junit is not None:
            check_writable("--junit", wanted.junit)
        if wanted.transcripts is not None:
            _make_folder(wanted.transcripts)
        return asyncio.run(_run(wanted, troubles))
    except (WrongOption, FileNotWritten, NotStarted) as problem:
        return refuse(problem)
    except (OperationRefused, KafkaError) as problem:
        return refuse(f"--proxy {wanted.proxy}: {problem}")
    except (KeyboardInterrupt, asyncio.CancelledError):
        return STOPPED


def chosen(wanted: WantedTroubles) -> list[ClientTrouble]:
    """The troubles that are wanted. Raises WrongOption."""
    for name in wanted.only:
        if name not in BY_NAME:
            raise WrongOption(f"--only {name}: there is no such trouble{nearest(name, BY_NAME)}; --list shows all")
    if not 0 < wanted.at_once <= MOST_AT_ONCE:
        raise WrongOption(f"--at-once {wanted.at_once}: expected 1 to {MOST_AT_ONCE}")
    if not math.isfinite(wanted.timeout) or not 0 < wanted.timeout <= LONGEST_TIMEOUT:
        raise WrongOption(f"--timeout {wanted.timeout:g}: expected up to {LONGEST_TIMEOUT:g} seconds, and more than 0")
    return [each for each in TROUBLES if not wanted.only or each.name in wanted.only]


def _check_servers(servers: str) -> None:
    for each in servers.split(","):
        try:
            broker_address(each.strip())
        except ValueError:
            problem = f"not a server: {each!r}; expected HOST:PORT, a port from 1 to 65535"
            raise WrongOption(f"--proxy: {problem}") from None


def _make_folder(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as problem:
        raise WrongOption(f"--transcripts {folder}: {problem.strerror}; expected a directory") from None


async def _run(wanted: WantedTroubles, troubles: Sequence[ClientTrouble]) -> int:
    """Play, until SIGTERM or SIGINT comes: then the programs are ended, too."""
    playing = asyncio.ensure_future(_play_all(wanted, troubles))
    with stop_signals(asyncio.get_running_loop(), playing.cancel):
        played = await playing
    _write(wanted, played)
    print_text(f"\n{summary(played)}")
    outcomes = {each.verdict.outcome for each in played}
    if ClientOutcome.NOT_PLAYED in outcomes:
        return NOT_PLAYED
    return FAILED if ClientOutcome.FAILED in outcomes else PASSED


async def _play_all(wanted: WantedTroubles, troubles: Sequence[ClientTrouble]) -> list[PlayedTrouble]:
    limits = TimeLimits(wanted.timeout, wanted.timeout, wanted.timeout)
    places = asyncio.Semaphore(wanted.at_once)
    width = max(len(each.name) for each in troubles)
    running: list[str] = []

    async def start(broker: GroupCoordinator | RealCluster) -> ClientProcess:
        names = broker.names if isinstance(broker, RealCluster) else None
        return await ClientProcess.start(wanted.command, broker.bootstrap_servers, names)

    async def played_on(trouble: ClientTrouble) -> PlayedTrouble:
        if not wanted.proxy:
            return await play(trouble, start, limits)
        return await play_on_cluster(trouble, wanted, start, limits)

    def show_progress() -> None:
        if sys.stderr.isatty():
            print_progress(f"playing {', '.join(running)}".ljust(78)[:78])

    async def one(trouble: ClientTrouble) -> PlayedTrouble:
        async with places:
            running.append(trouble.name)
            show_progress()
            played = await played_on(trouble)
            running.remove(trouble.name)
            if sys.stderr.isatty():
                print_progress(" " * 78)
                print_progress("")
            print_text(row(played, width), flush=True)
            show_progress()
            return played

    tasks = [asyncio.ensure_future(one(each)) for each in troubles]
    try:
        return list(await asyncio.gather(*tasks))
    finally:
        for task in tasks:
            task.cancel()
        with suppress(asyncio.CancelledError):
            await asyncio.gather(*tasks, return_exceptions=True)
        if sys.stderr.isatty():
            print_aside()


async def play_on_cluster(
    trouble: ClientTrouble, wanted: WantedTroubles, start: StartClient, limits: TimeLimits
) -> PlayedTrouble:
    """Play a trouble on a real cluster, with topics and a group of its own. Raises OperationRefused and KafkaError."""
    names = PlayedNames.of(f"rejoin-conform-{trouble.name}-{uuid.uuid4().hex[:8]}")
    security = security_from(wanted.command_config)
    settings = {"bootstrap.servers": wanted.proxy, **security.model_dump(by_alias=True, exclude_defaults=True)}
    servers = [each.strip() for each in wanted.proxy.split(",")]
    async with (
        running(proxy=settings) as proxied,
        real_cluster(proxied, servers, kafka_security(security), names) as cluster,
    ):
        return await play_on(trouble, cluster, start, limits, names)


def _write(wanted: WantedTroubles, played: Sequence[PlayedTrouble]) -> None:
    """Write the files that are wanted. Raises WrongOption."""
    files = [] if wanted.junit is None else [("--junit", wanted.junit, junit(played, " ".join(wanted.command)))]
    if wanted.transcripts is not None:
        files += [
            ("--transcripts", wanted.transcripts / f"{each.trouble.name}.txt", each.transcript.encode())
            for each in played
        ]
    for option, path, data in files:
        try:
            path.write_bytes(data)
        except OSError as problem:
            raise WrongOption(f"{option} {path}: {problem.strerror}") from None
