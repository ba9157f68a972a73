"""Portions of runs: every run once, long ones first, no task idle at the end. Time is counted here, not taken."""

from __future__ import annotations

from heapq import heappop, heappush
from random import Random

import pytest

from rejoin.pipeline.sweep.grid import Run, grid_from
from rejoin.pipeline.sweep.schedule import LONGEST_PORTION_MS, Schedule
from tests.pipeline.sweep.sweeps import SCENARIO

JOB_MS = 60.0
"""What a portion costs beside its runs."""


def played_on(slots: int, cost: dict[int, float], seeds: int) -> tuple[float, list[list[Run]]]:
    """Hand everything out to so many slots: how long it takes until the last is done, and the portions."""
    points = f"{SCENARIO}\nseeds: {seeds}\nparameters:\n  app.revoke: {[f'{n}ms' for n in range(len(cost))]}"
    grid = grid_from(points)
    schedule = Schedule(grid.runs(), grid.points, slots)
    busy: list[tuple[float, int, list[Run]]] = []
    portions: list[list[Run]] = []
    now = 0.0
    while schedule or busy:
        while schedule and len(busy) < slots:
            portion = schedule.take()
            portions.append(portion)
            heappush(busy, (now + JOB_MS + sum(cost[run.point] for run in portion), len(portions), portion))
        now, _, done = heappop(busy)
        for run in done:
            schedule.played(run, cost[run.point])
    return now, portions


@pytest.mark.parametrize("slots", [1, 2, 8, 64])
@pytest.mark.parametrize("seed", range(5))
def test_every_run_goes_out_exactly_once(slots: int, seed: int) -> None:
    random = Random(seed)
    cost = {point: random.choice((1.0, 40.0, 3_000.0)) for point in range(random.randint(1, 12))}
    _, portions = played_on(slots, cost, random.randint(1, 60))
    runs = [(run.point, run.seed) for portion in portions for run in portion]
    assert len(runs) == len(set(runs))
    assert {point for point, _ in runs} == set(cost)


@pytest.mark.parametrize("slots", [2, 4, 16])
def test_runs_that_take_a_hundred_times_as_long_leave_no_task_idle(slots: int) -> None:
    cost = {point: 5_000.0 if point == 7 else 50.0 for point in range(10)}
    seeds = 40 * slots // 2
    took, _ = played_on(slots, cost, seeds)
    ideal = seeds * sum(cost.values()) / slots
    assert took < 1.06 * ideal


@pytest.mark.parametrize("slots", [2, 4])
def test_runs_of_50_ms_cost_little_more_than_themselves(slots: int) -> None:
    seeds = 500 * slots
    took, portions = played_on(slots, {0: 50.0}, seeds)
    assert took < 1.06 * seeds * 50 / slots
    assert len(portions) < seeds / 10


def test_what_takes_longest_goes_first_as_soon_as_it_is_known() -> None:
    _, portions = played_on(2, {0: 10.0, 1: 900.0, 2: 100.0}, 300)
    order = [run.point for portion in portions for run in portion]
    assert sorted(order[:3]) == [0, 1, 2]
    # Some short ones may go out while the first long one has not come back.
    last = {point: len(order) - 1 - order[::-1].index(point) for point in range(3)}
    assert last[1] < last[2] < last[0]


def test_a_portion_is_never_much_longer_than_its_limit() -> None:
    cost = {0: 700.0, 1: 90.0}
    _, portions = played_on(2, cost, 300)
    assert max(sum(cost[run.point] for run in portion) for portion in portions) <= LONGEST_PORTION_MS + 700


def test_runs_that_died_together_are_played_one_by_one() -> None:
    grid = grid_from(f"{SCENARIO}\nseeds: 6")
    runs = list(grid.runs())
    schedule = Schedule(runs[3:], grid.points, 1)
    schedule.alone(runs[:3])
    assert [schedule.take() for _ in range(3)] == [[run] for run in runs[:3]]
    assert len(schedule) == 3
