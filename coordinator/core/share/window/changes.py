"""Changes of records that are being persisted: begun, then kept or rolled back.

# Kafka: InFlightState.startStateTransition, completeStateTransition.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from rejoin.coordinator.core.share.window.batches import (
    ACKNOWLEDGED,
    ACQUIRED,
    ARCHIVED,
    ARCHIVING,
    AVAILABLE,
    IN_TRANSITION,
    LOCK_EXPIRED,
    STATE,
    TERMINAL,
    Batch,
)
from rejoin.coordinator.core.share.window.effects import DeadLetterCause
from rejoin.coordinator.core.share.window.locks import NO_LOCK
from rejoin.coordinator.core.share.window.reports import DELIVERY_LIMIT, Reported, RunReport
from rejoin.coordinator.core.share.window.values import NO_MEMBER
from rejoin.coordinator.core.share.window.window import Window
from rejoin.coordinator.core.share_state.state_batch import PersistedBatch

BY_LIMIT: Final = 32
"""Bit of a new state: the delivery count limit is the cause that the record is archived."""

_STATES: Final = bytes(code & STATE for code in range(256))
_EQUAL_BYTES: Final = re.compile(rb"(?s)(.)\1*")
_new_tuple: Final = tuple.__new__
_SHOWN: Final = bytes(code & STATE | IN_TRANSITION for code in range(256))


class RecordChange:
    """Neighbours of equal delivery count in one batch, with the state that each goes to.

    ``codes`` has a byte for each record: its new state, and perhaps BY_LIMIT. ``whole``: the batch had one state when
    the change began, and ``codes`` has one byte.
    """

    __slots__ = ("batch", "codes", "count", "first", "last", "whole")

    def __init__(self, batch: Batch, first: int, last: int, codes: bytes, count: int) -> None:
        self.batch = batch
        self.first = first
        self.last = last
        self.whole = batch.records is None
        self.codes = codes
        self.count = count

    @property
    def is_stale(self) -> bool:
        """Whether the batch was split since: its records know nothing of the change."""
        return self.whole and self.batch.records is not None

    def slice(self) -> tuple[int, int]:
        """The indices of the records in a split batch."""
        return self.first - self.batch.first, self.last - self.batch.first + 1

    def terminal_from(self, start: int) -> int:
        """How many records become final, of those at the start of the window or behind it."""
        if self.whole:
            return max(0, self.last - max(self.first, start) + 1) if self.codes[0] & STATE in TERMINAL else 0
        states = self.codes[max(0, start - self.first) :].translate(_STATES)
        return states.count(ACKNOWLEDGED) + states.count(ARCHIVED)

    def add_runs(self, runs: list[PersistedBatch]) -> bool:
        """Add the change as a write has it, and say whether it is one of single records."""
        codes = self.codes
        if len(codes) == 1 or codes.count(codes[0]) == len(codes):
            runs.append(PersistedBatch(self.first, self.last, codes[0] & STATE, self.count))
            return not self.whole
        first, before, count, codes = self.first, self.first - 1, self.count, codes.translate(_STATES)
        for run in _EQUAL_BYTES.finditer(codes):
            at, end = run.span()
            runs.append(_new_tuple(PersistedBatch, (first + at, before + end, codes[at], count)))
        return True

    @property
    def has_dead_letters(self) -> bool:
        """Whether a record goes to the dead-letter queue."""
        return ARCHIVING in self.codes.translate(_STATES)

    def parts(self) -> Iterator[RecordChange]:
        """The change itself."""
        yield self

    def dead_letters(self) -> Iterator[tuple[int, int, DeadLetterCause]]:
        """First offset, last offset and cause of each piece for the dead-letter queue: a batch, or one record."""
        if self.whole:
            if self.codes[0] & STATE == ARCHIVING:
                yield self.first, self.last, _cause(self.codes[0])
        elif self.has_dead_letters:
            for offset, code in enumerate(self.codes, self.first):
                if code & STATE == ARCHIVING:
                    yield offset, offset, _cause(code)


class ScatteredChange:
    """Changes of single records of one split batch, each with its own count and state: one object for all.

    ``places`` has their indices in the batch, in any order; ``codes`` and ``counts`` are as in :class:`RecordChange`.
    """

    __slots__ = ("batch", "codes", "counts", "places")

    def __init__(self, batch: Batch) -> None:
        self.batch = batch
        self.places: list[int] = []
        self.codes = bytearray()
        self.counts: list[int] = []

    @property
    def has_dead_letters(self) -> bool:
        """Whether a record goes to the dead-letter queue."""
        return ARCHIVING in self.codes.translate(_STATES)

    def parts(self) -> Iterator[RecordChange]:
        """The change of each record."""
        first = self.batch.first
        for at, code, count in zip(self.places, self.codes, self.counts, strict=True):
            yield RecordChange(self.batch, first + at, first + at, bytes((code,)), count)

    def add_runs(self, runs: list[PersistedBatch]) -> bool:
        """Add the change as a write has it, and say whether it is one of single records."""
        first = self.batch.first
        states = self.codes.translate(_STATES)
        runs += [
            _new_tuple(PersistedBatch, (first + at, first + at, state, count))
            for at, state, count in zip(self.places, states, self.counts, strict=True)
        ]
        return True

    def begin(self, window: Window) -> None:
        """Count what becomes final. The states show already: no record is acknowledged twice."""
        states = self.codes.translate(_STATES)
        window.complete += states.count(ACKNOWLEDGED) + states.count(ARCHIVED)

    def keep(self, window: Window) -> None:
        """The write succeeded: the new states stand, and their locks are gone."""
        records, places = self.batch.records, self.places
        assert records is not None, "the batch is split for good"
        if AVAILABLE in self.codes:
            released = min([at for at, code in zip(places, self.codes, strict=True) if code == AVAILABLE])
            window.made_available(self.batch.first + released)
        states, held = records.states, records.locks
        for at in places:
            states[at] &= STATE
        locks = {held[at] for at in places}
        if len(locks) > 1:
            for at in places:
                records.unlock(at, at + 1, window.locks)
            return
        (lock,) = locks
        if lock != NO_LOCK:
            window.locks.drop(lock, len(places))
            for at in places:
                held[at] = NO_LOCK


AnyChange: TypeAlias = RecordChange | ScatteredChange


def _cause(code: int) -> DeadLetterCause:
    return DeadLetterCause.DELIVERY_COUNT if code & BY_LIMIT else DeadLetterCause.REJECTED


@dataclass(slots=True)
class Pending:
    """A write without a result. ``limit`` is the delivery count limit of the moment when it began.

    A write that is ``final`` stands whatever becomes of it: of locks that ran out, and of dead letters. With
    ``wakes``, a start that moves by it wakes waiting fetches; a lock that runs out has woken them before.
    ``reports`` count when it is stored.
    """

    changes: Sequence[AnyChange] = field(default_factory=list)
    member: str = NO_MEMBER
    limit: int = 0
    call: object = None
    final: bool = False
    wakes: bool = True
    reports: list[RunReport] = field(default_factory=list)


def begin(window: Window, change: RecordChange) -> None:
    """Show the new states, which cannot be changed before the write has a result."""
    batch, records = change.batch, change.batch.records
    if records is None:
        batch.state = change.codes[0] & STATE | IN_TRANSITION
        batch.member = NO_MEMBER
    else:
        at, end = change.slice()
        records.states[at:end] = change.codes.translate(_SHOWN)
        records.members[at:end] = [NO_MEMBER] * (end - at)
    window.complete += change.terminal_from(window.start)


def keep(window: Window, change: AnyChange) -> None:
    """The write succeeded: the new states stand, and their locks are gone."""
    if isinstance(change, ScatteredChange):
        change.keep(window)
        return
    if AVAILABLE in change.codes:
        window.made_available(change.first)
    if not change.is_stale:
        _settle(window, change)


def _settle(window: Window, change: RecordChange) -> None:
    batch, records = change.batch, change.batch.records
    if records is None:
        batch.state &= STATE
        batch.unlock(window.locks)
        return
    at, end = change.slice()
    if end - at == 1:
        records.states[at] &= STATE
    else:
        records.settle(at, end)
    records.unlock(at, end, window.locks)


def change_now(window: Window, change: RecordChange) -> None:
    """Make a change that stands whatever becomes of its write, and take the locks off."""
    begin(window, change)
    _settle(window, change)


def roll_back(window: Window, change: RecordChange, member: str, limit: int) -> None:
    """The write failed: the member holds the records again, unless their lock ran out meanwhile."""
    if change.is_stale:
        return
    batch, first = change.batch, max(change.first, window.start)
    terminal = batch.terminal(first, change.last)
    _restore(window, change, member, ARCHIVED if change.count >= limit else AVAILABLE)
    window.complete += batch.terminal(first, change.last) - terminal


def _restore(window: Window, change: RecordChange, member: str, expired: int) -> None:
    batch, records = change.batch, change.batch.records
    if records is None:
        _report_expired(window, change, change.first, change.last, (batch.state, batch.lock), (member, expired))
        batch.state, batch.member = _before(change.codes[0], batch.state, member, expired)
        if batch.state != ACQUIRED:
            batch.unlock(window.locks)
        if batch.state == AVAILABLE:
            window.made_available(batch.first)
        return
    for at, code in enumerate(change.codes, change.first - batch.first):
        offset = batch.first + at
        _report_expired(window, change, offset, offset, (records.states[at], records.locks[at]), (member, expired))
        state, records.members[at] = _before(code, records.states[at], member, expired)
        records.states[at] = state
        if state != ACQUIRED:
            records.unlock(at, at + 1, window.locks)
        if state == AVAILABLE:
            window.made_available(batch.first + at)


def _report_expired(
    window: Window, change: RecordChange, first: int, last: int, found: tuple[int, int], then: tuple[str, int]
) -> None:
    """Report a lock that ran out during a transition which is rolled back."""
    (state, lock), (member, expired) = found, then
    if lock == NO_LOCK or not state & LOCK_EXPIRED:
        return
    since, until = window.locks.since(lock), window.locks.deadline(lock)
    window.report(Reported.EXPIRED, first, last, change.count, member=member, since=since, until=until)
    if expired == ARCHIVED:
        window.report(Reported.ARCHIVED, first, last, change.count, word=DELIVERY_LIMIT)


def _before(code: int, state: int, member: str, expired: int) -> tuple[int, str]:
    """State and holder after a rollback, by the state byte at its time."""
    if code == AVAILABLE and state & STATE == ARCHIVED:
        return ARCHIVED, NO_MEMBER  # the log has lost it meanwhile
    if state & LOCK_EXPIRED:
        return expired, NO_MEMBER
    return ACQUIRED, member


def released(count: int, limit: int, *, dead_letters: bool) -> int:
    """The code of a record that its member gives back, or whose lock ran out."""
    if count < limit:
        return AVAILABLE
    return ARCHIVING | BY_LIMIT if dead_letters else ARCHIVED
