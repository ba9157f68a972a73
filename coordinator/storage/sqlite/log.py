"""The offsets log in a data directory, for one node that keeps its state over restarts.

An append is durable when its transaction is; all that wait share one. Its epoch is looked at when it is written, so an
election fences whatever is still in flight. A partition is read piece by piece, each in a transaction of its own,
while others are written to.
"""

from __future__ import annotations

import asyncio
import sqlite3
import time
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, TypeAlias

import structlog

from rejoin.coordinator.storage.base import Observer, OnStored, Piece, Together, one_by_one
from rejoin.coordinator.storage.codec import Entry, Unreadable, check, decode, encode
from rejoin.coordinator.storage.log_throttle import LogThrottle
from rejoin.coordinator.storage.remedy import of_directory
from rejoin.coordinator.storage.sqlite.check import damage_of, rows
from rejoin.coordinator.storage.sqlite.compaction import Compactor
from rejoin.coordinator.storage.sqlite.database import Bulk, SqliteDatabase
from rejoin.coordinator.storage.sqlite.partition_index import PartitionIndex
from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.records.keyed import Record
from rejoin.protocol.types import TopicPartition

PIECE_RECORDS: Final = 1_000
_RETRY_SECONDS: Final = 1.0
_NO_ID: Final = -1
"""Of a partition to which nothing could be written yet."""

_Append: TypeAlias = tuple[TopicPartition, int, list[Entry] | None, OnStored, float]
"""Partition, epoch, entries (none: they cannot be stored), the callback, and when it was asked for."""


