"""Brokers' logs as tables on Spark: one task reads a file, one task follows a group.

Lines of a file must be read in order, so a file is one task, and a broker whose logs are rotated is as many as it has
files. What was read is dealt out by group; a group's lines of all brokers lie in memory together, and only those that
are about it. The same line twice, as in overlapping copies of a file, counts once.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import Any, Final, NamedTuple
from zoneinfo import ZoneInfo

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession, Window
from pyspark.sql import functions as fn
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import LongType, StringType, StructField, StructType

from rejoin.pipeline.reading.broker_logs.groups.membership import EventRow
from rejoin.pipeline.reading.client_logs.owners import CLIENT, UNNAMED, named_groups
from rejoin.pipeline.reading.inputs import InputFile
from rejoin.pipeline.reading.log_events import events_of_subject
from rejoin.pipeline.reading.log_files import read_file
from rejoin.pipeline.schemas import EVENTS, QUARANTINE, VERSION
from rejoin.pipeline.vocabulary import BROKER_LOG

ROWS_AT_ONCE: Final = 5_000

_STRING, _LONG = StringType(), LongType()
PARSED: Final = StructType(
    [
        StructField("what", _STRING),
        StructField("about", _STRING),
        StructField("order_ms", _LONG),
        StructField("node", _STRING),
        StructField("file", _STRING),
        StructField("line", _LONG),
        StructField("body", _STRING),
    ]
)
"""What a file holds: ``what`` is statement, request, client, broken or file; ``about`` is its subject, g: and a
group, c: and a client of a group that is not known, t: and a topic, x: and a transactional id, or p: and a node for
offsets partitions; ``body`` is JSON."""

READ: Final = StructType(
    [
        StructField("file", _STRING, True, {"comment": "Path of the file."}),
        StructField("lines", _LONG, True, {"comment": "Lines."}),
        StructField("statements", _LONG, True, {"comment": "Lines of a group coordinator that were understood."}),
        StructField("requests", _LONG, True, {"comment": "Requests about groups, with their responses."}),
        StructField("other", _LONG, True, {"comment": "Lines that are not about groups, and empty ones."}),
        StructField("continuations", _LONG, True, {"comment": "Lines of stack traces and the like."}),
        StructField("broken", _LONG, True, {"comment": "Lines that are in the quarantine."}),
        StructField("not_utf8", _LONG, True, {"comment": "Lines that are no UTF-8; they are read as Latin-1."}),
        StructField("clock_steps", _LONG, True, {"comment": "How often the clock was set back."}),
        StructField("guessed", _LONG, True, {"comment": "Lines that were recognised by their text alone."}),
        StructField("turned_round", _LONG, True, {"comment": "1 where the newest line is the first."}),
        StructField("untimed", _LONG, True, {"comment": "1 where lines have no times: they are counted."}),
        StructField("year_guessed", _LONG, True, {"comment": "1 where times have no year or no date."}),
    ]
)
"""One row for each file: every line of it is in one of the counts."""

_RECONSTRUCTED: Final = StructType([*EVENTS.fields, StructField("order_ms", _LONG), StructField("nth", _LONG)])
_KINDS: Final = (
    ("not JSON", "not-json"),
    ("no JSON", "not-json"),
    ("no request of a request log", "not-json"),
    ("is missing", "half-line"),
    ("cut short", "half-line"),
    ("no text", "encoding"),
    ("cannot be read", "unreadable"),
    ("not in the format of gzip", "unreadable"),
    ("layout is not known", "unknown-layout"),
)


class Logs(NamedTuple):
    """What logs say: events (:data:`EVENTS`), what is broken (:data:`QUARANTINE`), and counts by file (READ)."""

    events: DataFrame
    quarantine: DataFrame
    files: DataFrame


def read_logs(spark: SparkSession, files: Iterable[InputFile], *, run_id: str = "logs", timezone: str = "UTC") -> Logs:
    """The events of brokers' logs and request logs. Files are read once and what they hold is kept until the end.

    ``timezone``: that of the brokers, whose logs have local times; raises ``zoneinfo.ZoneInfoNotFoundError`` for one
    that there is not.
    """
    parsed = parse(spark, files, timezone).persist()
    return sort_out(_with_groups(parsed), run_id)


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


def parse(spark: SparkSession, files: Iterable[InputFile], timezone: str = "UTC") -> DataFrame:
    """What files hold, as :data:`PARSED`; the largest ones are begun with."""
    ZoneInfo(timezone)
    largest_first = sorted(files, key=lambda file: (-file.size, file.path))
    paths = [(file.path, file.problem, timezone) for file in largest_first]
    tasks = max(1, len(paths))
    rows = spark.sparkContext.parallelize(paths, tasks)
    table = spark.createDataFrame(rows, "path string, problem string, timezone string")
    return table.mapInArrow(_read_files, PARSED)


def sort_out(parsed: DataFrame, run_id: str) -> Logs:
    """Events, quarantine and counts, from rows that are persisted or written: they are read several times."""
    events = (
        parsed.where("about IS NOT NULL")
        .groupBy("about")
        .applyInArrow(follow, _RECONSTRUCTED)
        .withColumn("schema_version", fn.lit(VERSION))
        .withColumn("run_id", fn.lit(run_id))
        .withColumn("day", fn.to_date(fn.timestamp_millis("at_ms")))
    )
    stream = Window.partitionBy("source", "node").orderBy("order_ms", "file", "line", "nth")
    events = events.withColumn("seq", fn.row_number().over(stream).cast("long"))
    broken = parsed.where("what = 'broken'")
    reason = fn.get_json_object("body", "$.reason")
    quarantine = broken.select(
        "file",
        fn.when(fn.col("line") > 0, fn.col("line")).alias("line"),
        reason.alias("reason"),
        _kind(reason).alias("kind"),
        fn.get_json_object("body", "$.text").alias("text"),
    )
    counts = fn.from_json("body", READ).alias("counts")
    files = parsed.where("what = 'file'").select(counts).select("counts.*")
    return Logs(
        events.select(*EVENTS.fieldNames()),
        quarantine.select(*QUARANTINE.fieldNames()),
        files,
    )


def _kind(reason: Any) -> Any:
    kind = fn.lit("unknown-line")
    for words, name in reversed(_KINDS):
        kind = fn.when(reason.contains(words), name).otherwise(kind)
    return kind


# --- one file


def _read_files(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    schema = to_arrow_schema(PARSED)
    for batch in batches:
        for row in batch.to_pylist():
            rows: list[dict[str, Any]] = []
            for each in read_file(row["path"], row["problem"], row["timezone"]):
                rows.append(each)
                if len(rows) >= ROWS_AT_ONCE:
                    yield pa.RecordBatch.from_pylist(rows, schema)
                    rows = []
            yield pa.RecordBatch.from_pylist(rows, schema)


# --- one group


def follow(table: pa.Table) -> pa.Table:
    columns = ["order_ms", "node", "file", "line"]
    rows = table.sort_by([(name, "ascending") for name in columns]).select(["what", "about", "file", "node", "body"])
    by_row = (row for batch in rows.to_batches(ROWS_AT_ONCE) for row in batch.to_pylist())
    found = [_named(event, nth) for nth, event in enumerate(events_of_subject(rows["about"][0].as_py(), by_row))]
    return pa.Table.from_pylist(found, to_arrow_schema(_RECONSTRUCTED))


def _named(event: EventRow, nth: int) -> EventRow:
    return {"source": BROKER_LOG} | event | {"nth": nth}
