"""What the tests of sweeps play: a group of three that is deployed anew, four minutes of it, some 30 ms a run."""

from __future__ import annotations

from pathlib import Path

from rejoin.pipeline.sweep import ranking, results
from rejoin.pipeline.sweep.grid import Grid, grid_from
from rejoin.pipeline.sweep.runner import Play, Row, SweepProgress, run_grid
from rejoin.pipeline.sweep.store import SweepStore
from rejoin.pipeline.sweep.tasks import Task, play_task

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
count_from: 1m
"""
GRID = f"""
question: What makes a rolling deploy of three cheap?
{SCENARIO}
parameters:
  static: [false, true]
  deploy.down: [5s, 12s]
seeds: 4
"""
SAME = ("runs.csv", "runs.json", "settings.csv")
"""Files that do not depend on where and how long a run was played."""


def grid(text: str = GRID) -> Grid:
    return grid_from(text, "grid.yaml")


def here(tasks: list[Task]) -> list[Row]:
    """Plays in this process."""
    return [play_task(task) for task in tasks]


def swept(what: Grid, folder: Path, play: Play = here, slots: int = 2, version: str = "v") -> SweepProgress:
    """Play a grid into a folder and write its results."""
    store = SweepStore(folder, version, journals=what.events)
    try:
        progress = run_grid(what, store, play, lambda: slots)
        store.compact()
        results.write(what, store, ranking.rank(what, store))
    finally:
        store.close()
    return progress


def files(folder: Path) -> dict[str, bytes]:
    """The files that must be the same wherever the sweep ran."""
    return {name: (folder / name).read_bytes() for name in SAME}
