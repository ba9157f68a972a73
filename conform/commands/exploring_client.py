"""One run of ``rejoin explore-client``: plays the seeds or the order, shrinks what fails, prints, writes."""

from __future__ import annotations

import asyncio
import math
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from rejoin.client.commands.setting_options import WrongOption
from rejoin.conform.clients.program import ClientProcess, NotStarted
from rejoin.conform.clients.stage import TimeLimits
from rejoin.conform.exploring.orders import Chooser, ListedChooser, SeededChooser, WrongOrder, read_order, shrunk
from rejoin.conform.exploring.play import PlayedOrder, play
from rejoin.coordinator.testing.coordinator import GroupCoordinator
from rejoin.error_lines import refuse
from rejoin.files import read_text
from rejoin.output import print_text
from rejoin.posix import PosixNeeded, stop_signals
from rejoin.seed_ranges import BadRange, parse_seeds

PASSED, FAILED, NOT_PLAYED, STOPPED = 0, 1, 2, 130
MOST_STEPS: Final = 10_000
MOST_BROKERS: Final = 9
LONGEST_TIMEOUT: Final = 600.0
AGAIN: Final = 3
"""How often a shrunk order is played again, to say how often it fails."""

LOOKS: Final = 20
TRIES: Final = 2
"""How often a shorter order may pass before it counts as one that does not fail: a client's timing is its own."""


@dataclass(frozen=True)
class WantedPlays:
    """The options of the command."""

    command: tuple[str, ...]
    seeds: str = "0:10"
    steps: int = 80
    order: Path | None = None
    shrink: int | None = None
    timeout: float = 30.0
    into: Path | None = None
    brokers: int = 1
    errors: bool = False

    @property
    def looks(self) -> int:
        """How many shorter orders are tried where one fails: by itself, an order that was given is played as it is."""
        if self.shrink is not None:
            return self.shrink
        return LOOKS if self.order is None else 0


def main(wanted: WantedPlays) -> int:
    """Run; the exit code."""
    try:
        choosers = _choosers(wanted)
        if not wanted.command:
            raise WrongOption("expected a command after --, with its arguments: rejoin explore-client -- COMMAND")
        if os.name == "nt":
            raise PosixNeeded("rejoin explore-client")
        if wanted.into is not None:
            try:
                wanted.into.mkdir(parents=True, exist_ok=True)
            except OSError as problem:
                raise WrongOption(f"--into {wanted.into}: {problem.strerror}; expected a directory") from None
        return asyncio.run(_run(wanted, choosers))
    except (BadRange, NotStarted, WrongOption) as problem:
        return refuse(problem)
    except (KeyboardInterrupt, asyncio.CancelledError):
        return STOPPED


def _choosers(wanted: WantedPlays) -> dict[str, Chooser]:
    """Choosers by the name of the play. Raises WrongOption and BadRange."""
    if not 0 < wanted.steps <= MOST_STEPS:
        raise WrongOption(f"--steps {wanted.steps}: expected 1 to {MOST_STEPS}")
    if not 0 < wanted.brokers <= MOST_BROKERS:
        raise WrongOption(f"--brokers {wanted.brokers}: expected 1 to {MOST_BROKERS}")
    if wanted.looks < 0:
        raise WrongOption(f"--shrink {wanted.shrink}: expected 0 or more")
    if not math.isfinite(wanted.timeout) or not 0 < wanted.timeout <= LONGEST_TIMEOUT:
        raise WrongOption(f"--timeout {wanted.timeout:g}: expected up to {LONGEST_TIMEOUT:g} seconds, and more than 0")
    if wanted.order is not None:
        try:
            return {"order": ListedChooser(read_order(read_text(wanted.order)))}
        except OSError as problem:
            raise WrongOption(f"--order {wanted.order}: {problem.strerror}; expected a file of choices") from None
        except UnicodeDecodeError:
            expected = "expected one choice a line, such as Fetch or wait"
            raise WrongOption(f"--order {wanted.order}: is not UTF-8 text; {expected}") from None
        except WrongOrder as problem:
            where = "" if problem.line is None else f":{problem.line}"
            raise WrongOption(f"--order {wanted.order}{where}: {problem}") from None
    first, last = parse_seeds(wanted.seeds)
    return {f"seed-{seed}": SeededChooser(seed, wanted.steps, errors=wanted.errors) for seed in range(first, last)}


async def _run(wanted: WantedPlays, choosers: dict[str, Chooser]) -> int:
    """Play, until SIGTERM or SIGINT comes: then the program is ended, too."""
    playing = asyncio.ensure_future(_play_all(wanted, choosers))
    with stop_signals(asyncio.get_running_loop(), playing.cancel):
        return await playing


async def _play_all(wanted: WantedPlays, choosers: dict[str, Chooser]) -> int:
    failed = 0
    for name, chooser in choosers.items():
        played = await _play(wanted, chooser)
        if not played.is_played:
            hint = "a play begins with the client's first assignment; rejoin explore-client --help has examples"
            print_text(f"{name}  not played  {played.problem}; {hint}", flush=True)
            return NOT_PLAYED
        said = [played.problem] if played.problem else []
        said += [f"choices that could not be made: {played.unmet}"] if played.unmet else []
        print_text(f"{name}  {'failed' if played.problem else 'passed'}  {'; '.join(said)}".rstrip(), flush=True)
        if played.problem:
            failed += 1
            await _explain(wanted, name, played)
    print_text(f"\n{len(choosers)} played, {failed} failed")
    return FAILED if failed else PASSED


async def _play(wanted: WantedPlays, chooser: Chooser) -> PlayedOrder:
    async def start(coordinator: GroupCoordinator) -> ClientProcess:
        return await ClientProcess.start(wanted.command, coordinator.bootstrap_servers)

    limits = TimeLimits(wanted.timeout, wanted.timeout, wanted.timeout)
    return await play(chooser, start, limits, wanted.brokers)


async def _explain(wanted: WantedPlays, name: str, played: PlayedOrder) -> None:
    """Shrink a failing order, say how often it fails, print and write it."""
    found: Sequence[str] = played.order
    shown = played

    async def fails(order: Sequence[str], tries: int = TRIES) -> bool:
        nonlocal shown
        for _ in range(tries):
            again = await _play(wanted, ListedChooser(order))
            if again.problem and again.is_played:
                shown = again
                return True
        return False

    said = ""
    if wanted.looks:
        found = await shrunk(found, fails, wanted.looks)
        times = sum([await fails(found, 1) for _ in range(AGAIN)])
        said = f"; it failed in {times} of {AGAIN} more plays"
    head = f"order: {len(found)} choices{said}"
    if wanted.order is None or wanted.looks:
        print_text("\n".join([f"  {head}", *(f"    {each}" for each in found)]), flush=True)
    if wanted.into is not None:
        text = "\n".join([f"# {shown.problem}", f"# {head}", *found, ""])
        for path, content in ((f"{name}.order", text), (f"{name}.txt", shown.transcript)):
            try:
                (wanted.into / path).write_text(content)
            except OSError as problem:
                raise WrongOption(f"--into {wanted.into / path}: {problem.strerror}; expected a directory") from None
