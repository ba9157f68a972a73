"""Trade-offs behind a ranking: settings that no other beats, and pairs of parameters that depend on each other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from statistics import fmean, median
from typing import Any, Final, TypeAlias

from rejoin.pipeline.sweep.grid import RANKED_BY, Axis, Grid, Point

Row: TypeAlias = dict[str, Any]

RESPECTS: Final = ("rebalances", "stopped", "unowned", "late", "twice")
"""In these respects settings are compared with one another, and an answer can be ranked by each."""

_SHARE: Final = 0.1
"""From this share of the variance on that neither parameter explains by itself, a pair is shown."""


@dataclass(frozen=True, slots=True)
class Interaction:
    """Two parameters, and the median of a measure for each pair of their values."""

    first: Axis
    second: Axis
    cells: tuple[tuple[float, ...], ...]
    unexplained: float
    """Sum of the squares that are left when the effects of both are added."""


def unbeaten(medians: Mapping[int, Sequence[float]]) -> set[int]:
    """The points that no other beats: none is as good in every respect and better in one. Less is better."""
    found: set[int] = set()
    front: list[tuple[float, ...]] = []
    for scores in sorted({tuple(each) for each in medians.values()}):
        # In this order no later one beats an earlier one.
        if not any(all(a <= b for a, b in zip(other, scores, strict=True)) for other in front):
            front.append(scores)
    best = set(front)
    for number, each in medians.items():
        if tuple(each) in best:
            found.add(number)
    return found


def columns_compared() -> list[str]:
    """The columns of the respects in which settings are compared."""
    return [RANKED_BY[name] for name in RESPECTS]


def interactions(
    grid: Grid, runs: Sequence[tuple[Point, Sequence[Row]]], column: str, most: int = 3
) -> list[Interaction]:
    """The pairs of parameters of which one changes what the other does to a measure, strongest first."""
    found = []
    axes = [(index, axis) for index, axis in enumerate(grid.axes) if len(axis.values) > 1]
    for (i, first), (j, second) in combinations(axes, 2):
        values: list[list[list[float]]] = [[[] for _ in second.values] for _ in first.values]
        for point, rows in runs:
            values[point.chosen[i]][point.chosen[j]] += [row[column] for row in rows]
        if any(not cell for line in values for cell in line):
            continue
        cells = tuple(tuple(median(cell) for cell in line) for line in values)
        total, left = _variance(cells)
        if left > 0 and left >= _SHARE * total:
            found.append(Interaction(first, second, cells, left))
    found.sort(key=lambda each: -each.unexplained)
    return found[:most]


def _variance(cells: tuple[tuple[float, ...], ...]) -> tuple[float, float]:
    """The sum of squares around the mean, and around the sum of both effects."""
    mean = fmean(value for line in cells for value in line)
    by_line = [fmean(line) - mean for line in cells]
    by_column = [fmean(column) - mean for column in zip(*cells, strict=True)]
    total = sum((value - mean) ** 2 for line in cells for value in line)
    left = sum(
        (cells[i][j] - mean - by_line[i] - by_column[j]) ** 2
        for i in range(len(by_line))
        for j in range(len(by_column))
    )
    return total, round(left, 9)
