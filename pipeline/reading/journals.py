"""Lines of journals become events, and whatever is not one goes to the quarantine, with the reason.

Functions from DataFrame to DataFrame. An event's own fields are flat beside the envelope (``journal.envelope``), with
the types that :mod:`rejoin.pipeline.columns` computes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
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

from rejoin.journal.envelope import SCHEMA_VERSION
from rejoin.journal.renames import RENAMES
from rejoin.pipeline.event_fields import (
    CAUSE,
    CAUSE_FIELDS,
    ENVELOPE,
    EVENT_CLASSES,
    FIELDS_AS_JSON,
    MERGED,
    MS_A_DAY,
    SAYS_MORE,
)
from rejoin.pipeline.reading.limits import EARLIEST_MS, LATEST_MS, MOST, MOST_PARTITIONS, NO_INSTANT, TOO_LARGE
from rejoin.pipeline.schemas import EVENTS, QUARANTINE, VERSION
from rejoin.pipeline.vocabulary import EXACT

SHOWN_CHARACTERS: Final = 4_096

_ENVELOPE_AS_JSON: Final = (
    "schema_version INT, run_id STRING, source STRING, node STRING, seq BIGINT, at_ms BIGINT, event STRING"
)
_READ_AS: Final = (
    f"{_ENVELOPE_AS_JSON}, {', '.join(f'{name} {kind}' for name, kind in FIELDS_AS_JSON.items())}, _corrupt STRING"
)
_CAUSE: Final = ", ".join(f"{name} STRING" for name in CAUSE_FIELDS)

_OLD_COLUMNS: Final = {"notified": "told", "rebalance": "rebalances", "event_json": "fact"}
"""What tables of version 1 called columns."""


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

    :func:`not_of_events` checks that the columns are those of events.
    """
    there = {name: name for name in table.columns}
    there |= {name: old for name, old in _OLD_COLUMNS.items() if name not in there and old in there}
    columns = [
        # A number that its column has no room for is null, and its row then lacks it, like any other.
        (
            fn.col(there[field.name]).try_cast(field.dataType)
            if field.name in there and field.name != "day"
            else fn.lit(None).cast(field.dataType)
        ).alias(field.name)
        for field in EVENTS.fields
    ]
    whole = reduce(lambda a, b: a & b, [fn.col(name).isNotNull() for name in ENVELOPE])
    newer = fn.col("schema_version") > VERSION
    unlikely = ~_is_instant(fn.col("at_ms"))
    huge = _is_out_of_range(
        (each.name, each.dataType.simpleString().upper(), fn.col(each.name)) for each in EVENTS.fields
    )
    taken = table.select(*columns).withColumns(
        {"file": fn.coalesce("file", file), "day": _day(fn.col("at_ms")), "event": _event_now()}
    )
    return taken.select(
        "*",
        fn.when(newer, "version").when(~whole, "not-a-row").when(unlikely | huge, "field").alias("kind_"),
        fn.when(newer, _newer(fn.col("schema_version"), VERSION))
        .when(~whole, fn.lit(f"a row without all of {', '.join(ENVELOPE)}"))
        .when(unlikely, fn.concat(fn.lit("at_ms is "), fn.col("at_ms").cast("string"), fn.lit(f"; {NO_INSTANT}")))
        .when(huge, fn.lit(TOO_LARGE))
        .alias("reason_"),
        fn.when(newer | ~whole | unlikely | huge, fn.to_json(fn.struct(*ENVELOPE))).alias("text_"),
    )


def _event_now() -> Column:
    """The name of an event as it is now; tables of version 1 hold those of journals of version 1."""
    name = fn.col("event")
    for old, renamed in RENAMES[1].items():
        if old != renamed.name:
            name = fn.when((fn.col("schema_version") == 1) & (fn.col("event") == old), renamed.name).otherwise(name)
    return name


def not_of_events(schema: StructType) -> str | None:
    """Why a table with this schema is none of events: columns that it lacks, or that hold something else."""
    kinds = {field.name: field.dataType for field in schema.fields}
    absent = [name for name in ENVELOPE if name not in kinds]
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


def _is_instant(at_ms: Column) -> Column:
    return at_ms.between(EARLIEST_MS, LATEST_MS - 1)


def _is_out_of_range(values: Iterable[tuple[str, str, Column]]) -> Column:
    """Whether one of these numbers (name, type, value) is too large to count with."""
    out = fn.lit(False)
    for name, kind, value in values:
        if name.endswith("partition_count"):
            out |= value > MOST_PARTITIONS
        if kind.upper() in ("INT", "DOUBLE"):
            out |= ~value.between(-MOST, MOST)
        elif kind.upper() == "BIGINT" and name.endswith("_ms"):
            out |= ~value.between(-LATEST_MS, LATEST_MS)
    return out


