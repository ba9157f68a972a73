"""The logs in PostgreSQL, shared by several nodes.

One statement, and so one round trip, writes all appends that wait. It locks the lease of each partition until the
records are durable, and writes only where the lease still has the append's node and epoch. So a node that lost a
partition writes nothing to it, and the new leader reads everything that the old one wrote.

When the connection breaks, it is unknown whether the last statement was executed. The writer opens a new connection and
begins a new session in the database. That waits for the last statement of the old session and fences what might follow.
Then the number of the newest batch says what was written: the writer acknowledges that batch, or sends it again.
"""

from __future__ import annotations

import asyncio
import time
import uuid
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, TypeAlias

import structlog

from rejoin.coordinator.storage.base import Observer, Piece, Stored, Together, one_by_one
from rejoin.coordinator.storage.codec import Entry, Row, Unreadable, check, checksum, decode, encode
from rejoin.coordinator.storage.log_throttle import LogThrottle
from rejoin.coordinator.storage.postgres import statements
from rejoin.coordinator.storage.postgres.database import LOST, Connection, Database, PostgresError
from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.records.keyed import Record
from rejoin.protocol.types import TopicPartition

PIECE_RECORDS: Final = 1_000
APPEND_SECONDS: Final = 15.0
_COMPACT_FROM: Final = 1_000
_SLICE_RECORDS: Final = 1_000
_BATCH_RECORDS: Final = 5_000
_READERS: Final = 2
_FIRST_PAUSE: Final = 0.05
_LONGEST_PAUSE: Final = 1.0
_AGAIN: Final = ("40", "55P03", "57014")
"""Prefixes of SQLSTATE: nothing was written, and a retry may succeed."""
_READ_ONLY: Final = "25006"

_Leases: TypeAlias = dict[TopicPartition, tuple[int, int]]
"""Epoch and node of each partition's lease."""


@dataclass(slots=True)
class _Append:
    """An append that waits or is in flight."""

    partition: TopicPartition
    epoch: int
    entries: Sequence[Entry]
    stored: Stored
    began: float
    is_bad: bool = False


@dataclass(slots=True)
class _Batch:
    """Appends that are sent together, with the number of the batch."""

    number: int
    appends: list[_Append]
    sent: float = 0.0


@dataclass(slots=True)
class _Leader:
    """The state of a partition in one epoch. At ``next_position`` 0 the end of the log must be read first."""

    epoch: int
    next_position: int
    records: int = 0
    compact_at: int = _COMPACT_FROM
    readers: int = 0


@dataclass(slots=True)
class _Line:
    """The connection for appends. Nothing else uses it."""

    connection: Connection
    session: int


