"""Batches of a read that a share group does not get: of aborted transactions, and those that were not acquired."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from typing import NamedTuple

from rejoin.coordinator.core.share.window.values import AcquiredRow, ReadRange
from rejoin.protocol.messages.records.fetch import AbortedTransaction


class ReadBatch(NamedTuple):
    """A batch of the log, as far as transactions are concerned."""

    base_offset: int
    last_offset: int
    producer_id: int
    is_transactional: bool
    is_abort_marker: bool


def aborted_batches(read: Sequence[ReadBatch], aborted: Sequence[AbortedTransaction]) -> list[ReadRange]:
    """Data batches of aborted transactions among those read, as a consumer of isolation level read_committed skips."""
    waiting = sorted(aborted, key=lambda each: each.first_offset, reverse=True)
    producers: set[int] = set()
    found = []
    for batch in read:
        while waiting and waiting[-1].first_offset <= batch.last_offset:
            producers.add(waiting.pop().producer_id)
        if batch.is_abort_marker:
            producers.discard(batch.producer_id)
        elif batch.is_transactional and batch.producer_id in producers:
            found.append(ReadRange(batch.base_offset, batch.last_offset))
    return found


def without(rows: Sequence[AcquiredRow], batches: Sequence[ReadRange]) -> list[AcquiredRow]:
    """Acquired rows with batches cut out. Both are in order of offsets."""
    left, at = [], 0
    for first, last, count in rows:
        begin = first
        while at < len(batches) and batches[at].last_offset < begin:
            at += 1
        look = at
        while look < len(batches) and batches[look].base_offset <= last:
            base, end = batches[look]
            if begin < base:
                left.append(AcquiredRow(begin, base - 1, count))
            begin = max(begin, end + 1)
            look += 1
        if begin <= last:
            left.append(AcquiredRow(begin, last, count))
    return left


def returned_batches(read: Sequence[ReadRange], rows: Sequence[AcquiredRow]) -> slice:
    """The part of the batches read that a response carries: from the first acquired offset's to the last one's.

    # Kafka: ShareFetchUtils.maybeSliceFetchRecords. One batch is returned as it is.
    """
    if not rows:
        return slice(0, 0)
    if len(read) == 1:
        return slice(0, 1)
    bases = [base for base, _ in read]
    begin = max(bisect_right(bases, rows[0].first_offset) - 1, 0)
    return slice(begin, max(bisect_right(bases, rows[-1].last_offset), begin + 1))
