"""Acquisition locks as numbers: deadlines of records, and the order in which they were set.

A lock covers a whole batch, or records of one batch that got theirs in one operation, neighbours or not. A record holds
the lock as long as its batch refers to it. Records of one lock run out one by one, as if each had its own timer.

A lock is a row of columns, as each record of a window may have its own: about 60 bytes. Most locks are set for the same
length of time, so the queue of deadlines is a list to which they are appended.
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from typing import TYPE_CHECKING, Final

from rejoin.coordinator.core.inputs import Millis

if TYPE_CHECKING:
    from rejoin.coordinator.core.share.window.batches import Batch

NO_LOCK: Final = -1

_STALE_ENTRIES = 64
"""Stale entries of the queue that are tolerated, beside an eighth of the live ones."""


class Locks:
    """The locks of one share-partition, by deadline; of one deadline, by the order in which they were set.

    A lock is a number. Its row is used again when no record holds it and the queue has passed it.
    """

    __slots__ = (
        "_batches",
        "_deadlines",
        "_due",
        "_free",
        "_held",
        "_is_queued",
        "_is_whole",
        "_last",
        "_live",
        "_newest",
        "_queue",
        "_since",
    )

    def __init__(self) -> None:
        self._deadlines = array("q")
        self._since = array("q")
        self._batches: list[Batch | None] = []
        self._due = array("q")
        """The first record whose turn has not come."""
        self._last = array("q")
        self._held = array("i")
        """How many records still have the lock; a whole batch is one."""
        self._is_whole = bytearray()
        self._is_queued = bytearray()
        self._free = array("i")
        self._queue = array("i")
        self._live = 0
        self._newest = NO_LOCK

    def deadline(self, lock: int) -> Millis:
        """When a lock runs out."""
        return self._deadlines[lock]

    def since(self, lock: int) -> Millis:
        """When the holder acquired the records, which a renewal does not change."""
        return self._since[lock]

    def set(
        self, deadline: Millis, since: Millis, batch: Batch, first: int, last: int, *, whole: bool, records: int = 0
    ) -> int:
        """Lock a batch, or records of one. Records behind those locked just before get the same lock.

        ``records``: how many records from first to last are locked; 0: all.
        """
        newest, records = self._newest, records or last - first + 1
        if newest >= 0 and not whole and self._takes(newest, deadline, since, batch, first):
            self._last[newest] = last
            self._held[newest] += records
            return newest
        if len(self._queue) > self._live + self._live // 8 + _STALE_ENTRIES:
            self._drop_stale()
        self._newest = lock = self._new_row()
        self._deadlines[lock] = deadline
        self._since[lock] = since
        self._batches[lock] = batch
        self._due[lock] = first
        self._last[lock] = last
        self._held[lock] = 1 if whole else records
        self._is_whole[lock] = whole
        self._is_queued[lock] = True
        self._live += 1
        queue = self._queue
        if queue and deadline < self._deadlines[queue[-1]]:
            queue.insert(bisect_right(queue, deadline, key=self._deadlines.__getitem__), lock)
        else:
            queue.append(lock)
        return lock

    def _takes(self, lock: int, deadline: Millis, since: Millis, batch: Batch, first: int) -> bool:
        """Whether records from an offset on can have this lock, too: they are behind its own, of which one is left."""
        is_open = self._batches[lock] is batch and not self._is_whole[lock] and self._due[lock] <= self._last[lock]
        return is_open and self._last[lock] < first and (self._deadlines[lock], self._since[lock]) == (deadline, since)

    def _new_row(self) -> int:
        if self._free:
            return self._free.pop()
        for column in (self._deadlines, self._since, self._due, self._last, self._held):
            column.append(0)
        self._is_whole.append(0)
        self._is_queued.append(0)
        self._batches.append(None)
        return len(self._batches) - 1

    def _drop_stale(self) -> None:
        stale = [lock for lock in self._queue if self._batches[lock] is None]
        self._queue = array("i", [lock for lock in self._queue if self._batches[lock] is not None])
        for lock in stale:
            self._is_queued[lock] = False
        self._free.extend(stale)

    def _pop(self) -> None:
        lock = self._queue.pop(0)
        self._is_queued[lock] = False
        if self._batches[lock] is None:
            self._free.append(lock)

    def drop(self, lock: int, records: int) -> None:
        """Take a lock off some records, or off a whole batch (one)."""
        self._held[lock] -= records
        if self._held[lock] <= 0 and self._batches[lock] is not None:
            self._batches[lock] = None
            self._live -= 1
            if not self._is_queued[lock]:
                self._free.append(lock)

    def postpone(self, by_ms: Millis) -> None:
        """Make every deadline later: the clock has stepped, and no time has passed."""
        self._deadlines = array("q", [deadline + by_ms for deadline in self._deadlines])
        self._since = array("q", [since + by_ms for since in self._since])

    def next_deadline(self) -> Millis | None:
        """The first deadline, or none."""
        queue = self._queue
        while queue and not self._is_due(queue[0]):
            self._pop()
        return self._deadlines[queue[0]] if queue else None

    def pop_due(self, now: Millis) -> tuple[Batch, int, int] | None:
        """The batch and the offsets of the next lock that is due, or none."""
        at = self.next_deadline()
        if at is None or at > now:
            return None
        lock = self._queue[0]
        batch, offset, last = self._batches[lock], self._due[lock], self._last[lock]
        assert batch is not None, "a lock that is due has a batch"
        if self._is_whole[lock]:
            self._pop()
            return batch, offset, last
        self._due[lock] = offset + 1
        if offset == last:
            self._pop()
        return batch, offset, offset

    def _is_due(self, lock: int) -> bool:
        """Whether the lock still has a turn to come; skips records that no longer have it."""
        batch = self._batches[lock]
        if batch is None:
            return False
        if self._is_whole[lock]:
            return batch.lock == lock
        records = batch.records
        if records is None:
            return False
        locks, base, due, last = records.locks, batch.first, self._due[lock], self._last[lock]
        while due <= last and locks[due - base] != lock:
            due += 1
        self._due[lock] = due
        return due <= last
