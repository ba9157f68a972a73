"""Work and output of ``rejoin explore``. Its options are in ``parser``."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from difflib import get_close_matches
from pathlib import Path
from typing import Final

from rich.progress import Progress, SpinnerColumn, TextColumn

from rejoin.console import VisibleConsole
from rejoin.error_lines import refuse
from rejoin.output import print_text
from rejoin.simulation.explore.explorer import Counterexample, Exploration, Reached
from rejoin.simulation.explore.explorer import explore as explored
from rejoin.simulation.explore.paths import text_along, transcript_along
from rejoin.simulation.explore.world import WORLDS, exploring_of, read_world
from rejoin.simulation.scenario.gallery import names
from rejoin.simulation.scenario.model import Scenario
from rejoin.simulation.scenario.reading import BadScenario

STOPPED: Final = 130
"""Exit code after Ctrl-C."""

_WIDEST: Final = 40
"""Columns of the longest bar."""
_MOST_ROWS: Final = 24


def explore(
    world: Path,
    depth: int | None,
    states: int | None,
    into: Path | None,
    *,
    liveness: bool,
    spark: bool,
    master: str | None,
) -> int:
    """Explore a world."""
    try:
        if master is not None and not spark:
            return refuse("--master goes with --spark; leave it out, or add --spark")
        for option, value in (("--depth", depth), ("--states", states)):
            if value is not None and value < 1:
                return refuse(f"{option} {value}: expected a number of at least 1")
        scenario = read_world(_found(world))
        if into is not None:
            into.mkdir(parents=True, exist_ok=True)
    except BadScenario as problem:
        return refuse(problem)
    except OSError as problem:
        return refuse(f"--into {into}: cannot be written: {problem.strerror}; expected a directory")
    began = time.monotonic()
    reached: list[Reached] = []
    try:
        found = _explored(scenario, depth, states, reached, liveness=liveness, spark=spark, master=master)
    except KeyboardInterrupt:
        print_text(_stopped(reached[-1] if reached else None))
        return STOPPED
    _report(scenario, found, time.monotonic() - began, states)
    if found.counterexample is None:
        return 0
    _show_path(scenario, found.counterexample, into, world.stem)
    return 1


def _explored(
    scenario: Scenario,
    depth: int | None,
    states: int | None,
    reached: list[Reached],
    *,
    liveness: bool,
    spark: bool,
    master: str | None,
) -> Exploration:
    """Explore, here or on Spark. ``reached`` ends with how far it came."""
    with _shown() as show:

        def on_progress(now: Reached) -> None:
            reached[:] = [now]
            show(now)

        if spark:
            from rejoin.pipeline.explore.rounds import explore_on_spark  # noqa: PLC0415
            from rejoin.pipeline.spark.session import spark_session  # noqa: PLC0415

            session = spark_session(master, app="rejoin explore")
            return explore_on_spark(session, scenario, depth=depth, most_states=states, on_progress=on_progress)
        return explored(scenario, depth=depth, most_states=states, liveness=liveness, on_progress=on_progress)


def _stopped(reached: Reached | None) -> str:
    if reached is None:
        return "stopped before the first depth was explored"
    return (
        f"stopped at depth {reached.depth}, after {reached.states:,} states: no invariant was violated until then; "
        f"--depth {max(1, reached.depth)} ends there, and looks for ways to settle"
    )


def _found(world: Path) -> Path:
    """The file of a world. Raises :class:`BadScenario`."""
    if world.exists():
        return world
    known = sorted(path.stem for path in WORLDS.glob("*.yaml"))
    if world.name in known:
        return WORLDS / f"{world.name}.yaml"
    near = get_close_matches(world.name, known, n=1)
    if not near and world.name in names():
        problem = "is a scenario, and no world; rejoin simulate plays it, and docs/explore.md describes worlds"
        raise BadScenario(str(world), None, problem)
    hint = f"is it {near[0]}?" if near else f"those of Rejoin are {', '.join(known)}"
    raise BadScenario(str(world), None, f"there is no such file and no such world; {hint}")


@contextmanager
def _shown() -> Iterator[Callable[[Reached], None]]:
    """Progress on the terminal: states, states a second, frontier, depth, memory."""
    console = VisibleConsole(stderr=True)
    columns = SpinnerColumn(), TextColumn("{task.description}")
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task("begins")

        def show(reached: Reached) -> None:
            rate = reached.states / max(reached.seconds, 0.001)
            bar.update(
                task,
                description=f"depth {reached.depth}: {reached.states:,} states, {rate:,.0f} a second, "
                f"{reached.frontier:,} in the frontier{_memory()}",
            )

        yield show


def _memory() -> str:
    """The memory of this process at its most, where the system says it."""
    try:
        import resource  # noqa: PLC0415
    except ImportError:
        return ""
    return f", {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1_024:,} MB"


def _report(scenario: Scenario, found: Exploration, seconds: float, most_states: int | None) -> None:
    depth = len(found.by_depth) - 1
    print_text(
        f"{_counted(found.states, 'state')}, {_counted(found.edges, 'step')}, depth {depth}, "
        f"{found.states / max(seconds, 0.001):,.0f} states a second"
    )
    widest = max(found.by_depth)
    every = -(-len(found.by_depth) // _MOST_ROWS)
    for level in range(0, len(found.by_depth), every):
        count = found.by_depth[level]
        print_text(f"  depth {level:>4}  {count:>9,}  {'█' * max(1, round(_WIDEST * count / widest))}")
    if found.is_complete:
        print_text("complete: every state was reached")
    elif found.counterexample is None:
        is_full = most_states is not None and found.states >= most_states
        goes_on = "more --states go" if is_full else "--depth goes"
        print_text(f"states beyond depth {depth} were not reached; {goes_on} deeper")
    if found.counterexample is None:
        faults = exploring_of(scenario).faults
        has = "has" if found.settled == 1 else "have"
        ways = (
            f"; {_counted(found.settled, 'state')} {has} settled, and from each state a way leads there"
            if found.settled
            else ""
        )
        print_text(f"nothing broke, with up to {_counted(faults, 'fault')} a path{ways}")


def _counted(count: int, noun: str) -> str:
    return f"{count:,} {noun if count == 1 else noun + 's'}"


def _show_path(scenario: Scenario, found: Counterexample, into: Path | None, name: str) -> None:
    print_text(f"\n{found.check.replace('_', ' ')}: {found.text}")
    print_text(f"after {_counted(len(found.path), 'step')}, a shortest path:\n")
    for label in found.labels:
        print_text(label)
    text, transcript = text_along(scenario, found.path), transcript_along(scenario, found.path)
    if into is None:
        print_text(f"\nas a scenario, which rejoin simulate plays and rejoin lab opens:\n\n{text}")
        print_text(f"as a transcript, which rejoin transcript play FILE plays:\n\n{transcript}")
        return
    (into / f"{name}.yaml").write_text(text, encoding="utf-8")
    (into / f"{name}.txt").write_text(transcript, encoding="utf-8")
    print_text(f"\nwritten to {into}: rejoin lab {into / f'{name}.yaml'}")
