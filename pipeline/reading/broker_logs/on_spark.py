"""Brokers' logs as tables on Spark: one task reads a file, one task follows a group.

Lines of a file must be read in order, so a file is one task, and a broker whose logs are rotated is as many as it has
files. What was read is dealt out by group; a group's lines of all brokers lie in memory together, and only those that
are about it. The same line twice, as in overlapping copies of a file, counts once.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final
from zoneinfo import ZoneInfo

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession, Window
from pyspark.sql import functions as fn
from pyspark.sql.pandas.types import from_arrow_schema

from rejoin.pipeline.columns import LONG, STRING
from rejoin.pipeline.reading.broker_logs.exchanges.topic_names import TopicNames
from rejoin.pipeline.reading.client_logs.owners import CLIENT, UNNAMED, named_groups
from rejoin.pipeline.reading.coverage import Coverage
from rejoin.pipeline.reading.inputs import InputFile
from rejoin.pipeline.reading.log_events import (
    RUN,
    broken_of_files,
    counts_of_files,
    events_of_subject,
    names_of_topics,
    of_logs,
)
from rejoin.pipeline.reading.log_files import read_file
from rejoin.pipeline.reading.on_spark import Bronze
from rejoin.pipeline.schemas import EVENTS, QUARANTINE, VERSION

ROWS_AT_ONCE: Final = 5_000

PARSED: Final = pa.schema(
    [(name, LONG if name in ("order_ms", "line") else STRING) for name in ("what", "about", "order_ms", "node")]
    + [("file", STRING), ("line", LONG), ("body", STRING)]
)
"""Rows of one file, as :mod:`~rejoin.pipeline.reading.log_files` gives them."""
_RECONSTRUCTED: Final = pa.schema([*EVENTS, ("order_ms", LONG), ("nth", LONG)])


def read_logs(
    spark: SparkSession,
    files: Iterable[InputFile],
    *,
    run_id: str = RUN,
    timezone: str = "UTC",
    coverage: Coverage | None = None,
    cut: Callable[[DataFrame], DataFrame] = lambda parsed: parsed,
) -> Bronze:
    """The events of brokers' logs and request logs. Files are read once and what they hold is kept until the end.

    ``timezone``: that of the brokers, whose logs have local times; raises ``zoneinfo.ZoneInfoNotFoundError`` for one
    that there is not. ``cut``: chooses among the rows of files.
    """
    whole = parse(spark, files, timezone).persist()
    parsed = cut(whole)
    if coverage is not None:
        counts = parsed.where("what = 'file'").toArrow().to_pylist()
        coverage.add_files(counts_of_files(counts))
    names = names_of_topics(whole.where("what = 'name'").select("what", "body").toArrow().to_pylist())
    return sort_out(_with_names(_with_groups(parsed), names), run_id, names)


def _with_groups(parsed: DataFrame) -> DataFrame:
    """Parsed rows with a group for each consumer, by :func:`named_groups`."""
    unnamed = fn.col("about").startswith(UNNAMED)
    clients = [row.about[len(UNNAMED) :] for row in parsed.where(unnamed).select("about").distinct().collect()]
    if not clients:
        return parsed
    of_groups = parsed.where(fn.col("about").startswith("g:"))
    named = fn.concat(*(fn.regexp_extract_all("body", fn.lit(CLIENT), fn.lit(group)) for group in (1, 2)))
    pairs = (
        of_groups.select("about", fn.explode(named).alias("client")).where(fn.col("client").isin(clients)).distinct()
    )
    seen: dict[str, list[str]] = defaultdict(list)
    for row in pairs.collect():
        seen[row.client].append(row.about)
    groups = named_groups(clients, ((about, f'"client_id":"{name}"') for name in seen for about in seen[name]))
    group = fn.create_map(*(fn.lit(part) for pair in groups.items() for part in pair))[fn.col("about")]
    return parsed.withColumn("about", fn.when(unnamed, group).otherwise(fn.col("about")))


def _with_names(parsed: DataFrame, names: TopicNames) -> DataFrame:
    """Parsed rows of topics by their names, where they had their ids."""
    if not names:
        return parsed
    named = fn.create_map(*(fn.lit(part) for pair in names.items() for part in (f"t:{pair[0]}", f"t:{pair[1]}")))
    return parsed.withColumn("about", fn.coalesce(named[fn.col("about")], fn.col("about")))


def parse(spark: SparkSession, files: Iterable[InputFile], timezone: str = "UTC") -> DataFrame:
    """Rows of files, as :data:`PARSED`; the largest files come first."""
    ZoneInfo(timezone)
    largest_first = sorted(files, key=lambda file: (-file.size, file.path))
    paths = [(file.path, file.problem, timezone) for file in largest_first]
    tasks = max(1, len(paths))
    rows = spark.sparkContext.parallelize(paths, tasks)
    table = spark.createDataFrame(rows, "path string, problem string, timezone string")
    return table.mapInArrow(_read_files, from_arrow_schema(PARSED))


def sort_out(parsed: DataFrame, run_id: str, names: TopicNames | None = None) -> Bronze:
    """Events and quarantine, from rows that are persisted or written: they are read several times."""
    topics = names or {}

    def followed(table: pa.Table) -> pa.Table:
        return _follow(topics, table)

    events = (
        parsed.where("about IS NOT NULL")
        .groupBy("about")
        .applyInArrow(followed, from_arrow_schema(_RECONSTRUCTED))
        .withColumn("schema_version", fn.lit(VERSION))
        .withColumn("run_id", fn.lit(run_id))
        .withColumn("day", fn.to_date(fn.timestamp_millis("at_ms")))
    )
    stream = Window.partitionBy("source", "node").orderBy("order_ms", "file", "line", "nth")
    events = events.withColumn("seq", fn.row_number().over(stream).cast("long"))
    quarantine = parsed.where("what = 'broken'").mapInArrow(_broken, from_arrow_schema(QUARANTINE))
    return Bronze(events.select(*EVENTS.names), quarantine)


def _broken(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        yield pa.RecordBatch.from_pylist(list(broken_of_files(batch.to_pylist())), QUARANTINE)


# --- one file


def _read_files(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        for row in batch.to_pylist():
            rows: list[dict[str, Any]] = []
            for each in read_file(row["path"], row["problem"], row["timezone"]):
                rows.append(each)
                if len(rows) >= ROWS_AT_ONCE:
                    yield pa.RecordBatch.from_pylist(rows, PARSED)
                    rows = []
            yield pa.RecordBatch.from_pylist(rows, PARSED)


# --- one group


def follow(table: pa.Table) -> pa.Table:
    """The events of one subject."""
    return _follow({}, table)


def _follow(names: TopicNames, table: pa.Table) -> pa.Table:
    columns = ["order_ms", "node", "file", "line"]
    rows = table.sort_by([(name, "ascending") for name in columns]).select(
        ["what", "about", "order_ms", "file", "line", "node", "body"]
    )
    by_row = (row for batch in rows.to_batches(ROWS_AT_ONCE) for row in batch.to_pylist())
    made = events_of_subject(rows["about"][0].as_py(), by_row, names)
    found = [of_logs(event, nth) for nth, event in enumerate(made)]
    return pa.Table.from_pylist(found, _RECONSTRUCTED)
