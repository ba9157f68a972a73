"""What executors are given to do by a process of its own: tables, and a sweep in which one of them is killed."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

import psutil
from pyspark.sql import DataFrame, SparkSession

from rejoin.pipeline.commands.parser import sweep
from rejoin.pipeline.reading.inputs import find
from rejoin.pipeline.report.on_spark import read_events
from rejoin.pipeline.report.tables import all_tables
from rejoin.pipeline.spark.session import session
from rejoin.pipeline.sweep.runner import Row
from rejoin.pipeline.sweep.store import SweepStore


def write_tables(spark: SparkSession, names: Sequence[str], inputs: Sequence[str], out: Path) -> None:
    """Write events, quarantine and these tables, or all of them, as a report does."""
    bronze = read_events(spark, find(inputs), "UTC")
    bronze.events.write.parquet(str(out / "events"))
    bronze.quarantine.write.parquet(str(out / "quarantine"))
    events = spark.read.parquet(str(out / "events"))
    tables: dict[str, DataFrame] = {}
    for name, make in all_tables():
        if "all" in names or name in names:
            make(events, tables).write.parquet(str(out / name))
            tables[name] = spark.read.parquet(str(out / name))


def kill_one_that_has_played(application: str) -> None:
    """As soon as rows of two executors are stored, kill one of them; the sweep goes on after that."""
    add = SweepStore.add

    def add_and_kill(store: SweepStore, rows: Sequence[Row]) -> None:
        add(store, rows)
        played = {row["executor"] for row in store.rows.values()} - {"local"}
        if len(played) >= 2:
            SweepStore.add = add  # type: ignore[method-assign]
            _executor(application, min(played)).kill()

    SweepStore.add = add_and_kill  # type: ignore[method-assign,assignment]


def _executor(application: str, number: str) -> psutil.Process:
    """The JVM in which an executor's tasks run."""
    for process in psutil.process_iter(["cmdline"]):
        command = process.info["cmdline"] or ()
        if application in command and number == dict(pairwise(command)).get("--executor-id"):
            return process
    raise AssertionError(f"there is no process of executor {number}")


def main() -> int:
    """``MASTER OUT TABLE,TABLE GRID INPUT...``: tables and the sweep of a grid go below OUT."""
    master, out, names, grid, *inputs = sys.argv[1:]
    with session(master) as spark:
        write_tables(spark, names.split(","), inputs, Path(out) / "tables")
        kill_one_that_has_played(spark.sparkContext.applicationId)
        return sweep(Path(grid), out=Path(out) / "sweep", master=master)


if __name__ == "__main__":
    sys.exit(main())
