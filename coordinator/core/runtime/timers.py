"""Timers as data: when something is due, kept so that moving a deadline later costs one assignment.

A heartbeat moves its member's deadline; the heap is not touched. When the old entry comes up, the deadline is looked at
again and the entry goes back in at its real place. So a session costs one heap operation a session timeout, not one a
heartbeat.

What a timer is for, only its owner knows: here it is a key, with an owner and a scope to cancel it by.
"""

from __future__ import annotations

import heapq
from enum import IntEnum
from typing import NamedTuple

from rejoin.coordinator.core.inputs import Millis
from rejoin.protocol.types import LogPartition, TopicPartition


class TimerKey(NamedTuple):
    """One timer. Of several at one instant, those whose kind has the lower number come first.

    ``owner`` is the partition whose shard is called; timers of one owner and ``scope`` can be cancelled together.
    """

    kind: IntEnum
    owner: LogPartition
    scope: str = ""
    name: str = ""


class Deadlines:
    """A set of keys, each with the instant at which it is due. Setting a key again replaces its instant."""

    __slots__ = ("_due", "_heap", "_queued")

    def __init__(self) -> None:
        self._due: dict[TimerKey, Millis] = {}
        self._queued: dict[TimerKey, Millis] = {}  # the one heap entry of each key that counts
        self._heap: list[tuple[Millis, TimerKey]] = []

    def set(self, key: TimerKey, at: Millis) -> None:
        before = self._due.get(key)
        self._due[key] = at
        if before is not None and before <= at:
            return  # its heap entry is no later than it was due before
        queued = self._queued.get(key)
        if queued is None or at < queued:
            heapq.heappush(self._heap, (at, key))
            self._queued[key] = at

    def cancel(self, key: TimerKey) -> None:
        self._due.pop(key, None)

    def cancel_owner(self, owner: LogPartition) -> None:
        """Cancel every timer of one owner."""
        for key in [key for key in self._due if key.owner == owner]:
            del self._due[key]

    def cancel_scope(self, owner: TopicPartition, scope: str) -> None:
        """Cancel the timers of one owner that belong together."""
        for key in [key for key in self._due if key.owner == owner and key.scope == scope]:
            del self._due[key]

    def postpone(self, by_ms: Millis) -> None:
        """Make everything due later: the clock has stepped, and no time has passed."""
        self._due = {key: at + by_ms for key, at in self._due.items()}
        self._queued = dict(self._due)
        self._heap = [(at, key) for key, at in self._due.items()]
        heapq.heapify(self._heap)

    def at(self, key: TimerKey) -> Millis | None:
        """When this key is due, or none."""
        return self._due.get(key)

    def earliest(self) -> Millis | None:
        """An instant before which nothing is due, or none. Cancelled and postponed timers still count."""
        return self._heap[0][0] if self._heap else None

    def next(self) -> Millis | None:
        """When the first of all is due, or none."""
        heap = self._heap
        while heap:
            at, key = heap[0]
            if self._queued.get(key) != at:
                heapq.heappop(heap)
                continue
            due = self._due.get(key)
            if due == at:
                return at
            heapq.heappop(heap)
            if due is None:
                del self._queued[key]
            else:
                heapq.heappush(heap, (due, key))
                self._queued[key] = due
        return None

    def pop_due(self, now: Millis) -> TimerKey | None:
        """Take out and return the first key that is due at ``now`` or before, or none."""
        at = self.next()
        if at is None or at > now:
            return None
        _, key = heapq.heappop(self._heap)
        del self._due[key], self._queued[key]
        return key

    def due(self, now: Millis | None = None) -> list[tuple[Millis, TimerKey]]:
        """Timers due at ``now``, in order; all timers without it. Linear in the number of timers."""
        return sorted((at, key) for key, at in self._due.items() if now is None or at <= now)

    def of_scope(self, owner: TopicPartition, scope: str) -> dict[TimerKey, Millis]:
        """The timers of one owner that belong together, by kind and name."""
        return {key: at for key, at in sorted(self._due.items()) if key.owner == owner and key.scope == scope}
