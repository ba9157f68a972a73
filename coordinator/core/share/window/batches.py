"""In-flight batches: offsets with one state for all of them, or with a state for each.

State, transition and expiry are bits of one byte, so that runs of records are compared and changed as bytes. A record
that is tracked by itself costs about 20 bytes: the byte, a count, and references to its member and its lock.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from typing import Final

from rejoin.coordinator.core.inputs import Millis
from rejoin.coordinator.core.share.window.locks import Lock, Locks
from rejoin.coordinator.core.share.window.values import NO_MEMBER, BatchView, RecordRun, RecordState

STATE: Final = 7
"""Bits of a :class:`RecordState`."""
IN_TRANSITION: Final = 8
"""The change waits for the share coordinator: the new state shows, and cannot be changed."""
LOCK_EXPIRED: Final = 16
"""The lock ran out during a transition, which will not be rolled back to ACQUIRED."""

AVAILABLE: Final = int(RecordState.AVAILABLE)
ACQUIRED: Final = int(RecordState.ACQUIRED)
ACKNOWLEDGED: Final = int(RecordState.ACKNOWLEDGED)
ARCHIVING: Final = int(RecordState.ARCHIVING)
ARCHIVED: Final = int(RecordState.ARCHIVED)

TERMINAL: Final = bytes((ACKNOWLEDGED, ARCHIVED))
"""States that are final, as whole bytes: not in transition."""

_ONLY_STATE: Final = bytes(each & STATE for each in range(256))


class RecordStates:
    """The records of a batch that was split, each list by offset minus the batch's first offset."""

    __slots__ = ("counts", "locks", "members", "states")

    def __init__(self, size: int, state: int, count: int, member: str, lock: Lock | None) -> None:
        self.states = bytearray((state,)) * size
        self.counts = array("h", (count,)) * size
        self.members = [member] * size
        self.locks: list[Lock | None] = [lock] * size

    def leading_terminal(self) -> int:
        """How many records at the beginning are final and not in transition."""
        states = self.states
        return len(states) - len(states.lstrip(TERMINAL))

    def terminal(self, begin: int, end: int) -> int:
        """How many records of a slice are final, in transition or not."""
        states = self.states[begin:end].translate(_ONLY_STATE)
        return states.count(ACKNOWLEDGED) + states.count(ARCHIVED)

    def settle(self, begin: int, end: int) -> None:
        """Clear the flags of a slice."""
        self.states[begin:end] = self.states[begin:end].translate(_ONLY_STATE)

    def unlock(self, begin: int, end: int, locks: Locks) -> None:
        """Take the locks off a slice."""
        held = self.locks
        while begin < end:
            lock = held[begin]
            stop = begin + 1
            while stop < end and held[stop] is lock:
                stop += 1
            if lock is not None:
                held[begin:stop] = [None] * (stop - begin)
                locks.drop(lock, stop - begin)
            begin = stop


class Batch:
    """Offsets from ``first`` to ``last`` that were acquired together. With ``records``, its own state means nothing."""

    __slots__ = ("count", "first", "last", "lock", "member", "records", "state")

    def __init__(self, first: int, last: int, state: int, count: int, member: str = NO_MEMBER) -> None:
        self.first = first
        self.last = last
        self.state = state
        self.count = count
        self.member = member
        self.lock: Lock | None = None
        self.records: RecordStates | None = None

    @property
    def size(self) -> int:
        return self.last - self.first + 1

    def split(self, locks: Locks) -> RecordStates:
        """Give each record a state of its own, for good. A transition of the whole batch is forgotten by that.

        # Kafka: maybeInitializeOffsetStateUpdate. Each record gets a timer with what was left of the batch's.
        """
        if self.records is None:
            lock = self.lock
            each = (
                None if lock is None else locks.set(lock.deadline, lock.since, self, self.first, self.last, whole=False)
            )
            self.unlock(locks)
            self.records = RecordStates(self.size, self.state & STATE, self.count, self.member, each)
        return self.records

    def unlock(self, locks: Locks) -> None:
        """Take off the lock of the whole batch, if it has one."""
        if self.lock is not None:
            locks.drop(self.lock, 1)
            self.lock = None

    def terminal(self, first: int, last: int) -> int:
        """How many of the offsets from first to last are final, in transition or not."""
        first, last = max(first, self.first), min(last, self.last)
        if first > last:
            return 0
        if self.records is None:
            return last - first + 1 if self.state & STATE in TERMINAL else 0
        return self.records.terminal(first - self.first, last - self.first + 1)

    def first_available(self, begin: int) -> int | None:
        """The first offset from ``begin`` on that can be acquired, or none."""
        if not self.first <= begin <= self.last:
            return None
        if self.records is None:
            return self.first if self.state == AVAILABLE else None
        at = self.records.states.find(AVAILABLE, begin - self.first)
        return None if at < 0 else self.first + at

    def view(self, now: Millis) -> BatchView:
        """The batch as a value, neighbours of equal state put together."""
        if self.records is None:
            run = _run(self.first, self.last, (self.state & ~LOCK_EXPIRED, self.count, self.member, self.lock), now)
            return BatchView(self.first, self.last, False, (run,))
        runs = tuple(_run(first, last, kind, now) for first, last, kind in self._kinds(self.records))
        return BatchView(self.first, self.last, True, runs)

    def _kinds(self, records: RecordStates) -> Iterator[tuple[int, int, tuple[int, int, str, Lock | None]]]:
        begin, kind = self.first, None
        rows = zip(records.states, records.counts, records.members, records.locks, strict=True)
        for offset, (state, count, member, lock) in enumerate(rows, self.first):
            each = (state & ~LOCK_EXPIRED, count, member, lock)
            if kind is not None and not _alike(kind, each):
                yield begin, offset - 1, kind
                begin = offset
            kind = each
        if kind is not None:
            yield begin, self.last, kind


def _alike(one: tuple[int, int, str, Lock | None], other: tuple[int, int, str, Lock | None]) -> bool:
    deadlines = [None if lock is None else lock.deadline for lock in (one[3], other[3])]
    return one[:3] == other[:3] and deadlines[0] == deadlines[1]


def _run(first: int, last: int, kind: tuple[int, int, str, Lock | None], now: Millis) -> RecordRun:
    state, count, member, lock = kind
    left = None if lock is None else lock.deadline - now
    return RecordRun(first, last, RecordState(state & STATE), count, member, bool(state & IN_TRANSITION), left)
