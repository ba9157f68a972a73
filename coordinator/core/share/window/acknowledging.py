"""Acknowledging and releasing records: what changes, before it is persisted.

# Kafka: SharePartition.acknowledge, releaseAcquiredRecords.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Sequence
from typing import Final

from rejoin.coordinator.core.inputs import Millis
from rejoin.coordinator.core.share.window.batches import (
    ACKNOWLEDGED,
    ACQUIRED,
    ARCHIVED,
    ARCHIVING,
    AVAILABLE,
    IN_TRANSITION,
    STATE,
    Batch,
    RecordStates,
)
from rejoin.coordinator.core.share.window.changes import AnyChange, RecordChange, ScatteredChange, begin, released
from rejoin.coordinator.core.share.window.locks import NO_LOCK
from rejoin.coordinator.core.share.window.reports import (
    DELIVERY_LIMIT,
    LOG_START,
    Reported,
    RunReport,
    add_report,
)
from rejoin.coordinator.core.share.window.values import NO_MEMBER, WindowSettings
from rejoin.coordinator.core.share.window.window import Window
from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.messages.share.acknowledgements import AcknowledgementBatch, AcknowledgeType

_ONE: Final = tuple(bytes((kind,)) for kind in AcknowledgeType)
_GAP: Final = int(AcknowledgeType.GAP)
_RENEW: Final = int(AcknowledgeType.RENEW)
_RENEWED: Final = bytes((_RENEW,))
_NEWEST_WITHOUT_RENEWAL: Final = int(AcknowledgeType.REJECT)


class BrokenAcknowledgementError(Exception):
    """A range across the start while nothing is in flight: Kafka throws, and the whole request is answered with -1."""


def acknowledgement_error(
    batches: Sequence[AcknowledgementBatch], *, knows_renewal: bool, is_renewal: bool
) -> ErrorCode:
    """The error of a partition's acknowledgements by their form, before any state is looked at.

    ``knows_renewal``: version 2 of the request or later. ``is_renewal``: the request's ``isRenewAck``.
    # Kafka: validateAcknowledgementBatches. A batch may begin at the last offset of the one before.
    """
    allowed = _RENEW if knows_renewal and is_renewal else _NEWEST_WITHOUT_RENEWAL
    before = -1
    for batch in batches:
        first, last, types = batch.first_offset, batch.last_offset, batch.acknowledge_types
        if first > last or first < before or not types or (len(types) > 1 and len(types) != last - first + 1):
            return ErrorCode.INVALID_REQUEST
        if min(types) < _GAP or max(types) > allowed:
            return ErrorCode.INVALID_REQUEST
        before = last
    return ErrorCode.NONE


class MemberChanges:
    """Changes of records that one member holds, by its acknowledgements or its release; they are begun, in order."""

    __slots__ = (
        "_dead_letters",
        "_deadline",
        "_member",
        "_now",
        "_settings",
        "_tables",
        "_window",
        "changes",
        "limit",
        "reports",
    )

    def __init__(self, window: Window, member: str, settings: WindowSettings, now: Millis) -> None:
        self._window = window
        self._member = member
        self._settings = settings
        self._deadline = now + settings.lock_duration_ms
        self._dead_letters = settings.has_dead_letters
        self.limit = settings.delivery_count_limit
        self._tables: dict[int, bytes] = {}
        self._now = now
        self.changes: list[AnyChange] = []
        self.reports: list[RunReport] = []
        """Reports of the changes, for when they are stored."""

    def acknowledge(self, batches: Sequence[AcknowledgementBatch]) -> ErrorCode:
        """Begin all changes; at an error stop. Who calls rolls back then; renewals stay."""
        at = 0
        while at < len(batches):
            within = self._split_batch_at(batches[at].first_offset)
            done = 0 if within is None else self._acknowledge_scattered(within, batches, at)
            if not done:
                error = self._acknowledge_one(batches[at])
                if error is not ErrorCode.NONE:
                    return error
            at += done or 1
        return ErrorCode.NONE

    def _split_batch_at(self, offset: int) -> Batch | None:
        """The batch that holds an offset, if it is split."""
        at = self._window.floor(offset)
        batch = self._window.batches[at] if at >= 0 else None
        return None if batch is None or batch.records is None or offset > batch.last else batch

    def _acknowledge_scattered(self, batch: Batch, batches: Sequence[AcknowledgementBatch], begin_at: int) -> int:
        """Types for single records of a split batch, as long as each comes by itself; return how many there were.

        Clients that release send many of these. A record that the member does not hold is left to ``_acknowledge_one``.
        """
        records, start, member, base = batch.records, self._window.start, self._member, batch.first
        assert records is not None, "the batch is split"
        states, members = records.states, records.members
        change, kinds = ScatteredChange(batch), bytearray()
        for place in range(begin_at, len(batches)):
            each = batches[place]
            offset, types = each.first_offset, each.acknowledge_types
            if offset != each.last_offset or len(types) != 1 or not start <= offset <= batch.last or offset < base:
                break
            at, kind = offset - base, types[0]
            if not _GAP <= kind < _RENEW or states[at] != ACQUIRED or members[at] != member:
                break
            count = records.counts[at]
            code = self._codes(count)[kind]
            states[at] = code & STATE | IN_TRANSITION
            members[at] = NO_MEMBER
            change.places.append(at)
            change.codes.append(code)
            change.counts.append(count)
            kinds.append(kind)
        if kinds:
            change.begin(self._window)
            self.changes.append(change)
            self._report_scattered(change, records, kinds)
        return len(kinds)

    def _acknowledge_one(self, asked: AcknowledgementBatch) -> ErrorCode:
        window, first, last, types = self._window, asked.first_offset, asked.last_offset, asked.acknowledge_types
        if min(types) < 0 or max(types) > AcknowledgeType.RENEW:
            return ErrorCode.INVALID_REQUEST
        if last < window.start:
            return ErrorCode.NONE
        at = window.floor(first)
        if at < 0:
            if not first < window.start <= last:
                return ErrorCode.INVALID_RECORD_STATE
            at = window.floor(window.start)
            if at < 0:
                raise BrokenAcknowledgementError
        touched = window.batches[at : window.floor(last) + 1]
        if touched[-1].last < last or window.batches[-1].last < first:
            return ErrorCode.INVALID_REQUEST
        for batch in touched:
            if batch.last >= window.start:
                error = self._acknowledge_in(batch, first, last, types)
                if error is not ErrorCode.NONE:
                    return error
        return ErrorCode.NONE

    def _acknowledge_in(self, batch: Batch, first: int, last: int, types: Sequence[int]) -> ErrorCode:
        start = self._window.start
        if batch.records is None:
            if batch.state != ACQUIRED or batch.member != self._member:
                return ErrorCode.INVALID_RECORD_STATE
            if len(types) == 1 and first <= batch.first and batch.last <= last and not batch.first < start:
                return self._acknowledge_whole(batch, types[0])
        records = batch.split(self._window.locks)
        begin_at, end = max(first, start, batch.first), min(last, batch.last)
        if begin_at > end:
            return ErrorCode.NONE  # the range begins in a hole behind this batch
        kinds = bytes(types)
        kinds = kinds * (end - begin_at + 1) if len(types) == 1 else kinds[begin_at - first : end - first + 1]
        return self._acknowledge_records(batch, records, begin_at, kinds)

    def _acknowledge_records(self, batch: Batch, records: RecordStates, first: int, kinds: bytes) -> ErrorCode:
        """A type for each of neighbours in a split batch, up to the first that the member does not hold."""
        at = first - batch.first
        held = self._held(records, at, len(kinds))
        for begin_at, end in _renewed_or_not(kinds[:held]):
            if kinds[begin_at] == AcknowledgeType.RENEW:
                error = self._renew(batch, first + begin_at, first + end - 1)
                if error is not ErrorCode.NONE:
                    return error
                continue
            for run, stop in _equal_counts(records, at + begin_at, at + end):
                count, since = records.counts[run], self._since(records.locks[run])
                codes = kinds[run - at : stop - at].translate(self._codes(count))
                self._begin(RecordChange(batch, batch.first + run, batch.first + stop - 1, codes, count))
                self._report(batch.first + run, batch.first + stop - 1, count, kinds[run - at : stop - at], since)
        return ErrorCode.NONE if held == len(kinds) else ErrorCode.INVALID_RECORD_STATE

    def _held(self, records: RecordStates, at: int, size: int) -> int:
        """How many records of a slice the member holds, from the first on."""
        states, members, member = records.states[at : at + size], records.members[at : at + size], self._member
        if states.count(ACQUIRED) == size and members.count(member) == size:
            return size
        pairs = enumerate(zip(states, members, strict=True))
        return next(held for held, (state, holder) in pairs if state != ACQUIRED or holder != member)

    def _codes(self, count: int) -> bytes:
        """A table from acknowledge types, without renewal, to codes of records with a delivery count."""
        if count not in self._tables:
            rejected = ARCHIVING if self._dead_letters else ARCHIVED
            given_back = released(count, self.limit, dead_letters=self._dead_letters)
            self._tables[count] = bytes((ARCHIVED, ACKNOWLEDGED, given_back, rejected)).ljust(256)
        return self._tables[count]

    def _acknowledge_whole(self, batch: Batch, kind: int) -> ErrorCode:
        if kind == AcknowledgeType.RENEW:
            return self._renew(batch, batch.first, batch.last)
        codes = bytes((kind,)).translate(self._codes(batch.count))
        since = self._since(batch.lock)
        self._begin(RecordChange(batch, batch.first, batch.last, codes, batch.count))
        self._report(batch.first, batch.last, batch.count, bytes((kind,)), since)
        return ErrorCode.NONE

    def _renew(self, batch: Batch, first: int, last: int) -> ErrorCode:
        """Lock the records anew, at once: a renewal is not persisted."""
        if not self._settings.allows_renewal:
            return ErrorCode.INVALID_RECORD_STATE
        locks, records = self._window.locks, batch.records
        at, end = first - batch.first, last - batch.first + 1
        since = self._since(batch.lock if records is None else records.locks[at])
        count = batch.count if records is None else records.counts[at]
        renewed = RunReport(Reported.ACKNOWLEDGED, first, last, count, self._member, "", since, self._now, _RENEWED)
        add_report(self._window.reports, renewed)
        if records is None:
            batch.unlock(locks)
            batch.lock = locks.set(self._deadline, since, batch, first, last, whole=True)
        else:
            records.unlock(at, end, locks)
            lock = locks.set(self._deadline, since, batch, first, last, whole=False)
            records.locks[at:end] = array("i", (lock,)) * (end - at)
        return ErrorCode.NONE

    def release(self, reason: str) -> None:
        """Begin the change of everything that the member holds."""
        window, start = self._window, self._window.start
        for batch in window.batches:
            if batch.records is None:
                if batch.state != ACQUIRED or batch.member != self._member:
                    continue
                if not batch.first < start <= batch.last:
                    self._give_back(batch, batch.first, batch.last, batch.count, reason)
                    continue
            records = batch.split(window.locks)
            for at, stop in self._held_runs(records):
                first, last = batch.first + at, batch.first + stop - 1
                if first < start <= last:
                    self._give_back(batch, first, start - 1, records.counts[at], reason)
                    first = start
                self._give_back(batch, first, last, records.counts[at], reason)

    def _held_runs(self, records: RecordStates) -> Iterator[tuple[int, int]]:
        """Neighbours of equal count that the member holds, by index."""
        states, members, end = records.states, records.members, len(records.states)
        at = states.find(ACQUIRED)
        while at >= 0:
            stop = at
            while stop < end and states[stop] == ACQUIRED and members[stop] == self._member:
                stop += 1
            if stop > at:
                yield from list(_equal_counts(records, at, stop))
            at = states.find(ACQUIRED, max(stop, at + 1))

    def _give_back(self, batch: Batch, first: int, last: int, count: int, reason: str) -> None:
        code = released(count, self.limit, dead_letters=self._dead_letters)
        if last < self._window.start:
            code = ARCHIVED
        add_report(self.reports, RunReport(Reported.RELEASED, first, last, count, self._member, reason))
        if code != AVAILABLE:
            why = LOG_START if last < self._window.start else DELIVERY_LIMIT
            add_report(self.reports, RunReport(Reported.ARCHIVED, first, last, count, word=why))
        size = 1 if batch.records is None else last - first + 1
        self._begin(RecordChange(batch, first, last, bytes((code,)) * size, count))

    # --- reports

    def _since(self, lock: int) -> Millis:
        return self._now if lock == NO_LOCK else self._window.locks.since(lock)

    def _report_scattered(self, change: ScatteredChange, records: RecordStates, kinds: bytearray) -> None:
        """Report acknowledgements of single records."""
        first, held, member, now = change.batch.first, records.locks, self._member, self._now
        lock, since = NO_LOCK, now
        for at, count, kind in zip(change.places, change.counts, kinds, strict=True):
            if held[at] != lock:
                lock = held[at]
                since = self._since(lock)
            word = DELIVERY_LIMIT if count >= self.limit else ""
            offset = first + at
            report = RunReport(Reported.ACKNOWLEDGED, offset, offset, count, member, word, since, now, _ONE[kind])
            add_report(self.reports, report)

    def _report(self, first: int, last: int, count: int, kinds: bytes, since: Millis) -> None:
        """Report acknowledgements of neighbours of equal count."""
        if len(kinds) > 1 and kinds.count(kinds[0]) == len(kinds):
            kinds = kinds[:1]
        word = DELIVERY_LIMIT if count >= self.limit else ""
        report = RunReport(Reported.ACKNOWLEDGED, first, last, count, self._member, word, since, self._now, kinds)
        add_report(self.reports, report)

    def _begin(self, change: RecordChange) -> None:
        begin(self._window, change)
        self.changes.append(change)


def _renewed_or_not(kinds: bytes) -> Iterator[tuple[int, int]]:
    """Runs of renewals, and runs of other types, by index."""
    at = 0
    while at < len(kinds):
        renewal = kinds.find(AcknowledgeType.RENEW, at)
        if renewal == at:
            end = len(kinds) - len(kinds[at:].lstrip(bytes((AcknowledgeType.RENEW,))))
        else:
            end = len(kinds) if renewal < 0 else renewal
        yield at, end
        at = end


def _equal_counts(records: RecordStates, begin_at: int, end: int) -> Iterator[tuple[int, int]]:
    """Runs of equal delivery count, by index."""
    counts = records.counts
    if begin_at < end and counts[begin_at:end].count(counts[begin_at]) == end - begin_at:
        yield begin_at, end
        return
    while begin_at < end:
        count, stop = counts[begin_at], begin_at + 1
        while stop < end and counts[stop] == count:
            stop += 1
        yield begin_at, stop
        begin_at = stop
