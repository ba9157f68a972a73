"""The events of all inputs of a report: on Spark, or, of little data, as rows of this process."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterable, Sequence
from concurrent.futures import Future
from typing import Final, NamedTuple, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as fn
from pyspark.sql.pandas.types import to_arrow_schema

from rejoin.pipeline.reading.broker_logs.tables import read_logs
from rejoin.pipeline.reading.coverage import Coverage
from rejoin.pipeline.reading.inputs import InputFile
from rejoin.pipeline.reading.journals import Bronze, from_table, parse, sort_out
from rejoin.pipeline.reading.plain_rows import read_plain
from rejoin.pipeline.reading.runs import run_of_service
from rejoin.pipeline.reading.text_lines import lines_here, read_lines
from rejoin.pipeline.schemas import EVENTS, LINES, QUARANTINE

_EVENTS: Final = to_arrow_schema(EVENTS)
_QUARANTINE: Final = to_arrow_schema(QUARANTINE)
_IDENTITY: Final = ("run_id", "source", "node", "seq")
_JUDGED: Final = ("reason_", "kind_", "text_")

PlainRows: TypeAlias = tuple[pa.Table, pa.Table]
"""The events of usual rows of journals, and the lines of all others."""


class EventRows(NamedTuple):
    """Rows of this process: events by their names, and lines that could not be used."""

    events: pa.Table
    quarantine: pa.Table


def read_events(
    spark: SparkSession, found: Sequence[InputFile], timezone: str, coverage: Coverage | None = None
) -> Bronze:
    """The events of all files, and what could not be used. ``coverage`` gets the counts of logs."""
    bronze = _of_journals(spark, found)
    if bad := _unread(found):
        bronze = bronze._replace(quarantine=bronze.quarantine.unionByName(spark.createDataFrame(bad, QUARANTINE)))
    logs = _logs(found)
    if not logs:
        return bronze
    logged = read_logs(spark, logs, timezone=timezone)
    if coverage is not None:
        coverage.add_files(row.asDict() for row in logged.files.collect())
    return Bronze(bronze.events.unionByName(logged.events), bronze.quarantine.unionByName(logged.quarantine))


def _of_journals(spark: SparkSession, found: Sequence[InputFile]) -> Bronze:
    """The events of journals and tables."""
    if all(each.kind == "log" for each in found):
        return Bronze(spark.createDataFrame([], EVENTS), spark.createDataFrame([], QUARANTINE))
    parsed = parse(read_lines(spark, [each for each in found if each.kind == "journal"]))
    for table in _of_tables(spark, found):
        parsed = parsed.unionByName(table)
    return sort_out(parsed.persist())


def _of_tables(spark: SparkSession, found: Iterable[InputFile]) -> list[DataFrame]:
    return [
        from_table(spark.read.parquet(each.path), fn.lit(each.path))
        for each in found
        if each.kind == "parquet" and each.problem is None
    ]


def _unread(found: Iterable[InputFile]) -> list[tuple[str, None, str, str, None]]:
    """Rows of the quarantine for files that are not read."""
    return [(each.path, None, each.problem, each.kind_of_problem, None) for each in found if each.problem is not None]


def _logs(found: Iterable[InputFile]) -> list[InputFile]:
    return [each for each in found if each.kind == "log" and each.problem is None]


def in_one_run(events: DataFrame) -> DataFrame:
    """The events of a service's consumers as of its own run, if the input is of one service.

    Each process has a run of its own unless it is given one; the events of a service and its consumers belong together,
    and share real time. Simulations name their own runs.
    """
    runs = events.where("source IN ('coordinator', 'client')").select("source", "run_id").distinct().collect()
    run_id = run_of_service((row.source, row.run_id) for row in runs)
    if run_id is None:
        return events
    return events.withColumn("run_id", fn.when(fn.col("source") == "client", run_id).otherwise(fn.col("run_id")))


def plain_rows(found: Iterable[InputFile]) -> PlainRows:
    """The rows of all journals, read in this process."""
    return read_plain(lines_here(each for each in found if each.kind == "journal"))


def read_ahead(found: Sequence[InputFile]) -> Future[PlainRows]:
    """:func:`plain_rows` on a thread of its own: this process has nothing else to do while Spark starts."""
    rows: Future[PlainRows] = Future()

    def read() -> None:
        try:
            rows.set_result(plain_rows(found))
        except Exception as problem:
            rows.set_exception(problem)

    # A daemon, so that after Ctrl-C nothing waits for it.
    threading.Thread(target=read, name="journals", daemon=True).start()
    return rows


def rows_of_events(
    spark: SparkSession,
    found: Sequence[InputFile],
    timezone: str,
    ahead: Future[PlainRows] | None = None,
    coverage: Coverage | None = None,
) -> EventRows:
    """Events of all files in one run, as rows of this process. Unusual lines and logs are read on Spark.

    ``coverage`` gets the counts of logs.
    """
    events, lines = plain_rows(found) if ahead is None else ahead.result()
    frames = [parse(spark.createDataFrame(lines, LINES))] if lines.num_rows else []
    judged = [frame.toArrow() for frame in (*frames, *_of_tables(spark, found))]
    broken = [
        pa.Table.from_pylist([dict(zip(QUARANTINE.names, row, strict=True)) for row in _unread(found)], _QUARANTINE)
    ]
    for rows in judged:
        is_event = pc.is_null(rows.column("kind_"))
        events = pa.concat_tables([events, _as_events(rows.filter(is_event))])
        wrong = rows.filter(pc.invert(is_event)).select(["file", "line", *_JUDGED])
        broken.append(wrong.rename_columns(["file", "line", "reason", "kind", "text"]).cast(_QUARANTINE))
    events, copies = _each_once(spark, events)
    broken.append(copies)
    if logs := _logs(found):
        logged = read_logs(spark, logs, timezone=timezone)
        events = pa.concat_tables([events, _as_events(logged.events.toArrow())])
        broken.append(logged.quarantine.toArrow().cast(_QUARANTINE))
        if coverage is not None:
            coverage.add_files(row.asDict() for row in logged.files.collect())
    if judged or logs:
        events = events.sort_by("event")
    return EventRows(_rows_in_one_run(events), pa.concat_tables(broken))


def _as_events(rows: pa.Table) -> pa.Table:
    return rows.select(_EVENTS.names).cast(_EVENTS)


def _each_once(spark: SparkSession, events: pa.Table) -> tuple[pa.Table, pa.Table]:
    """Events without copies, and the copies as rows of the quarantine. As a rule there are none."""
    keys = list(zip(*(events.column(name).to_pylist() for name in _IDENTITY), strict=True))
    counts = Counter(keys)
    if len(counts) == len(keys):
        return events, _QUARANTINE.empty_table()
    several = pa.array([counts[key] > 1 for key in keys])
    parsed = spark.createDataFrame(events.filter(several), EVENTS)
    sorted_out = sort_out(parsed.withColumns({name: fn.lit(None).cast("string") for name in _JUDGED}).persist())
    kept = pa.concat_tables([events.filter(pc.invert(several)), _as_events(sorted_out.events.toArrow())])
    return kept.sort_by("event"), sorted_out.quarantine.toArrow().cast(_QUARANTINE)


def _rows_in_one_run(events: pa.Table) -> pa.Table:
    """As :func:`in_one_run`, of rows in this process."""
    source, runs = events.column("source"), events.column("run_id")
    pairs = events.group_by(["source", "run_id"]).aggregate([]).select(["source", "run_id"])
    run_id = run_of_service((row["source"], row["run_id"]) for row in pairs.to_pylist())
    if run_id is None:
        return events
    in_one = pc.if_else(pc.equal(source, "client"), pa.scalar(run_id), runs)
    return events.set_column(events.schema.get_field_index("run_id"), _EVENTS.field("run_id"), in_one)