class SqliteLog:
    """The offsets log of one data directory."""

    def __init__(self, database: SqliteDatabase, observer: Observer | None = None) -> None:
        self.database = database
        self.observer = observer or Observer()
        self.index = PartitionIndex(is_any_read=lambda: self._readers > 0)
        self._epochs: dict[TopicPartition, int] = {}
        self._reading: Counter[TopicPartition] = Counter()
        self._readers = 0  # the sum of these, for the writer's thread, which cannot look through them meanwhile
        self._closing = False
        self._logger: Any = structlog.get_logger("coordinator").bind()
        self._throttle = LogThrottle(self._logger)
        self.compactor = Compactor(database, self.index, self.observer, lambda partition: self._reading[partition] > 0)
        self._appends = Bulk(self._write, self._written)
        database.add_hook(self.index)
        database.on_batch = self._transaction_ended
        self._together = 0
        self._transaction_ms = 0.0
        self.report_together: Together = one_by_one

    async def start(self, together: Together = one_by_one) -> None:
        self.report_together = together
        await self.database.start()
        self._epochs = {partition: stats.epoch for partition, stats in self.index.durable.items()}

    async def close(self) -> None:
        self._closing = True
        self.compactor.stop()
        await self.database.close()

    # --- appending

    def elect(self, partition: TopicPartition) -> int:
        epoch = self._epochs.get(partition, -1) + 1
        self._epochs[partition] = epoch

        def keep(connection: sqlite3.Connection) -> None:
            self.index.elect(connection, partition, epoch)

        self.database.submit(keep, partial(self._kept, partition))
        return epoch

    def _kept(self, partition: TopicPartition, outcome: object) -> None:
        """An epoch that could not be written is written with the next append."""
        if isinstance(outcome, BaseException):
            self._throttle.failed("election_not_stored", outcome, partition=partition)
        else:
            self._throttle.recovered("election_not_stored", "elections_stored_again")

    def append(self, partition: TopicPartition, epoch: int, records: tuple[Record, ...], stored: OnStored) -> None:
        began = time.perf_counter()
        if not records:
            self._pass(partition, epoch, stored)
            return
        entries: list[Entry] | None
        try:
            entries = [encode(record) for record in records]
        except (TypeError, ValueError) as problem:
            self._logger.error(
                "record_not_storable", partition=partition, problem=f"{type(problem).__name__}: {problem}"
            )
            entries = None
        self.database.submit_item(self._appends, (partition, epoch, entries, stored, began))

    def is_fenced(self, partition: TopicPartition, epoch: int) -> bool:
        """Whether the partition has moved on to a newer epoch."""
        return epoch < self._epochs.get(partition, -1)

    def _pass(self, partition: TopicPartition, epoch: int, stored: OnStored) -> None:
        """End it when all before is stored."""
        is_fenced = self.is_fenced(partition, epoch)

        def done(_: object) -> None:
            if is_fenced:
                self.observer.fenced(partition)
            stored(ErrorCode.NOT_LEADER_OR_FOLLOWER if is_fenced else ErrorCode.NONE)

        self.database.submit(None, done)

    def _write(self, appends: list[_Append], connection: sqlite3.Connection) -> list[ErrorCode]:
        """Write what may be written; how each ends, once the transaction is durable. On the writer's thread."""
        index = self.index
        ends: list[ErrorCode] = []
        for partition, epoch, entries, _, _ in appends:
            if self.is_fenced(partition, epoch):
                ends.append(ErrorCode.NOT_LEADER_OR_FOLLOWER)
            elif entries is None:
                ends.append(ErrorCode.UNKNOWN_SERVER_ERROR)
            else:
                index.write(connection, partition, epoch, entries)
                ends.append(ErrorCode.NONE)
        return ends

    def _transaction_ended(self, jobs: int, millis: float) -> None:
        """A transaction took so long; its appends end next, before anything else on the loop.

        Others have their work in it too, so what is counted is the appends among those ends.
        """
        self._tell_batch()
        self._transaction_ms = millis
        asyncio.get_running_loop().call_soon(self._tell_batch)

    def _tell_batch(self) -> None:
        together, self._together = self._together, 0
        if together:
            self.observer.batch(together, self._transaction_ms)

    def _written(self, appends: list[_Append], outcome: Any) -> None:
        """Report how each ended, in order."""
        if isinstance(outcome, BaseException):
            self._throttle.failed("append_failed", outcome, appends=len(appends))
            outcome = [ErrorCode.KAFKA_STORAGE_ERROR] * len(appends)
        else:
            self._throttle.recovered("append_failed", "appends_stored_again")
        self.report_together(partial(self._report, appends, outcome))
        while self.index.removed:
            for number, removed in self.index.removed.popleft().items():
                self.observer.compacted(self.index.by_id[number], removed)
        self.compactor.look_after()

    def _report(self, appends: list[_Append], ends: list[ErrorCode]) -> None:
        now = time.perf_counter()
        observer = self.observer
        for (partition, _, entries, stored, began), error in zip(appends, ends, strict=True):
            if error is ErrorCode.NONE:
                self._together += 1
                observer.appended(len(entries or ()), (now - began) * 1_000)
            elif error is ErrorCode.NOT_LEADER_OR_FOLLOWER:
                observer.fenced(partition)
            else:
                observer.failed(error)
            try:
                stored(error)
            except Exception as problem:
                # The others get their ends all the same.
                self._logger.error("append_end_raised", problem=repr(problem), exc_info=problem)

    def holds_anything(self) -> bool:
        """Whether there is a record, or ever was a leader, of any partition."""
        return bool(self.index.durable)

    def fill(self, entries: Iterable[tuple[TopicPartition, int, Entry | None]], connection: sqlite3.Connection) -> int:
        """Put partition, epoch and entry of another log's records into an empty one; without an entry, the epoch alone.

        For ``SqliteDatabase.submit``. Returns how many records there were.
        """
        count = 0
        for partition, epoch, entry in entries:
            if entry is None:
                self.index.elect(connection, partition, epoch)
            else:
                self.index.write(connection, partition, epoch, (entry,))
                count += 1
        return count

    # --- reading

    def read(self, partition: TopicPartition, epoch: int, piece: Piece) -> None:
        self._reading[partition] += 1
        self._readers += 1
        reading = _Reading(partition, epoch, piece, time.perf_counter())
        # Behind all that was appended before, so that it is either read or refused.
        self.database.submit(None, lambda _: self._begin_to_read(reading))

    def _begin_to_read(self, reading: _Reading) -> None:
        reading.until = self.index.last_durable_position
        self._read_on(reading)

    def _read_on(self, reading: _Reading) -> None:
        number = self.index.ids.get(reading.partition, _NO_ID)
        work = partial(_read_piece, reading.partition, number, reading.last, reading.until)
        self.database.read(work, partial(self._piece_read, reading))

    def _piece_read(self, reading: _Reading, outcome: Any) -> None:
        if isinstance(outcome, BaseException):
            self._reading_failed(reading, outcome)
            return
        self._throttle.recovered("read_failed", "read_again")
        records, reading.last, end = outcome
        reading.records += len(records)
        if not end:
            self._read_on(reading)  # so that it is there when this one has been taken in
        else:
            self._read_ended(reading)
            self.observer.read(reading.partition, reading.records, (time.perf_counter() - reading.began) * 1_000)
        reading.piece(records, end)

    def _reading_failed(self, reading: _Reading, problem: BaseException) -> None:
        if isinstance(problem, Unreadable):
            self._logger.error(
                "partition_damaged",
                partition=reading.partition,
                problem=str(problem),
                advice=of_directory(self.database.folder).for_offsets_partition(),
            )
            self.observer.damaged(reading.partition, str(problem))
            self._read_ended(reading)
            return
        self._throttle.failed("read_failed", problem, partition=reading.partition)
        if self._closing or self._epochs.get(reading.partition, -1) > reading.epoch:
            self._read_ended(reading)
        else:
            asyncio.get_running_loop().call_later(_RETRY_SECONDS, self._read_on, reading)

    def _read_ended(self, reading: _Reading) -> None:
        self._reading[reading.partition] -= 1
        self._readers -= 1


@dataclass(slots=True)
class _Reading:
    """A partition that is being read."""

    partition: TopicPartition
    epoch: int
    piece: Piece
    began: float
    last: int = 0
    until: int = 0
    records: int = 0


def _read_piece(
    partition: TopicPartition, number: int, after: int, until: int, connection: sqlite3.Connection
) -> tuple[tuple[Record, ...], int, bool]:
    """Records, the position of the last one, and whether it is the last of all."""
    with damage_of(partition):
        found = rows(connection, number, after, until, PIECE_RECORDS)
    try:
        check(partition, found)
        records = decode(partition.topic, ((producer_id, key, value) for _, producer_id, _, key, value in found))
    except Unreadable as problem:
        raise Unreadable(f"{partition}: {problem}") from problem
    return records, found[-1][0] if found else until, len(found) < PIECE_RECORDS
