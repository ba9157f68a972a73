"""The logs of data partitions in a data directory, beside the offsets log and in its transactions.

A batch is kept as its bytes. Damage shows in its CRC-32C, and a loss in the number of batches of its partition.
"""

from __future__ import annotations

import asyncio
import sqlite3
import time
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, TypeAlias

import structlog

from rejoin.coordinator.storage.base import Damaged, DataPiece, Observer, OnStored
from rejoin.coordinator.storage.codec import Unreadable
from rejoin.coordinator.storage.data_batches import named
from rejoin.coordinator.storage.log_throttle import LogThrottle
from rejoin.coordinator.storage.remedy import of_directory
from rejoin.coordinator.storage.sqlite.batch_reader import ID, SqliteBatchReader
from rejoin.coordinator.storage.sqlite.batch_tail import BatchTail
from rejoin.coordinator.storage.sqlite.database import Bulk, SqliteDatabase
from rejoin.coordinator.storage.sqlite.log import SqliteLog
from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.records.batches import BatchEntry, CompactionEntry, DataEntry, LogStartEntry
from rejoin.protocol.types import TopicIdPartition, TopicPartition

_RETRY_SECONDS: Final = 1.0

_NEW_ID: Final = "INSERT INTO data_partitions (topic_id, partition, log_start, batches) VALUES (?, ?, 0, 0)"
_COUNT: Final = "UPDATE data_partitions SET batches = batches + ? WHERE id = ?"
_START: Final = "UPDATE data_partitions SET log_start = max(log_start, ?) WHERE id = ?"
_BELOW_START: Final = "DELETE FROM batches WHERE partition_id = ? AND next_offset <= ?"
_BELOW_END: Final = "DELETE FROM batches WHERE partition_id = ? AND base_offset < ?"

_Append: TypeAlias = tuple[TopicIdPartition, TopicPartition, int, tuple[DataEntry, ...], OnStored, float]
"""Partition, the one it is leased by and its epoch, entries, the callback, and when it was asked for."""


