"""Formats events of share-partitions as one line of text. See ``formatting``."""

from __future__ import annotations

from functools import singledispatch

from rejoin.journal.events.share_partitions import (
    ShareLocksExpired,
    SharePartitionEvent,
    SharePartitionLoaded,
    SharePersisterFailed,
    ShareRecordsAcknowledged,
    ShareRecordsAcquired,
    ShareRecordsArchived,
    ShareRecordsDeadLettered,
    ShareRecordsEvent,
    ShareRecordsReleased,
    ShareWindowFull,
    ShareWindowMoved,
)


def _run(event: ShareRecordsEvent) -> str:
    """The partition and the offsets of a run, with the delivery count from the second delivery on."""
    offsets = str(event.first_offset)
    if event.last_offset != event.first_offset:
        offsets += f"-{event.last_offset}"
    times = f" (delivery {event.delivery_count})" if event.delivery_count > 1 else ""
    return f"{event.topic}:{event.partition} {offsets}{times}"


ACKNOWLEDGED_AS = {
    "accept": "accepted",
    "release": "released",
    "reject": "rejected",
    "renew": "locked anew",
    "gap": "acknowledged as a gap",
}
RELEASED_BECAUSE = {
    "session-closed": "it closed its session",
    "disconnected": "its connection is gone",
    "session-evicted": "its session had to make room",
}
ARCHIVED_BECAUSE = {
    "reject": "rejected",
    "delivery-limit": "delivered as often as the group allows",
    "gap": "not a record",
    "log-start": "below the start of the log",
    "compacted": "no longer in the log",
    "aborted": "of an aborted transaction",
}


@singledispatch
def share_partition_line(event: SharePartitionEvent) -> str:
    """The event in one line, without its group."""
    raise TypeError(f"no line for {event.name}")


@share_partition_line.register
def _(event: ShareRecordsAcquired) -> str:
    return f"{_run(event)} acquired by {event.member_id} for {event.lock_ms} ms"


@share_partition_line.register
def _(event: ShareRecordsAcknowledged) -> str:
    return f"{_run(event)} {ACKNOWLEDGED_AS[event.type]} by {event.member_id} after {event.held_ms} ms"


@share_partition_line.register
def _(event: ShareLocksExpired) -> str:
    return f"{_run(event)} lock of {event.member_id} ran out after {event.held_ms} ms"


@share_partition_line.register
def _(event: ShareRecordsReleased) -> str:
    return f"{_run(event)} taken back from {event.member_id}: {RELEASED_BECAUSE[event.reason]}"


@share_partition_line.register
def _(event: ShareRecordsArchived) -> str:
    return f"{_run(event)} archived: {ARCHIVED_BECAUSE[event.reason]}"


@share_partition_line.register
def _(event: ShareRecordsDeadLettered) -> str:
    if event.error is not None:
        return f"{_run(event)} not written to {event.dead_letter_topic or 'a dead-letter topic'}: {event.error}"
    return f"{_run(event)} written to {event.dead_letter_topic}"


@share_partition_line.register
def _(event: SharePartitionLoaded) -> str:
    reset = "" if event.reset is None else f" ({event.reset}, {event.skipped_records} records skipped)"
    return (
        f"{event.topic}:{event.partition} is shared from {event.start_offset} on{reset}, "
        f"state epoch {event.state_epoch}, leader epoch {event.leader_epoch}"
    )


@share_partition_line.register
def _(event: ShareWindowMoved) -> str:
    window = f"{event.start_offset}-{event.end_offset}, {event.in_flight} in flight"
    return f"{event.topic}:{event.partition} window {window if event.in_flight else f'empty at {event.start_offset}'}"


@share_partition_line.register
def _(event: ShareWindowFull) -> str:
    return f"{event.topic}:{event.partition} window {event.start_offset}-{event.end_offset} full at {event.limit}"


@share_partition_line.register
def _(event: SharePersisterFailed) -> str:
    return f"{event.topic}:{event.partition} {event.operation} of the state failed: {event.error}"
