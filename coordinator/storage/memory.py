"""Logs in memory, lost when the process ends."""

from __future__ import annotations

from typing import Final, NamedTuple

from rejoin.coordinator.storage.base import Piece, Stored
from rejoin.coordinator.storage.compaction import compacted as compacted
from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.records.keyed import Record
from rejoin.protocol.types import TopicPartition

_COMPACT_FROM: Final = 1_000


class LogSnapshot(NamedTuple):
    """The epoch and the records of every partition."""

    epochs: dict[TopicPartition, int]
    records: dict[TopicPartition, tuple[Record, ...]]


class MemoryLog:
    """Completes appends at once. Compaction keeps its size proportional to the number of keys, as in Kafka."""

    def __init__(self) -> None:
        self._epochs: dict[TopicPartition, int] = {}
        self._records: dict[TopicPartition, list[Record]] = {}
        self._compact_at: dict[TopicPartition, int] = {}

    async def start(self) -> None:
        """Nothing to do."""

    async def close(self) -> None:
        """Nothing to do."""

    def elect(self, partition: TopicPartition) -> int:
        epoch = self._epochs.get(partition, -1) + 1
        self._epochs[partition] = epoch
        return epoch

    def append(self, partition: TopicPartition, epoch: int, records: tuple[Record, ...], stored: Stored) -> None:
        if epoch < self._epochs.get(partition, 0):
            stored(ErrorCode.NOT_LEADER_OR_FOLLOWER)
            return
        kept = self._records.setdefault(partition, [])
        kept += records
        if len(kept) >= self._compact_at.get(partition, _COMPACT_FROM):
            kept[:] = compacted(kept)
            self._compact_at[partition] = max(_COMPACT_FROM, 2 * len(kept))
        stored(ErrorCode.NONE)

    def read(self, partition: TopicPartition, epoch: int, piece: Piece) -> None:
        piece(tuple(self._records.get(partition, ())), True)

    def contents(self) -> LogSnapshot:
        """A snapshot of the log."""
        return LogSnapshot(
            dict(self._epochs), {partition: tuple(records) for partition, records in self._records.items()}
        )

    def go_back(self, contents: LogSnapshot) -> None:
        """Restore a snapshot, epochs included."""
        self._epochs = dict(contents.epochs)
        self._records = {partition: list(records) for partition, records in contents.records.items()}
        self._compact_at.clear()
