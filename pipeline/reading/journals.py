"""Lines of journals, and tables of events, become events; whatever is none goes to the quarantine, with the reason.

Each is one function of rows: this process calls it for little data, and Spark's tasks for much
(:mod:`~rejoin.pipeline.reading.on_spark`). An event's own fields are flat beside the envelope
(``journal.envelope``), with the types that :mod:`rejoin.pipeline.columns` computes.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from functools import reduce
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rejoin.journal.renames import RENAMES
from rejoin.pipeline.columns import STRING, column, table
from rejoin.pipeline.event_fields import ENVELOPE, MS_A_DAY
from rejoin.pipeline.reading.limits import EARLIEST_MS, LATEST_MS, MOST, MOST_PARTITIONS, NO_INSTANT, TOO_LARGE
from rejoin.pipeline.reading.unusual_lines import newer
from rejoin.pipeline.reading.usual_lines import EventsOfKind, read_rows
from rejoin.pipeline.schemas import EVENTS, QUARANTINE, VERSION
from rejoin.pipeline.vocabulary import EXACT

SHOWN_CHARACTERS: Final = 4_096
IDENTITY: Final = ("run_id", "source", "node", "seq")
"""Columns that name a row: two rows with one name are copies."""
JUDGED: Final = table(
    *EVENTS,
    column("kind_", STRING, "As in the quarantine; null where the row is an event."),
    column("reason_", STRING, "As in the quarantine."),
    column("text_", STRING, "As in the quarantine."),
)
"""Events, and rows that are none, in one table."""

_OF_QUARANTINE: Final = {"reason": "reason_", "kind": "kind_", "text": "text_"}
_OLD_COLUMNS: Final = {"notified": "told", "rebalance": "rebalances", "event_json": "fact"}
"""Today's columns to their names in tables of version 1."""
_SHOWN: Final = ("run_id", "source", "node", "seq", "at_ms", "event", "group_id", "member_id")
"""Columns by which the quarantine shows a copy."""


class EventRows(NamedTuple):
    """Rows of this process: events (:data:`EVENTS`), and what could not be used (:data:`QUARANTINE`)."""

    events: pa.Table
    quarantine: pa.Table


def events_of_lines(lines: pa.Table) -> EventRows:
    """Lines (:data:`rejoin.pipeline.schemas.LINES`) with their events. Copies are still in; see :func:`each_once`."""
    texts = lines["text"].to_pylist()
    found, broken = read_rows(texts, lines["problem"].to_pylist())
    places = lines.select(["file", "line"]).combine_chunks()
    tables = [_events(kind, places.take(pa.array(kind.numbers, pa.int64()))) for kind in found]
    of_broken = places.take(pa.array([number for number, _ in broken], pa.int64()))
    values = {
        "reason": [mistake.reason for _, mistake in broken],
        "kind": [mistake.kind for _, mistake in broken],
        "text": [(texts[number] or "")[:SHOWN_CHARACTERS] for number, _ in broken],
    }
    columns = [*of_broken.columns, *(pa.array(each, pa.string()) for each in values.values())]
    quarantine = pa.Table.from_arrays(columns, ["file", "line", *values]).select(QUARANTINE.names).cast(QUARANTINE)
    return EventRows(pa.concat_tables([EVENTS.empty_table(), *tables]), quarantine)


