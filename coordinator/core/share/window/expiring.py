"""Locks that run out: the records can be acquired again, or are archived at the delivery limit.

# Kafka: SharePartition.releaseAcquisitionLockOnTimeout.
"""

from __future__ import annotations

from rejoin.coordinator.core.inputs import Millis
from rejoin.coordinator.core.share.window.batches import (
    ACQUIRED,
    ARCHIVED,
    AVAILABLE,
    IN_TRANSITION,
    LOCK_EXPIRED,
    Batch,
)
from rejoin.coordinator.core.share.window.changes import RecordChange, change_now, released
from rejoin.coordinator.core.share.window.locks import NO_LOCK
from rejoin.coordinator.core.share.window.reports import DELIVERY_LIMIT, LOG_START, Reported
from rejoin.coordinator.core.share.window.values import WindowSettings
from rejoin.coordinator.core.share.window.window import Window


def expire(window: Window, batch: Batch, first: int, last: int, settings: WindowSettings) -> list[RecordChange]:
    """End the lock of a whole batch or of one record, and return the changes to write.

    Records in transition only remember that their lock ran out.
    """
    if batch.records is None and batch.state == ACQUIRED and batch.first < window.start <= batch.last:
        batch.split(window.locks)
    if batch.records is None:
        return _expire_whole(window, batch, settings)
    changes = []
    for offset in range(first, last + 1):
        changes += _expire_record(window, batch, offset, settings)
    return changes


def _expire_whole(window: Window, batch: Batch, settings: WindowSettings) -> list[RecordChange]:
    if batch.state & IN_TRANSITION:
        batch.state |= LOCK_EXPIRED
    if batch.state != ACQUIRED:
        return []
    return _end(window, batch, batch.first, batch.last, batch.count, settings)


def _expire_record(window: Window, batch: Batch, offset: int, settings: WindowSettings) -> list[RecordChange]:
    records = batch.split(window.locks)
    at = offset - batch.first
    if records.states[at] & IN_TRANSITION:
        records.states[at] |= LOCK_EXPIRED
    if records.states[at] != ACQUIRED:
        return []
    return _end(window, batch, offset, offset, records.counts[at], settings)


def _holding(window: Window, batch: Batch, first: int) -> tuple[Millis, str]:
    """Since when who holds a record, or a whole batch."""
    records = batch.records
    at = first - batch.first
    lock, member = (batch.lock, batch.member) if records is None else (records.locks[at], records.members[at])
    return 0 if lock == NO_LOCK else window.locks.since(lock), member


def _end(
    window: Window, batch: Batch, first: int, last: int, count: int, settings: WindowSettings
) -> list[RecordChange]:
    code = released(count, settings.delivery_count_limit, dead_letters=settings.has_dead_letters)
    if last < window.start:
        code = ARCHIVED
    since, member = _holding(window, batch, first)
    window.report(Reported.EXPIRED, first, last, count, member=member, since=since)
    if code != AVAILABLE:
        reason = LOG_START if last < window.start else DELIVERY_LIMIT
        window.report(Reported.ARCHIVED, first, last, count, word=reason)
    change = RecordChange(batch, first, last, bytes((code,)), count)
    change_now(window, change)
    if code == AVAILABLE:
        window.made_available(first)
    return [change]
