"""A report's inputs and tables on Spark: for data of any size."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as fn
from pyspark.sql.pandas.types import from_arrow_schema

from rejoin.pipeline.instants import WHOLE, LogWindow
from rejoin.pipeline.reading.broker_logs.on_spark import read_logs
from rejoin.pipeline.reading.coverage import Coverage
from rejoin.pipeline.reading.inputs import InputFile
from rejoin.pipeline.reading.on_spark import Bronze, from_table, read_journals, sort_out
from rejoin.pipeline.reading.runs import run_of_service
from rejoin.pipeline.report.events import logs_of, unread
from rejoin.pipeline.schemas import EVENTS, QUARANTINE


def read_events(
    spark: SparkSession,
    found: Sequence[InputFile],
    timezone: str,
    coverage: Coverage | None = None,
    window: LogWindow = WHOLE,
) -> Bronze:
    """Events of all files, as one run, and what could not be used. ``coverage`` gets the counts of logs."""
    bronze = _of_journals(spark, found)
    if bad := unread(found):
        rows = spark.createDataFrame(pa.Table.from_pylist(bad, QUARANTINE), from_arrow_schema(QUARANTINE))
        bronze = bronze._replace(quarantine=bronze.quarantine.unionByName(rows))
    if logs := logs_of(found):
        logged = read_logs(
            spark, logs, timezone=timezone, coverage=coverage, cut=lambda parsed: _cut(parsed, window, coverage)
        )
        bronze = Bronze(bronze.events.unionByName(logged.events), bronze.quarantine.unionByName(logged.quarantine))
    return bronze._replace(events=_in_one_run(bronze.events))


def _cut(parsed: DataFrame, window: LogWindow, coverage: Coverage | None) -> DataFrame:
    """Rows whose lines lie within a window, as :meth:`LogWindow.cut` chooses them."""
    if not str(window):
        return parsed
    asked = ["file", "order_ms"]
    ends = parsed.where("order_ms IS NOT NULL").groupBy("file").agg(fn.min("order_ms"), fn.max("order_ms")).collect()
    spans = [dict(zip(asked, (row[0], at_ms), strict=True)) for row in ends for at_ms in row[1:]]
    notes, since, until = window.bounds_of(spans)
    if coverage is not None:
        coverage.notes += notes
    return parsed.where(fn.col("order_ms").isNull() | fn.col("order_ms").between(since, until))


def _of_journals(spark: SparkSession, found: Sequence[InputFile]) -> Bronze:
    """The events of journals and tables."""
    if all(each.kind == "log" for each in found):
        nothing = (spark.createDataFrame([], from_arrow_schema(each)) for each in (EVENTS, QUARANTINE))
        return Bronze(*nothing)
    parsed = read_journals(spark, [each for each in found if each.kind == "journal"])
    for table in _of_tables(spark, found):
        parsed = parsed.unionByName(table)
    return sort_out(parsed.persist())


def _of_tables(spark: SparkSession, found: Iterable[InputFile]) -> list[DataFrame]:
    return [
        from_table(spark.read.parquet(each.path), each.path)
        for each in found
        if each.kind == "parquet" and each.problem is None
    ]


def _in_one_run(events: DataFrame) -> DataFrame:
    """As in :mod:`~rejoin.pipeline.report.events`."""
    runs = events.where("source IN ('coordinator', 'client')").select("source", "run_id").distinct().collect()
    run_id = run_of_service((row.source, row.run_id) for row in runs)
    if run_id is None:
        return events
    return events.withColumn("run_id", fn.when(fn.col("source") == "client", run_id).otherwise(fn.col("run_id")))


def on_disk(table: DataFrame, schema: pa.Schema, folder: Path, by: Sequence[str]) -> DataFrame:
    """Write a table anew, in folders by these columns, and read it from there: Spark's tasks do both."""
    writer = table.write.mode("overwrite").option("partitionOverwriteMode", "static")
    (writer.partitionBy(*by) if by else writer).parquet(str(folder))
    read = table.sparkSession.read.schema(from_arrow_schema(schema))
    return read.parquet(str(folder)).select(*schema.names)


def longest_group(events: DataFrame) -> int:
    """The length of the longest group id as the name of a folder."""
    longest = fn.max(fn.octet_length(fn.url_encode("group_id")))
    return int(events.select(longest).collect()[0][0] or 0)