def _events(kind: EventsOfKind, places: pa.Table) -> pa.Table:
    """Rows of one event."""
    columns, count = kind.columns, len(kind.numbers)
    made: dict[str, Any] = {name: places.column(name) for name in places.column_names}
    made["schema_version"] = pa.repeat(pa.scalar(VERSION, EVENTS.field("schema_version").type), count)
    made["confidence"] = pa.repeat(EXACT, count)
    made["day"] = pa.array([at_ms // MS_A_DAY for at_ms in columns["at_ms"]], pa.int32()).cast(pa.date32())
    return pa.Table.from_arrays(
        [
            made[field.name]
            if field.name in made
            else pa.array(columns[field.name], field.type)
            if field.name in columns
            else pa.nulls(count, field.type)
            for field in EVENTS
        ],
        schema=EVENTS,
    )


def judged(rows: EventRows) -> pa.Table:
    """Events and quarantine as one table (:data:`JUDGED`)."""
    broken = rows.quarantine.rename_columns([_OF_QUARANTINE.get(name, name) for name in QUARANTINE.names])
    return pa.concat_tables([_widened(rows.events, JUDGED), _widened(broken, JUDGED)])


def sorted_out(rows: pa.Table) -> EventRows:
    """Events and quarantine from one table of both."""
    is_event = pc.is_null(rows["kind_"])
    broken = rows.filter(pc.invert(is_event)).select(["file", "line", *_OF_QUARANTINE.values()])
    quarantine = broken.rename_columns(["file", "line", *_OF_QUARANTINE]).select(QUARANTINE.names).cast(QUARANTINE)
    return EventRows(rows.filter(is_event).select(EVENTS.names).cast(EVENTS), quarantine)


def _widened(rows: pa.Table, schema: pa.Schema) -> pa.Table:
    """The rows with the columns of a schema; those that they lack are null."""
    have = set(rows.column_names)
    columns = [rows[each.name] if each.name in have else pa.nulls(rows.num_rows, each.type) for each in schema]
    return pa.Table.from_arrays(columns, schema=schema)


# --- copies


def each_once(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Events (:data:`EVENTS`) of which some are there more than once, as :data:`JUDGED`: of copies the first is one.

    The events come in the order of :data:`IDENTITY`, file and line.
    """
    names = [*dict.fromkeys((*IDENTITY, "file", "line", *_SHOWN))]
    first: dict[str, Any] | None = None
    for batch in batches:
        reasons: list[tuple[str, str, str] | tuple[None, None, None]] = []
        for row in batch.select(names).to_pylist():
            if first is None or any(first[name] != row[name] for name in IDENTITY):
                first = row
                reasons.append((None, None, None))
            else:
                reasons.append(_copy_of(first, row))
        columns = zip(*reasons, strict=True) if reasons else ((), (), ())
        more = [pa.array(each, pa.string()) for each in columns]
        yield pa.RecordBatch.from_arrays([*batch.columns, *more], schema=JUDGED)


def _copy_of(first: Mapping[str, Any], row: Mapping[str, Any]) -> tuple[str, str, str]:
    """Kind, reason and text of a row whose number another row has, too."""
    same = first["at_ms"] == row["at_ms"] and first["event"] == row["event"]
    kind, words = ("repeated", "repeated") if same else ("conflict", "another row with the same number")
    number = f"row {row['seq']} of {row['source']} {row['node']}, run {row['run_id']}"
    shown = {name: row[name] for name in _SHOWN if row[name] is not None}
    return (
        kind,
        f"{words}: {number}, is in {first['file']}, line {first['line']}, too",
        json.dumps(shown, ensure_ascii=False, separators=(",", ":")),
    )


def without_copies(rows: EventRows) -> EventRows:
    """Each event once. As a rule there are no copies."""
    keys = rows.events.select(list(IDENTITY))
    counts = keys.group_by(list(IDENTITY)).aggregate([([], "count_all")])
    if counts.num_rows == keys.num_rows:
        return rows
    named = counts.filter(pc.greater(counts["count_all"], 1)).select(list(IDENTITY))
    several = set(zip(*(each.to_pylist() for each in named.columns), strict=True))
    is_several = pa.array([key in several for key in zip(*(each.to_pylist() for each in keys.columns), strict=True)])
    order = [(name, "ascending") for name in (*IDENTITY, "file", "line")]
    copies = rows.events.filter(is_several).sort_by(order)
    once = sorted_out(pa.Table.from_batches(each_once(copies.to_batches()), JUDGED))
    events = pa.concat_tables([rows.events.filter(pc.invert(is_several)), once.events])
    return EventRows(events, pa.concat_tables([rows.quarantine, once.quarantine]))


# --- tables of events


def events_of_table(rows: pa.Table, file: str) -> pa.Table:
    """Rows of a table of events as :data:`JUDGED`; columns that it does not have are null.

    :func:`not_of_events` checks that the columns are those of events.
    """
    there = {name: name for name in rows.column_names}
    there |= {name: old for name, old in _OLD_COLUMNS.items() if name not in there and old in there}
    found = {
        field.name: _fitted(rows[there[field.name]], field.type)
        if field.name in there and field.name != "day"
        else pa.nulls(rows.num_rows, field.type)
        for field in EVENTS
    }
    found["file"] = pc.fill_null(found["file"], file)
    found["event"] = _event_now(found["event"], found["schema_version"])
    is_instant = pc.and_(pc.greater_equal(found["at_ms"], EARLIEST_MS), pc.less(found["at_ms"], LATEST_MS))
    is_instant = pc.fill_null(is_instant, False)
    at_ms = pc.fill_null(pc.if_else(is_instant, found["at_ms"], None), 0).to_numpy(zero_copy_only=False)
    days = pa.array((at_ms // MS_A_DAY).astype(np.int32)).cast(pa.date32())
    found["day"] = pc.if_else(is_instant, days, None)
    kinds = _kinds(found, is_instant)
    envelopes = pa.table({name: found[name] for name in ENVELOPE})
    broken = {
        number: (kind, *_reason(kind, row))
        for number, kind in enumerate(kinds)
        if kind is not None
        for row in envelopes.slice(number, 1).to_pylist()
    }
    said = [broken.get(number, (None, None, None)) for number in range(rows.num_rows)]
    more = zip(("kind_", "reason_", "text_"), zip(*said, strict=True) if said else ((), (), ()), strict=True)
    found |= {name: pa.array(values, pa.string()) for name, values in more}
    return pa.Table.from_arrays([found[each.name] for each in JUDGED], schema=JUDGED)


def _kinds(found: Mapping[str, Any], is_instant: pa.Array) -> list[str | None]:
    """The kind of mistake in each row; none where the row is good."""
    whole = reduce(pc.and_, (pc.is_valid(found[name]) for name in ENVELOPE))
    is_newer = pc.fill_null(pc.greater(found["schema_version"], VERSION), False)
    wrong = pc.or_(pc.invert(is_instant), _is_too_large(found))
    kinds = pc.if_else(is_newer, "version", pc.if_else(whole, pc.if_else(wrong, "field", None), "not-a-row"))
    values: list[str | None] = kinds.to_pylist()
    return values


def _is_too_large(found: Mapping[str, Any]) -> Any:
    out = pa.scalar(False)
    for field in EVENTS:
        values = found[field.name]
        limit = MOST if field.type in (pa.int32(), pa.float64()) else None
        if field.type == pa.int64() and field.name.endswith("_ms"):
            limit = LATEST_MS
        if limit is not None:
            beyond = pc.or_(pc.greater(values, limit), pc.less(values, -limit))
            out = pc.or_(out, pc.fill_null(beyond, False))
        if field.name.endswith("partition_count"):
            out = pc.or_(out, pc.fill_null(pc.greater(values, MOST_PARTITIONS), False))
    return out


def _reason(kind: str, row: Mapping[str, Any]) -> tuple[str, str]:
    """The reason and text of a row."""
    text = json.dumps({name: value for name, value in row.items() if value is not None}, separators=(",", ":"))
    if kind == "version":
        return newer(row["schema_version"], VERSION), text
    if kind == "not-a-row":
        return f"a row without all of {', '.join(ENVELOPE)}", text
    if not EARLIEST_MS <= row["at_ms"] < LATEST_MS:
        return f"at_ms is {row['at_ms']}; {NO_INSTANT}", text
    return TOO_LARGE, text


def _event_now(events: pa.Array, versions: pa.Array) -> pa.Array:
    """The names of events as they are now; tables of version 1 hold those of journals of version 1."""
    is_old = pc.fill_null(pc.equal(versions, 1), False)
    for old, renamed in RENAMES[1].items():
        if old != renamed.name:
            events = pc.if_else(pc.and_(is_old, pc.fill_null(pc.equal(events, old), False)), renamed.name, events)
    return events


def _fitted(values: pa.ChunkedArray, kind: pa.DataType) -> pa.ChunkedArray:
    """Values of a column with another type. A number that its column has no room for is null."""
    try:
        return values.cast(kind)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        return pa.chunked_array([pa.array([_fitting(each, kind) for each in values.to_pylist()], kind)])


def _fitting(value: Any, kind: pa.DataType) -> Any:
    if value is None:
        return None
    if pa.types.is_list(kind):
        return [_fitting(each, kind.value_type) for each in value]
    if pa.types.is_struct(kind):
        return {each.name: _fitting(value[each.name], each.type) for each in kind}
    if pa.types.is_integer(kind):
        limit = 2 ** (kind.bit_width - 1)
        return int(value) if -limit <= value < limit else None
    return float(value) if pa.types.is_floating(kind) else value


def not_of_events(schema: pa.Schema) -> str | None:
    """Why a table with this schema is none of events: columns that it lacks, or that hold something else."""
    absent = [name for name in ENVELOPE if name not in schema.names]
    if absent:
        return f"it has no {', '.join(absent)}"
    wrong = [
        f"{field.name} is {_named(schema.field(field.name).type)} instead of {_named(field.type)}"
        for field in EVENTS
        if field.name in schema.names and field.name != "day" and not _fits(schema.field(field.name).type, field.type)
    ]
    return ", ".join(wrong[:3]) or None


_NAMES: Final = {"int64": "bigint", "int32": "int"}


def _named(kind: pa.DataType) -> str:
    """A type as the tables' documentation and Spark's SQL name it; a time without its unit and zone."""
    if pa.types.is_timestamp(kind):
        return "timestamp"
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return f"array<{_named(kind.value_type)}>"
    if pa.types.is_struct(kind):
        return f"struct<{','.join(f'{each.name}:{_named(each.type)}' for each in kind)}>"
    return _NAMES.get(str(kind), str(kind))


def _fits(there: pa.DataType, wanted: pa.DataType) -> bool:
    """Whether values of a type can be taken for another: the same but for the width of numbers."""
    if pa.types.is_dictionary(there):
        there = there.value_type
    for is_list in (pa.types.is_list, pa.types.is_large_list):
        if is_list(there) and pa.types.is_list(wanted):
            return _fits(there.value_type, wanted.value_type)
    if pa.types.is_struct(there) and pa.types.is_struct(wanted):
        return [each.name for each in there] == [each.name for each in wanted] and all(
            _fits(one.type, other.type) for one, other in zip(there, wanted, strict=True)
        )
    return there == wanted or any(is_it(there) and is_it(wanted) for is_it in (_is_integer, _is_fraction, _is_text))


def _is_integer(kind: pa.DataType) -> bool:
    return bool(pa.types.is_integer(kind)) and kind != pa.uint64()


def _is_fraction(kind: pa.DataType) -> bool:
    return bool(pa.types.is_floating(kind) or pa.types.is_decimal(kind))


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))
