"""Rows of journals, read in this process: small inputs are done before Spark has planned for them.

The events are those that :func:`rejoin.pipeline.reading.journals.parse` makes of such rows. It gets every row that is
unusual in any way: another version, a field more or less, a value of another type or out of range, other spacing. It
alone decides whether something is wrong with such a row.
"""

from __future__ import annotations

import gc
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import NoneType
from typing import Any, Final, NamedTuple

import orjson
import pyarrow as pa
from pyspark.sql.pandas.types import to_arrow_schema

from rejoin.journal.envelope import SCHEMA_VERSION
from rejoin.pipeline.columns import CAUSE, COLUMN_OF, EVENT_CLASSES, FIELDS_AS_JSON
from rejoin.pipeline.reading.journals import CAUSE_FIELDS, ENVELOPE, MS_A_DAY, SAYS_MORE
from rejoin.pipeline.reading.limits import EXACT, INT32, LATEST_MS, MOST, MOST_PARTITIONS, is_instant
from rejoin.pipeline.schemas import EVENTS, VERSION
from rejoin.pipeline.schemas import EXACT as SURE

Row = dict[str, Any]
Values = Sequence[Any]

_SCHEMA: Final = to_arrow_schema(EVENTS)
_FIELDS: Final = {name: (*ENVELOPE, *event.model_fields) for name, event in EVENT_CLASSES.items()}
_SAYS_MORE: Final = re.compile(SAYS_MORE)


class _Line(NamedTuple):
    number: int
    """Of the line among all that were read."""
    text: str
    values: tuple[Any, ...]
    """Of the fields of its event."""


def read_plain(lines: pa.Table) -> tuple[pa.Table, pa.Table]:
    """The events of usual rows (:data:`EVENTS`), and the lines of all others, which are for ``parse``."""
    with _no_collections():
        return _read_plain(lines)


