"""Tables made by a Spark master with executors, in a process of its own."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

from rejoin.pipeline.reading.inputs import find
from rejoin.pipeline.report.events import read_events
from rejoin.pipeline.report.tables import all_tables
from rejoin.pipeline.spark.session import session


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


def main() -> None:
    """``MASTER OUT TABLE,TABLE INPUT...``"""
    master, out, names, *inputs = sys.argv[1:]
    with session(master) as spark:
        write_tables(spark, names.split(","), inputs, Path(out))


if __name__ == "__main__":
    main()
