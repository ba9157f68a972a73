"""Breadth first through every state of a world: what was met, what broke, and by which path."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from rejoin.simulation.explore.copying import RunSnapshot
from rejoin.simulation.explore.liveness import NO_WAY, Graph, bound_of
from rejoin.simulation.explore.paths import Path, labels_of
from rejoin.simulation.explore.reduction import AWAKE, Sleepers, check_reducible, sleep_after
from rejoin.simulation.explore.run import ExploredRun
from rejoin.simulation.explore.states import Ancestry, Frontier, States
from rejoin.simulation.explore.world import exploring_of
from rejoin.simulation.scenario.model import Scenario
from rejoin.simulation.search.observations import Violation

_COLLECT_EVERY: Final = (15_000, 5, 100)
"""Python's thresholds of looks for reference cycles, of which runs are full: objects of ten runs, which a cache holds,
took half the time of those of seventy."""
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
    """The result of an exploration. ``by_depth`` counts the states that were first met after so many choices."""

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
    reduction: bool = False,
    symmetry: bool = True,
    on_progress: Callable[[Reached], None] | None = None,
) -> Exploration:
    """Explore a world to a depth, or until a rule is broken or ``most_states`` have been met.

    With ``liveness`` a way to a settled state is looked for from each state that was met. With ``reduction`` of
    independent steps one order is taken: the same states, by fewer edges, and without ``liveness``, which needs all.
    Without ``symmetry``, and with ``reduction``, members keep their places also where the world lets them change.
    """
    if reduction:
        check_reducible(scenario)
        liveness = False
    before = gc.get_threshold()
    # Runs are full of reference cycles, so they are collected, but not while each of them is made.
    gc.set_threshold(*_COLLECT_EVERY)
    try:
        return _Explorer(
            scenario, depth or exploring_of(scenario).depth, most_states, liveness, reduction, symmetry, on_progress
        ).run()
    finally:
        gc.set_threshold(*before)


class _Explorer:
    def __init__(
        self,
        scenario: Scenario,
        depth: int,
        most_states: int | None,
        liveness: bool,
        reduction: bool,
        symmetry: bool,
        on_progress: Callable[[Reached], None] | None,
    ) -> None:
        self.scenario = scenario
        self.depth = depth
        self.most_states = most_states
        self.on_progress = on_progress
        self.found = Exploration()
        self.states = States()
        self.graph = Graph() if liveness else None
        self.symmetry = symmetry and not reduction
        self.sleepers = Sleepers() if reduction else None
        self.began = time.monotonic()

    def run(self) -> Exploration:
        found = self.found
        try:
            root = ExploredRun(self.scenario, symmetry=self.symmetry)
        except Violation as violation:
            found.counterexample = Counterexample((), (), violation.check, violation.text)
            return found
        self._meet(root.digest(), root, 0, 0)
        found.by_depth = [1]
        ancestry = Ancestry(root, self.states)
        frontier = Frontier(ancestry)
        frontier.add(0, root)
        for level in range(1, self.depth + 1):
            following = Frontier(ancestry)
            before = found.states
            self._expand(frontier, following, level)
            if found.counterexample is not None:
                return found
            frontier = following
            if not following:
                found.is_complete = True
                break
            if found.states > before:
                found.by_depth.append(found.states - before)
            if self.most_states is not None and found.states >= self.most_states:
                break
        self._look_for_ways(frontier)
        return found

    def _expand(self, frontier: Frontier, following: Frontier, level: int) -> None:
        """Take every choice in every state of a depth, and take in the new states."""
        sleepers = self.sleepers
        for state, kept in frontier.taken():
            before, run = (kept, kept.restore()) if isinstance(kept, RunSnapshot) else (None, kept)
            choices = run.choices()
            takes, quiet = (choices, []) if sleepers is None else sleepers.to_take(state, choices)
            if before is None and len(takes) > 1:
                before = RunSnapshot(run)
            ids = run.world.ids
            for at, choice in enumerate(takes, 1):
                made = run if before is None or at == len(takes) else before.restore()
                number = choices.index(choice)
                self.found.edges += 1
                try:
                    made.take(choice)
                except Violation as violation:
                    path = (*self.states.path_to(state), number)
                    labels = tuple(labels_of(self.scenario, path))
                    self.found.counterexample = Counterexample(path, labels, violation.check, violation.text)
                    return
                digest = made.digest()
                known = self.states.number_of(digest)
                is_new = known is None
                if known is None:
                    known = self._meet(digest, made, state, number)
                    following.add(known, made)
                if sleepers is not None:
                    sleep = sleep_after(choice, quiet) if made.world.ids == ids else AWAKE
                    if made.world.ids == ids:
                        quiet.append(choice)
                    if is_new:
                        sleepers.met(known, sleep)
                    elif sleepers.met_again(known, sleep):
                        following.add(known, made)
                if self.graph is not None:
                    self.graph.edge(state, choice, known)
                self._show(level, len(following))

    def _meet(self, digest: bytes, run: ExploredRun, parent: int, number: int) -> int:
        """Take in a state that was not met before. Returns its number."""
        state = self.states.add(digest, parent, number)
        self.found.states += 1
        if self.graph is not None:
            self.graph.met(run)
            self.found.settled += self.graph.settled[-1]
        return state

    def _look_for_ways(self, frontier: Frontier) -> None:
        if self.graph is None:
            return
        bound = bound_of(self.scenario)
        stuck = self.graph.stuck(frontier.copies(), bound)
        if stuck:
            path = self.states.path_to(stuck[0])
            text = f"{len(stuck)} of {self.found.states} states; tried for {bound // 1_000} s of virtual time"
            self.found.counterexample = Counterexample(path, tuple(labels_of(self.scenario, path)), NO_WAY, text)

    def _show(self, level: int, frontier: int) -> None:
        found = self.found
        if self.on_progress is not None and found.edges % _LOOKS_EVERY == 0:
            seconds = time.monotonic() - self.began
            self.on_progress(Reached(level, found.states, found.edges, frontier, seconds))
