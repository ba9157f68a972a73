"""Breadth first through every state of a world: what was met, what broke, and by which path."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from rejoin.simulation.explore.choosing import Choice
from rejoin.simulation.explore.run import ExploredRun
from rejoin.simulation.explore.world import exploring_of
from rejoin.simulation.scenario.model import Scenario
from rejoin.simulation.search.observations import Violation

Path: TypeAlias = tuple[int, ...]
"""Which of the choices was taken, one number for each step."""

_LOOKS_EVERY: Final = 200
"""After so many edges progress is shown."""


@dataclass(slots=True)
class Progress:
    """How far an exploration has come."""

    depth: int
    states: int
    edges: int
    frontier: int
    seconds: float


@dataclass(frozen=True, slots=True)
class Counterexample:
    """A shortest path to a state or an edge that breaks a rule."""

    path: Path
    labels: tuple[str, ...]
    check: str
    text: str


@dataclass(slots=True)
class Exploration:
    """What came of an exploration. ``by_depth`` counts the states that were first met after so many choices."""

    states: int = 0
    edges: int = 0
    by_depth: list[int] = field(default_factory=list)
    counterexample: Counterexample | None = None
    is_complete: bool = False
    """Whether every state was reached: nothing was left at the last depth."""


def explore(
    scenario: Scenario,
    *,
    depth: int | None = None,
    most_states: int | None = None,
    on_progress: Callable[[Progress], None] | None = None,
) -> Exploration:
    """Explore a world to a depth, or until a rule is broken or ``most_states`` have been met."""
    return _Explorer(scenario, depth or exploring_of(scenario).depth, most_states, on_progress).run()


class _Explorer:
    def __init__(
        self,
        scenario: Scenario,
        depth: int,
        most_states: int | None,
        on_progress: Callable[[Progress], None] | None,
    ) -> None:
        self.scenario = scenario
        self.depth = depth
        self.most_states = most_states
        self.on_progress = on_progress
        self.found = Exploration()
        self.seen: set[bytes] = set()
        self.began = time.monotonic()

    def run(self) -> Exploration:
        found = self.found
        root = ExploredRun(self.scenario)
        self.seen.add(root.digest())
        found.states = 1
        found.by_depth = [1]
        frontier: list[tuple[Path, ExploredRun]] = [((), root)]
        for level in range(1, self.depth + 1):
            following: list[tuple[Path, ExploredRun]] = []
            for path, run in frontier:
                for number, made in self._successors(path, run):
                    digest = made.digest()
                    if digest not in self.seen:
                        self.seen.add(digest)
                        found.states += 1
                        following.append(((*path, number), made))
                    self._show(level, len(following))
                if found.counterexample is not None:
                    return found
                if self.most_states is not None and found.states >= self.most_states:
                    return found
            if not following:
                found.is_complete = True
                return found
            found.by_depth.append(len(following))
            frontier = following
        return found

    def _successors(self, path: Path, run: ExploredRun) -> Iterator[tuple[int, ExploredRun]]:
        choices = run.choices()
        for number, choice in enumerate(choices):
            made = run.copy() if number + 1 < len(choices) else run
            self.found.edges += 1
            label = made.label(choice)
            try:
                made.take(choice)
            except Violation as violation:
                whole = (*path, number)
                labels = (*labels_of(self.scenario, path), label)
                self.found.counterexample = Counterexample(whole, labels, violation.check, violation.text)
                return
            yield number, made

    def _show(self, level: int, frontier: int) -> None:
        found = self.found
        if self.on_progress is not None and found.edges % _LOOKS_EVERY == 0:
            seconds = time.monotonic() - self.began
            self.on_progress(Progress(level, found.states, found.edges, frontier, seconds))


def replayed(scenario: Scenario, path: Path) -> Iterator[tuple[ExploredRun, Choice]]:
    """The run along a path: before each step, with the choice that the path takes."""
    run = ExploredRun(scenario)
    for number in path:
        choice = run.choices()[number]
        yield run, choice
        run.take(choice)


def labels_of(scenario: Scenario, path: Path) -> list[str]:
    """A path in words."""
    return [run.label(choice) for run, choice in replayed(scenario, path)]
