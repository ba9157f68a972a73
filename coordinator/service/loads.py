"""Offsets partitions that a node takes many at once: one line about their loading, instead of one about each.

Reading them ends when it ends, long after they were taken, so it is remembered which ones they were.
"""

from __future__ import annotations

import asyncio
from typing import Any, Final

from rejoin.journal.events.base import Event
from rejoin.journal.events.coordinator import GroupLoaded, PartitionElected, PartitionLoaded, PartitionResigned

PATIENCE_SECONDS: Final = 5.0
"""After this, what is loaded so far is told."""
_KINDS: Final = frozenset({GroupLoaded, PartitionElected, PartitionLoaded, PartitionResigned})


class Loads:
    """Tells of the loading of partitions that were taken together."""

    def __init__(self, log: Any) -> None:
        self._log = log
        self._taken: set[int] = set()
        self._loading: set[int] = set()
        self._partitions = self._records = self._groups = self._longest_ms = 0
        self._alarm: asyncio.TimerHandle | None = None

    def take_in(self, event: Event, *, together: bool) -> bool:
        """Count an event in; whether it is one that the summary stands for. ``together``: what is taken now belongs."""
        if type(event) not in _KINDS:
            return False
        match event:
            case PartitionElected():
                self._forget(event.partition)
                if together:
                    self._taken.add(event.partition)
                    self._loading.add(event.partition)
            case PartitionResigned():
                self._forget(event.partition)
            case PartitionLoaded() if event.partition in self._loading:
                self._loading.discard(event.partition)
                self._partitions += 1
                self._records += event.records
                self._groups += event.groups
                self._longest_ms = max(self._longest_ms, event.load_ms)
            case PartitionLoaded():
                return event.partition in self._taken
            case GroupLoaded():
                return event.offsets_partition in self._taken
        belongs = getattr(event, "partition", None) in self._taken
        if not together and not self._loading:
            self._tell()
        return belongs

    def all_taken(self) -> None:
        """What was taken together is complete. What was loaded on the spot is nothing to speak of."""
        if not self._loading:
            self._reset()
        elif self._alarm is None:
            self._alarm = asyncio.get_running_loop().call_later(PATIENCE_SECONDS, self._ring)

    def stop(self) -> None:
        """Nothing more is told."""
        self._reset()

    def _forget(self, partition: int) -> None:
        self._taken.discard(partition)
        self._loading.discard(partition)

    def _ring(self) -> None:
        self._alarm = None
        self._tell()
        self.all_taken()

    def _tell(self) -> None:
        if self._partitions:
            left = {"still_loading": len(self._loading)} if self._loading else {}
            self._log.info(
                "partitions_loaded",
                partitions=self._partitions,
                records=self._records,
                groups=self._groups,
                longest_ms=self._longest_ms,
                **left,
            )
        self._reset()

    def _reset(self) -> None:
        self._partitions = self._records = self._groups = self._longest_ms = 0
        if self._alarm is not None:
            self._alarm.cancel()
            self._alarm = None
