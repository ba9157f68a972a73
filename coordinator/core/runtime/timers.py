"""Timers as data: when something is due, kept so that moving a deadline later costs one assignment.

A heartbeat moves its member's deadline; the heap is not touched. When the old entry comes up, the deadline is looked at
again and the entry goes back in at its real place. So a session costs one heap operation a session timeout, not one a
heartbeat.
"""

from __future__ import annotations

import heapq
from enum import IntEnum
from typing import Final, TypeAlias

from rejoin.coordinator.core.inputs import Millis
from rejoin.protocol.types import TopicPartition


class Kind(IntEnum):
    """What is due. Of several at one instant, lower numbers come first."""

    SESSION = 1
    JOIN = 2
    SYNC = 3
    APPEND = 4
    EXPIRY = 5


NAMES: Final = {kind: kind.name.lower() for kind in Kind}
"""What people call them."""

Key: TypeAlias = tuple[Kind, TopicPartition, str, str]
"""Kind, partition of the log, group id and member id (append id in text, or empty): one timer of each."""


class Deadlines:
    """A set of keys, each with the instant at which it is due. Setting a key again replaces its instant."""

    __slots__ = ("_due", "_heap", "_queued")

    def __init__(self) -> None:
        self._due: dict[Key, Millis] = {}
        self._queued: dict[Key, Millis] = {}  # the one heap entry of each key that counts
        self._heap: list[tuple[Millis, Key]] = []

    def set(self, key: Key, at: Millis) -> None:
        self._due[key] = at
        queued = self._queued.get(key)
        if queued is None or at < queued:
            heapq.heappush(self._heap, (at, key))
            self._queued[key] = at

    def cancel(self, key: Key) -> None:
        self._due.pop(key, None)

    def cancel_partition(self, partition: TopicPartition) -> None:
        """Forget everything that belongs to one partition."""
        for key in [key for key in self._due if key[1] == partition]:
            del self._due[key]

    def cancel_group(self, partition: TopicPartition, group_id: str) -> None:
        """Forget everything that belongs to one group."""
        for key in [key for key in self._due if key[1] == partition and key[2] == group_id]:
            del self._due[key]

    def at(self, key: Key) -> Millis | None:
        """When this key is due, or none."""
        return self._due.get(key)

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

    def pop_due(self, now: Millis) -> Key | None:
        """Take out and return the first key that is due at ``now`` or before, or none."""
        at = self.next()
        if at is None or at > now:
            return None
        _, key = heapq.heappop(self._heap)
        del self._due[key], self._queued[key]
        return key

    def due(self, now: Millis) -> list[tuple[Millis, Key]]:
        """What would be taken out with ``now``, in that order. Costs as much as there are timers."""
        return sorted((at, key) for key, at in self._due.items() if at <= now)

    def of_group(self, partition: TopicPartition, group_id: str) -> dict[str, Millis]:
        """The deadlines of one group, named for people: ``session MEMBER``, ``join``, ``sync``."""
        return {
            f"{key[0].name.lower()} {key[3]}".rstrip(): at
            for key, at in sorted(self._due.items())
            if key[1] == partition and key[2] == group_id
        }

    def __len__(self) -> int:
        return len(self._due)
