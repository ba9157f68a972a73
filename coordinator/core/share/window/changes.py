"""Changes of records that are being persisted: begun, then kept or rolled back.

# Kafka: InFlightState.startStateTransition, completeStateTransition.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from rejoin.coordinator.core.share.window.batches import (
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
from rejoin.coordinator.core.share.window.effects import DeadLetterCause, StateRun
from rejoin.coordinator.core.share.window.values import NO_MEMBER
from rejoin.coordinator.core.share.window.window import Window


class RecordChange:
    """Neighbours in one batch that go to one state. ``whole``: the batch had one state when the change began."""

    __slots__ = ("batch", "cause", "count", "first", "last", "state", "whole")

    def __init__(
        self, batch: Batch, first: int, last: int, state: int, count: int, cause: DeadLetterCause | None = None
    ) -> None:
        self.batch = batch
        self.first = first
        self.last = last
        self.whole = batch.records is None
        self.state = state
        self.count = count
        self.cause = cause

    @property
    def size(self) -> int:
        return self.last - self.first + 1

    @property
    def is_stale(self) -> bool:
        """Whether the batch was split since: its records know nothing of the change."""
        return self.whole and self.batch.records is not None

    def run(self) -> StateRun:
        """The change as a write has it."""
        return StateRun(self.first, self.last, self.state, self.count, not self.whole)


@dataclass(slots=True)
class Pending:
    """A write without a result. ``limit`` is the delivery count limit of the moment when it began.

    A write that is ``final`` stands whatever becomes of it: of locks that ran out, and of dead letters. With
    ``wakes``, a start that moves by it wakes waiting fetches; a lock that runs out has woken them before.
    """

    changes: list[RecordChange] = field(default_factory=list)
    member: str = NO_MEMBER
    limit: int = 0
    call: object = None
    final: bool = False
    wakes: bool = True


def begin(window: Window, change: RecordChange) -> None:
    """Show the new state, which cannot be changed before the write has a result."""
    batch, state = change.batch, change.state | IN_TRANSITION
    if batch.records is None:
        batch.state = state
        batch.member = NO_MEMBER
    else:
        at, end, size = change.first - batch.first, change.last - batch.first + 1, change.size
        batch.records.states[at:end] = bytes((state,)) * size
        batch.records.members[at:end] = [NO_MEMBER] * size
    if change.state in TERMINAL:
        window.complete += _size_from(change, window.start)


def _size_from(change: RecordChange, start: int) -> int:
    return max(0, change.last - max(change.first, start) + 1)


def keep(window: Window, change: RecordChange) -> None:
    """The write succeeded: the new state stands, and its locks are gone."""
    batch = change.batch
    if change.state == AVAILABLE:
        window.find_next = True
    if change.is_stale:
        return
    if batch.records is None:
        batch.state &= STATE
        batch.unlock(window.locks)
    else:
        at, end = change.first - batch.first, change.last - batch.first + 1
        batch.records.settle(at, end)
        batch.records.unlock(at, end, window.locks)


def roll_back(window: Window, change: RecordChange, member: str, limit: int) -> None:
    """The write failed: the member holds the records again, unless the lock ran out meanwhile."""
    batch, expired = change.batch, ARCHIVED if change.count >= limit else AVAILABLE
    if change.state in TERMINAL:
        window.complete -= _size_from(change, window.start)
    if change.is_stale:
        return
    if batch.records is None:
        batch.state, batch.member = _before(change, batch.state, member, expired)
        if batch.state != ACQUIRED:
            batch.unlock(window.locks)
            window.find_next |= batch.state == AVAILABLE
        return
    records = batch.records
    for at in range(change.first - batch.first, change.last - batch.first + 1):
        state, records.members[at] = _before(change, records.states[at], member, expired)
        records.states[at] = state
        if state != ACQUIRED:
            records.unlock(at, at + 1, window.locks)
            window.find_next |= state == AVAILABLE


def _before(change: RecordChange, state: int, member: str, expired: int) -> tuple[int, str]:
    """State and holder after a rollback, by the state byte at its time."""
    if change.state == AVAILABLE and state & STATE == ARCHIVED:
        return ARCHIVED, NO_MEMBER  # archived by the log meanwhile
    if state & LOCK_EXPIRED:
        return expired, NO_MEMBER
    return ACQUIRED, member


def change_now(window: Window, change: RecordChange) -> None:
    """Make a change that stands whatever becomes of its write, and take the locks off."""
    batch = change.batch
    begin(window, change)
    if batch.records is None:
        batch.state = change.state
        batch.unlock(window.locks)
    else:
        at, end = change.first - batch.first, change.last - batch.first + 1
        batch.records.settle(at, end)
        batch.records.unlock(at, end, window.locks)


def after_release(count: int, limit: int, *, dead_letters: bool) -> tuple[int, DeadLetterCause | None]:
    """The state of a record that its member gives back, or whose lock ran out."""
    if count < limit:
        return AVAILABLE, None
    return (ARCHIVING, DeadLetterCause.DELIVERY_COUNT) if dead_letters else (ARCHIVED, None)
