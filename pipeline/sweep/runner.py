"""Has the runs of a grid played and keeps what comes back.

The driver hands out portions of runs, each as a Spark job of one task, and always a few more than there are slots, so
that none waits for the driver. Rows are on disk as soon as their portion is back. Executors need no common disk.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import pyarrow as pa
from pyspark.errors import PythonException
from pyspark.sql import SparkSession

from rejoin.pipeline.spark.session import trouble
from rejoin.pipeline.spark.trouble import SparkTrouble
from rejoin.pipeline.sweep.grid import Grid, Run
from rejoin.pipeline.sweep.schedule import Schedule
from rejoin.pipeline.sweep.store import SweepStore
from rejoin.pipeline.sweep.tables import FAILED, PLAYED, arrow_schema
from rejoin.pipeline.sweep.tasks import Task, failed, play_task

Row: TypeAlias = dict[str, Any]
Play: TypeAlias = Callable[[list[Task]], list[Row]]
"""Plays tasks somewhere and gives their rows; an error means that a process died over one of them."""

MOST_PORTIONS: Final = 1_000
"""Portions that are out at a time, at most; each has a thread of the driver that waits for it."""

LIGHT: Final = {"spark.sql.codegen.wholeStage": "false", "spark.sql.codegen.factoryMode": "NO_CODEGEN"}
"""For a session that plays runs: its JVM only hands out work, and compiling plans costs more than it saves there."""

_DIED: Final = "the process that played it died"


@dataclass(slots=True)
class SweepProgress:
    """How far a sweep is, in runs of different keys."""

    wanted: int
    known: int
    """Finished before, by an earlier sweep."""
    played: int = 0
    failed: int = 0

    @property
    def done(self) -> int:
        return self.known + self.played


class _Portion:
    """The work of a Spark task: plays runs one after the other, and yields each row as soon as its run has ended."""

    def __init__(self, tasks: list[Task]) -> None:
        self._tasks = tasks

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        schema = arrow_schema(PLAYED)
        for batch in batches:
            for _ in range(batch.num_rows):
                for task in self._tasks:
                    yield pa.RecordBatch.from_pylist([play_task(task)], schema=schema)


def spark_player(spark: SparkSession) -> Play:
    """Plays on Spark's executors. Raises ``SparkTrouble`` if these cannot play at all."""

    def play(tasks: list[Task]) -> list[Row]:
        frame = spark.range(0, 1, 1, 1).mapInArrow(_Portion(tasks), PLAYED)
        try:
            rows: list[Row] = frame.toArrow().to_pylist()
        except PythonException as problem:
            # What goes wrong in a run is in its row; this is the worker itself.
            raise trouble("Spark's Python workers cannot play", problem) from problem
        except Exception as problem:
            if spark.sparkContext._jsc.sc().isStopped():
                raise trouble("Spark stopped in the middle of the sweep", problem) from problem
            raise
        return rows

    return play


def run_grid(
    grid: Grid,
    store: SweepStore,
    play: Play,
    slots: Callable[[], int],
    on_progress: Callable[[SweepProgress], None] = lambda _: None,
) -> SweepProgress:
    """Play every run that the store has not, and keep the rows.

    ``slots``: how many tasks run at a time just now; executors come and go.
    ``on_progress`` is called after each portion.
    """
    missing: dict[str, Run] = {}
    wanted: dict[str, None] = {}
    for run in grid.runs():
        wanted[run.key] = None
        if run.key not in store.rows:
            missing.setdefault(run.key, run)
    progress = SweepProgress(len(wanted), len(wanted) - len(missing))
    schedule = Schedule(missing.values(), grid.points, slots())
    on_progress(progress)
    flying: dict[Future[list[Row]], list[Run]] = {}
    with ThreadPoolExecutor(MOST_PORTIONS) as threads:
        try:
            while schedule or flying:
                schedule.slots = max(1, slots())
                ahead = schedule.slots + max(1, schedule.slots // 2)
                while schedule and len(flying) < min(ahead, MOST_PORTIONS):
                    portion = schedule.take()
                    flying[threads.submit(play, [task_of(grid, run, store.version) for run in portion])] = portion
                landed, _ = wait(flying, return_when=FIRST_COMPLETED)
                for future in landed:
                    portion = flying.pop(future)
                    try:
                        rows = future.result()
                    except SparkTrouble:
                        raise
                    except Exception as problem:
                        if len(portion) > 1:
                            schedule.alone(portion)
                            continue
                        rows = [failed(task_of(grid, portion[0], store.version), f"{_DIED}: {_short(problem)}")]
                    store.add(rows)
                    progress.played += len(rows)
                    progress.failed += sum(row["status"] == FAILED for row in rows)
                    for run, row in zip(portion, rows, strict=True):
                        schedule.played(run, row.get("wall_ms") or 0)
                    on_progress(progress)
        except BaseException:
            threads.shutdown(wait=False, cancel_futures=True)
            raise
    return progress


def slots_of(spark: SparkSession) -> Callable[[], int]:
    """How many tasks run at a time: the cores of all executors that are there."""
    return lambda: spark.sparkContext.defaultParallelism


def missing_runs(grid: Grid, store: SweepStore) -> list[Run]:
    """The runs that the store has not, each key once."""
    return list({run.key: run for run in reversed(list(grid.runs())) if run.key not in store.rows}.values())[::-1]


def task_of(grid: Grid, run: Run, version: str) -> Task:
    """A run as it is handed to a player."""
    return Task(run.key, run.seed, grid.points[run.point].text, grid.count_from_ms, grid.events, version)


def _short(problem: Exception) -> str:
    lines = [line.strip() for line in str(problem).splitlines() if line.strip()]
    causes = [line for line in lines if "exited unexpectedly" in line or "ExecutorLost" in line]
    return (causes or lines or [type(problem).__name__])[0]
