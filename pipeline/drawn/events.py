"""Rows of the table of events as the events that they were: logs do not say everything, so parts may be empty."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from typing import Any, Final, get_args, get_origin

import pyarrow as pa
import pyarrow.compute as pc
from pydantic_core import PydanticUndefined

from rejoin.journal.events.base import Event, PartitionsByTopic
from rejoin.journal.events.coordinator import Cause, Ownership
from rejoin.journal.recording.event_recorder import EventRecorder
from rejoin.pipeline.drawn.drawn_event import DrawnEvent
from rejoin.pipeline.drawn.lanes import with_lanes
from rejoin.pipeline.event_fields import CAUSE, COLUMN_OF, EVENT_CLASSES

_ALWAYS: Final = ("run_id", "source", "node", "seq", "at_ms", "group_id")
DRAWN: Final = {name: each for name, each in EVENT_CLASSES.items() if name in EventRecorder.event_names()}
"""The events that are drawn, by their names."""

Key = tuple[str, str]
"""Run and group."""


def events_of(rows: pa.Table, groups: Collection[Key], most: int) -> dict[Key, list[DrawnEvent]]:
    """The events to draw of these groups, in the order of time; nothing at all where they are more than ``most``."""
    found: dict[Key, list[DrawnEvent]] = defaultdict(list)
    everybody: dict[str, list[DrawnEvent]] = defaultdict(list)
    """Events that are of no group, by run."""
    drawn = rows.filter(pc.is_in(rows.column("event"), pa.array(list(DRAWN))))
    if drawn.num_rows > most:
        return {}
    for name, event in DRAWN.items():
        mine = drawn.filter(pc.equal(drawn.column("event"), name))
        if not mine.num_rows:
            continue
        wanted = {*_ALWAYS, *_columns_of(event)}
        for row in mine.select([each for each in mine.column_names if each in wanted]).to_pylist():
            place = DrawnEvent(row["at_ms"], row["seq"] or 0, row["node"] or "", row["source"], event_of(event, row))
            if row["group_id"] is None:
                everybody[row["run_id"]].append(place)
            elif (key := (row["run_id"], row["group_id"])) in groups:
                found[key].append(place)
    return {
        key: with_lanes(sorted([*events, *everybody[key[0]]], key=lambda each: (each.at_ms, each.seq)))
        for key, events in found.items()
    }


def _columns_of(event: type[Event]) -> Iterable[str]:
    for field in event.model_fields:
        yield COLUMN_OF.get(field, field)
        if field == CAUSE:
            yield from ("cause_member_id", "cause_group_instance_id", "client_reason")


def event_of(event: type[Event], row: Mapping[str, Any]) -> Event:
    """The event of a row. What the row does not say is empty, or what the event takes it for by default."""
    values: dict[str, Any] = {}
    for name, info in event.model_fields.items():
        value = row.get(COLUMN_OF.get(name, name))
        if info.annotation is Cause or Cause in get_args(info.annotation):
            value = _cause(row)
        elif value is None:
            value = _nothing(info.annotation) if info.default is PydanticUndefined else info.default
        elif info.annotation == PartitionsByTopic:
            value = _partitions(value)
        elif info.annotation == Ownership:
            value = _ownership(value)
        values[name] = value
    return event.model_construct(None, **values)


def _cause(row: Mapping[str, Any]) -> Cause:
    values: dict[str, Any] = {
        "cause": row.get(CAUSE) or "unknown",
        "member_id": row.get("cause_member_id"),
        "group_instance_id": row.get("cause_group_instance_id"),
        "client_reason": row.get("client_reason"),
    }
    return Cause.model_construct(None, **values)


def _nothing(annotation: Any) -> Any:
    kind = get_origin(annotation) or annotation
    return {list: list, dict: dict, int: int, str: str, bool: bool}.get(kind, lambda: None)()


def _partitions(listed: Iterable[Mapping[str, Any]]) -> dict[str, list[int]]:
    topics: dict[str, list[int]] = {}
    for each in listed:
        topics.setdefault(each["topic"], []).append(each["partition"])
    return topics


def _ownership(listed: Iterable[Mapping[str, Any]]) -> dict[str, dict[str, list[int]]]:
    members: dict[str, list[Mapping[str, Any]]] = {}
    for each in listed:
        members.setdefault(each["member_id"], []).append(each)
    return {member_id: _partitions(mine) for member_id, mine in members.items()}
