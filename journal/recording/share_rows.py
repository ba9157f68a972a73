"""Rows of share-partitions: what becomes of the records that a share group has in flight (KIP-932)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from rejoin.journal.events.share_partitions import (
    ShareLocksExpired,
    SharePartitionEvent,
    SharePartitionLoaded,
    ShareRecordsAcknowledged,
    ShareRecordsAcquired,
    ShareRecordsArchived,
    ShareRecordsDeadLettered,
    ShareRecordsEvent,
    ShareRecordsReleased,
    ShareWindowMoved,
)

SHARE_EVENTS: Final[tuple[type[SharePartitionEvent], ...]] = (
    *(ShareRecordsAcquired, ShareRecordsAcknowledged, ShareLocksExpired, ShareRecordsReleased),
    *(ShareRecordsArchived, ShareRecordsDeadLettered, SharePartitionLoaded, ShareWindowMoved),
)
"""The events of share-partitions that make rows."""


def share_row(event: SharePartitionEvent, now: int, lane: Callable[[str, str], str]) -> list[Any] | None:
    """The row of an event, or none for an event that makes no row.

    It has instant, group, topic, partition, what, first and last offset, delivery count, member, and detail. The detail
    of an acquisition is the length of the lock in ms; of others it is the reason. A window has its start and end as
    offsets. ``lane`` names the member of a group by its id.
    """
    if isinstance(event, ShareWindowMoved):
        found: list[Any] = ["moved", event.start_offset, event.end_offset, 0, "", event.in_flight]
    elif isinstance(event, SharePartitionLoaded):
        found = ["loaded", event.start_offset, event.start_offset, 0, "", event.leader_epoch]
    elif isinstance(event, ShareRecordsEvent):
        member_id = getattr(event, "member_id", "")
        member = lane(event.group_id, member_id) if member_id else ""
        what, detail = _what(event)
        found = [what, event.first_offset, event.last_offset, event.delivery_count, member, detail]
    else:
        return None
    return [now, event.group_id, event.topic, event.partition, *found]


def _what(event: ShareRecordsEvent) -> tuple[str, str | int]:
    """A word for what becomes of the records of an event, and the detail."""
    match event:
        case ShareRecordsAcquired():
            return "acquired", event.lock_ms
        case ShareRecordsAcknowledged():
            return event.type, ""
        case ShareLocksExpired():
            return "expired", ""
        case ShareRecordsReleased():
            return "released", event.reason
        case ShareRecordsArchived():
            return "archived", event.reason
        case ShareRecordsDeadLettered():
            return "dead-lettered", event.error or ""
        case _:
            return "", ""