class PostgresLog:
    """The logs of one node. Epochs come from the table ``leases``, which the lease store writes."""

    def __init__(self, database: Database, node_id: int, observer: Observer | None = None) -> None:
        self.database = database
        self.node_id = node_id
        self.observer = observer or Observer()
        self._writer = uuid.uuid4()
        self._session = 0
        self._number = 0
        self._line: _Line | None = None
        self._waiting: deque[_Append] = deque()
        self._something = asyncio.Event()
        self._closing = False
        self._led: dict[TopicPartition, _Leader] = {}
        self._compacting: set[TopicPartition] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._reading = asyncio.Semaphore(_READERS)
        self._writing: asyncio.Task[None] | None = None
        self._report_together: Together = one_by_one
        self._logger: Any = structlog.get_logger("coordinator").bind()
        self._throttle = LogThrottle(self._logger)

    async def start(self, together: Together = one_by_one) -> None:
        """Start the log, and the database if needed. Raises :class:`StoreProblem` if the database cannot be used."""
        self._report_together = together
        await self.database.start()
        async with self.database.acquire() as connection:
            await connection.execute(statements.FORGET_WRITERS)
        self._writing = asyncio.create_task(self._write_on(), name="offsets log")

    async def close(self, patience_s: float = 5.0) -> None:
        """Write the waiting appends, for at most ``patience_s``. Those that are left get no completion.

        The database stays open: others may use it.
        """
        self._closing = True
        self._something.set()
        if self._writing is not None:
            await asyncio.wait((self._writing,), timeout=patience_s)
            self._writing.cancel()
            await asyncio.wait((self._writing,))
            self._writing = None
        for task in list(self._tasks):
            task.cancel()
        if self._tasks:
            await asyncio.wait(list(self._tasks))
        self._hang_up()

    # --- appending

    def append(self, partition: TopicPartition, epoch: int, records: tuple[Record, ...], stored: Stored) -> None:
        append = _Append(partition, epoch, (), stored, time.perf_counter())
        try:
            append.entries = [encode(record) for record in records]
        except (TypeError, ValueError) as problem:
            self._logger.error("record_not_storable", partition=partition, problem=str(problem))
            append.is_bad = True
        self._waiting.append(append)
        self._something.set()

    async def _write_on(self) -> None:
        """Write batches until the log is closed and no append waits."""
        while True:
            await self._something.wait()
            self._something.clear()
            if not self._waiting:
                if self._closing:
                    return
                continue
            # Appends of this iteration of the event loop join the batch.
            await asyncio.sleep(0)
            while self._waiting:
                self._number += 1
                await self._carry_out(_Batch(self._number, self._take()))
            if self._closing:
                self._something.set()

    def _take(self) -> list[_Append]:
        """The next appends in order, up to the size of a batch."""
        taken: list[_Append] = []
        records = 0
        while self._waiting and records < _BATCH_RECORDS:
            each = self._waiting.popleft()
            records += len(each.entries)
            taken.append(each)
        return taken

    async def _carry_out(self, batch: _Batch) -> None:
        """Write a batch, over as many connections as that takes."""
        pause = _FIRST_PAUSE
        was_sent = False
        while True:
            try:
                if self._line is None:
                    newest = await self._call()
                    if was_sent and newest == batch.number:
                        self._end(batch, await self._leases(batch))
                        return
                batch.sent = time.perf_counter()
                await self._learn_ends(batch)
                was_sent = True
                held = await self._send(batch)
            except LOST as problem:
                self._log_failure("store_lost", problem)
                self._hang_up()
            except PostgresError as problem:
                self._log_failure("append_failed", problem)
                state = str(getattr(problem, "sqlstate", ""))
                if state == _READ_ONLY:
                    self._hang_up()  # a standby; the next connection may find the server that takes writes
                if not state.startswith(_AGAIN):
                    self._fail(batch, ErrorCode.KAFKA_STORAGE_ERROR)
                    return
            except Exception as problem:
                # A bug. A new connection settles the batch, so that no append waits for ever.
                self._logger.error("append_failed", problem=repr(problem), exc_info=problem)
                self._hang_up()
            else:
                if held is not None:
                    self._end(batch, held)
                    return
                self._hang_up()  # another process uses this writer's id; a new session settles it
            await asyncio.sleep(pause)
            pause = min(2 * pause, _LONGEST_PAUSE)

    async def _call(self) -> int:
        """Connect and begin a session. Returns the number of the newest batch that was written."""
        connection = await self.database.connect()
        is_first = self._session == 0
        self._session += 1
        try:
            session, newest = await connection.fetchrow(
                statements.SESSION, self._writer, self._session, timeout=APPEND_SECONDS
            )
        except BaseException:
            connection.terminate()
            raise
        self._session = max(self._session, session)
        self._line = _Line(connection, session)
        if not is_first:
            self.observer.reconnected()
        self._throttle.recovered("store_lost", "store_found_again")
        return int(newest)

    def _hang_up(self) -> None:
        line, self._line = self._line, None
        if line is not None:
            line.connection.terminate()

    async def _learn_ends(self, batch: _Batch) -> None:
        """Read the end of each partition that has had no append in this epoch."""
        assert self._line is not None, "there is a connection"
        unknown = sorted(
            {
                each.partition
                for each in batch.appends
                if (led := self._led.get(each.partition)) is None or led.epoch < each.epoch or not led.next_position
            }
        )
        if not unknown:
            return
        found = await self._line.connection.fetch(statements.ENDS, *columns(unknown), timeout=APPEND_SECONDS)
        ends = {TopicPartition(topic, partition): end for topic, partition, end in found}
        for each in batch.appends:
            if each.partition in unknown:
                self._lead(each.partition, each.epoch, ends.get(each.partition, 0) + 1)

    def _lead(self, partition: TopicPartition, epoch: int, next_position: int) -> None:
        led = self._led.get(partition)
        if led is None or led.epoch < epoch:
            self._led[partition] = _Leader(epoch, next_position, readers=0 if led is None else led.readers)
        else:
            led.next_position = next_position

    async def _send(self, batch: _Batch) -> _Leases | None:
        """Send a batch. Returns the lease of each partition, or none if the session has been replaced."""
        line = self._line
        assert line is not None, "there is a connection"
        rows: list[tuple[str, int, int, int, int, int, str | None, str | None]] = []
        ends: dict[TopicPartition, int] = {}
        for each in batch.appends:
            led = self._led[each.partition]
            if each.epoch != led.epoch:
                continue  # an older epoch: the lease refuses it at any position
            position = ends.get(each.partition, led.next_position)
            for entry in each.entries:
                crc = checksum(each.partition, 0, entry)
                rows.append((*each.partition, position, each.epoch, entry.producer_id, crc, entry.key, entry.value))
                position += 1
            ends[each.partition] = position
        partitions = sorted({each.partition for each in batch.appends})
        values = list(zip(*rows, strict=True)) if rows else [()] * 8
        found = await line.connection.fetch(
            statements.APPEND,
            self._writer,
            line.session,
            batch.number,
            *columns(partitions),
            self.node_id,
            *values,
            timeout=APPEND_SECONDS,
        )
        held = {TopicPartition(topic, partition): (epoch, node_id) for topic, partition, epoch, node_id in found}
        return held if held.pop(TopicPartition("", -1))[0] else None

    async def _leases(self, batch: _Batch) -> _Leases:
        """The current leases. A lease that still has the epoch of an append had it all the time."""
        assert self._line is not None, "there is a connection"
        partitions = sorted({each.partition for each in batch.appends})
        found = await self._line.connection.fetch(statements.LEASES, *columns(partitions), timeout=APPEND_SECONDS)
        return {TopicPartition(topic, partition): (epoch, node_id) for topic, partition, epoch, node_id in found}

    def _end(self, batch: _Batch, held: _Leases) -> None:
        """Complete the appends of a batch in order, and advance the end of each partition."""
        self._throttle.recovered("append_failed", "appends_stored_again")
        self._report_together(partial(self._report, batch, held))

    def _report(self, batch: _Batch, held: _Leases) -> None:
        now = time.perf_counter()
        together = 0
        for each in batch.appends:
            if each.is_bad:
                self.observer.failed(ErrorCode.UNKNOWN_SERVER_ERROR)
                self._complete(each, ErrorCode.UNKNOWN_SERVER_ERROR)
            elif held.get(each.partition) != (each.epoch, self.node_id):
                self.observer.fenced(each.partition)
                self._complete(each, ErrorCode.NOT_LEADER_OR_FOLLOWER)
            else:
                led = self._led[each.partition]
                led.next_position += len(each.entries)
                led.records += len(each.entries)
                if each.entries:
                    together += 1
                    self.observer.appended(len(each.entries), (now - each.began) * 1_000)
                self._complete(each, ErrorCode.NONE)
                if led.records >= led.compact_at:
                    self._compact(each.partition, led)
        if together:
            self.observer.batch(together, (now - batch.sent) * 1_000)

    def _fail(self, batch: _Batch, error: ErrorCode) -> None:
        """Complete the appends of a batch that was not written."""
        for each in batch.appends:
            if each.entries:
                self.observer.failed(error)
            self._led[each.partition].next_position = 0
            self._complete(each, error)

    def _complete(self, append: _Append, error: ErrorCode) -> None:
        try:
            append.stored(error)
        except Exception as problem:
            # The other appends are completed all the same.
            self._logger.error("append_end_raised", problem=repr(problem), exc_info=problem)

    # --- reading

    def read(self, partition: TopicPartition, epoch: int, piece: Piece) -> None:
        began = time.perf_counter()

        def begin(error: ErrorCode) -> None:
            if error is ErrorCode.NONE:
                self._spawn(self._read(partition, piece, began))

        # After all earlier appends, so that each is either read or refused.
        self.append(partition, epoch, (), begin)

    async def _read(self, partition: TopicPartition, piece: Piece, began: float) -> None:
        led = self._led[partition]
        led.readers += 1
        try:
            async with self._reading:
                await self._read_pieces(partition, piece, began, led)
        except Unreadable as problem:
            self._logger.error("partition_damaged", partition=partition, problem=str(problem))
            self.observer.damaged(partition, str(problem))
        finally:
            led.readers -= 1

    async def _read_pieces(self, partition: TopicPartition, piece: Piece, began: float, led: _Leader) -> None:
        after = records = 0
        pause = _FIRST_PAUSE
        alive: int | None = None
        while self._led[partition] is led:
            try:
                async with self.database.acquire() as connection:
                    if alive is None:
                        alive = await connection.fetchval(statements.ALIVE, *partition) or 0
                    rows: list[Row] = [
                        tuple(row) for row in await connection.fetch(statements.READ, *partition, after, PIECE_RECORDS)
                    ]
            except (*LOST, PostgresError) as problem:
                self._log_failure("read_failed", problem)
                await asyncio.sleep(pause)
                pause = min(2 * pause, _LONGEST_PAUSE)
                continue
            self._throttle.recovered("read_failed", "read_again")
            check(partition, [(0, *row[1:]) for row in rows])
            found = decode(partition.topic, ((producer_id, key, value) for _, producer_id, _, key, value in rows))
            after = rows[-1][0] if rows else after
            records += len(found)
            is_last = len(rows) < PIECE_RECORDS
            if is_last:
                led.records = records
                led.compact_at = max(_COMPACT_FROM, 2 * alive)
                self.observer.read(partition, records, (time.perf_counter() - began) * 1_000)
            piece(found, is_last)
            if is_last:
                return
            # Heartbeats come first.
            await asyncio.sleep(0)

    # --- compaction

    def _compact(self, partition: TopicPartition, led: _Leader) -> None:
        """Start a compaction, unless the partition is being read: a reader of a record must see its tombstone, too."""
        if partition not in self._compacting and not led.readers and not self._closing:
            self._compacting.add(partition)
            self._spawn(self._compact_now(partition, led))

    async def _compact_now(self, partition: TopicPartition, led: _Leader) -> None:
        try:
            async with self.database.acquire() as connection:
                records = await connection.fetchval(statements.COUNT, *partition)
                has_transactions = await connection.fetchval(statements.HAS_TRANSACTIONS, *partition)
                query = statements.DOOMED_WITH_TRANSACTIONS if has_transactions else statements.DOOMED
                doomed = [position for (position,) in await connection.fetch(query, *partition)]
                for begin in range(0, len(doomed), _SLICE_RECORDS):
                    some = doomed[begin : begin + _SLICE_RECORDS]
                    leads = (led.epoch, self.node_id)
                    if led.readers or not await connection.fetchval(statements.REMOVE, *partition, *leads, some):
                        return
                    led.records -= len(some)
                    self.observer.compacted(partition, len(some))
                alive = max(0, records - len(doomed))
                await connection.execute(statements.LEFT, *partition, alive)
            led.compact_at = max(_COMPACT_FROM, 2 * alive)
        except (*LOST, PostgresError) as problem:
            self._log_failure("compaction_failed", problem)
        finally:
            self._compacting.discard(partition)

    # --- the rest

    def _spawn(self, work: Any) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _log_failure(self, what: str, problem: BaseException) -> None:
        self._throttle.failed(what, problem, level="warning")


def columns(partitions: Iterable[TopicPartition]) -> tuple[list[str], list[int]]:
    """Topics and partition numbers as two arrays."""
    pairs = list(partitions)
    return [topic for topic, _ in pairs], [partition for _, partition in pairs]
