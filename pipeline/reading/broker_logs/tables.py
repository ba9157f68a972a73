"""Brokers' logs as tables on Spark: one task reads a file, one task follows a group.

Lines of a file must be read in order, so a file is one task, and a broker whose logs are rotated is as many as it has
files. What was read is dealt out by group; a group's lines of all brokers lie in memory together, and only those that
are about it. The same line twice, as in overlapping copies of a file, counts once.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple
from zoneinfo import ZoneInfo

import orjson
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession, Window
from pyspark.sql import functions as fn
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import LongType, StringType, StructField, StructType

from rejoin.pipeline.reading.broker_logs.brokers import topic_events
from rejoin.pipeline.reading.broker_logs.generations import SourcedExchange, request_event
from rejoin.pipeline.reading.broker_logs.groups.membership import EventRow
from rejoin.pipeline.reading.broker_logs.lines import BrokenLine
from rejoin.pipeline.reading.broker_logs.reconstruction import partition_events, reconstruct_group
from rejoin.pipeline.reading.broker_logs.requests import complete
from rejoin.pipeline.reading.broker_logs.statements import MARKS, PARTITION_CREATED, LogFile, Statement, node_of
from rejoin.pipeline.reading.broker_logs.transactions import OF_TRANSACTIONS, transaction_events
from rejoin.pipeline.reading.client_logs.consumers import consumer_events
from rejoin.pipeline.reading.client_logs.families import MARKS as SIGNED
from rejoin.pipeline.reading.client_logs.groups import ClientHistory, complete_from_clients
from rejoin.pipeline.reading.client_logs.late_polls import with_members
from rejoin.pipeline.reading.client_logs.layouts import ClientLines, first_unplaced
from rejoin.pipeline.reading.client_logs.owners import with_groups
from rejoin.pipeline.reading.client_logs.statements import ClientLogFile
from rejoin.pipeline.reading.client_logs.unsigned import MARKS as UNSIGNED
from rejoin.pipeline.reading.inputs import InputFile
from rejoin.pipeline.reading.peeling.order import Order, in_order, look_at_order
from rejoin.pipeline.reading.pieces import UNREADABLE, opened
from rejoin.pipeline.reading.request_log import LoggedExchange
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
_ROTATED: Final = re.compile(r"(?:\.(?:log|out|txt))?(?:\.\d[\d-]*|[.-]\d{4}-\d\d-\d\d[\d.-]*)*(?:\.gz)?$")
"""What rotation and packing add to the name of a process's log: its own name may end in a number."""
_LOOK_BYTES: Final = 2**20
_MARKS_OF_BROKERS: Final = (
    *(each for each in MARKS if each != b"oordinator"),
    b"[GroupCoordinator ",
    b"kafka.coordinator.",
)
_LONGEST_MARK: Final = 300
_MARKS_OF_CLIENTS: Final = (SIGNED, UNSIGNED)


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
    return sort_out(with_groups(parsed), run_id)


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


def read_file(path: str, problem: str | None = None, timezone: str = "UTC") -> Iterator[dict[str, Any]]:
    """What one file holds, as rows of :data:`PARSED`; the last row has its counts. Never raises for what is in it."""
    if problem is not None:
        yield _broken(path, BrokenLine(0, problem, ""))
        yield {"what": "file", "file": path, "body": _json({**dict.fromkeys(READ.names, 0), "file": path, "broken": 1})}
        return
    zone = ZoneInfo(timezone)
    counts = dict.fromkeys(READ.names[1:], 0)
    try:
        of_brokers, of_clients = _written_by(path)
        said: set[int] = set()
        if of_clients:
            yield from _read_clients(path, zone, counts, said)
        if of_brokers or not of_clients:
            yield from _read_brokers(path, zone, counts, said)
    except UNREADABLE as trouble:
        counts["broken"] += 1
        yield _broken(path, BrokenLine(counts["lines"], f"cannot be read to its end: {trouble}", ""))
    yield {"what": "file", "file": path, "body": _json({"file": path, **counts})}


