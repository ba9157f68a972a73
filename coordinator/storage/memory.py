"""Logs in memory, lost when the process ends."""

from __future__ import annotations

from collections.abc import Collection
from typing import Final, NamedTuple

from rejoin.coordinator.storage.base import Damaged, DataPiece, OnStored, Piece, Together, one_by_one
from rejoin.coordinator.storage.compaction import compacted as compacted
from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.records.batches import BatchEntry, CompactionEntry, DataEntry, LogStartEntry
from rejoin.protocol.records.keyed import Record
from rejoin.protocol.types import TopicIdPartition, TopicPartition

_COMPACT_FROM: Final = 1_000


class LogSnapshot(NamedTuple):
    """The epoch and the records of every partition."""

    epochs: dict[TopicPartition, int]
    records: dict[TopicPartition, tuple[Record, ...]]
    data: dict[TopicIdPartition, tuple[DataEntry, ...]]


class MemoryLog:
    """Completes appends at once. Compaction keeps its size proportional to the number of keys, as in Kafka."""

    def __init__(self) -> None:
        self._epochs: dict[TopicPartition, int] = {}
        self._records: dict[TopicPartition, list[Record]] = {}
        self._compact_at: dict[TopicPartition, int] = {}
        self._data: dict[TopicIdPartition, list[DataEntry]] = {}

    async def start(self, together: Together = one_by_one) -> None:
        """Nothing to do."""

    async def close(self) -> None:
        """Nothing to do."""

    def elect(self, partition: TopicPartition) -> int:
        epoch = self._epochs.get(partition, -1) + 1
        self._epochs[partition] = epoch
        return epoch

    def append(self, partition: TopicPartition, epoch: int, records: tuple[Record, ...], stored: OnStored) -> None:
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

    def append_data(
        self,
        partition: TopicIdPartition,
        epoch: int,
        leased_by: TopicPartition,
        entries: tuple[DataEntry, ...],
        stored: OnStored,
    ) -> None:
        if epoch < self._epochs.get(leased_by, 0):
            stored(ErrorCode.NOT_LEADER_OR_FOLLOWER)
            return
        kept = self._data.setdefault(partition, [])
        kept += entries
        for entry in entries:
            if type(entry) is not BatchEntry:
                kept[:] = trimmed(kept)
                break
        stored(ErrorCode.NONE)

    def read_data(self, partition: TopicIdPartition, epoch: int, piece: DataPiece, damaged: Damaged) -> None:
        piece(tuple(self._data.get(partition, ())), True)

    def delete_data(self, partition: TopicIdPartition, epoch: int, leased_by: TopicPartition) -> None:
        self._data.pop(partition, None)

    def keep_only(self, topic_ids: Collection[str]) -> None:
        for partition in [each for each in self._data if each.topic_id not in topic_ids]:
            del self._data[partition]

    def contents(self) -> LogSnapshot:
        """A snapshot of the log."""
        return LogSnapshot(
            dict(self._epochs),
            {partition: tuple(records) for partition, records in self._records.items()},
            {partition: tuple(entries) for partition, entries in self._data.items()},
        )

    def go_back(self, contents: LogSnapshot) -> None:
        """Restore a snapshot, epochs included."""
        self._epochs = dict(contents.epochs)
        self._records = {partition: list(records) for partition, records in contents.records.items()}
        self._data = {partition: list(entries) for partition, entries in contents.data.items()}
        self._compact_at.clear()


def trimmed(entries: list[DataEntry]) -> list[DataEntry]:
    """The entries that a data log keeps: batches that are still in the log, then the last log start."""
    start = LogStartEntry(0)
    batches: list[BatchEntry] = []
    for entry in entries:
        match entry:
            case BatchEntry():
                batches.append(entry)
            case LogStartEntry():
                start = entry if entry.offset > start.offset else start
            case CompactionEntry():
                batches = [*entry.batches, *(batch for batch in batches if batch.base_offset >= entry.end_offset)]
    kept: list[DataEntry] = [batch for batch in batches if batch.next_offset > start.offset]
    return [*kept, start]
