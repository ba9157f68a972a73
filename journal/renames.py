"""Names of events and fields in older journals. The one table; both readers use it.

The Python reader upgrades a row before it checks it (:func:`upgraded`); the reader on Spark does so with
each line, before it hands lines to Spark.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from rejoin.journal.envelope import SCHEMA_VERSION

_NONE: Final[Mapping[str, str]] = MappingProxyType({})


class Rename(NamedTuple):
    """Reading of an event of an older version: its name now, its fields by their old names, and the fields it lacks
    where it has a partition."""

    name: str
    fields: Mapping[str, str] = _NONE
    added: Mapping[str, str] = _NONE


_OFFSETS_LOG: Final = {"topic": "__consumer_offsets"}
_IN_MEMBERS: Final = {"members": "member_count"}
_POSITIONS: Final = {"offsets": "positions"}

RENAMES: Final[dict[int, dict[str, Rename]]] = {
    1: {
        "group_created": Rename("group_created", {"partition": "offsets_partition"}),
        "group_loaded": Rename("group_loaded", {"partition": "offsets_partition", "offsets": "offset_count"}),
        "group_deleted": Rename("group_deleted", {"why": "reason", "offsets": "offset_count"}),
        "rebalance_delay_extended": Rename("rebalance_delay_extended", _IN_MEMBERS),
        "assignment_received": Rename("assignment_received", {**_IN_MEMBERS, "static_members": "static_member_count"}),
        "offsets_deleted": Rename("offsets_deleted", {"why": "reason"}),
        "partition_elected": Rename("partition_elected", added=_OFFSETS_LOG),
        "partition_loaded": Rename("partition_loaded", added=_OFFSETS_LOG),
        "partition_resigned": Rename("partition_resigned", added=_OFFSETS_LOG),
        "append_failed": Rename("append_failed", added=_OFFSETS_LOG),
        "core_failed": Rename("core_failed", added=_OFFSETS_LOG),
        "topic_created": Rename("topic_created", {"partitions": "partition_count"}),
        "topic_grown": Rename(
            "topic_grown", {"partitions": "partition_count", "previous_partitions": "previous_partition_count"}
        ),
        "topic_deleted": Rename("topic_deleted", {"partitions": "partition_count"}),
        "generation_joined": Rename("generation_joined", _IN_MEMBERS),
        "assignment_computed": Rename("assignment_computed", {**_IN_MEMBERS, "partitions": "partition_count"}),
        "group_synced": Rename("group_synced", {"assigned": "partitions"}),
        "assignment_refused": Rename("assignment_refused", {"assigned": "partitions"}),
        "positions_found": Rename("positions_found", _POSITIONS),
        "commit_succeeded": Rename("commit_succeeded", _POSITIONS),
        "commit_failed": Rename("commit_failed", _POSITIONS),
        "group_left": Rename("group_left", {"told": "notified"}),
        "consumer_started": Rename("consumer_started", {"life": "incarnation"}),
        "done": Rename("scenario_action", {"what": "action"}),
        "topic_written": Rename("topic_written", {"partitions": "partition_count"}),
    },
}
"""By schema version and old event name. Events that are not here are read as they are."""

_BEGINS: Final = re.compile(rb'\s*\{\s*"schema_version"\s*:\s*(\d{1,9})\b')


def is_old(text: bytes) -> bool:
    """Whether a row says at its beginning that it is of an older version."""
    begins = _BEGINS.match(text)
    return begins is not None and int(begins[1]) in RENAMES


def upgraded_text(text: bytes) -> bytes:
    """The row with names of the newest version. Other values, and newest rows, come back unchanged."""
    if not is_old(text):
        return text
    try:
        return json.dumps(upgraded(json.loads(text)), ensure_ascii=False, separators=(",", ":")).encode()
    except (ValueError, TypeError, KeyError, RecursionError):
        # The reader reports what is wrong with it.
        return text


def upgraded(row: dict[str, Any]) -> dict[str, Any]:
    """A row of an older version in the names of the newest one."""
    for version in range(row["schema_version"], SCHEMA_VERSION):
        renamed = RENAMES[version].get(str(row.get("event")))
        if renamed is not None:
            row = {renamed.fields.get(name, name): value for name, value in row.items()}
            known = row.get("partition") is not None
            row |= {"event": renamed.name, **{name: value if known else None for name, value in renamed.added.items()}}
    return row | {"schema_version": SCHEMA_VERSION}
