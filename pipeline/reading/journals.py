"""Lines of journals become events, and whatever is not one goes to the quarantine, with the reason.

Functions from DataFrame to DataFrame. An event's own fields are flat beside the envelope (``journal.journal``); those
whose type differs from event to event are read as text first and then by what they look like.
"""

from __future__ import annotations

import re
from functools import reduce
from typing import Final, NamedTuple

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as fn
from pyspark.sql.types import (
    ArrayType,
    DataType,
    FractionalType,
    IntegralType,
    MapType,
    StructField,
    StructType,
)

from rejoin.pipeline.reading.event_types import FIELDS
from rejoin.pipeline.schemas import EVENTS, EXACT, QUARANTINE, VERSION

NEWEST_JOURNAL: Final = 1
"""The newest ``schema_version`` of a journal that is understood here."""

SHOWN_CHARACTERS: Final = 4_096
_MS_A_DAY: Final = 86_400_000
_ENVELOPE: Final = ("schema_version", "run_id", "source", "node", "seq", "at_ms", "event")

_DIRECT: Final = """
    schema_version INT, run_id STRING, source STRING, node STRING, seq BIGINT, at_ms BIGINT, event STRING,
    group_id STRING, member_id STRING, group_instance_id STRING, client_id STRING, client_host STRING,
    old_member_id STRING, refused_member_id STRING, current_member_id STRING,
    generation INT, state STRING, previous_state STRING, partition INT, epoch INT,
    cause STRING, client_reason STRING, reason STRING, why STRING, what STRING,
    leader STRING, previous_leader STRING, protocol STRING, assignor STRING, protocols ARRAY<STRING>,
    topics ARRAY<STRING>, members STRING, members_before ARRAY<STRING>, members_after ARRAY<STRING>,
    static_members INT, absent ARRAY<STRING>, did_not_rejoin ARRAY<STRING>, without_assignment ARRAY<STRING>,
    owned_before MAP<STRING, MAP<STRING, ARRAY<INT>>>, owned_after MAP<STRING, MAP<STRING, ARRAY<INT>>>,
    moved INT, regained INT, attempts INT, rebalance_ms BIGINT, join_ms BIGINT, sync_ms BIGINT, waited_ms BIGINT,
    join_timeout_ms BIGINT, max_poll_interval_ms BIGINT, session_timeout_ms BIGINT, rebalance_timeout_ms BIGINT,
    initial BOOLEAN, changed BOOLEAN, rebalance BOOLEAN, told BOOLEAN,
    topic STRING, partitions STRING, previous_partitions INT, records_per_second DOUBLE,
    assigned MAP<STRING, ARRAY<INT>>, owned MAP<STRING, ARRAY<INT>>,
    ranges ARRAY<STRUCT<topic: STRING, partition: INT, start: BIGINT, end: BIGINT>>, offsets STRING,
    origin STRING, kind STRING, producer_id BIGINT, error STRING, problem STRING, api STRING
"""
_READ_AS: Final = f"{_DIRECT}, _corrupt STRING"
_HAVE_COLUMNS: Final = frozenset(re.findall(r"(\w+) [A-Z]", _DIRECT))
_SAY_MORE: Final = sorted(event for event, fields in FIELDS.items() if set(fields) - _HAVE_COLUMNS)
"""Events of which not every field has a column; their JSON is kept."""

_MAP_OF_PARTITIONS: Final = "MAP<STRING, ARRAY<INT>>"
_LIST_OF_OFFSETS: Final = "ARRAY<STRUCT<topic: STRING, partition: INT, offset: BIGINT>>"
_MAP_OF_OFFSETS: Final = "MAP<STRING, MAP<STRING, BIGINT>>"
_CAUSE: Final = "cause STRING, member_id STRING, group_instance_id STRING, client_reason STRING"


class Bronze(NamedTuple):
    """What was read: events (:data:`EVENTS`), and what could not be used (:data:`QUARANTINE`)."""

    events: DataFrame
    quarantine: DataFrame


