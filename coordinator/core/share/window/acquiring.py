"""Acquiring records that were read from the log, within all limits.

# Kafka: SharePartition.acquire.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from typing import Final, NamedTuple

from rejoin.coordinator.core.inputs import Millis
from rejoin.coordinator.core.share.window.batches import ACQUIRED, AVAILABLE, Batch, RecordStates
from rejoin.coordinator.core.share.window.locks import NO_LOCK
from rejoin.coordinator.core.share.window.reports import COMPACTED
from rejoin.coordinator.core.share.window.values import AcquiredRow, ReadRange, WindowSettings
from rejoin.coordinator.core.share.window.window import Window

MOST_DELIVERIES: Final = 2**15 - 1
"""The largest delivery count that fits into a response and a record; only a state that no leader wrote comes near."""

_FIRST_LIMIT_WITH_LAST_ATTEMPTS: Final = 3
"""From this delivery count limit on, a record's last attempt is delivered alone."""


class BrokenAcquisitionError(Exception):
    """The range to acquire is empty or lies in no batch: Kafka throws, and the partition's answer is -1."""


class AcquireLimits(NamedTuple):
    """The wishes of a fetch. ``by_record``: the acquire mode record-limit, which makes ``max_records`` a hard limit."""

    max_records: int
    batch_size: int
    by_record: bool = False