def _day(at_ms: Column) -> Column:
    return fn.when(_is_instant(at_ms), fn.date_from_unix_date(fn.floor(at_ms / MS_A_DAY).cast("int")))


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
    envelope = fn.array(*[fn.lit(name) for name in ENVELOPE])
    absent = fn.array_except(envelope, fn.coalesce(fn.col("keys"), fn.array().cast("array<string>")))
    empty = reduce(lambda a, b: a | b, [row[name].isNull() for name in ENVELOPE])

    def mistake(kind: str, reason: Column) -> Column:
        return fn.struct(fn.lit(kind).alias("kind"), reason.alias("reason"))

    problem = fn.col("problem")
    return (
        fn.when(problem.startswith("not UTF-8"), mistake("encoding", problem))
        .when(problem.startswith("a half line"), mistake("half-line", problem))
        .when(problem.startswith(TOO_LARGE), mistake("field", problem))
        .when(problem.isNotNull(), mistake("unreadable", problem))
        .when(fn.trim(text) == "", mistake("not-json", fn.lit("an empty line; expected one JSON object")))
        .when(
            ~fn.ltrim(text).startswith("{") | fn.col("keys").isNull(),
            mistake("not-json", fn.lit("not JSON; expected one JSON object in each line")),
        )
        .when(version > SCHEMA_VERSION, mistake("version", _newer(version, SCHEMA_VERSION)))
        .when(
            fn.size(absent) > 0,
            mistake("not-a-row", fn.concat(fn.lit("not a row of a journal: it has no "), fn.array_join(absent, ", "))),
        )
        .when(glued, mistake("not-json", fn.lit("more than one JSON object in a line")))
        .when(
            empty,
            mistake(
                "field",
                fn.concat(fn.lit("the value of one of these is not what it should be: "), fn.lit(", ".join(ENVELOPE))),
            ),
        )
        .when(
            ~_is_instant(row["at_ms"]),
            mistake("field", fn.concat(fn.lit("at_ms is "), row["at_ms"].cast("string"), fn.lit(f"; {NO_INSTANT}"))),
        )
        .when(
            _is_out_of_range((name, kind, row[name]) for name, kind in FIELDS_AS_JSON.items()),
            mistake("field", fn.concat(row["event"], fn.lit(f": {TOO_LARGE}"))),
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
    for name, event in EVENT_CLASSES.items():
        # A field that has a default came later: older journals lack it.
        required = [field for field, info in event.model_fields.items() if info.is_required()]
        pairs += [fn.lit(name), fn.array(*map(fn.lit, required)).cast("array<string>")]
    return fn.create_map(*pairs)


def _columns() -> list[Column]:
    """The columns of EVENTS, from the row that was read."""
    row = fn.col("r")
    cause = row[CAUSE]
    parts = fn.when(cause.startswith("{"), fn.from_json(cause, _CAUSE))
    says_more = row["offsets"].isNotNull() & fn.col("text").rlike(SAYS_MORE)
    special: dict[str, Column] = {
        "schema_version": fn.lit(VERSION),
        "day": _day(row["at_ms"]),
        "confidence": fn.lit(EXACT),
        "file": fn.col("file"),
        "line": fn.col("line"),
        "cause": fn.coalesce(parts["cause"], fn.when(~cause.startswith("{"), cause)),
        "cause_member_id": parts["member_id"],
        "cause_group_instance_id": parts["group_instance_id"],
        "client_reason": fn.coalesce(row["client_reason"], parts["client_reason"]),
        "event_json": fn.when(says_more, fn.col("text")),
    }

    def of(field: StructField) -> Column:
        if field.name in special:
            found = special[field.name]
        elif field.name in ENVELOPE:
            found = row[field.name]
        else:
            fields = MERGED[field.name].fields if field.name in MERGED else (field.name,)
            found = fn.coalesce(
                *[_listed(row[name], name) if name in FIELDS_AS_JSON else fn.lit(None) for name in fields]
            )
        return found.cast(field.dataType).alias(field.name)

    return [of(field) for field in EVENTS.fields]


def _listed(value: Column, field: str) -> Column:
    """A field as its column has it: maps as lists of rows."""
    convert = _OF_MAPS.get(FIELDS_AS_JSON[field])
    return value if convert is None else convert(value)


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


_OF_MAPS: Final[dict[str, Callable[[Column], Column]]] = {
    "MAP<STRING, ARRAY<INT>>": _places,
    "MAP<STRING, MAP<STRING, ARRAY<INT>>>": _owners,
    "MAP<STRING, MAP<STRING, BIGINT>>": _positions,
}