def _written_by(path: str) -> tuple[bool, bool]:
    """Whether a file has lines of brokers, and whether it has lines of clients."""
    of_brokers = of_clients = False
    before = b""
    try:
        with opened(path) as file:
            while not (of_brokers and of_clients) and (chunk := file.read(_LOOK_BYTES)):
                text = before + chunk
                of_clients = of_clients or any(marks.search(text) is not None for marks in _MARKS_OF_CLIENTS)
                of_brokers = of_brokers or any(mark in text for mark in _MARKS_OF_BROKERS)
                before = text[-_LONGEST_MARK:]
    except UNREADABLE:
        # What can be read of it is read below, and the rest reported.
        pass
    return of_brokers, of_clients


def _read_clients(path: str, zone: ZoneInfo, counts: dict[str, int], said: set[int]) -> Iterator[dict[str, Any]]:
    """What consumers say in a file; ``said`` gets the lines of it."""
    with opened(path) as file:
        is_untimed = look_at_order(file) is Order.NO_TIMES
    log = ClientLogFile(path, _process_of(path), zone, is_untimed=is_untimed)
    lines = log.lines
    try:
        with opened(path) as file:
            for found in log.statements(in_order(file, os.path.getsize(path))):
                said.add(found.line)
                if isinstance(found, BrokenLine):
                    yield _broken(path, found)
                    continue
                about = f"g:{found.group}" if found.group is not None else f"c:{found.values.get('client_id')}"
                row = {"what": "client", "about": about, "order_ms": found.order_ms, "node": found.node}
                yield row | {"file": path, "line": found.line, "body": _json(found)}
        if lines.counts.records == 0 and lines.counts.unplaced:
            yield from _unplaced(path, counts)
    finally:
        counts["lines"] = lines.counts.lines
        counts["statements"] += log.counts.statements
        counts["other"] += log.counts.other + lines.counts.unplaced + lines.counts.blank
        counts["continuations"] += lines.counts.continuations
        counts["broken"] += log.counts.broken
        counts["not_utf8"] += lines.counts.not_utf8


def _read_brokers(path: str, zone: ZoneInfo, counts: dict[str, int], said: set[int]) -> Iterator[dict[str, Any]]:
    """What a broker says in a file, but for the lines that a client wrote."""
    log = LogFile(path, node_of(path), zone)
    try:
        with opened(path) as file:
            for found in log.statements(in_order(file, os.path.getsize(path))):
                if isinstance(found, BrokenLine) and found.line in said:
                    log.counts.broken -= 1
                    log.counts.other += 1
                else:
                    yield _row(log, found)
        if log.read.records == 0 and log.read.unrelated and not said and not _is_placed(path):
            yield from _unplaced(path, counts)
    finally:
        other = log.counts.other + log.read.unrelated + log.read.blank
        counts["lines"] = log.read.lines
        counts["statements"] += log.counts.statements
        counts["requests"] += log.counts.requests
        # Each line counts once, where a file has lines of both.
        counts["other"] = counts["other"] + other if not said else max(0, other - len(said))
        counts["continuations"] = log.read.continuations
        counts["broken"] += log.counts.broken
        counts["not_utf8"] = log.read.not_utf8
        counts["clock_steps"] = log.counts.clock_set_back


def _is_placed(path: str) -> bool:
    """Whether a file has a line of any layout that clients have, of whatever software."""
    with opened(path) as file:
        return next(iter(ClientLines().records(file)), None) is not None


def _unplaced(path: str, counts: dict[str, int]) -> Iterator[dict[str, Any]]:
    """The first line of a file of no known layout: it is reported, and all others are passed over."""
    counts["broken"] += 1
    counts["other"] -= 1
    with opened(path) as file:
        yield _broken(path, first_unplaced(file))