class Acquisition:
    """One acquisition for one member, with rows and count as they grow."""

    __slots__ = (
        "_batch_size",
        "_by_record",
        "_deadline",
        "_limit",
        "_max_locks",
        "_max_records",
        "_member",
        "_now",
        "_throttle",
        "_window",
        "count",
        "rows",
    )

    def __init__(
        self, window: Window, member: str, limits: AcquireLimits, settings: WindowSettings, now: Millis
    ) -> None:
        self._window = window
        self._member = member
        self._by_record = limits.by_record
        self._batch_size = limits.batch_size
        self._max_records = limits.max_records
        self._now = now
        self._deadline = now + settings.lock_duration_ms
        self._limit = settings.delivery_count_limit
        self._max_locks = settings.max_record_locks
        self._throttle = max(2, (self._limit + 1) // 2)
        self.rows: list[AcquiredRow] = []
        self.count = 0

    def run(self, read: Sequence[ReadRange], fetch_offset: int) -> None:
        """Acquire from batches that were read from ``fetch_offset`` on."""
        window = self._window
        if not read or read[-1].last_offset < window.start:
            return
        last, room = self._room(fetch_offset, read[-1].last_offset)
        if room <= 0:
            return
        first_read = base = read[0].base_offset
        if fetch_offset < base and window.batches:
            window.archive_lost(fetch_offset, base - 1, COMPACTED)
        at = window.floor(base)
        if at < 0:
            base = max(base, window.start)
            at = window.floor(base)
        if at >= 0 and window.batches[at].last >= base:
            base = window.batches[at].first
        if base > last:
            raise BrokenAcquisitionError
        inside = window.between(base, last)
        if not inside:
            self._take_new(read, base, last, room)
            return
        stopped = self._walk(inside, read, base, first_read, last, room)
        if not stopped and self.count < room and inside[-1].last < last:
            self._take_new(read, inside[-1].last + 1, last, room - self.count)
        if self.rows:
            window.fill_holes_below(self.rows[-1].last_offset + 1)

    def _room(self, fetch_offset: int, last: int) -> tuple[int, int]:
        """The last offset that may be touched, and how many records may be acquired."""
        window = self._window
        room = min(self._max_records, self._max_locks - window.in_flight)
        if room > 0:
            return last, room
        if fetch_offset <= window.end:
            return min(window.end, last), min(self._max_records, window.end - fetch_offset + 1)
        return last, 0

    def _walk(
        self, inside: list[Batch], read: Sequence[ReadRange], base: int, first_read: int, last: int, room: int
    ) -> bool:
        """Go through batches in flight, and say whether a throttled one ends the acquisition."""
        window, hole = self._window, base
        for batch in inside:
            if self.count >= room:
                break
            if window.has_holes:
                if hole < batch.first:
                    self._take_new(read, hole, batch.first - 1, room - self.count)
                if self.count >= room:
                    break
            hole = batch.last + 1
            throttled = self._is_throttled(batch, first_read, last)
            if throttled and self.rows:
                return True
            covered = first_read <= batch.first and batch.last <= last
            too_large = self._by_record and batch.size > room - self.count
            if batch.records is None and batch.state != AVAILABLE:
                continue
            if batch.records is None and covered and not throttled and not too_large:
                self._take_whole(batch)
            else:
                taken = self._take_records(batch, first_read, last, room - self.count)
                if throttled and taken:
                    return True
        return False

    # --- batches in flight

    def _is_throttled(self, batch: Batch, first: int, last: int) -> bool:
        """Whether records of a batch were delivered so often that they are delivered apart from others."""
        records = batch.records
        if records is None:
            return batch.state == AVAILABLE and batch.count >= self._throttle
        begin, end = max(first - batch.first, 0), min(last - batch.first + 1, batch.size)
        counts, states = records.counts, records.states
        if begin < end and max(counts[begin:end]) < self._throttle:
            return False
        at = states.find(AVAILABLE, begin, end)
        while at >= 0:
            if counts[at] >= self._throttle:
                return True
            at = states.find(AVAILABLE, at + 1, end)
        return False

    def _take_whole(self, batch: Batch) -> None:
        batch.state = ACQUIRED
        batch.count = min(batch.count + 1, MOST_DELIVERIES)
        batch.member = self._member
        batch.lock = self._window.locks.set(self._deadline, self._now, batch, batch.first, batch.last, whole=True)
        self.rows.append(AcquiredRow(batch.first, batch.last, batch.count))
        self.count += batch.size

    def _take_records(self, batch: Batch, first: int, last: int, room: int) -> bool:
        """Acquire records one by one, and say whether there were any."""
        records = batch.split(self._window.locks)
        states, counts = records.states, records.counts
        begin, end = max(first - batch.first, 0), min(last - batch.first + 1, batch.size)
        limit, throttle = self._limit, self._throttle
        if begin < end and max(counts[begin:end]) + 1 < min(limit, throttle + 1):
            return self._take_available(batch, records, (begin, end), room)
        has_last_attempts = limit >= _FIRST_LIMIT_WITH_LAST_ATTEMPTS
        cap = 0
        taken: list[int] = []
        at = states.find(AVAILABLE, begin, end)
        while at >= 0:
            count = counts[at]
            if has_last_attempts and count == limit - 1 and taken:
                break
            if count >= throttle and not cap:
                cap = max(1, batch.size >> (count - throttle + 1))
            counts[at] = min(count + 1, MOST_DELIVERIES)
            taken.append(at)
            if has_last_attempts and count + 1 == limit:
                break
            if (self._by_record and len(taken) == room) or len(taken) == cap:
                break
            at = states.find(AVAILABLE, at + 1, end)
        self._hold(batch, records, taken)
        return bool(taken)

    def _take_available(self, batch: Batch, records: RecordStates, between: tuple[int, int], room: int) -> bool:
        """Acquire all records of a slice that are available, none of which was delivered often."""
        begin, end = between
        states, counts = records.states, records.counts
        taken = [at for at, state in enumerate(states[begin:end], begin) if state == AVAILABLE]
        if self._by_record:
            del taken[room:]
        for at in taken:
            counts[at] = min(counts[at] + 1, MOST_DELIVERIES)
        self._hold(batch, records, taken)
        return bool(taken)

    def _hold(self, batch: Batch, records: RecordStates, taken: list[int]) -> None:
        """Give records, by ascending index, to the member, and put neighbours of equal count into one row."""
        if not taken:
            return
        locks, held, counts, base = self._window.locks, records.locks, records.counts, batch.first
        for at in taken:
            if held[at] != NO_LOCK:
                records.unlock(at, at + 1, locks)  # one of a transition that was forgotten
        first, last = base + taken[0], base + taken[-1]
        lock = locks.set(self._deadline, self._now, batch, first, last, whole=False, records=len(taken))
        begin = before = taken[0]
        count = counts[begin]
        for at in taken:
            if (at > before + 1) or counts[at] != count:
                self._hold_run(batch, records, (begin, before), count, lock)
                begin, count = at, counts[at]
            before = at
        self._hold_run(batch, records, (begin, before), count, lock)
        self.count += len(taken)

    def _hold_run(self, batch: Batch, records: RecordStates, between: tuple[int, int], count: int, lock: int) -> None:
        """Give neighbours to the member, by their first and last index."""
        at, last = between
        if at == last:
            records.states[at], records.members[at], records.locks[at] = ACQUIRED, self._member, lock
        else:
            size = last - at + 1
            records.states[at : last + 1] = bytes((ACQUIRED,)) * size
            records.members[at : last + 1] = [self._member] * size
            records.locks[at : last + 1] = array("i", (lock,)) * size
        self.rows.append(AcquiredRow(batch.first + at, batch.first + last, count))

    # --- records that were not in flight

    def _take_new(self, read: Sequence[ReadRange], first: int, last: int, room: int) -> None:
        """Acquire records for the first time. Batches of the log are not broken, but by the mode record-limit."""
        window = self._window
        if not window.batches and window.end > first:
            first = window.end
        if last < first:
            raise BrokenAcquisitionError
        if last - first + 1 > room:
            cut = _end_of_batch(read, first + room - 1)
            last = min(cut, last) if window.has_holes else cut
        if self._by_record:
            self._take_up_to(first, last, room)
        else:
            self._take_batches(read, first, last)
        if window.firsts[0] == first:
            window.start = first
        window.end = max(window.end, last)
        window.fill_holes_below(self.rows[-1].last_offset + 1)

    def _take_batches(self, read: Sequence[ReadRange], first: int, last: int) -> None:
        """One in-flight batch; more of them, cut where the log's batches are, if it is larger than the batch size."""
        begin = first
        if last - first + 1 > self._batch_size:
            for base, _ in read:
                if base > last:
                    break
                if base - begin >= self._batch_size:
                    self._take_one(begin, base - 1)
                    begin = base
        self._take_one(begin, last)

    def _take_up_to(self, first: int, last: int, room: int) -> None:
        if last - first + 1 <= room:
            self._take_one(first, last)
            return
        batch = Batch(first, last, AVAILABLE, 0)
        self._window.add(batch)
        records = batch.split(self._window.locks)
        for at in range(room):
            records.counts[at] = 1
        self._hold(batch, records, list(range(room)))
        self._window.made_available(batch.first)

    def _take_one(self, first: int, last: int) -> None:
        batch = Batch(first, last, AVAILABLE, 0)
        self._window.add(batch)
        self._take_whole(batch)


def _end_of_batch(read: Sequence[ReadRange], offset: int) -> int:
    """The last offset of the log's batch that holds an offset; the offset itself if none does."""
    for base, last in read:
        if base <= offset <= last:
            return last
    return offset
