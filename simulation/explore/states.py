"""The states that were met, in few bytes each, and those of one depth, to be gone on from.

A depth is kept as runs, as snapshots, and beyond a bound as numbers only. What is a number is played again. States come
in the order in which they were met, so brothers follow each other, and a run is played on from the deepest ancestor
that it shares with the one before: mostly the parent.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterator
from typing import Final

from rejoin.simulation.explore.copying import RunSnapshot
from rejoin.simulation.explore.paths import Path
from rejoin.simulation.explore.run import ExploredRun

_DIGEST: Final = 16
_FIRST_SIZE: Final = 1 << 12
"""How many places the table has at first. Their number is a power of two."""
LIVE: Final = 500
"""How many states of a depth are kept as runs, which take about 200 kB each, and no time."""
KEPT: Final = 20_000
"""How many more are kept as snapshots, which take about 30 kB each."""


class States:
    """States by digest and by number, in the order in which they were met.

    A state takes 16 bytes for its digest, 4 for its parent's number, 1 for the choice, and 6 to 12 for its place in an
    open-addressing table of numbers: about 30, where a dict of digests took 170.
    """

    def __init__(self) -> None:
        self._digests = bytearray()
        self._parents = array("I")
        self._choices = bytearray()
        self._table = array("I", bytes(4 * _FIRST_SIZE))
        """By hash: the number of a state and 1, or 0 where the place is free."""

    def __len__(self) -> int:
        return len(self._parents)

    def number_of(self, digest: bytes) -> int | None:
        """The number of a state that was met; none of another."""
        found = self._table[self._place(digest)]
        return found - 1 if found else None

    def add(self, digest: bytes, parent: int, choice: int) -> int:
        """Take in a state that was not met before. Returns its number."""
        if 3 * len(self) >= 2 * len(self._table):
            self._grow()
        number = len(self)
        self._table[self._place(digest)] = number + 1
        self._digests += digest
        self._parents.append(parent)
        self._choices.append(choice)
        return number

    def parent_of(self, state: int) -> tuple[int, int]:
        """The state from which another was met first, and by which choice there. The first state is its own parent."""
        return self._parents[state], self._choices[state]

    def path_to(self, state: int) -> Path:
        """The path by which a state was first met."""
        path: list[int] = []
        while state:
            path.append(self._choices[state])
            state = self._parents[state]
        return tuple(reversed(path))

    def size(self) -> int:
        """Bytes of memory that are in use."""
        tables = len(self._parents) * self._parents.itemsize + len(self._table) * self._table.itemsize
        return len(self._digests) + len(self._choices) + tables

    def _place(self, digest: bytes) -> int:
        """Where a digest is in the table, or would be."""
        table, digests, mask = self._table, self._digests, len(self._table) - 1
        place = int.from_bytes(digest[:8], "little") & mask
        while number := table[place]:
            if digests[_DIGEST * (number - 1) : _DIGEST * number] == digest:
                break
            place = (place + 1) & mask
        return place

    def _grow(self) -> None:
        size = 2 * len(self._table)
        table, digests, mask = array("I", bytes(4 * size)), self._digests, size - 1
        for number in range(1, len(self) + 1):
            at = _DIGEST * (number - 1)
            place = int.from_bytes(digests[at : at + 8], "little") & mask
            while table[place]:
                place = (place + 1) & mask
            table[place] = number
        self._table = table


class Frontier:
    """The states of a depth."""

    def __init__(self, ancestry: Ancestry, live: int = LIVE, kept: int = KEPT) -> None:
        self._ancestry = ancestry
        self._live = live
        self._kept = kept
        self._numbers = array("I")
        self._runs: list[ExploredRun | RunSnapshot[ExploredRun] | None] = []

    def __len__(self) -> int:
        return len(self._numbers)

    def add(self, state: int, run: ExploredRun) -> None:
        """Take in a state."""
        self._numbers.append(state)
        if len(self._runs) < self._live:
            self._runs.append(run)
        elif len(self._runs) < self._live + self._kept:
            self._runs.append(RunSnapshot(run))

    def taken(self) -> Iterator[tuple[int, ExploredRun | RunSnapshot[ExploredRun]]]:
        """Each state as a run of its own, or as a snapshot, and nothing is left of it here."""
        for at, state in enumerate(self._numbers):
            kept = None
            if at < len(self._runs):
                kept, self._runs[at] = self._runs[at], None
            yield state, self._ancestry.run_of(state) if kept is None else kept

    def copies(self) -> Iterator[tuple[int, Callable[[], ExploredRun]]]:
        """Each state with a way to a run of its own."""
        for at, state in enumerate(self._numbers):
            kept = self._runs[at] if at < len(self._runs) else None
            if kept is None:
                yield state, lambda state=state: self._ancestry.run_of(state)  # type: ignore[misc]
            else:
                yield state, kept.restore if isinstance(kept, RunSnapshot) else kept.copy


class Ancestry:
    """Plays states again: keeps snapshots along the path to the last one."""

    def __init__(self, root: ExploredRun, states: States) -> None:
        self._states = states
        self._trail = [(0, RunSnapshot(root))]
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
                trail.append((number, RunSnapshot(run)))
        return run