def _process_of(path: str) -> str:
    """A process from the names of its log and of the directory."""
    file = Path(path)
    name = _ROTATED.sub("", file.name) or file.name
    return f"{file.parent.name}/{name}"


def _row(log: LogFile, found: Statement | LoggedExchange | BrokenLine) -> dict[str, Any]:
    if isinstance(found, BrokenLine):
        return _broken(log.file, found)
    try:
        # The dataclass itself: asdict takes twice the time of all the rest.
        body = _json(found)
    except (TypeError, RecursionError) as problem:
        log.counts.broken += 1
        if isinstance(found, LoggedExchange):
            log.counts.requests -= 1
        else:
            log.counts.statements -= 1
        return _broken(log.file, BrokenLine(found.line, f"cannot be kept: {problem}", ""))
    if isinstance(found, LoggedExchange):
        about = f"g:{found.group_id}" if found.group_id is not None else f"p:{log.node}"
        row = {"what": "request", "about": about, "order_ms": found.answered_at_ms, "node": log.node}
    else:
        about = _about(found)
        row = {"what": "statement", "about": about, "order_ms": found.order_ms, "node": found.node}
    return row | {"file": log.file, "line": found.line, "body": body}


def _about(statement: Statement) -> str:
    if statement.kind == PARTITION_CREATED:
        return f"t:{statement.values['topic']}"
    if statement.kind.startswith(OF_TRANSACTIONS):
        return f"x:{statement.values.get('transactional_id', '')}"
    return f"g:{statement.group}" if statement.group is not None else f"p:{statement.node}"


def _broken(path: str, found: BrokenLine) -> dict[str, Any]:
    # Text of a JSON layout may hold half a character.
    body = _json({"reason": found.reason, "text": found.text.encode(errors="replace").decode()})
    return {"what": "broken", "file": path, "line": found.line, "body": body}


def _json(value: object) -> str:
    return orjson.dumps(value).decode()


# --- one group


def follow(table: pa.Table) -> pa.Table:
    columns = ["order_ms", "node", "file", "line"]
    rows = table.sort_by([(name, "ascending") for name in columns]).select(["what", "about", "file", "node", "body"])
    found = [_named(event, nth) for nth, event in enumerate(_events(rows))]
    return pa.Table.from_pylist(found, to_arrow_schema(_RECONSTRUCTED))


def _named(event: EventRow, nth: int) -> EventRow:
    return {"source": BROKER_LOG} | event | {"nth": nth}


def _events(rows: pa.Table) -> Iterator[EventRow]:
    about = rows["about"][0].as_py()
    asked: list[SourcedExchange] = []
    of_clients: list[Statement] = []
    statements = _statements(rows, asked, of_clients)
    if about.startswith("t:"):
        yield from topic_events(statements)
        return
    if about.startswith("x:"):
        yield from transaction_events(statements)
        return
    if about.startswith("p:"):
        yield from partition_events(statements)
        yield from map(request_event, asked)
        return
    events = list(reconstruct_group(about[2:], statements))
    if not of_clients:
        yield from complete(events, asked)
    elif events or asked:
        events = list(complete_from_clients(complete(events, asked), of_clients))
        yield from events
    else:
        yield from ClientHistory(about[2:]).events(of_clients)
    yield from with_members(consumer_events(of_clients, with_requests=bool(asked)), events)
    yield from map(request_event, asked)


def _statements(rows: pa.Table, asked: list[SourcedExchange], of_clients: list[Statement]) -> Iterator[Statement]:
    """The brokers' statements of a table; its requests are appended to ``asked``, what consumers say to the last."""
    group = rows["about"][0].as_py()[2:]
    for batch in rows.to_batches(ROWS_AT_ONCE):
        for row in batch.to_pylist():
            body = orjson.loads(row["body"])
            if row["what"] == "statement":
                yield Statement(**body)
            elif row["what"] == "client":
                of_clients.append(Statement(**body | {"group": group}))
            else:
                asked.append(SourcedExchange(LoggedExchange(**body), row["node"], row["file"]))