def parse(lines: DataFrame) -> DataFrame:
    """Lines (:data:`LINES`) with their events: the columns of EVENTS, and ``reason_``, ``kind_`` and ``text_``.

    ``kind_`` is that of QUARANTINE, null where the row is an event. Repeated rows are still in; see :func:`sort_out`.
    """
    read = lines.select(
        "file",
        "line",
        "text",
        "problem",
        fn.from_json("text", _READ_AS, {"columnNameOfCorruptRecord": "_corrupt"}).alias("r"),
        fn.json_object_keys("text").alias("keys"),
    )
    judged = read.select("*", _mistake().alias("mistake"))
    return judged.select(
        *_columns(),
        fn.col("mistake.kind").alias("kind_"),
        fn.col("mistake.reason").alias("reason_"),
        fn.when(fn.col("mistake").isNotNull(), fn.substring("text", 1, SHOWN_CHARACTERS)).alias("text_"),
    )


def sort_out(parsed: DataFrame) -> Bronze:
    """Events, each once, and the quarantine. Give it rows that are persisted or written: they are read several times.

    A row's identity is run, source, node and number. Of equal ones the first is taken, by file and line.
    """
    right = parsed.where("kind_ IS NULL")
    key = ["run_id", "source", "node", "seq"]
    place = fn.struct("file", "line")
    # Few or none, as a rule: found on these columns alone, then taken out without moving whole rows about.
    repeated = (
        right.groupBy(*key)
        .agg(
            fn.count("*").alias("copies"),
            fn.min(place).alias("first"),
            fn.min("at_ms").alias("a"),
            fn.max("at_ms").alias("b"),
            fn.min("event").alias("c"),
            fn.max("event").alias("d"),
        )
        .where("copies > 1")
        .select(*key, "first", ((fn.col("a") == fn.col("b")) & (fn.col("c") == fn.col("d"))).alias("same"))
    )
    marked = right.join(fn.broadcast(repeated), key, "left")
    is_copy = fn.col("first").isNotNull() & (fn.col("first") != place)
    events = marked.where(~fn.coalesce(is_copy, fn.lit(False))).select(*EVENTS.fieldNames())
    copies = marked.where(is_copy).select(
        "file",
        "line",
        fn.concat(
            fn.when(fn.col("same"), "repeated: ").otherwise("another row with the same number: "),
            fn.format_string(
                "row %d of %s %s, run %s, is in %s, line %d, too",
                "seq",
                "source",
                "node",
                "run_id",
                "first.file",
                "first.line",
            ),
        ).alias("reason"),
        fn.when(fn.col("same"), "repeated").otherwise("conflict").alias("kind"),
        fn.to_json(fn.struct("run_id", "source", "node", "seq", "at_ms", "event", "group_id", "member_id")).alias(
            "text"
        ),
    )
    broken = parsed.where("kind_ IS NOT NULL").select(
        "file", "line", fn.col("reason_").alias("reason"), fn.col("kind_").alias("kind"), fn.col("text_").alias("text")
    )
    return Bronze(conform(events, EVENTS), conform(broken.unionByName(copies), QUARANTINE))


def from_table(table: DataFrame, file: Column) -> DataFrame:
    """Rows of a table of events as :func:`parse` gives them; columns that it does not have are null.

    Whether its columns are those of events at all, :func:`not_of_events` tells.
    """
    there = set(table.columns)
    columns = [
        # A number that its column has no room for is null, and its row then lacks it, like any other.
        (
            fn.col(field.name).try_cast(field.dataType)
            if field.name in there and field.name != "day"
            else fn.lit(None).cast(field.dataType)
        ).alias(field.name)
        for field in EVENTS.fields
    ]
    whole = reduce(lambda a, b: a & b, [fn.col(name).isNotNull() for name in _ENVELOPE])
    newer = fn.col("schema_version") > VERSION
    taken = table.select(*columns).withColumns({"file": fn.coalesce("file", file), "day": _day(fn.col("at_ms"))})
    return taken.select(
        "*",
        fn.when(newer, "version").when(~whole, "not-a-row").alias("kind_"),
        fn.when(newer, _newer(fn.col("schema_version"), VERSION))
        .when(~whole, fn.lit(f"a row without all of {', '.join(_ENVELOPE)}"))
        .alias("reason_"),
        fn.when(newer | ~whole, fn.to_json(fn.struct(*_ENVELOPE))).alias("text_"),
    )


def not_of_events(schema: StructType) -> str | None:
    """Why a table with this schema is none of events: columns that it lacks, or that hold something else."""
    kinds = {field.name: field.dataType for field in schema.fields}
    absent = [name for name in _ENVELOPE if name not in kinds]
    if absent:
        return f"it has no {', '.join(absent)}"
    wrong = [
        f"{field.name} is {kinds[field.name].simpleString()} instead of {field.dataType.simpleString()}"
        for field in EVENTS.fields
        if field.name in kinds and field.name != "day" and not _fits(kinds[field.name], field.dataType)
    ]
    return ", ".join(wrong[:3]) or None


