"""The state machine that a shard hosts: its whole state comes from one partition's log."""

from __future__ import annotations

from abc import ABC, abstractmethod

from rejoin.coordinator.core.runtime.timers import TimerKey
from rejoin.protocol.records.keyed import Record


class StateMachine(ABC):
    """The coordinator of one partition's keys: of groups, or of anything else that is kept in a log."""

    @abstractmethod
    def replay(self, record: Record) -> None:
        """Apply a record while the log is read, in log order; the last record of a key wins."""

    @abstractmethod
    def on_loaded(self) -> None:
        """The whole log is replayed: start what runs in time. Requests come from now on."""

    @abstractmethod
    def on_resigned(self) -> None:
        """Another node has the log now: answer every parked request. Nothing is called after that."""

    @abstractmethod
    def timer_fired(self, key: TimerKey) -> None:
        """A timer of this machine is due."""

    @abstractmethod
    def size(self) -> int:
        """How many keys it has: groups, say."""
