"""The offsets log in a data directory: for one node that keeps what it knows over restarts.

An append is durable when its transaction is; all that wait share one. Its epoch is looked at when it is written, so an
election fences whatever is still on its way. A partition is read piece by piece, each in a transaction of its own,
while others are written to; it is compacted when it has twice the records that were left the last time, in slices
between the appends.
"""

from __future__ import annotations

import asyncio
import sqlite3
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final, TypeAlias

import structlog

from coordinator.offsets_log.base import Observer, Piece, Stored
from coordinator.offsets_log.codec import Entry, Unreadable, check, checksum, decode, encode
from coordinator.offsets_log.compaction import HAS_TRANSACTIONS, doomed_query
from coordinator.offsets_log.sqlite_check import rows
from coordinator.offsets_log.sqlite_database import SqliteDatabase
from protocol.errors import ErrorCode
from protocol.records import Record

PIECE_RECORDS: Final = 1_000
_COMPACT_FROM: Final = 1_000
_SLICE_RECORDS: Final = 500
_LARGEST_SLICE: Final = 5_000
_SLICES: Final = 16
_VACUUM_PAGES: Final = 100
_WRITE_ROWS: Final = 10_000
_RETRY_SECONDS: Final = 1.0

_INSERT: Final = (
    "INSERT INTO log (position, partition, epoch, producer_id, checksum, key, value) VALUES (?, ?, ?, ?, ?, ?, ?)"
)
_KEEP: Final = (
    "INSERT INTO partitions (partition, epoch, records, checksums, alive) VALUES (?, ?, ?, ?, ?) "
    "ON CONFLICT (partition) DO UPDATE SET epoch = excluded.epoch, records = excluded.records, "
    "checksums = excluded.checksums, alive = excluded.alive"
)


_Written: TypeAlias = tuple[int, int, int, int, int, str | None, str | None]
"""Position, partition, epoch, producer id, checksum, key, value."""


@dataclass(slots=True)
class _Partition:
    """A partition as the table ``partitions`` has it."""

    epoch: int = -1
    records: int = 0
    checksums: int = 0
    alive: int = 0

    @property
    def compact_at(self) -> int:
        return max(_COMPACT_FROM, 2 * self.alive)


class _Books:
    """What the writer knows of each partition: as it is durable, and as it will be once the transaction is."""

    def __init__(self) -> None:
        self.durable: dict[int, _Partition] = {}
        self._open: dict[int, _Partition] = {}
        self._rows: list[_Written] = []
        self.next_position = 1
        self._durable_next = 1

    def opened(self, connection: sqlite3.Connection) -> None:
        """As the database has it."""
        self._durable_next = self.next_position = connection.execute("SELECT next_position FROM store").fetchone()[0]
        query = "SELECT partition, epoch, records, checksums, alive FROM partitions"
        self.durable = {partition: _Partition(*rest) for partition, *rest in connection.execute(query)}

    def change(self, partition: int) -> _Partition:
        """A partition, to be changed by the transaction under way."""
        found = self._open.get(partition)
        if found is None:
            found = self._open[partition] = replace(self.durable.get(partition) or _Partition())
        return found

    def write(self, connection: sqlite3.Connection, rows: Sequence[_Written]) -> None:
        """Rows of the log, which go in together: one by one they would cost twice as much."""
        self._rows += rows
        if len(self._rows) >= _WRITE_ROWS:
            self._flush(connection)

    def _flush(self, connection: sqlite3.Connection) -> None:
        connection.executemany(_INSERT, self._rows)
        self._rows.clear()

    def before_commit(self, connection: sqlite3.Connection) -> None:
        self._flush(connection)
        changed = [(number, p.epoch, p.records, p.checksums, p.alive) for number, p in self._open.items()]
        connection.executemany(_KEEP, changed)
        if self.next_position != self._durable_next:
            connection.execute("UPDATE store SET next_position = ?", (self.next_position,))

    def committed(self) -> None:
        self.durable.update(self._open)
        self._open.clear()
        self._durable_next = self.next_position

    def rolled_back(self) -> None:
        self._rows.clear()
        self._open.clear()
        self.next_position = self._durable_next


