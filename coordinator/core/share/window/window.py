"""The window of a share-partition: its offsets, its batches, and how its start moves.

``end`` has two meanings, as in Kafka: the last offset of the window, or, while nothing is in flight, the next offset.
"""

from __future__ import annotations

import heapq
from bisect import bisect_left, bisect_right
from typing import Final

from rejoin.coordinator.core.inputs import Millis
from rejoin.coordinator.core.share.window.batches import (
    ACQUIRED,
    ARCHIVED,
    AVAILABLE,
    STATE,
    TERMINAL,
    Batch,
    RecordStates,
)
from rejoin.coordinator.core.share.window.locks import Locks
from rejoin.coordinator.core.share.window.reports import LOG_START, Reported, RunReport, add_report
from rejoin.coordinator.core.share.window.values import NO_MEMBER

NOTHING: Final = -1


class StartInHoleError(Exception):
    """The start lies behind a split batch, in no batch: Kafka's NullPointerException, in the persister's callback."""


class Window:
    """Batches by their first offset, in order; they never overlap."""

    __slots__ = (
        "_available",
        "batches",
        "complete",
        "end",
        "find_next",
        "firsts",
        "gap",
        "gap_end",
        "locks",
        "reports",
        "start",
    )

    def __init__(self) -> None:
        self.start = 0
        self.end = 0
        self.batches: list[Batch] = []
        self.firsts: list[int] = []
        self.locks = Locks()
        self.reports: list[RunReport] = []
        """Reports of records since the caller took the last ones."""
        self._available: list[int] = []
        """A heap of offsets, each for its batch from there on; every available record is behind one of its batch."""
        self.find_next = False
        """Whether a record inside the window may be available."""
        self.complete = 0
        """Records of the window that are final. Sent with each write, for the lag (KIP-1226)."""
        self.gap: int | None = None
        """The next hole of the window that was loaded. Records in holes were acquired and never persisted."""
        self.gap_end = 0
        """The end when the window was loaded; the holes count only while the end stays there."""

    # --- batches

    def add(self, batch: Batch) -> None:
        """Put a batch into its place."""
        at = bisect_left(self.firsts, batch.first)
        self.firsts.insert(at, batch.first)
        self.batches.insert(at, batch)

    def floor(self, offset: int) -> int:
        """The index of the last batch that begins at or below an offset; -1: there is none."""
        return bisect_right(self.firsts, offset) - 1

    def between(self, first: int, last: int) -> list[Batch]:
        """Batches that begin from first to last, inclusive."""
        return self.batches[bisect_left(self.firsts, first) : bisect_right(self.firsts, last)]

    def touched(self, first: int, last: int) -> list[Batch]:
        """Batches that begin in a range, after the one that begins at or below it."""
        return self.batches[max(self.floor(first), 0) : bisect_right(self.firsts, last)]

    def clear(self) -> None:
        """Drop all batches."""
        self._unlock(self.batches)
        self.batches.clear()
        self.firsts.clear()

    def _unlock(self, left: list[Batch]) -> None:
        for batch in left:
            batch.unlock_all(self.locks)

    @property
    def is_empty(self) -> bool:
        """Whether nothing from the start on is in flight."""
        return not self.batches or self.start > self.batches[-1].last

    @property
    def in_flight(self) -> int:
        """How many records count against the limit of locks."""
        return self.end - self.start + 1 if self.batches else 0

    @property
    def has_holes(self) -> bool:
        """Whether holes of the loaded window are still to be acquired."""
        return self.gap is not None and self.gap_end == self.end

    def fill_holes_below(self, offset: int) -> None:
        """Everything below an offset was acquired: the next hole is at it or behind it."""
        if self.gap is not None:
            self.gap = offset if offset <= self.gap_end else None

    # --- fetching

    def next_fetch_offset(self) -> int:
        """The offset from which the next fetch reads.

        # Kafka: SharePartition.nextFetchOffset.
        """
        if self.is_empty:
            self.find_next = False
            return self.end
        if not self.find_next:
            return self.end + 1
        offset = self._first_available() if self.gap is None or not self.has_holes else self._first_open(self.gap)
        self.find_next = offset is not None
        return self.end + 1 if offset is None else offset

    def made_available(self, offset: int) -> None:
        """Records of one batch, from this offset on, can be acquired: the next fetch looks for them."""
        self.find_next = True
        heapq.heappush(self._available, offset)

    def _first_available(self) -> int | None:
        available = self._available
        while available:
            batch = self.batches[max(self.floor(available[0]), 0)]
            offset = batch.first_available(available[0])
            if offset is not None:
                if offset != available[0]:
                    heapq.heapreplace(available, offset)
                return offset
            heapq.heappop(available)
        return None

    def _first_open(self, hole: int) -> int | None:
        """The first record that is available, or the first hole if that comes before."""
        for batch in self.batches:
            if batch.first > hole:
                return hole
            hole = max(hole, batch.last + 1)
            offset = batch.first_available(batch.first)
            if offset is not None:
                return offset
        return None

    def report(
        self,
        kind: Reported,
        first: int,
        last: int,
        count: int,
        *,
        member: str = NO_MEMBER,
        word: str = "",
        since: Millis = 0,
        until: Millis | None = None,
    ) -> None:
        """Report what has become of records."""
        add_report(self.reports, RunReport(kind, first, last, count, member, word, since, until))

    # --- archiving

    def archive(self, first: int, last: int, state: int, reason: str) -> bool:
        """Archive the records of one state from first to last, without a write, and say whether there were any.

        A transition that is under way keeps its flag; its rollback finds the record archived.
        """
        found = False
        for batch in self.touched(first, last):
            # Kafka: of aborted transactions, a batch that ends before the range is split if it is acquired.
            if batch.last < first and state == AVAILABLE:
                continue
            if batch.records is not None:
                found |= self._archive_records(batch, batch.records, first, last, state, reason)
            elif batch.state & STATE == state:
                if first <= batch.first and batch.last <= last:
                    batch.state = batch.state & ~STATE | ARCHIVED
                    batch.member = NO_MEMBER
                    if state == ACQUIRED:
                        batch.unlock(self.locks)
                    self.complete += max(0, batch.last - max(batch.first, self.start) + 1)
                    self.report(Reported.ARCHIVED, batch.first, batch.last, batch.count, word=reason)
                    found = True
                else:
                    # The records of a batch in transition are available as soon as it is split.
                    heapq.heappush(self._available, batch.first)
                    found |= self._archive_records(batch, batch.split(self.locks), first, last, state, reason)
        return found

    def _archive_records(
        self, batch: Batch, records: RecordStates, first: int, last: int, state: int, reason: str
    ) -> bool:
        states, base, found = records.states, batch.first, False
        for at in range(max(first, base) - base, min(last, batch.last) - base + 1):
            if states[at] & STATE == state:
                states[at] = states[at] & ~STATE | ARCHIVED
                records.members[at] = NO_MEMBER
                if state == ACQUIRED:
                    records.unlock(at, at + 1, self.locks)
                self.complete += base + at >= self.start
                self.report(Reported.ARCHIVED, base + at, base + at, records.counts[at], word=reason)
                found = True
        return found

    def archive_lost(self, first: int, last: int, reason: str) -> None:
        """Archive available records that the log no longer has."""
        if self.archive(first, last, AVAILABLE, reason):
            self.find_next = True

    # --- the start

    def log_start_moved(self, log_start: int) -> None:
        """Records below the log's new start are lost: available ones are archived, acquired ones stay until released.

        # Kafka: SharePartition.updateCacheAndOffsets. Nothing is written; the start is, with the next write.
        """
        if log_start <= self.start:
            return
        if not self.batches:
            self.start = self.end = log_start
            return
        self.archive_lost(self.start, log_start - 1, LOG_START)
        self.complete -= self.terminal(self.start, log_start - 1)
        self.start = log_start
        self.end = max(self.end, log_start)

    def terminal(self, first: int, last: int) -> int:
        """How many records from first to last are final."""
        return sum(batch.terminal(first, last) for batch in self.touched(first, last))

    def move_start(self) -> bool:
        """Pass the records at the start that are done with, and return whether there were any.

        # Kafka: SharePartition.maybeUpdateCachedStateAndOffsets.
        """
        if not self._is_start_done():
            return False
        done = self._last_done()
        if done == NOTHING:
            return False
        if done == self.batches[-1].last:
            self.start = self.end = done + 1
            self.complete = 0
            self.clear()
            return True
        before, at, start = self.start, self.floor(done), done + 1
        if done == self.batches[at].last:
            at += 1
            start = self.firsts[at]
            if self.has_holes and self.gap is not None:
                start = min(start, self.gap)
        # Records below the start that are still acquired hold back what is done with; the start does not fall to them.
        self.start = max(before, start)
        self.complete -= self.terminal(before, self.start - 1)
        self._unlock(self.batches[:at])
        del self.batches[:at]
        del self.firsts[:at]
        return True

    def _is_start_done(self) -> bool:
        at = self.floor(self.start)
        if at < 0:
            return False  # a hole that was never acquired
        batch = self.batches[at]
        if batch.records is None:
            return batch.state in TERMINAL
        if self.start > batch.last:
            raise StartInHoleError
        return batch.records.states[self.start - batch.first] in TERMINAL

    def _last_done(self) -> int:
        """The last of the leading records that are done with, or NOTHING."""
        done = NOTHING
        hole = self.gap if self.has_holes else None
        for batch in self.batches:
            if hole is not None and batch.last >= hole:
                break
            if batch.records is None:
                if batch.state not in TERMINAL:
                    break
                done = batch.last
                continue
            leading = batch.records.leading_terminal()
            if leading:
                done = batch.first + leading - 1
            if leading < batch.size:
                break
        return done