def _fits(there: DataType, wanted: DataType) -> bool:
    """Whether values of a type can be taken for another: the same but for the width of numbers."""
    if isinstance(there, ArrayType) and isinstance(wanted, ArrayType):
        return _fits(there.elementType, wanted.elementType)
    if isinstance(there, MapType) and isinstance(wanted, MapType):
        return _fits(there.keyType, wanted.keyType) and _fits(there.valueType, wanted.valueType)
    if isinstance(there, StructType) and isinstance(wanted, StructType):
        return there.names == wanted.names and all(
            _fits(a.dataType, b.dataType) for a, b in zip(there.fields, wanted.fields, strict=True)
        )
    return any(isinstance(there, kind) and isinstance(wanted, kind) for kind in (IntegralType, FractionalType)) or (
        type(there) is type(wanted)
    )


def conform(table: DataFrame, schema: StructType) -> DataFrame:
    """The columns of a schema, in its order, with its types and comments."""
    return table.select(
        *[fn.col(field.name).cast(field.dataType).alias(field.name, metadata=field.metadata) for field in schema.fields]
    )


def _day(at_ms: Column) -> Column:
    return fn.date_from_unix_date(fn.floor(at_ms / _MS_A_DAY).cast("int"))


def _newer(version: Column, known: int) -> Column:
    return fn.concat(
        fn.lit("schema version "),
        version.cast("string"),
        fn.lit(f"; this program knows versions up to {known}, take a newer one"),
    )


def _mistake() -> Column:
    """What is wrong with a line, as a struct of kind and reason, the first that applies; null where nothing is."""
    text, row = fn.col("text"), fn.col("r")
    version = row["schema_version"]
    required = fn.element_at(_fields(), row["event"])
    missing = fn.array_except(required, fn.col("keys"))
    # Spark's reader stops behind the first object of a line.
    glued = text.rlike(r'\}\s*\{\s*"schema_version"') | ~fn.rtrim(text).endswith("}")
    envelope = fn.array(*[fn.lit(name) for name in _ENVELOPE])
    absent = fn.array_except(envelope, fn.coalesce(fn.col("keys"), fn.array().cast("array<string>")))
    empty = reduce(lambda a, b: a | b, [row[name].isNull() for name in _ENVELOPE])

    def mistake(kind: str, reason: Column) -> Column:
        return fn.struct(fn.lit(kind).alias("kind"), reason.alias("reason"))

    problem = fn.col("problem")
    return (
        fn.when(problem.startswith("not UTF-8"), mistake("encoding", problem))
        .when(problem.startswith("a half line"), mistake("half-line", problem))
        .when(problem.isNotNull(), mistake("unreadable", problem))
        .when(fn.trim(text) == "", mistake("not-json", fn.lit("an empty line; expected one JSON object")))
        .when(
            ~fn.ltrim(text).startswith("{") | fn.col("keys").isNull(),
            mistake("not-json", fn.lit("not JSON; expected one JSON object in each line")),
        )
        .when(version > NEWEST_JOURNAL, mistake("version", _newer(version, NEWEST_JOURNAL)))
        .when(
            fn.size(absent) > 0,
            mistake("not-a-row", fn.concat(fn.lit("not a row of a journal: it has no "), fn.array_join(absent, ", "))),
        )
        .when(glued, mistake("not-json", fn.lit("more than one JSON object in a line")))
        .when(
            empty,
            mistake(
                "field",
                fn.concat(fn.lit("the value of one of these is not what it should be: "), fn.lit(", ".join(_ENVELOPE))),
            ),
        )
        .when(required.isNull(), mistake("unknown-event", fn.concat(fn.lit("unknown event "), row["event"])))
        .when(
            fn.size(missing) > 0,
            mistake("field", fn.concat(row["event"], fn.lit(" without "), fn.array_join(missing, ", "))),
        )
        .when(
            row["_corrupt"].isNotNull(),
            mistake("field", fn.concat(row["event"], fn.lit(": the value of a field has not the type it should have"))),
        )
    )


