"""In-flight batches: offsets with one state for all of them, or with a state for each.

State, transition and expiry are bits of one byte, so that runs of records are compared and changed as bytes. A record
that is tracked by itself costs about 16 bytes: the byte, a count, a reference to its member and the number of its lock.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from itertools import groupby
from typing import Final, TypeAlias

from rejoin.coordinator.core.inputs import Millis
from rejoin.coordinator.core.share.window.locks import NO_LOCK, Locks
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

_NO_LOCK: Final = array("i", (NO_LOCK,))
_Kind: TypeAlias = tuple[int, int, str, Millis | None]
"""State, delivery count, member and deadline of records."""

_ONLY_STATE: Final = bytes(each & STATE for each in range(256))


class RecordStates:
    """The records of a batch that was split, each list by offset minus the batch's first offset."""

    __slots__ = ("counts", "locks", "members", "states")

    def __init__(self, size: int, state: int, count: int, member: str, lock: int) -> None:
        self.states = bytearray((state,)) * size
        self.counts = array("h", (count,)) * size
        self.members = [member] * size
        self.locks = array("i", (lock,)) * size

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
        if end - begin == 1:
            lock = self.locks[begin]
            if lock != NO_LOCK:
                locks.drop(lock, 1)
                self.locks[begin] = NO_LOCK
            return
        held = self.locks[begin:end]
        if held.count(held[0]) == end - begin:
            if held[0] != NO_LOCK:
                locks.drop(held[0], end - begin)
        else:
            for lock, run in groupby(held):
                if lock != NO_LOCK:
                    locks.drop(lock, len(tuple(run)))
        self.locks[begin:end] = _NO_LOCK * (end - begin)


class Batch:
    """Offsets from ``first`` to ``last`` that were acquired together. With ``records``, its own state means nothing."""

    __slots__ = ("count", "first", "last", "lock", "member", "records", "state")

    def __init__(self, first: int, last: int, state: int, count: int, member: str = NO_MEMBER) -> None:
        self.first = first
        self.last = last
        self.state = state
        self.count = count
        self.member = member
        self.lock = NO_LOCK
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
            if lock != NO_LOCK:
                until, since = locks.deadline(lock), locks.since(lock)
                lock = locks.set(until, since, self, self.first, self.last, whole=False)
            self.unlock(locks)
            self.records = RecordStates(self.size, self.state & STATE, self.count, self.member, lock)
        return self.records

    def unlock(self, locks: Locks) -> None:
        """Take off the lock of the whole batch, if it has one."""
        if self.lock != NO_LOCK:
            locks.drop(self.lock, 1)
            self.lock = NO_LOCK

    def unlock_all(self, locks: Locks) -> None:
        """Take all locks off, as the batch leaves the window."""
        self.unlock(locks)
        if self.records is not None:
            self.records.unlock(0, self.size, locks)

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

    def view(self, now: Millis, locks: Locks) -> BatchView:
        """The batch as a value, neighbours of equal state put together."""
        if self.records is None:
            until = _deadline(locks, self.lock)
            run = _run(self.first, self.last, (self.state & ~LOCK_EXPIRED, self.count, self.member, until), now)
            return BatchView(self.first, self.last, False, (run,))
        runs = tuple(_run(first, last, kind, now) for first, last, kind in self._kinds(self.records, locks))
        return BatchView(self.first, self.last, True, runs)

    def _kinds(self, records: RecordStates, locks: Locks) -> Iterator[tuple[int, int, _Kind]]:
        begin, kind = self.first, None
        rows = zip(records.states, records.counts, records.members, records.locks, strict=True)
        for offset, (state, count, member, lock) in enumerate(rows, self.first):
            each = (state & ~LOCK_EXPIRED, count, member, _deadline(locks, lock))
            if kind is not None and kind != each:
                yield begin, offset - 1, kind
                begin = offset
            kind = each
        if kind is not None:
            yield begin, self.last, kind


def _deadline(locks: Locks, lock: int) -> Millis | None:
    return None if lock == NO_LOCK else locks.deadline(lock)


def _run(first: int, last: int, kind: _Kind, now: Millis) -> RecordRun:
    state, count, member, until = kind
    left = None if until is None else until - now
    return RecordRun(first, last, RecordState(state & STATE), count, member, bool(state & IN_TRANSITION), left)