class SqliteDataLogs:
    """The data partitions of one data directory. Their epochs are those of the offsets log beside them."""

    def __init__(self, database: SqliteDatabase, offsets: SqliteLog, observer: Observer | None = None) -> None:
        self._database = database
        self._offsets = offsets
        self._observer = observer or Observer()
        self._ids: dict[TopicIdPartition, int] = {}
        """Kept by the writer's thread; rolled back and deleted entries are looked up again."""
        self._tail = BatchTail()
        database.add_hook(self)
        database.add_hook(self._tail)
        self._logger: Any = structlog.get_logger("coordinator").bind()
        self._throttle = LogThrottle(self._logger)
        self._appends = Bulk(self._write, self._written)
        self._closing = False

    def stop(self) -> None:
        """Read nothing again that cannot be read."""
        self._closing = True

    # --- appending

    def append_data(
        self,
        partition: TopicIdPartition,
        epoch: int,
        leased_by: TopicPartition,
        entries: tuple[DataEntry, ...],
        stored: OnStored,
    ) -> None:
        item: _Append = (partition, leased_by, epoch, entries, stored, time.perf_counter())
        self._database.submit_item(self._appends, item)

    def _write(self, appends: list[_Append], connection: sqlite3.Connection) -> list[ErrorCode]:
        """Write what may be written; how each ends, once the transaction is durable. On the writer's thread."""
        ends: list[ErrorCode] = []
        append = self._tail.append
        for partition, leased_by, epoch, entries, _, _ in appends:
            if self._offsets.is_fenced(leased_by, epoch):
                ends.append(ErrorCode.NOT_LEADER_OR_FOLLOWER)
                continue
            number = self._id(connection, partition)
            for entry in entries:
                if type(entry) is BatchEntry:
                    append(connection, number, entry)
                else:
                    self._write_entry(connection, number, entry)
            ends.append(ErrorCode.NONE)
        return ends

    def _write_entry(self, connection: sqlite3.Connection, number: int, entry: DataEntry) -> None:
        """Write a log's new start, or the remains of a compaction."""
        self._tail.move(connection)
        match entry:
            case LogStartEntry():
                connection.execute(_START, (entry.offset, number))
                removed = connection.execute(_BELOW_START, (number, entry.offset)).rowcount
                connection.execute(_COUNT, (-removed, number))
            case CompactionEntry():
                removed = connection.execute(_BELOW_END, (number, entry.end_offset)).rowcount
                connection.execute(_COUNT, (-removed, number))
                for batch in entry.batches:
                    self._tail.append(connection, number, batch)

    def _id(self, connection: sqlite3.Connection, partition: TopicIdPartition) -> int:
        found = self._ids.get(partition)
        if found is None:
            row = connection.execute(ID, (partition.topic_id, partition.partition)).fetchone()
            if row is None:
                found = connection.execute(_NEW_ID, (partition.topic_id, partition.partition)).lastrowid
                assert found is not None, "a row was inserted"
            else:
                found = int(row[0])
            self._ids[partition] = found
        return found

    def opened(self, connection: sqlite3.Connection) -> None:
        """See :class:`rejoin.coordinator.storage.sqlite.database.TransactionHook`, here and below."""

    def before_commit(self, connection: sqlite3.Connection) -> Mapping[str, int]:
        """Nothing is left to be written."""
        return {}

    def committed(self) -> None:
        """Ids stay as they are."""

    def rolled_back(self) -> None:
        self._ids.clear()

    def closing(self, connection: sqlite3.Connection) -> None:
        """Nothing is left open."""

    def _written(self, appends: list[_Append], outcome: Any) -> None:
        """Report how each ended, in order."""
        if isinstance(outcome, BaseException):
            self._throttle.failed("append_failed", outcome, appends=len(appends))
            outcome = [ErrorCode.KAFKA_STORAGE_ERROR] * len(appends)
        else:
            self._throttle.recovered("append_failed", "appends_stored_again")
        self._offsets.report_together(partial(self._report, appends, outcome))

    def _report(self, appends: list[_Append], ends: list[ErrorCode]) -> None:
        now = time.perf_counter()
        for (_, leased_by, _, entries, stored, began), error in zip(appends, ends, strict=True):
            if error is ErrorCode.NONE:
                self._observer.appended(len(entries), (now - began) * 1_000)
            elif error is ErrorCode.NOT_LEADER_OR_FOLLOWER:
                self._observer.fenced(leased_by)
            else:
                self._observer.failed(error)
            try:
                stored(error)
            except Exception as problem:
                # The others get their ends all the same.
                self._logger.error("append_end_raised", problem=repr(problem), exc_info=problem)

    # --- deleting

    def delete_data(self, partition: TopicIdPartition, epoch: int, leased_by: TopicPartition) -> None:
        # Whatever the epoch: no topic gets an id a second time.
        def delete(connection: sqlite3.Connection) -> None:
            self._ids.pop(partition, None)
            self._tail.move(connection)
            _delete(connection, "topic_id = ? AND partition = ?", (partition.topic_id, partition.partition))

        self._database.submit(delete, self._deleted)

    def keep_only(self, topic_ids: Collection[str]) -> None:
        """Delete the logs of topics that are not there any more: a process may end before it has deleted them."""

        def delete(connection: sqlite3.Connection) -> None:
            found = {row[0] for row in connection.execute("SELECT DISTINCT topic_id FROM data_partitions")}
            self._ids.clear()
            self._tail.move(connection)
            for topic_id in found.difference(topic_ids):
                _delete(connection, "topic_id = ?", (topic_id,))

        self._database.submit(delete, self._deleted)

    def _deleted(self, outcome: object) -> None:
        """Ignore failures: the next start deletes the rest."""
        if isinstance(outcome, BaseException):
            self._throttle.failed("logs_not_deleted", outcome)

    # --- reading

    def read_data(self, partition: TopicIdPartition, epoch: int, piece: DataPiece, damaged: Damaged) -> None:
        reading = _Reading(SqliteBatchReader(partition), piece, damaged, time.perf_counter())
        # Behind all that was appended before, so that it is either read or refused.
        self._database.submit(None, lambda _: self._read_on(reading))

    def _read_on(self, reading: _Reading) -> None:
        self._database.read(partial(_read_piece, reading), partial(self._piece_read, reading))

    def _piece_read(self, reading: _Reading, outcome: Any) -> None:
        if isinstance(outcome, Unreadable):
            self._logger.error(
                "partition_damaged",
                partition=str(reading.partition),
                problem=str(outcome),
                advice=of_directory(self._database.folder).for_data_partition(reading.partition.topic),
            )
            self._observer.damaged(named(reading.partition), str(outcome))
            reading.damaged()
            return
        if isinstance(outcome, BaseException):
            self._throttle.failed("read_failed", outcome, partition=str(reading.partition))
            if not self._closing:
                asyncio.get_running_loop().call_later(_RETRY_SECONDS, self._read_on, reading)
            return
        self._throttle.recovered("read_failed", "read_again")
        entries, end = outcome
        reading.records += len(entries)
        if end:
            took = (time.perf_counter() - reading.began) * 1_000
            self._observer.read(named(reading.partition), reading.records, took)
        else:
            self._read_on(reading)  # so that it is there when this one has been taken in
        reading.piece(entries, end)


@dataclass(slots=True)
class _Reading:
    """A partition that is being read, and how many entries there were."""

    batches: SqliteBatchReader
    piece: DataPiece
    damaged: Damaged
    began: float
    records: int = 0

    @property
    def partition(self) -> TopicIdPartition:
        return self.batches.partition


def _delete(connection: sqlite3.Connection, which: str, of: tuple[object, ...]) -> None:
    connection.execute(f"DELETE FROM batches WHERE partition_id IN (SELECT id FROM data_partitions WHERE {which})", of)
    connection.execute(f"DELETE FROM data_partitions WHERE {which}", of)


def _read_piece(reading: _Reading, connection: sqlite3.Connection) -> tuple[tuple[DataEntry, ...], bool]:
    """Entries, and whether they are the last."""
    connection.execute("BEGIN")  # batches may be moved meanwhile
    try:
        return reading.batches.next_piece(connection)
    finally:
        connection.rollback()
