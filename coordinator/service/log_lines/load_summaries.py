"""One log line for the loading of many offsets partitions at once, instead of one line each.

Loading ends long after the partitions were elected, so this remembers which ones belong to the summary.
"""

from __future__ import annotations

import asyncio
from typing import Any, Final

from rejoin.journal.events.base import Event
from rejoin.journal.events.coordinator import GroupLoaded, PartitionElected, PartitionLoaded, PartitionResigned
from rejoin.protocol.records.consumer_offsets import offsets_partition
from rejoin.protocol.types import TopicPartition

PATIENCE_SECONDS: Final = 5.0
"""After this long, a summary of the partitions loaded so far is logged."""
LOADING_EVENTS: Final = frozenset({GroupLoaded, PartitionElected, PartitionLoaded, PartitionResigned})


class Loads:
    """Logs the loading of partitions that were elected together."""

    def __init__(self, log: Any) -> None:
        self._log = log
        self._covered: set[TopicPartition] = set()
        self._loading: set[TopicPartition] = set()
        self._partitions = self._records = self._groups = self._longest_ms = 0
        self._alarm: asyncio.TimerHandle | None = None

    def take_in(self, event: Event, *, together: bool) -> bool:
        """Count a loading event; true if the summary covers it. ``together`` adds partitions elected now to it."""
        if isinstance(event, GroupLoaded):
            return offsets_partition(event.offsets_partition) in self._covered
        assert isinstance(event, PartitionElected | PartitionLoaded | PartitionResigned), "no others are counted"
        partition = TopicPartition(event.topic, event.partition)
        match event:
            case PartitionElected():
                self._forget(partition)
                if together:
                    self._covered.add(partition)
                    self._loading.add(partition)
            case PartitionResigned():
                self._forget(partition)
            case PartitionLoaded() if partition in self._loading:
                self._loading.discard(partition)
                self._partitions += 1
                self._records += event.records
                self._groups += event.groups
                self._longest_ms = max(self._longest_ms, event.load_ms)
            case PartitionLoaded():
                return partition in self._covered
        belongs = partition in self._covered
        if not together and not self._loading:
            self._log_summary()
        return belongs

    def all_elected(self) -> None:
        """All partitions of the summary are elected. Those that have loaded already need no line."""
        if not self._loading:
            self._reset()
        elif self._alarm is None:
            self._alarm = asyncio.get_running_loop().call_later(PATIENCE_SECONDS, self._ring)

    def stop(self) -> None:
        """Log nothing more."""
        self._reset()

    def _forget(self, partition: TopicPartition) -> None:
        self._covered.discard(partition)
        self._loading.discard(partition)

    def _ring(self) -> None:
        self._alarm = None
        self._log_summary()
        self.all_elected()

    def _log_summary(self) -> None:
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
