"""Entries of data partitions as PostgreSQL keeps them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final, NamedTuple

from rejoin.coordinator.storage.postgres import statements
from rejoin.coordinator.storage.postgres.database import Connection
from rejoin.protocol.records.batches import BatchEntry, CompactionEntry, DataEntry, LogStartEntry
from rejoin.protocol.types import TopicIdPartition, TopicPartition

_REWRITE_SECONDS: Final = 120.0
_COLUMNS: Final = 8


class DataEntries(NamedTuple):
    """Entries of one data partition that are written together."""

    partition: TopicIdPartition
    entries: tuple[DataEntry, ...]

    @property
    def size(self) -> int:
        """Bytes of batches."""
        return sum(len(batch.data) for batch in self.batches())

    def batches(self) -> Iterator[BatchEntry]:
        """Batches behind all that was there before."""
        for entry in self.entries:
            if isinstance(entry, BatchEntry):
                yield entry

    def rewrites(self) -> Iterator[LogStartEntry | CompactionEntry]:
        """Entries that change earlier batches."""
        for entry in self.entries:
            if not isinstance(entry, BatchEntry):
                yield entry


def batch_columns(appends: Iterable[tuple[DataEntries, TopicPartition, int]]) -> list[Sequence[Any]]:
    """The values of ``APPEND_WITH_DATA``, for entries with the partition they are leased by and its epoch."""
    rows = [
        (*key, batch.base_offset, batch.next_offset, batch.data, *leased_by, epoch)
        for data, leased_by, epoch in appends
        for key in [(data.partition.topic_id, data.partition.partition)]
        for batch in data.batches()
    ]
    return list(zip(*rows, strict=True)) if rows else [()] * _COLUMNS


async def rewrite(connection: Connection, partition: TopicIdPartition, entry: LogStartEntry | CompactionEntry) -> None:
    """Change batches, in a transaction of the caller's. Batches that are appended in it may be written before."""
    key = (partition.topic_id, partition.partition)
    if isinstance(entry, LogStartEntry):
        await connection.execute(statements.START_AT, *key, entry.offset, timeout=_REWRITE_SECONDS)
        return
    await connection.execute(statements.REMOVE_BELOW, *key, entry.end_offset, timeout=_REWRITE_SECONDS)
    rows = [(batch.base_offset, batch.next_offset, batch.data) for batch in entry.batches]
    if rows:
        await connection.execute(statements.REPLACE, *key, *zip(*rows, strict=True), timeout=_REWRITE_SECONDS)
