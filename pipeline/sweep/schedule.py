"""Which runs go out together, and when: long ones first, in portions that get smaller towards the end.

How long a run takes is learnt as rows come back: runs of one point take about the same time. So one run of each point
goes first; until it is back, the others are guessed from the scenario's size, to the scale of what is known. A portion
is as long as keeps Spark's own effort for a task small (about 60 ms, measured), and no longer than what would leave
others without work at the end.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from typing import Final

from rejoin.pipeline.sweep.grid import Point, Run

LONGEST_PORTION_MS: Final = 4_000.0
SHORTEST_PORTION_MS: Final = 250.0
FEW_SLOTS: Final = 16
"""With more slots portions are longer, so that the driver can keep up."""
PORTIONS_LEFT_EACH: Final = 4
"""Into how many portions for each slot what is left would go."""


def size_of(point: Point) -> float:
    """A guess at how long the runs of a point take, in no unit."""
    scenario = point.scenario
    consumers = sum(max(1, group.consumers) for group in scenario.groups.values())
    return float(scenario.horizon * consumers)


class Schedule:
    """The runs that are still to be played."""

    def __init__(self, runs: Iterable[Run], points: tuple[Point, ...], slots: int) -> None:
        self.slots = max(1, slots)
        self._waiting: dict[int, deque[Run]] = {}
        for run in runs:
            self._waiting.setdefault(run.point, deque()).append(run)
        self._size = {number: size_of(points[number]) for number in self._waiting}
        self._played: dict[int, tuple[int, float]] = {}
        self._tried: set[int] = set()
        self._singles: deque[Run] = deque()

    def __len__(self) -> int:
        return len(self._singles) + sum(len(runs) for runs in self._waiting.values())

    def take(self) -> list[Run]:
        """The next portion; empty if nothing waits."""
        if self._singles:
            return [self._singles.popleft()]
        costs = {point: self._cost(point) for point, runs in self._waiting.items() if runs}
        if not costs:
            return []
        left = sum(cost * len(self._waiting[point]) for point, cost in costs.items())
        scale = max(1.0, self.slots / FEW_SLOTS)
        most = left / (self.slots * PORTIONS_LEFT_EACH)
        most = min(LONGEST_PORTION_MS * scale, max(SHORTEST_PORTION_MS * scale, most))
        portion: list[Run] = []
        spent = 0.0
        for point in sorted(costs, key=lambda each: (each in self._tried, -costs[each], each)):
            runs = self._waiting[point]
            known = point in self._played
            while runs and (not portion or (self._played and spent + costs[point] <= most)):
                portion.append(runs.popleft())
                spent += costs[point]
                if not known:
                    # A guess may be far off; one run of a point is enough to know better.
                    self._tried.add(point)
                    break
        return portion

    def played(self, run: Run, wall_ms: float) -> None:
        """Learn from a run that came back."""
        count, total = self._played.get(run.point, (0, 0.0))
        self._played[run.point] = (count + 1, total + max(1.0, wall_ms))

    def alone(self, runs: Iterable[Run]) -> None:
        """One of these took its process with it; they are played one by one to see which."""
        self._singles.extend(runs)

    def _cost(self, point: int) -> float:
        known = self._played.get(point)
        if known is not None:
            return known[1] / known[0]
        size = sum(self._size[each] * count for each, (count, _) in self._played.items())
        wall = sum(total for _, total in self._played.values())
        return self._size[point] * (wall / size if size else 1.0)