@contextmanager
def _no_collections() -> Iterator[None]:
    """Without the garbage collector, which would look through all rows again and again: none refers to another."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def _read_plain(lines: pa.Table) -> tuple[pa.Table, pa.Table]:
    by_event: dict[str, list[_Line]] = defaultdict(list)
    texts, problems = lines.column("text").to_pylist(), lines.column("problem").to_pylist()
    for number, (text, problem) in enumerate(zip(texts, problems, strict=True)):
        row = _row(text) if problem is None else None
        if row is not None:
            by_event[row["event"]].append(_Line(number, text, tuple(row.values())))
    files = lines.select(["file", "line"]).combine_chunks()
    tables = [_SCHEMA.empty_table()]
    usual: set[int] = set()
    for name in sorted(by_event):
        fitting, values = _fitting(by_event[name], _FIELDS[name])
        if fitting:
            numbers = [line.number for line in fitting]
            usual.update(numbers)
            texts_of_event = [line.text for line in fitting]
            tables.append(_table(values, texts_of_event, files.take(pa.array(numbers, pa.int64()))))
    others = [number for number in range(lines.num_rows) if number not in usual]
    return pa.concat_tables(tables), lines.take(pa.array(others, pa.int64()))


def _row(text: str) -> Row | None:
    """The row, if its line is JSON as our writers write it, and has the fields of its event and no others."""
    try:
        row = orjson.loads(text)
        if type(row) is not dict or tuple(row) != _FIELDS.get(row.get("event", "")):
            return None
        as_written = orjson.dumps(row)
    except (ValueError, TypeError):
        return None
    return row if as_written == text.encode() else None


def _fitting(lines: list[_Line], names: Sequence[str]) -> tuple[list[_Line], dict[str, Values]]:
    """The lines in which every value is one that its column takes, and the values of each field."""
    columns: dict[str, Values] = dict(zip(names, zip(*(line.values for line in lines), strict=True), strict=True))
    doubtful = [(at, fits) for at, name in enumerate(names) if not (fits := _fit(name))(columns[name])]
    if not doubtful:
        return lines, columns
    fitting = [line for line in lines if all(fits([line.values[at]]) for at, fits in doubtful)]
    return _fitting(fitting, names) if fitting else ([], {})


def _fit(name: str) -> Callable[[Values], bool]:
    """Whether all of these values of a field are as they should be."""
    if name in _ENVELOPE_FITS:
        return _ENVELOPE_FITS[name]
    if name == CAUSE:
        return _are_causes
    kind = FIELDS_AS_JSON[name]
    if kind == "BIGINT":
        return _within(-LATEST_MS, LATEST_MS, int) if name.endswith("_ms") else _within(EXACT[0], EXACT[-1], int)
    if name.endswith("partition_count"):
        return _within(-MOST, MOST_PARTITIONS, int)
    return _FITS[kind]


def _types(values: Values) -> set[type]:
    return {type(value) for value in values} - {NoneType}


def _are(*kinds: type) -> Callable[[Values], bool]:
    return lambda values: _types(values) <= set(kinds)


def _within(least: int, most: int, *kinds: type) -> Callable[[Values], bool]:
    return lambda values: (
        _types(values) <= set(kinds) and all(value is None or least <= value <= most for value in values)
    )


def _are_all(*kinds: type) -> Callable[[Values], bool]:
    return lambda values: {type(value) for value in values} <= set(kinds)


def _are_numbers(values: Iterable[Any]) -> bool:
    return all(type(value) is int and value in INT32 for value in values)


def _are_texts(values: Values) -> bool:
    return _types(values) <= {list} and all(_are_all(str)(value) for value in values if value)


def _are_places(values: Values) -> bool:
    return _types(values) <= {dict} and all(
        type(partitions) is list and _are_numbers(partitions)
        for value in values
        if value
        for partitions in value.values()
    )


def _are_owners(values: Values) -> bool:
    return _types(values) <= {dict} and all(
        type(topics) is dict and _are_places([topics]) for value in values if value for topics in value.values()
    )


def _are_positions(values: Values) -> bool:
    return _types(values) <= {dict} and all(
        type(topics) is dict and all(map(_is_position, topics.items()))
        for value in values
        if value
        for topics in value.values()
    )


def _is_position(position: tuple[str, Any]) -> bool:
    partition, offset = position
    return (
        partition.isascii()
        and partition.isdecimal()
        and len(partition) < 10
        and type(offset) is int
        and offset in EXACT
    )


def _are_objects(*names: str) -> Callable[[Values], bool]:
    def fits(each: Any) -> bool:
        return (
            type(each) is dict
            and type(each.get("topic")) is str
            and _are_numbers([each.get("partition")])
            and all(type(each.get(name)) is int and each[name] in EXACT for name in names)
        )

    return lambda values: _types(values) <= {list} and all(fits(each) for value in values if value for each in value)


def _are_causes(values: Values) -> bool:
    return all(
        tuple(value) == CAUSE_FIELDS and _are(str)(list(value.values()))
        if type(value) is dict
        else value is None or (type(value) is str and not value.startswith("{"))
        for value in values
    )


_ENVELOPE_FITS: Final[Mapping[str, Callable[[Values], bool]]] = {
    "schema_version": lambda values: all(type(value) is int and value == SCHEMA_VERSION for value in values),
    "seq": lambda values: all(type(value) is int and value in EXACT for value in values),
    "at_ms": lambda values: all(type(value) is int and is_instant(value) for value in values),
} | {name: _are_all(str) for name in ("run_id", "source", "node", "event")}
_FITS: Final[Mapping[str, Callable[[Values], bool]]] = {
    "STRING": _are(str),
    "INT": _within(-MOST, MOST, int),
    "DOUBLE": _within(-MOST, MOST, int, float),
    "BOOLEAN": _are(bool),
    "ARRAY<STRING>": _are_texts,
    "MAP<STRING, ARRAY<INT>>": _are_places,
    "MAP<STRING, MAP<STRING, ARRAY<INT>>>": _are_owners,
    "MAP<STRING, MAP<STRING, BIGINT>>": _are_positions,
    "ARRAY<STRUCT<topic: STRING, partition: INT, start: BIGINT, end: BIGINT>>": _are_objects("start", "end"),
    "ARRAY<STRUCT<topic: STRING, partition: INT, offset: BIGINT>>": _are_objects("offset"),
}
"""By the type of a field in the journal."""


def _places(value: Any) -> list[tuple[Any, ...]]:
    return [(topic, partition) for topic, partitions in value.items() for partition in partitions]


def _owners(value: Any) -> list[tuple[Any, ...]]:
    return [(member, *place) for member, topics in value.items() for place in _places(topics)]


def _positions(value: Any) -> list[tuple[Any, ...]]:
    return [(topic, int(partition), offset) for topic, at in value.items() for partition, offset in at.items()]


_LISTED: Final[Mapping[str, Callable[[Any], list[tuple[Any, ...]]]]] = {
    "MAP<STRING, ARRAY<INT>>": _places,
    "MAP<STRING, MAP<STRING, ARRAY<INT>>>": _owners,
    "MAP<STRING, MAP<STRING, BIGINT>>": _positions,
    "ARRAY<STRUCT<topic: STRING, partition: INT, start: BIGINT, end: BIGINT>>": lambda value: [
        (each["topic"], each["partition"], each["start"], each["end"]) for each in value
    ],
    "ARRAY<STRUCT<topic: STRING, partition: INT, offset: BIGINT>>": lambda value: [
        (each["topic"], each["partition"], each["offset"]) for each in value
    ],
}
"""A field as its column has it."""


def _table(of_fields: Mapping[str, Values], texts: Sequence[str], files: pa.Table) -> pa.Table:
    """Rows of one event."""
    columns: dict[str, Values] = {}
    for name, values in of_fields.items():
        listed = _LISTED.get(FIELDS_AS_JSON.get(name, ""))
        if name == CAUSE:
            columns |= _columns_of_causes(values, columns.get("client_reason"))
        elif listed is not None:
            columns[COLUMN_OF.get(name, name)] = [None if value is None else listed(value) for value in values]
        elif name == "client_reason" and name in columns:
            columns[name] = _first_known(values, columns[name])
        else:
            columns[COLUMN_OF.get(name, name)] = values
    if "offsets" in of_fields:
        columns["event_json"] = [
            text if offsets is not None and _SAYS_MORE.search(text) else None
            for text, offsets in zip(texts, of_fields["offsets"], strict=True)
        ]
    count = len(texts)
    made: dict[str, Any] = {name: files.column(name) for name in files.column_names}
    made["schema_version"] = pa.repeat(pa.scalar(VERSION, _SCHEMA.field("schema_version").type), count)
    made["confidence"] = pa.repeat(SURE, count)
    made["day"] = pa.array([at_ms // MS_A_DAY for at_ms in of_fields["at_ms"]], pa.int32()).cast(pa.date32())
    return pa.Table.from_arrays(
        [
            made[field.name]
            if field.name in made
            else pa.array(columns[field.name], field.type)
            if field.name in columns
            else pa.nulls(count, field.type)
            for field in _SCHEMA
        ],
        schema=_SCHEMA,
    )


def _columns_of_causes(values: Values, reasons: Values | None) -> dict[str, Values]:
    """A cause is a word, or an object whose parts are columns."""
    parts = [value if type(value) is dict else dict.fromkeys(CAUSE_FIELDS) | {CAUSE: value} for value in values]
    said = [part["client_reason"] for part in parts]
    return {
        CAUSE: [part[CAUSE] for part in parts],
        "cause_member_id": [part["member_id"] for part in parts],
        "cause_group_instance_id": [part["group_instance_id"] for part in parts],
        "client_reason": said if reasons is None else _first_known(reasons, said),
    }


def _first_known(values: Values, others: Values) -> Values:
    return [other if value is None else value for value, other in zip(values, others, strict=True)]
