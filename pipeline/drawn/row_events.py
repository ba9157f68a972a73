"""Rows of the table of events as events, without Arrow: with null for what a row does not say, or with it empty."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, get_args, get_origin

from pydantic_core import PydanticUndefined

from rejoin.journal.events.base import Event, PartitionsByTopic
from rejoin.journal.events.coordinator import Cause, Ownership
from rejoin.pipeline.event_fields import CAUSE, COLUMN_OF


def fields_of(event: type[Event], row: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of an event as a journal has them, in JSON's types; null where the row does not say one."""
    values: dict[str, Any] = {}
    for name, info in event.model_fields.items():
        value = row.get(COLUMN_OF.get(name, name))
        if _is_cause(info.annotation):
            value = _cause(row)
        elif value is not None and info.annotation == PartitionsByTopic:
            value = _partitions(value)
        elif value is not None and info.annotation == Ownership:
            value = _ownership(value)
        values[name] = value
    return values


def filled(event: type[Event], values: Mapping[str, Any]) -> Event:
    """The event with these fields. What is null is empty, or what the event takes it for by default."""
    found = dict(values)
    for name, info in event.model_fields.items():
        value = found.get(name)
        if _is_cause(info.annotation):
            found[name] = Cause.model_construct(None, **{**(value or {}), CAUSE: (value or {}).get(CAUSE) or "unknown"})
        elif value is None:
            found[name] = _nothing(info.annotation) if info.default is PydanticUndefined else info.default
    return event.model_construct(None, **found)


def event_of(event: type[Event], row: Mapping[str, Any]) -> Event:
    """The event of a row. What the row does not say is empty, or what the event takes it for by default."""
    return filled(event, fields_of(event, row))


def _is_cause(annotation: Any) -> bool:
    return annotation is Cause or Cause in get_args(annotation)


def _cause(row: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "cause": row.get(CAUSE),
        "member_id": row.get("cause_member_id"),
        "group_instance_id": row.get("cause_group_instance_id"),
        "client_reason": row.get("client_reason"),
    }


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
