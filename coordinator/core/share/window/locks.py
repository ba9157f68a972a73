"""Acquisition locks as numbers: deadlines of records, and the order in which they were set.

A lock covers a whole batch or a run of records that got theirs in one operation. A record holds the lock as long as its
batch refers to it; records of a run are released one by one, as if each had a timer of its own.
"""

from __future__ import annotations

import heapq
from typing import TYPE_CHECKING

from rejoin.coordinator.core.inputs import Millis

if TYPE_CHECKING:
    from rejoin.coordinator.core.share.window.batches import Batch

_STALE_ENTRIES = 64
"""Stale entries of the heap that are tolerated, beside as many as there are live ones."""


class Lock:
    """A deadline of a batch as one (``whole``), or of its records up to ``last``.

    ``since``: when the holder acquired the records, which a renewal does not change.

    ``due`` is the first record whose turn has not come. ``held`` counts the records that still have the lock.
    """

    __slots__ = ("batch", "deadline", "due", "held", "last", "since", "whole")

    def __init__(self, deadline: Millis, since: Millis, batch: Batch, first: int, last: int, whole: bool) -> None:
        self.deadline = deadline
        self.since = since
        self.batch: Batch | None = batch
        self.due = first
        self.last = last
        self.whole = whole
        self.held = 1 if whole else last - first + 1

    def takes(self, deadline: Millis, since: Millis, batch: Batch, first: int) -> bool:
        """Whether records from an offset on can have this lock, too: they are next to its own, of which one is left."""
        is_open = not self.whole and self.batch is batch and self.due <= self.last
        return is_open and (self.deadline, self.since, self.last) == (deadline, since, first - 1)


class Locks:
    """The locks of one share-partition, by deadline; of one deadline, by the order in which they were set."""

    __slots__ = ("_heap", "_live", "_newest", "_order")

    def __init__(self) -> None:
        self._heap: list[tuple[Millis, int, Lock]] = []
        self._order = 0
        self._live = 0
        self._newest: Lock | None = None

    def set(self, deadline: Millis, since: Millis, batch: Batch, first: int, last: int, *, whole: bool) -> Lock:
        """Lock a batch, or records of one. Records next to those locked just before get the same lock."""
        newest = self._newest
        if newest is not None and not whole and newest.takes(deadline, since, batch, first):
            newest.last = last
            newest.held += last - first + 1
            self._order += last - first + 1
            return newest
        self._newest = lock = Lock(deadline, since, batch, first, last, whole)
        order = self._order
        self._order += lock.held
        self._live += 1
        if len(self._heap) > 2 * self._live + _STALE_ENTRIES:
            self._heap = [entry for entry in self._heap if entry[2].batch is not None]
            heapq.heapify(self._heap)
        heapq.heappush(self._heap, (deadline, order, lock))
        return lock

    def drop(self, lock: Lock, records: int) -> None:
        """Take a lock off some records, or off a whole batch (one)."""
        lock.held -= records
        if lock.held <= 0 and lock.batch is not None:
            lock.batch = None
            self._live -= 1

    def postpone(self, by_ms: Millis) -> None:
        """Make every deadline later: the clock has stepped, and no time has passed."""
        for _, _, lock in self._heap:
            lock.deadline += by_ms
            lock.since += by_ms
        self._heap = [(deadline + by_ms, order, lock) for deadline, order, lock in self._heap]

    def next_deadline(self) -> Millis | None:
        """The first deadline, or none."""
        heap = self._heap
        while heap and not _is_due(heap[0][2]):
            heapq.heappop(heap)
        return heap[0][0] if heap else None

    def pop_due(self, now: Millis) -> tuple[Batch, int, int] | None:
        """The batch and the offsets of the next lock that is due, or none."""
        at = self.next_deadline()
        if at is None or at > now:
            return None
        lock = self._heap[0][2]
        batch = lock.batch
        assert batch is not None, "a lock that is due has a batch"
        if lock.whole:
            heapq.heappop(self._heap)
            return batch, lock.due, lock.last
        offset = lock.due
        lock.due += 1
        if lock.due > lock.last:
            heapq.heappop(self._heap)
        return batch, offset, offset


def _is_due(lock: Lock) -> bool:
    """Whether the lock still has a turn to come; skips records that no longer have it."""
    batch = lock.batch
    if batch is None:
        return False
    if lock.whole:
        return batch.lock is lock
    records = batch.records
    if records is None:
        return False
    locks, base = records.locks, batch.first
    while lock.due <= lock.last:
        if locks[lock.due - base] is lock:
            return True
        lock.due += 1
    return False
