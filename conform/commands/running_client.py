"""One run of ``rejoin conform-client``: checks what is wanted, plays the troubles, prints, writes."""

from __future__ import annotations

import asyncio
import math
import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from rejoin.atomic_file import FileNotWritten, check_writable
from rejoin.client.commands.setting_options import WrongOption
from rejoin.conform.clients.observed import ClientOutcome
from rejoin.conform.clients.playing import PlayedTrouble, play
from rejoin.conform.clients.program import ClientProcess, NotStarted
from rejoin.conform.clients.reports import junit, listed, row, summary
from rejoin.conform.clients.stage import TimeLimits
from rejoin.conform.clients.trouble import ClientTrouble
from rejoin.conform.clients.troubles import BY_NAME, TROUBLES
from rejoin.coordinator.testing.coordinator import GroupCoordinator
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


def main(wanted: WantedTroubles) -> int:
    """Run; the exit code."""
    try:
        troubles = chosen(wanted)
        if wanted.lists:
            print_text(listed(troubles))
            return PASSED
        if not wanted.command:
            raise WrongOption("expected a command after --, with its arguments: rejoin conform-client -- COMMAND")
        if os.name == "nt":
            raise PosixNeeded("rejoin conform-client")
        if wanted.junit is not None:
            check_writable("--junit", wanted.junit)
        if wanted.transcripts is not None:
            _make_folder(wanted.transcripts)
        return asyncio.run(_run(wanted, troubles))
    except (WrongOption, FileNotWritten, NotStarted) as problem:
        return refuse(problem)
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

    async def start(coordinator: GroupCoordinator) -> ClientProcess:
        return await ClientProcess.start(wanted.command, coordinator.bootstrap_servers)

    def show_progress() -> None:
        if sys.stderr.isatty():
            print_progress(f"playing {', '.join(running)}".ljust(78)[:78])

    async def one(trouble: ClientTrouble) -> PlayedTrouble:
        async with places:
            running.append(trouble.name)
            show_progress()
            played = await play(trouble, start, limits)
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
