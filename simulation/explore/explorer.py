"""Breadth first through every state of a world: what was met, what broke, and by which path."""

from __future__ import annotations

import time
from array import array
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from rejoin.simulation.explore.liveness import NO_WAY, Graph, bound_of
from rejoin.simulation.explore.paths import Path, labels_of
from rejoin.simulation.explore.run import ExploredRun
from rejoin.simulation.explore.world import exploring_of
from rejoin.simulation.scenario.model import Scenario
from rejoin.simulation.search.observations import Violation

_LOOKS_EVERY: Final = 200
"""After so many edges progress is shown."""


@dataclass(slots=True)
class Reached:
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
    settled: int = 0
    """In how many states all that must hold in the end holds."""


def explore(
    scenario: Scenario,
    *,
    depth: int | None = None,
    most_states: int | None = None,
    liveness: bool = True,
    on_progress: Callable[[Reached], None] | None = None,
) -> Exploration:
    """Explore a world to a depth, or until a rule is broken or ``most_states`` have been met.

    With ``liveness`` a way to a settled state is looked for from each state that was met.
    """
    return _Explorer(scenario, depth or exploring_of(scenario).depth, most_states, liveness, on_progress).run()


class _Explorer:
    def __init__(
        self,
        scenario: Scenario,
        depth: int,
        most_states: int | None,
        liveness: bool,
        on_progress: Callable[[Reached], None] | None,
    ) -> None:
        self.scenario = scenario
        self.depth = depth
        self.most_states = most_states
        self.on_progress = on_progress
        self.found = Exploration()
        self.numbers: dict[bytes, int] = {}
        """By digest: the number of the state."""
        self.parents = array("I")
        self.steps = bytearray()
        """By state: which choice of its parent led there first."""
        self.graph = Graph() if liveness else None
        self.began = time.monotonic()

    def run(self) -> Exploration:
        found = self.found
        root = ExploredRun(self.scenario)
        self._meet(root.digest(), root, 0, 0)
        found.by_depth = [1]
        frontier: list[tuple[int, ExploredRun]] = [(0, root)]
        for level in range(1, self.depth + 1):
            following = self._expand(frontier, level)
            if found.counterexample is not None:
                return found
            if not following:
                found.is_complete = True
                frontier = []
                break
            found.by_depth.append(len(following))
            frontier = following
            if self.most_states is not None and found.states >= self.most_states:
                break
        self._look_for_ways(frontier)
        return found

    def _expand(self, frontier: list[tuple[int, ExploredRun]], level: int) -> list[tuple[int, ExploredRun]]:
        """Take every choice in every state of a depth. Returns the new states."""
        following: list[tuple[int, ExploredRun]] = []
        for state, run in frontier:
            choices = run.choices()
            for number, choice in enumerate(choices):
                made = run.copy() if number + 1 < len(choices) else run
                self.found.edges += 1
                try:
                    made.take(choice)
                except Violation as violation:
                    path = (*self.path_to(state), number)
                    labels = tuple(labels_of(self.scenario, path))
                    self.found.counterexample = Counterexample(path, labels, violation.check, violation.text)
                    return []
                digest = made.digest()
                known = self.numbers.get(digest)
                if known is None:
                    known = self._meet(digest, made, state, number)
                    following.append((known, made))
                if self.graph is not None:
                    self.graph.edge(state, choice, known)
                self._show(level, len(following))
        return following

    def _meet(self, digest: bytes, run: ExploredRun, parent: int, number: int) -> int:
        """Take in a state that was not met before. Returns its number."""
        state = self.numbers[digest] = self.found.states
        self.found.states += 1
        self.parents.append(parent)
        self.steps.append(number)
        if self.graph is not None:
            self.graph.met(run)
            self.found.settled += self.graph.settled[-1]
        return state

    def path_to(self, state: int) -> Path:
        """The path by which a state was first met."""
        path: list[int] = []
        while state:
            path.append(self.steps[state])
            state = self.parents[state]
        return tuple(reversed(path))

    def _look_for_ways(self, frontier: list[tuple[int, ExploredRun]]) -> None:
        if self.graph is None:
            return
        bound = bound_of(self.scenario)
        leaves = [(state, run.copy) for state, run in frontier]
        stuck = self.graph.stuck(leaves, bound)
        if stuck:
            path = self.path_to(stuck[0])
            text = f"{len(stuck)} of {self.found.states} states; tried for {bound // 1_000} s of virtual time"
            self.found.counterexample = Counterexample(path, tuple(labels_of(self.scenario, path)), NO_WAY, text)

    def _show(self, level: int, frontier: int) -> None:
        found = self.found
        if self.on_progress is not None and found.edges % _LOOKS_EVERY == 0:
            seconds = time.monotonic() - self.began
            self.on_progress(Reached(level, found.states, found.edges, frontier, seconds))
