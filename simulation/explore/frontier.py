"""The states of one depth, to be gone on from: as runs, as snapshots, and beyond a bound as numbers only.

Those that are numbers are played again. They come in the order in which they were met, so brothers follow each other,
and a run is played on from the deepest ancestor that it shares with the one before: mostly the parent.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterator
from typing import Final

from rejoin.simulation.explore.copying import Snapshot
from rejoin.simulation.explore.run import ExploredRun
from rejoin.simulation.explore.states import States

LIVE: Final = 500
"""How many states of a depth are kept as runs, which take about 200 kB each, and no time."""
KEPT: Final = 20_000
"""How many more are kept as snapshots, which take about 30 kB each."""


class Frontier:
    """The states of a depth."""

    def __init__(self, ancestry: Ancestry, live: int = LIVE, kept: int = KEPT) -> None:
        self._ancestry = ancestry
        self._live = live
        self._kept = kept
        self._numbers = array("I")
        self._runs: list[ExploredRun | Snapshot[ExploredRun] | None] = []

    def __len__(self) -> int:
        return len(self._numbers)

    def add(self, state: int, run: ExploredRun) -> None:
        """Take in a state."""
        self._numbers.append(state)
        if len(self._runs) < self._live:
            self._runs.append(run)
        elif len(self._runs) < self._live + self._kept:
            self._runs.append(Snapshot(run))

    def taken(self) -> Iterator[tuple[int, ExploredRun]]:
        """Each state with a run of its own, and nothing is left of it here."""
        for at, state in enumerate(self._numbers):
            kept = None
            if at < len(self._runs):
                kept, self._runs[at] = self._runs[at], None
            if isinstance(kept, Snapshot):
                kept = kept.restore()
            yield state, self._ancestry.run_of(state) if kept is None else kept

    def copies(self) -> Iterator[tuple[int, Callable[[], ExploredRun]]]:
        """Each state with a way to a run of its own."""
        for at, state in enumerate(self._numbers):
            kept = self._runs[at] if at < len(self._runs) else None
            if kept is None:
                yield state, lambda state=state: self._ancestry.run_of(state)  # type: ignore[misc]
            else:
                yield state, kept.restore if isinstance(kept, Snapshot) else kept.copy


class Ancestry:
    """Plays states again: keeps snapshots along the path to the last one."""

    def __init__(self, root: ExploredRun, states: States) -> None:
        self._states = states
        self._trail = [(0, Snapshot(root))]
        self.played = 0
        """How many steps were played again."""

    def run_of(self, state: int) -> ExploredRun:
        """A run of its own in a state."""
        line = [state]
        while line[-1]:
            line.append(self._states.parent_of(line[-1])[0])
        line.reverse()
        trail = self._trail
        common = 0
        while common < min(len(trail), len(line)) and trail[common][0] == line[common]:
            common += 1
        del trail[common:]
        run = trail[-1][1].restore()
        for number in line[common:]:
            run.take(run.choices()[self._states.parent_of(number)[1]])
            self.played += 1
            if number != state:
                trail.append((number, Snapshot(run)))
        return run
