"""Logs of every kind behind one face, and records to put into them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

from rejoin.coordinator.storage.base import DataLogs, Observer, OffsetsLog
from rejoin.coordinator.storage.memory import MemoryLog
from rejoin.coordinator.storage.postgres.data_logs import PostgresDataLogs
from rejoin.coordinator.storage.postgres.database import Database
from rejoin.coordinator.storage.postgres.log import PostgresLog
from rejoin.coordinator.storage.sqlite.data_logs import SqliteDataLogs
from rejoin.coordinator.storage.sqlite.database import SqliteDatabase
from rejoin.coordinator.storage.sqlite.log import SqliteLog
from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.records.batches import BatchEntry, DataEntry
from rejoin.protocol.records.consumer_offsets import (
    OFFSETS_TOPIC,
    GroupMetadataValue,
    GroupRecord,
    MemberMetadata,
    OffsetCommitValue,
    OffsetRecord,
    group_record,
    offset_record,
    offsets_partition,
)
from rejoin.protocol.records.keyed import Record, TransactionMarker
from rejoin.protocol.types import TopicIdPartition, TopicPartition
from rejoin.protocol.wire.record_batch import BatchHeader, sealed

PATIENCE = 120.0


def offset(number: int, group: str = "g", partition: int = 0, producer_id: int = -1) -> OffsetRecord:
    value = OffsetCommitValue(offset=number, leader_epoch=3, metadata="m", commit_timestamp=1)
    return offset_record(group, "orders", partition, value, producer_id)


def gone(partition: int = 0, group: str = "g") -> OffsetRecord:
    return offset_record(group, "orders", partition, None)


def marker(producer_id: int = 9, committed: bool = True) -> TransactionMarker:
    return TransactionMarker(producer_id=producer_id, producer_epoch=0, committed=committed)


def group(generation: int = 1, group_id: str = "g", members: int = 1) -> GroupRecord:
    each = tuple(
        MemberMetadata(
            member_id=f"m-{number}",
            group_instance_id=None if number else "static",
            client_id="c",
            client_host="/127.0.0.1",
            rebalance_timeout=60_000,
            session_timeout=45_000,
            subscription=b"\xfb\xff\xfe\x00",
            assignment=bytes(range(number % 7)),
        )
        for number in range(members)
    )
    value = GroupMetadataValue(
        protocol_type="consumer",
        generation=generation,
        protocol="range",
        leader="m-0",
        current_state_timestamp=7,
        members=each,
    )
    return group_record(group_id, value)


def batch(base_offset: int, count: int = 1, size: int = 100) -> BatchEntry:
    """A batch of so many records and bytes."""
    header = BatchHeader(base_offset, 0, 0, 2, 0, 0, count - 1, 0, 0, -1, -1, -1, count)
    return BatchEntry(base_offset, sealed(header, bytes(size - 61)))


class Watching(Observer):
    """Keeps what a log reports about its work."""

    def __init__(self) -> None:
        self.fenced_at: list[int] = []
        self.failures: list[ErrorCode] = []
        self.removed = 0
        self.batches: list[int] = []
        self.damages: list[str] = []
        self.reconnections = 0
        self.reported: list[list[int]] = []

    def report_batch(self, report: Callable[[], None]) -> None:
        """Begin a list for the ends that are reported together."""
        self.reported.append([])
        report()

    def batch(self, appends: int, millis: float) -> None:
        self.batches.append(appends)

    def fenced(self, partition: TopicPartition) -> None:
        self.fenced_at.append(partition.partition)

    def failed(self, error: ErrorCode) -> None:
        self.failures.append(error)

    def compacted(self, partition: TopicPartition, removed: int) -> None:
        self.removed += removed

    def damaged(self, partition: TopicPartition, text: str) -> None:
        self.damages.append(text)

    def reconnected(self) -> None:
        self.reconnections += 1


class Store:
    """A kind of log, and what it keeps over restarts."""

    name = ""
    is_durable = True

    def __init__(self) -> None:
        self.watching = Watching()
        self._log: OffsetsLog | None = None
        self._data_logs: DataLogs | None = None

    @property
    def log(self) -> OffsetsLog:
        assert self._log is not None
        return self._log

    @property
    def data_logs(self) -> DataLogs:
        assert self._data_logs is not None
        return self._data_logs

    async def start(self) -> None:
        self._log = self.make()
        self._data_logs = self.make_data_logs()
        await self._log.start(self.watching.report_batch)

    async def close(self) -> None:
        if self._log is not None:
            log, self._log = self._log, None
            await log.close()

    async def restart(self) -> None:
        await self.close()
        await self.start()

    def make(self) -> OffsetsLog:
        raise NotImplementedError

    def make_data_logs(self) -> DataLogs:
        """The logs of data partitions, of the log that is started."""
        raise NotImplementedError

    async def elect(self, partition: int) -> int:
        raise NotImplementedError

    # --- what is not waited for in production

    async def append(self, partition: int, epoch: int, *records: Record) -> ErrorCode:
        end = self.begin(partition, epoch, *records)
        return await asyncio.wait_for(end, PATIENCE)

    def begin(self, partition: int, epoch: int, *records: Record) -> asyncio.Future[ErrorCode]:
        """Begin to append; awaiting gives how it ended."""
        end: asyncio.Future[ErrorCode] = asyncio.get_running_loop().create_future()
        self.log.append(offsets_partition(partition), epoch, records, end.set_result)
        return end

    async def read(self, partition: int = 0, epoch: int | None = None) -> list[Record]:
        return [record for piece in await self.pieces(partition, epoch) for record in piece]

    async def pieces(self, partition: int, epoch: int | None = None) -> list[tuple[Record, ...]]:
        """Become leader, unless an epoch is given, and read all."""
        if epoch is None:
            epoch = await self.elect(partition)
        found: list[tuple[Record, ...]] = []
        end: asyncio.Future[None] = asyncio.get_running_loop().create_future()

        def piece(records: tuple[Record, ...], is_last: bool) -> None:
            found.append(records)
            if is_last:
                end.set_result(None)

        self.log.read(offsets_partition(partition), epoch, piece)
        await asyncio.wait_for(end, PATIENCE)
        return found

    async def append_data(self, partition: TopicIdPartition, epoch: int, *entries: DataEntry) -> ErrorCode:
        """Append to a data partition, which is leased by partition 0."""
        return await asyncio.wait_for(self.begin_data(partition, epoch, *entries), PATIENCE)

    def begin_data(self, partition: TopicIdPartition, epoch: int, *entries: DataEntry) -> asyncio.Future[ErrorCode]:
        """Begin to append to a data partition; awaiting gives how it ended."""
        end: asyncio.Future[ErrorCode] = asyncio.get_running_loop().create_future()
        self.data_logs.append_data(partition, epoch, offsets_partition(0), entries, end.set_result)
        return end

    async def read_data(self, partition: TopicIdPartition, epoch: int) -> list[DataEntry]:
        return [entry for piece in await self.data_pieces(partition, epoch) for entry in piece]

    async def data_pieces(self, partition: TopicIdPartition, epoch: int) -> list[tuple[DataEntry, ...]]:
        found: list[tuple[DataEntry, ...]] = []
        end: asyncio.Future[None] = asyncio.get_running_loop().create_future()

        def piece(entries: tuple[DataEntry, ...], is_last: bool) -> None:
            found.append(entries)
            if is_last:
                end.set_result(None)

        def damaged() -> None:
            end.set_exception(AssertionError(f"{partition} is damaged"))

        self.data_logs.read_data(partition, epoch, piece, damaged)
        await asyncio.wait_for(end, PATIENCE)
        return found

    async def until(self, condition: Callable[[], bool]) -> None:
        """Wait until something is so."""
        async with asyncio.timeout(PATIENCE):
            while not condition():  # noqa: ASYNC110
                await asyncio.sleep(0.005)


class Sole(Store):
    """A log without other writers."""

    async def elect(self, partition: int) -> int:
        assert isinstance(self.log, (MemoryLog, SqliteLog))
        return self.log.elect(offsets_partition(partition))


class Memory(Sole):
    name = "memory"
    is_durable = False

    def make(self) -> OffsetsLog:
        return MemoryLog()

    def make_data_logs(self) -> DataLogs:
        assert isinstance(self.log, MemoryLog)
        return self.log


class Sqlite(Sole):
    name = "sqlite"

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self.folder = folder

    def make(self) -> OffsetsLog:
        return SqliteLog(SqliteDatabase(self.folder), self.watching)

    def make_data_logs(self) -> DataLogs:
        assert isinstance(self.log, SqliteLog)
        return SqliteDataLogs(self.log.database, self.log, self.watching)


TAKE_OVER = """
INSERT INTO leases AS l (topic, partition, epoch, node_id) VALUES ($1, $2, 0, $3)
ON CONFLICT (topic, partition) DO UPDATE SET epoch = l.epoch + 1, node_id = excluded.node_id RETURNING epoch
"""


class Postgres(Store):
    name = "postgres"

    def __init__(self, url: str, node_id: int = 1) -> None:
        super().__init__()
        self.node_id = node_id
        self.database = Database(url)

    def make(self) -> OffsetsLog:
        return PostgresLog(self.database, self.node_id, self.watching)

    def make_data_logs(self) -> DataLogs:
        assert isinstance(self.log, PostgresLog)
        return PostgresDataLogs(self.log)

    async def close(self) -> None:
        await super().close()
        await self.database.close()

    async def elect(self, partition: int) -> int:
        async with self.database.acquire() as connection:
            epoch: int = await connection.fetchval(TAKE_OVER, OFFSETS_TOPIC, partition, self.node_id)
        return epoch
