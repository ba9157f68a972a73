"""A sweep on Spark against the same runs in a plain process pool of as many workers, in turns.

The session is up and the pool's workers have imported everything before the clock starts. The sweep's time has in it
that every row is on disk. Of 1 is no overhead at all; 0.85 is the least that will do for runs of 50 ms and up.
"""

from __future__ import annotations

import multiprocessing
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median

from rich.table import Table

from benchmarks import printer
from rejoin.pipeline.spark.session import session
from rejoin.pipeline.sweep.grid import Grid, grid_from
from rejoin.pipeline.sweep.runner import LIGHT, run_grid, slots_of, spark_player
from rejoin.pipeline.sweep.store import SweepStore
from rejoin.pipeline.sweep.tasks import Task, play_task

WORKERS = 2
ROUNDS = 3
WARM_UP = 20
LEAST = 0.85

SCENARIO = """
scenario:
  horizon: 4m
  topics:
    orders: {partitions: 6, records_per_second: 0.05}
  groups:
    app:
      topics: orders
      consumers: 3
      assignor: range
      commit: after
      session_timeout: 10s
      start: {every: 200ms}
  events:
    - {at: 2m, deploy: {group: app, every: 30s, down: 8s}}
"""
CASES = {
    "400 runs of some 50 ms": (
        f"{SCENARIO}\nparameters:\n  horizon: [9m]\n  static: [false, true]\n  deploy.down: [5s, 12s]\nseeds: 100"
    ),
    "48 runs of some 0.3 s": (
        f"{SCENARIO}\nparameters:\n  topics.orders.records_per_second: [0.5]\n  consumers: [6, 8]\nseeds: 24"
    ),
    "skewed: one in ten takes 20 times as long": (
        f"{SCENARIO}\nparameters:\n  horizon: [{', '.join(f'{240 + n}s' for n in range(9))}, 80m]\nseeds: 24"
    ),
}


def main() -> None:
    """Print a table: seconds of both, and the ratio."""
    table = Table(title=f"A sweep on {WORKERS} slots against a pool of {WORKERS} processes, median of {ROUNDS} rounds")
    table.add_column("")
    for name in ("ms a run", "pool s", "sweep s", "pool / sweep", f"at least {LEAST}"):
        table.add_column(name, justify="right")
    began = time.perf_counter()
    with (
        session(f"local[{WORKERS}]", fast=True, settings=LIGHT) as spark,
        multiprocessing.get_context("spawn").Pool(WORKERS) as pool,
        tempfile.TemporaryDirectory() as folder,
    ):
        start_s = time.perf_counter() - began
        player, slots = spark_player(spark), slots_of(spark)
        warm = grid_from(f"{SCENARIO}\nseeds: {WARM_UP}")

        def by_pool(grid: Grid) -> float:
            tasks = [Task(r.key, r.seed, grid.points[r.point].text, 0, False, "v") for r in grid.runs()]
            begun = time.perf_counter()
            rows = list(pool.imap_unordered(play_task, tasks))
            assert len(rows) == len(tasks)
            return time.perf_counter() - begun

        def by_spark(grid: Grid) -> float:
            store = SweepStore(Path(tempfile.mkdtemp(dir=folder)), "v", journals=False)
            begun = time.perf_counter()
            run_grid(grid, store, player, slots)
            took = time.perf_counter() - begun
            store.close()
            return took

        for way in (by_pool, by_spark):
            way(warm)
        for name, text in CASES.items():
            pooled, swept = in_turns(distinct(grid_from(text)), by_pool, by_spark)
            ratio = median(a / b for a, b in zip(pooled, swept, strict=True))
            runs = len(list(grid_from(text).runs()))
            each = median(pooled) * WORKERS / runs * 1000
            verdict = "yes" if ratio >= LEAST else "NO"
            table.add_row(name, f"{each:.0f}", f"{median(pooled):.2f}", f"{median(swept):.2f}", f"{ratio:.2f}", verdict)
    console = printer()
    console.print(table)
    console.print(f"Before that, once: {start_s:.1f} s until Spark and the pool were up.")


def in_turns(
    grid: Grid, pooled: Callable[[Grid], float], swept: Callable[[Grid], float]
) -> tuple[list[float], list[float]]:
    """Seconds of each round of both."""
    rounds = [(pooled(grid), swept(grid)) for _ in range(ROUNDS)]
    return [a for a, _ in rounds], [b for _, b in rounds]


def distinct(grid: Grid) -> Grid:
    """The grid; equal points would be played once by a sweep and often by a pool."""
    assert len({run.key for run in grid.runs()}) == len(list(grid.runs())), "the cases have no equal points"
    return grid
