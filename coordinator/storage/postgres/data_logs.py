"""The logs of data partitions in PostgreSQL: read, and deleted. They are appended to with the offsets logs.

A batch is kept as its bytes. Its own CRC-32C and the number of batches of its partition show what is damaged or lost.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Collection
from typing import Any, Final

import structlog

from rejoin.coordinator.storage.base import Damaged, DataPiece, OnStored
from rejoin.coordinator.storage.codec import Unreadable
from rejoin.coordinator.storage.data_batches import named
from rejoin.coordinator.storage.log_throttle import LogThrottle
from rejoin.coordinator.storage.postgres import statements
from rejoin.coordinator.storage.postgres.batch_reader import PostgresBatchReader
from rejoin.coordinator.storage.postgres.data_entries import DataEntries
from rejoin.coordinator.storage.postgres.database import LOST, Connection, PostgresError
from rejoin.coordinator.storage.postgres.log import PostgresLog
from rejoin.coordinator.storage.postgres.writer import FIRST_PAUSE, LONGEST_PAUSE, PendingAppend
from rejoin.coordinator.storage.remedy import of_database
from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.records.batches import DataEntry
from rejoin.protocol.types import TopicIdPartition, TopicPartition

_READERS: Final = 2
_DELETED_TOGETHER: Final = 1_000


class PostgresDataLogs:
    """The data partitions of one node."""

    def __init__(self, log: PostgresLog) -> None:
        self._log = log
        self._database = log.database
        self._observer = log.observer
        self._newest: dict[TopicIdPartition, tuple[int, TopicPartition]] = {}
        """Of each partition that was appended to: epoch and lease of the newest append."""
        self._reading = asyncio.Semaphore(_READERS)
        self._logger: Any = structlog.get_logger("coordinator").bind()
        self._throttle = LogThrottle(self._logger)

    # --- appending

    def append_data(
        self,
        partition: TopicIdPartition,
        epoch: int,
        leased_by: TopicPartition,
        entries: tuple[DataEntry, ...],
        stored: OnStored,
    ) -> None:
        self._newest[partition] = (epoch, leased_by)
        data = DataEntries(partition, entries)
        self._log.writer.append(PendingAppend(leased_by, epoch, (), stored, time.perf_counter(), data=data))

    def _after_appends(self, partition: TopicIdPartition, then: OnStored) -> None:
        """Call back when all appends before have ended."""
        newest = self._newest.get(partition)
        if newest is None:
            then(ErrorCode.NONE)
        else:
            epoch, leased_by = newest
            self._log.writer.append(
                PendingAppend(leased_by, epoch, (), then, time.perf_counter(), data=DataEntries(partition, ()))
            )

    # --- reading

    def read_data(self, partition: TopicIdPartition, epoch: int, piece: DataPiece, damaged: Damaged) -> None:
        began = time.perf_counter()
        newest = self._newest.get(partition)
        if newest is not None and newest[0] < epoch:
            # Appends of an older epoch are there or refused since the lease has moved on.
            del self._newest[partition]
        self._after_appends(partition, lambda _: self._log.spawn(self._read(partition, piece, damaged, began)))

    async def _read(self, partition: TopicIdPartition, piece: DataPiece, damaged: Damaged, began: float) -> None:
        try:
            async with self._reading:
                records = await self._read_pieces(partition, piece)
        except Unreadable as problem:
            self._logger.error(
                "partition_damaged",
                partition=str(partition),
                problem=str(problem),
                advice=of_database(self._database.shown).for_data_partition(partition.topic),
            )
            self._observer.damaged(named(partition), str(problem))
            damaged()
        else:
            if records is not None:
                self._observer.read(named(partition), records, (time.perf_counter() - began) * 1_000)

    async def _read_pieces(self, partition: TopicIdPartition, piece: DataPiece) -> int | None:
        """Read a partition to its end; how many entries it has. None if another node has written to it meanwhile."""
        reader = PostgresBatchReader(partition)
        entries = 0
        pause = FIRST_PAUSE
        while True:
            try:
                async with self._database.acquire() as connection:
                    rows = await connection.fetch(*reader.query())
            except (*LOST, PostgresError) as problem:
                self._throttle.failed("read_failed", problem, level="warning", partition=str(partition))
                await asyncio.sleep(pause)
                pause = min(2 * pause, LONGEST_PAUSE)
                continue
            self._throttle.recovered("read_failed", "read_again")
            if reader.is_overtaken(rows):
                return None
            found, is_last = reader.take(rows)
            entries += len(found)
            piece(found, is_last)
            if is_last:
                return entries
            # Heartbeats come first.
            await asyncio.sleep(0)

    # --- deleting

    def delete_data(self, partition: TopicIdPartition, epoch: int, leased_by: TopicPartition) -> None:
        # Whatever the epoch: no topic gets an id a second time.
        self._after_appends(partition, lambda _: self._log.spawn(self._delete_until_done(partition)))
        self._newest.pop(partition, None)

    async def _delete_until_done(self, partition: TopicIdPartition) -> None:
        async def delete(connection: Connection) -> None:
            await _delete(connection, *_key(partition))

        await self._until_done(delete)

    def keep_only(self, topic_ids: Collection[str]) -> None:
        """Delete the logs of topics that are gone. One that another node has just made is in the topics log."""
        known = list(topic_ids)

        async def delete(connection: Connection) -> None:
            for (topic_id,) in await connection.fetch(statements.GONE, known):
                for (number,) in await connection.fetch(statements.PARTITIONS_OF, topic_id):
                    await _delete(connection, topic_id, number)

        self._log.spawn(self._until_done(delete))

    async def _until_done(self, work: Callable[[Connection], Awaitable[None]]) -> None:
        """Delete, and retry while the store does not work. The next start deletes what is left when the node stops."""
        pause = FIRST_PAUSE
        while True:
            try:
                async with self._database.acquire() as connection:
                    await work(connection)
            except (*LOST, PostgresError) as problem:
                self._throttle.failed("logs_not_deleted", problem, level="warning")
                await asyncio.sleep(pause)
                pause = min(2 * pause, LONGEST_PAUSE)
            else:
                return


async def _delete(connection: Connection, topic_id: str, partition: int) -> None:
    """Delete a log in steps, each of which takes little time. What says that it is there goes last."""
    while await connection.fetchval(statements.DELETE_SOME, topic_id, partition, _DELETED_TOGETHER):
        pass
    await connection.execute(statements.DELETE_LOG, topic_id, partition)


def _key(partition: TopicIdPartition) -> tuple[str, int]:
    return partition.topic_id, partition.partition