class SqliteLog:
    """The offsets log of one data directory."""

    def __init__(self, database: SqliteDatabase, observer: Observer | None = None) -> None:
        self.database = database
        self.observer = observer or Observer()
        self._books = _Books()
        self._epochs: dict[int, int] = {}
        self._reading: dict[int, int] = {}
        self._compacting: set[int] = set()
        self._closing = False
        self._logger: Any = structlog.get_logger("coordinator").bind()
        database.join(self._books)
        database.on_batch = self.observer.batch

    async def start(self) -> None:
        await self.database.start()
        self._epochs = {number: partition.epoch for number, partition in self._books.durable.items()}

    async def close(self) -> None:
        self._closing = True
        await self.database.close()

    # --- appending

    def elect(self, partition: int) -> int:
        epoch = self._epochs.get(partition, -1) + 1
        self._epochs[partition] = epoch

        def keep(connection: sqlite3.Connection) -> None:
            self._books.change(partition).epoch = epoch

        self.database.submit(keep, partial(self._kept, partition))
        return epoch

    def _kept(self, partition: int, outcome: object) -> None:
        """An epoch that could not be written is written with the next append."""
        if isinstance(outcome, BaseException):
            self._complain("election_not_stored", partition, outcome)

    def append(self, partition: int, epoch: int, records: tuple[Record, ...], stored: Stored) -> None:
        began = time.perf_counter()
        done = partial(self._appended, partition, len(records), began, stored)
        if records:
            self.database.submit(partial(self._write, partition, epoch, records), done)
        elif epoch < self._epochs.get(partition, epoch):
            self.database.submit(None, lambda _: done(ErrorCode.NOT_LEADER_OR_FOLLOWER))
        else:
            self.database.submit(None, done)

    def _write(
        self, partition: int, epoch: int, records: Sequence[Record], connection: sqlite3.Connection
    ) -> ErrorCode:
        newest = self._epochs.get(partition, -1)
        if epoch < newest:
            return ErrorCode.NOT_LEADER_OR_FOLLOWER
        books = self._books.change(partition)
        books.epoch = max(books.epoch, newest)
        insert(connection, self._books, books, partition, epoch, [encode(record) for record in records])
        return ErrorCode.NONE

    def _appended(self, partition: int, records: int, began: float, stored: Stored, outcome: object) -> None:
        if isinstance(outcome, BaseException):
            self._complain("append_failed", partition, outcome)
            self.observer.failed(ErrorCode.KAFKA_STORAGE_ERROR)
            stored(ErrorCode.KAFKA_STORAGE_ERROR)
            return
        if outcome is ErrorCode.NOT_LEADER_OR_FOLLOWER:
            self.observer.fenced(partition)
            stored(ErrorCode.NOT_LEADER_OR_FOLLOWER)
            return
        if records:
            self.observer.appended(records, (time.perf_counter() - began) * 1_000)
        stored(ErrorCode.NONE)
        if records:
            self._look_after(partition)

    def holds_anything(self) -> bool:
        """Whether there is a record, or ever was a leader, of any partition."""
        return bool(self._books.durable)

    def fill(self, entries: Iterable[tuple[int, int, Entry | None]], connection: sqlite3.Connection) -> int:
        """Put partition, epoch and entry of another log's records into an empty one; without an entry, the epoch alone.

        For ``SqliteDatabase.submit``. Returns how many records there were.
        """
        count = 0
        for partition, epoch, entry in entries:
            books = self._books.change(partition)
            books.epoch = max(books.epoch, epoch)
            if entry is not None:
                insert(connection, self._books, books, partition, epoch, [entry])
                count += 1
        return count

    # --- reading

    def read(self, partition: int, epoch: int, piece: Piece) -> None:
        self._reading[partition] = self._reading.get(partition, 0) + 1
        reading = _Reading(partition, epoch, piece, time.perf_counter())
        # Behind all that was appended before, so that it is either read or refused.
        self.database.submit(None, lambda _: self._begin_to_read(reading))

    def _begin_to_read(self, reading: _Reading) -> None:
        reading.until = self._books.next_position - 1
        self._read_on(reading)

    def _read_on(self, reading: _Reading) -> None:
        work = partial(_read_piece, reading.partition, reading.last, reading.until)
        self.database.read(work, partial(self._piece_read, reading))

    def _piece_read(self, reading: _Reading, outcome: Any) -> None:
        if isinstance(outcome, BaseException):
            self._reading_failed(reading, outcome)
            return
        records, reading.last, end = outcome
        reading.records += len(records)
        if not end:
            self._read_on(reading)  # so that it is there when this one has been taken in
        else:
            self._read_ended(reading)
            self.observer.read(reading.partition, reading.records, (time.perf_counter() - reading.began) * 1_000)
        reading.piece(records, end)

    def _reading_failed(self, reading: _Reading, problem: BaseException) -> None:
        self._complain("read_failed", reading.partition, problem)
        if isinstance(problem, Unreadable):
            self.observer.damaged(reading.partition, str(problem))
            self._read_ended(reading)
        elif self._closing or self._epochs.get(reading.partition, -1) > reading.epoch:
            self._read_ended(reading)
        else:
            asyncio.get_running_loop().call_later(_RETRY_SECONDS, self._read_on, reading)

    def _read_ended(self, reading: _Reading) -> None:
        self._reading[reading.partition] -= 1

    # --- compaction

    def _compact(self, partition: int) -> None:
        """Not while the partition is read: whoever has taken in a record must see the tombstone that ends it."""
        if partition in self._compacting or self._reading.get(partition) or self._closing:
            return
        self._compacting.add(partition)
        self.database.read(partial(_find_doomed, partition), partial(self._doomed_found, partition))

    def _doomed_found(self, partition: int, outcome: Any) -> None:
        if isinstance(outcome, BaseException):
            self._compaction_failed(partition, outcome)
        else:
            records, doomed = outcome
            self._remove_slice(_Compaction(partition, records - len(doomed), doomed), None)

    def _remove_slice(self, compaction: _Compaction, outcome: object) -> None:
        """Take the next few out, oldest first, and come back when that is durable."""
        partition, begin, doomed = compaction.partition, compaction.removed, compaction.doomed
        if isinstance(outcome, BaseException):
            self._compaction_failed(partition, outcome)
            return
        if self._closing or self._reading.get(partition):
            self._compacting.discard(partition)
            return
        some = doomed[begin : begin + min(max(_SLICE_RECORDS, len(doomed) // _SLICES), _LARGEST_SLICE)]
        compaction.removed += len(some)
        is_last = compaction.removed == len(doomed)

        def remove(connection: sqlite3.Connection) -> None:
            books = self._books.change(partition)
            connection.executemany("DELETE FROM log WHERE position = ?", [(position,) for position, _ in some])
            books.records -= len(some)
            books.checksums -= sum(kept for _, kept in some)
            if is_last:
                books.alive = compaction.alive
            give_back_pages(connection, _VACUUM_PAGES + len(some) // 10)

        if is_last:
            self.database.submit(remove, partial(self._compacted, compaction))
        else:
            self.database.submit(remove, partial(self._remove_slice, compaction))

    def _compacted(self, compaction: _Compaction, outcome: object) -> None:
        if isinstance(outcome, BaseException):
            self._compaction_failed(compaction.partition, outcome)
            return
        self._compacting.discard(compaction.partition)
        self.observer.compacted(compaction.partition, len(compaction.doomed))
        self._look_after(compaction.partition)

    def _look_after(self, partition: int) -> None:
        """Compact a partition when it is time to."""
        known = self._books.durable.get(partition)
        if known is not None and known.records >= known.compact_at:
            self._compact(partition)

    def _compaction_failed(self, partition: int, problem: BaseException) -> None:
        self._compacting.discard(partition)
        self._complain("compaction_failed", partition, problem)

    def _complain(self, what: str, partition: int, problem: BaseException) -> None:
        self._logger.error(what, partition=partition, problem=f"{type(problem).__name__}: {problem}")


@dataclass(slots=True)
class _Reading:
    """A partition that is being read."""

    partition: int
    epoch: int
    piece: Piece
    began: float
    last: int = 0
    until: int = 0
    records: int = 0


@dataclass(slots=True)
class _Compaction:
    """A partition that is being compacted: how many of its records counted, and those that did not."""

    partition: int
    alive: int
    doomed: list[tuple[int, int]]
    removed: int = 0


def give_back_pages(connection: sqlite3.Connection, most: int) -> None:
    """Make the file smaller by pages that are not used. Through this interface each call gives back one."""
    (free,) = connection.execute("PRAGMA freelist_count").fetchone()
    for _ in range(min(free, most)):
        connection.execute("PRAGMA incremental_vacuum(1)")


def insert(
    connection: sqlite3.Connection,
    books: _Books,
    partition_books: _Partition,
    partition: int,
    epoch: int,
    entries: Sequence[Entry],
) -> None:
    """Put entries at the end of a partition, and into the books."""
    position = books.next_position
    written: list[_Written] = []
    for at, entry in enumerate(entries, position):
        crc = checksum(partition, at, entry)
        partition_books.checksums += crc
        written.append((at, partition, epoch, entry.producer_id, crc, entry.key, entry.value))
    partition_books.records += len(written)
    books.next_position = position + len(written)
    books.write(connection, written)


def _read_piece(
    partition: int, after: int, until: int, connection: sqlite3.Connection
) -> tuple[tuple[Record, ...], int, bool]:
    """Records, the position of the last one, and whether it is the last of all."""
    found = rows(connection, partition, after, until, PIECE_RECORDS)
    try:
        check(partition, found)
        records = decode((producer_id, key, value) for _, producer_id, _, key, value in found)
    except Unreadable as problem:
        raise Unreadable(f"partition {partition}: {problem}") from problem
    return records, found[-1][0] if found else until, len(found) < PIECE_RECORDS


def _find_doomed(partition: int, connection: sqlite3.Connection) -> tuple[int, list[tuple[int, int]]]:
    """How many records there are, and position and checksum of each that does not count, oldest first."""
    connection.execute("BEGIN")
    try:
        (records,) = connection.execute("SELECT count(*) FROM log WHERE partition = ?", (partition,)).fetchone()
        (has_transactions,) = connection.execute(HAS_TRANSACTIONS.format(partition=partition)).fetchone()
        query = doomed_query(partition, bool(has_transactions))
        with_checksums = f"SELECT position, checksum FROM log WHERE position IN ({query}) ORDER BY position"
        return records, connection.execute(with_checksums).fetchall()
    finally:
        connection.execute("ROLLBACK")
