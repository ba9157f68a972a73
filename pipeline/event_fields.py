"""The fields of the journals' events: which there are, which column of the table of events each fills, and its type.

A field of an event is a column of the same name, type and meaning. :data:`MERGED` lists the exceptions: fields that
share a column. Nothing here needs Spark or Arrow.
"""

from __future__ import annotations

from collections.abc import Iterator
from types import NoneType
from typing import Annotated, Any, Final, Literal, NamedTuple, get_args, get_origin, get_type_hints

from pydantic import BaseModel

from rejoin.journal.events import (
    client,
    consumer_groups,
    coordinator,
    share_groups,
    share_partitions,
    simulation,
    streams_groups,
    streams_members,
    transactions,
)
from rejoin.journal.events.base import Event, Long
from rejoin.journal.events.fields import MEANINGS
from rejoin.journal.schema import events_in

EVENT_CLASSES: Final[dict[str, type[Event]]] = {
    event.name: event
    for event in events_in(
        coordinator,
        consumer_groups,
        share_groups,
        share_partitions,
        streams_groups,
        streams_members,
        transactions,
        client,
        simulation,
    )
}
"""Every event of the journals, by its name."""

CAUSE: Final = "cause"
"""The one field that is an object in some events and a word in others; the parts of the object are columns."""


class MergedColumn(NamedTuple):
    """A column that several fields share: no event has two of them."""

    comment: str
    fields: tuple[str, ...]


MERGED: Final = {
    "other_member_id": MergedColumn(
        "The other member of the event: the old id that was replaced (static_member_replaced), the refused one"
        " (static_member_restored), the owner of the instance id (member_fenced), the id that the same process had"
        " before (member_joined, where a log shows connections; empty for a new process).",
        ("old_member_id", "refused_member_id", "current_member_id"),
    ),
    "reason": MergedColumn(
        "Why, in words: a consumer's reason to rejoin or leave, why a group or its offsets were deleted, what a"
        " scenario did, the reason a broker's log has in full.",
        ("reason", "action"),
    ),
    "protocol": MergedColumn("The assignor that was chosen or ran.", ("protocol", "assignor")),
    "members": MergedColumn(
        "Member ids: of the group at that moment, after the rebalance if completed.", ("members", "members_after")
    ),
    "offsets": MergedColumn(
        "Committed, refused or found positions: the next record to read.", ("offsets", "positions")
    ),
    "timeout_ms": MergedColumn(
        "The longest the join phase may take; max.poll.interval.ms in poll_timeout_exceeded.",
        ("join_timeout_ms", "max_poll_interval_ms"),
    ),
}
COLUMN_OF: Final = {field: name for name, merged in MERGED.items() for field in merged.fields}


def _hints() -> dict[str, Any]:
    """The type of each field, in the order in which :data:`MEANINGS` has them."""
    known: dict[str, Any] = {}
    for event in EVENT_CLASSES.values():
        hints = get_type_hints(event, include_extras=True)
        for name in event.model_fields:
            hint = _shape(hints[name])
            assert name == CAUSE or known.setdefault(name, hint) == hint, f"{name} has two types in the journal"
    return {name: known.get(name) for name in MEANINGS}


def _shape(hint: Any) -> Any:
    """A hint without None, and with ``str`` for a choice of words."""
    parts = [part for part in get_args(hint) if part is not NoneType]
    if NoneType in get_args(hint) and len(parts) == 1:
        return _shape(parts[0])
    return str if get_origin(hint) is Literal else hint


def _name_of_type(hint: Any, name: str = "") -> str:
    """The type as Spark's reader of JSON is to read it."""
    if get_origin(hint) is list:
        return f"ARRAY<{_name_of_type(get_args(hint)[0])}>"
    if get_origin(hint) is dict:
        return f"MAP<STRING, {_name_of_type(get_args(hint)[1])}>"
    if isinstance(hint, type) and issubclass(hint, BaseModel):
        hints = get_type_hints(hint, include_extras=True)
        return (
            f"STRUCT<{', '.join(f'{each}: {_name_of_type(of, each)}' for each, of in hints.items() if each in _KEPT)}>"
        )
    if hint is int and name.endswith("_ms"):
        return "BIGINT"
    return _SIMPLE[hint] if get_origin(hint) is not Annotated else "BIGINT"


_SIMPLE: Final[dict[Any, str]] = {str: "STRING", int: "INT", Long: "BIGINT", float: "DOUBLE", bool: "BOOLEAN"}
_KEPT: Final = ("topic", "partition", "offset", "start", "end")
"""The fields that objects in lists keep; others are dropped."""

HINTS: Final = _hints()
"""The type of each field, as the classes of the events have it."""
FIELDS_AS_JSON: Final = {name: "STRING" if name == CAUSE else _name_of_type(hint, name) for name, hint in HINTS.items()}
"""The type of each field as it stands in the journal."""

ENVELOPE: Final = ("schema_version", "run_id", "source", "node", "seq", "at_ms", "event")
"""The fields with which every row of a journal begins."""
CAUSE_FIELDS: Final = ("cause", "member_id", "group_instance_id", "client_reason")
"""The parts of a :data:`CAUSE` that is an object."""
SAYS_MORE: Final = '"metadata":"[^"]'
"""Of a commit's offsets only their numbers have a column; where there is more, the row's JSON is kept."""
MS_A_DAY: Final = 86_400_000

MEASURES: Final = (
    "client_instance_id",
    *("poll_interval_avg_ms", "poll_interval_max_ms", "rebalance_latency_avg_ms", "rebalance_latency_max_ms"),
    *("failed_rebalances", "commit_latency_avg_ms", "commit_latency_max_ms"),
    *("fetch_rate", "fetch_latency_avg_ms", "fetch_latency_max_ms", "records_lag_max", "assigned_partitions"),
)
"""Columns of metrics that a client measured, the id of its instance first."""

CAUSE_COLUMNS: Final = {
    CAUSE: MEANINGS[CAUSE],
    "cause_member_id": "The member through whom a rebalance began.",
    "cause_group_instance_id": "Its group.instance.id.",
}
"""Columns of a cause with their comments; what the client said has a column of other events, too."""


def columns_of_fields() -> Iterator[tuple[str, str | None, str]]:
    """The columns of all fields: name, the field that has its type (none of a cause's, which are text), comment."""
    done = set()
    for field in MEANINGS:
        name = COLUMN_OF.get(field, field)
        if name in done:
            continue
        done.add(name)
        if name == CAUSE:
            yield from ((each, None, comment) for each, comment in CAUSE_COLUMNS.items())
        else:
            yield name, field, MERGED[name].comment if name in MERGED else MEANINGS[field]


EVENT_COLUMNS: Final = (
    *("schema_version", "run_id", "source", "node", "seq", "at_ms", "day", "event", "confidence", "file", "line"),
    *(name for name, _, _ in columns_of_fields()),
    *("api_version", "correlation_id", "total_ms", "queue_ms", "local_ms", "parked_ms", "throttle_ms", "software"),
    "event_json",
)
"""The columns of :data:`rejoin.pipeline.schemas.EVENTS`, in their order."""
