"""Lines of journals as columns of their events. Nothing here needs Spark or Arrow.

Rows are taken by event, which is fast where they are as our writers write them. Every row that is unusual in any way
(another version, a field more or less, a value of another type or out of range, other spacing) is judged by itself, in
:mod:`~rejoin.pipeline.reading.unusual_lines`.
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

from rejoin.journal.envelope import SCHEMA_VERSION
from rejoin.pipeline.event_fields import (
    CAUSE,
    CAUSE_FIELDS,
    COLUMN_OF,
    ENVELOPE,
    EVENT_CLASSES,
    EVENT_COLUMNS,
    FIELDS_AS_JSON,
    SAYS_MORE,
)
from rejoin.pipeline.reading.limits import EXACT, INT32, LATEST_MS, MOST, MOST_PARTITIONS, is_instant
from rejoin.pipeline.reading.unusual_lines import LineMistake, of_another_type, read_unusual
from rejoin.pipeline.vocabulary import EXACT as SURE

Row = dict[str, Any]
Values = Sequence[Any]

_FIELDS: Final = {name: (*ENVELOPE, *event.model_fields) for name, event in EVENT_CLASSES.items()}
_SAYS_MORE: Final = re.compile(SAYS_MORE)


class _Line(NamedTuple):
    number: int
    """Of the line among all that were read."""
    text: str
    values: tuple[Any, ...]
    """Of the fields of its event."""


class EventsOfKind(NamedTuple):
    """All rows of one event that have these fields."""

    numbers: list[int]
    """Of their lines among all that were read."""
    columns: dict[str, Values]
    """The columns that its fields fill, lists of places as tuples."""


def read_rows(
    texts: Sequence[str], problems: Sequence[str | None]
) -> tuple[list[EventsOfKind], list[tuple[int, LineMistake]]]:
    """The events of lines, by their names, and the numbers of lines that are none, with what is wrong with each.

    ``problems``: why a line cannot be taken as it is, where that is known already.
    """
    with _no_collections():
        found, others = _read_usual(texts, problems)
    if not others:
        return found, []
    more, broken = _read_others(others, texts, problems)
    return sorted([*found, *more], key=lambda each: each.columns["event"][0]), broken


def _read_others(
    others: Sequence[int], texts: Sequence[str], problems: Sequence[str | None]
) -> tuple[list[EventsOfKind], list[tuple[int, LineMistake]]]:
    broken: list[tuple[int, LineMistake]] = []
    by_fields: dict[tuple[str, ...], list[_Line]] = defaultdict(list)
    for number in others:
        row = read_unusual(texts[number], problems[number])
        if isinstance(row, dict) and not all(_fit(name)([value]) for name, value in row.items()):
            row = of_another_type(row["event"])
        if isinstance(row, LineMistake):
            broken.append((number, row))
        else:
            by_fields[row["event"], *row].append(_Line(number, texts[number], tuple(row.values())))
    found = []
    for (_, *names), lines in by_fields.items():
        columns = dict(zip(names, zip(*(line.values for line in lines), strict=True), strict=True))
        found.append(EventsOfKind([line.number for line in lines], _columns(columns, [line.text for line in lines])))
    return found, broken


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


def _read_usual(texts: Sequence[str], problems: Sequence[str | None]) -> tuple[list[EventsOfKind], list[int]]:
    by_event: dict[str, list[_Line]] = defaultdict(list)
    for number, (text, problem) in enumerate(zip(texts, problems, strict=True)):
        row = _row(text) if problem is None else None
        if row is not None:
            by_event[row["event"]].append(_Line(number, text, tuple(row.values())))
    found: list[EventsOfKind] = []
    usual: set[int] = set()
    for name in sorted(by_event):
        fitting, values = _fitting(by_event[name], _FIELDS[name])
        if fitting:
            numbers = [line.number for line in fitting]
            usual.update(numbers)
            found.append(EventsOfKind(numbers, _columns(values, [line.text for line in fitting])))
    return found, [number for number in range(len(texts)) if number not in usual]


def rows_of_events(found: Iterable[EventsOfKind]) -> Iterator[Row]:
    """Rows of the table ``events``, without day, file and line; lists of places as the table has them."""
    none = dict.fromkeys(EVENT_COLUMNS) | {"confidence": SURE}
    for kind in found:
        columns = [_as_in_table(name, values) for name, values in kind.columns.items()]
        for values in zip(*columns, strict=True):
            yield none | dict(zip(kind.columns, values, strict=True))


def _as_in_table(name: str, values: Values) -> Values:
    if name in _DOUBLES:
        return [None if value is None else float(value) for value in values]
    if name not in _PLACES:
        return values
    names = _PLACES[name]
    return [None if value is None else [dict(zip(names, place, strict=True)) for place in value] for value in values]


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


def _columns(of_fields: Mapping[str, Values], texts: Sequence[str]) -> dict[str, Values]:
    """The columns of one event."""
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
    return columns


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


_PLACE_NAMES: Final = {
    "MAP<STRING, ARRAY<INT>>": ("topic", "partition"),
    "MAP<STRING, MAP<STRING, ARRAY<INT>>>": ("member_id", "topic", "partition"),
    "MAP<STRING, MAP<STRING, BIGINT>>": ("topic", "partition", "offset"),
    "ARRAY<STRUCT<topic: STRING, partition: INT, start: BIGINT, end: BIGINT>>": ("topic", "partition", "start", "end"),
    "ARRAY<STRUCT<topic: STRING, partition: INT, offset: BIGINT>>": ("topic", "partition", "offset"),
}
_PLACES: Final = {
    COLUMN_OF.get(name, name): _PLACE_NAMES[kind] for name, kind in FIELDS_AS_JSON.items() if kind in _PLACE_NAMES
}
_DOUBLES: Final = {COLUMN_OF.get(name, name) for name, kind in FIELDS_AS_JSON.items() if kind == "DOUBLE"}