def _fields() -> Column:
    pairs: list[Column] = []
    for event, fields in FIELDS.items():
        pairs += [fn.lit(event), fn.array(*[fn.lit(name) for name in fields]).cast("array<string>")]
    return fn.create_map(*pairs)


def _columns() -> list[Column]:
    """The columns of EVENTS, from the row that was read."""
    row = fn.col("r")
    event = row["event"]
    offsets, members, partitions, cause = row["offsets"], row["members"], row["partitions"], row["cause"]
    why = fn.when(cause.startswith("{"), fn.from_json(cause, _CAUSE))
    is_map = partitions.startswith("{")
    special: dict[str, Column] = {
        "schema_version": fn.lit(VERSION),
        "day": _day(row["at_ms"]),
        "confidence": fn.lit(EXACT),
        "file": fn.col("file"),
        "line": fn.col("line"),
        "other_member_id": fn.coalesce(row["old_member_id"], row["refused_member_id"], row["current_member_id"]),
        "offsets_partition": fn.when(event != "assignor_failed", row["partition"]),
        "cause": fn.coalesce(why["cause"], fn.when(~cause.startswith("{"), cause)),
        "cause_member_id": why["member_id"],
        "cause_group_instance_id": why["group_instance_id"],
        "client_reason": fn.coalesce(row["client_reason"], why["client_reason"]),
        "reason": fn.coalesce(row["reason"], row["why"], row["what"]),
        "protocol": fn.coalesce(row["protocol"], row["assignor"]),
        "members": fn.coalesce(
            fn.when(members.startswith("["), fn.from_json(members, "ARRAY<STRING>")), row["members_after"]
        ),
        "member_count": fn.when(~members.startswith("["), fn.expr("try_cast(r.members AS INT)")),
        "static_member_count": row["static_members"],
        "owned_before": _owners(row["owned_before"]),
        "owned_after": _owners(row["owned_after"]),
        "timeout_ms": fn.coalesce(row["join_timeout_ms"], row["max_poll_interval_ms"]),
        "rebalances": row["rebalance"],
        "partition_count": fn.when(~is_map, fn.expr("try_cast(r.partitions AS INT)")),
        "previous_partition_count": row["previous_partitions"],
        "partitions": _places(
            fn.coalesce(fn.when(is_map, fn.from_json(partitions, _MAP_OF_PARTITIONS)), row["assigned"])
        ),
        "owned": _places(row["owned"]),
        "offsets": fn.coalesce(
            fn.when(offsets.startswith("["), fn.from_json(offsets, _LIST_OF_OFFSETS)),
            _positions(fn.when(offsets.startswith("{"), fn.from_json(offsets, _MAP_OF_OFFSETS))),
        ),
        "event_json": fn.when(
            event.isin(_SAY_MORE) | ((event == "offsets_committed") & fn.col("text").rlike('"metadata":"[^"]')),
            fn.col("text"),
        ),
    }

    def column(field: StructField) -> Column:
        if field.name in special:
            found = special[field.name]
        elif field.name in _HAVE_COLUMNS:
            found = row[field.name]
        else:
            found = fn.lit(None)
        return found.cast(field.dataType).alias(field.name)

    return [column(field) for field in EVENTS.fields]


def _places(topics: Column) -> Column:
    """Topic to partitions, as a list of both."""
    return fn.flatten(
        fn.transform(
            fn.map_entries(topics),
            lambda each: fn.transform(
                each["value"], lambda index: fn.struct(each["key"].alias("topic"), index.alias("partition"))
            ),
        )
    )


def _owners(members: Column) -> Column:
    """Member to topic to partitions, as a list of the three."""
    return fn.flatten(
        fn.transform(
            fn.map_entries(members),
            lambda member: fn.flatten(
                fn.transform(
                    fn.map_entries(member["value"]),
                    lambda each: fn.transform(
                        each["value"],
                        lambda index: fn.struct(
                            member["key"].alias("member_id"), each["key"].alias("topic"), index.alias("partition")
                        ),
                    ),
                )
            ),
        )
    )


def _positions(topics: Column) -> Column:
    """Topic to partition to offset, as a list of the three."""

    def each(topic: Column) -> Column:
        def place(at: Column) -> Column:
            partition = at["key"].try_cast("int").alias("partition")
            return fn.struct(topic["key"].alias("topic"), partition, at["value"].alias("offset"))

        return fn.transform(fn.map_entries(topic["value"]), place)

    return fn.flatten(fn.transform(fn.map_entries(topics), each))
