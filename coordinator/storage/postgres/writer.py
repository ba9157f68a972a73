"""Appends to PostgreSQL: the one writer of a node, and the connection that only it uses.

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
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, TypeAlias

import structlog

from rejoin.coordinator.storage.base import Observer, OnStored, Together, one_by_one
from rejoin.coordinator.storage.codec import Entry, checksum
from rejoin.coordinator.storage.log_throttle import LogThrottle
from rejoin.coordinator.storage.postgres import statements
from rejoin.coordinator.storage.postgres.data_entries import DataEntries, batch_columns, rewrite
from rejoin.coordinator.storage.postgres.database import LOST, Connection, Database, PostgresError
from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.types import TopicPartition

APPEND_SECONDS: Final = 15.0
COMPACT_FROM: Final = 1_000
"""A partition with fewer records is not worth a compaction."""
FIRST_PAUSE: Final = 0.05
LONGEST_PAUSE: Final = 1.0
_BATCH_RECORDS: Final = 5_000
_BATCH_BYTES: Final = 8 * 2**20
_AGAIN: Final = ("40", "53300", "55P03", "57014")
"""Prefixes of SQLSTATE: nothing was written, and a retry may succeed."""
_READ_ONLY: Final = "25006"
_RECORD_COLUMNS: Final = 8

_Leases: TypeAlias = dict[TopicPartition, tuple[int, int]]
"""Epoch and node of each partition's lease."""


@dataclass(slots=True)
class PendingAppend:
    """An append that waits or is in flight. ``data`` is for a data partition that is leased by ``partition``."""

    partition: TopicPartition
    epoch: int
    entries: Sequence[Entry]
    stored: OnStored
    began: float
    is_bad: bool = False
    data: DataEntries | None = None

    @property
    def count(self) -> int:
        """The number of entries."""
        return len(self.entries if self.data is None else self.data.entries)


@dataclass(slots=True)
class _Batch:
    """Appends that are sent together, with the number of the batch."""

    number: int
    appends: list[PendingAppend]
    sent: float = 0.0

    @property
    def of_records(self) -> Iterator[PendingAppend]:
        """The appends of records, which have positions."""
        return (each for each in self.appends if each.data is None)


@dataclass(slots=True)
class Leader:
    """The state of a partition in one epoch. At ``next_position`` 0 the end of the log must be read first."""

    epoch: int
    next_position: int
    records: int = 0
    compact_at: int = COMPACT_FROM
    readers: int = 0


@dataclass(slots=True)
class _Line:
    """The connection for appends. Nothing else uses it."""

    connection: Connection
    session: int


class Writer:
    """Writes the appends of one node in order. ``leaders`` has the state of each partition with an append."""

    def __init__(
        self, database: Database, node_id: int, observer: Observer, grown: Callable[[TopicPartition, Leader], None]
    ) -> None:
        """``grown`` is called with a partition that has so many records that it should be compacted."""
        self.leaders: dict[TopicPartition, Leader] = {}
        self._database = database
        self._node_id = node_id
        self._observer = observer
        self._grown = grown
        self._writer = uuid.uuid4()
        self._session = 0
        self._number = 0
        self._line: _Line | None = None
        self._waiting: deque[PendingAppend] = deque()
        self._something = asyncio.Event()
        self._closing = False
        self._writing: asyncio.Task[None] | None = None
        self._report_together: Together = one_by_one
        self._logger: Any = structlog.get_logger("coordinator").bind()
        self._throttle = LogThrottle(self._logger)

    def start(self, together: Together) -> None:
        """Begin to write. The ends of a batch are reported through ``together``."""
        self._report_together = together
        self._writing = asyncio.create_task(self._write_on(), name="offsets log")

    async def close(self, patience_s: float) -> None:
        """Write the waiting appends, for at most ``patience_s``. Those that are left get no completion."""
        self._closing = True
        self._something.set()
        if self._writing is not None:
            await asyncio.wait((self._writing,), timeout=patience_s)
            self._writing.cancel()
            await asyncio.wait((self._writing,))
            self._writing = None
        self._hang_up()

    def append(self, append: PendingAppend) -> None:
        """Write it behind all appends before."""
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

    def _take(self) -> list[PendingAppend]:
        """The next appends in order, up to the size of a batch."""
        taken: list[PendingAppend] = []
        records = size = 0
        while self._waiting and records < _BATCH_RECORDS and size < _BATCH_BYTES:
            each = self._waiting.popleft()
            records += each.count
            size += 0 if each.data is None else each.data.size
            taken.append(each)
        return taken

    async def _carry_out(self, batch: _Batch) -> None:
        """Write a batch, over as many connections as that takes."""
        pause = FIRST_PAUSE
        is_unknown = False  # whether a statement that was sent has written the batch
        while True:
            is_sending = False
            try:
                if self._line is None:
                    newest = await self._call()
                    if is_unknown and newest == batch.number:
                        self._end(batch, await self._leases(batch))
                        return
                    is_unknown = False
                batch.sent = time.perf_counter()
                await self._learn_ends(batch)
                is_unknown = is_sending = True
                held = await self._send(batch)
            except LOST as problem:
                self._throttle.failed("store_lost", problem, level="warning")
                self._hang_up()
            except PostgresError as problem:
                self._throttle.failed("append_failed", problem, level="warning")
                state = str(getattr(problem, "sqlstate", ""))
                is_unknown = is_unknown and not is_sending  # an answer to the statement itself: it wrote nothing
                if is_unknown or state == _READ_ONLY:
                    self._hang_up()  # a standby; the next connection may find the server that takes writes
                if not is_unknown and not state.startswith(_AGAIN):
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
            pause = min(2 * pause, LONGEST_PAUSE)

    async def _call(self) -> int:
        """Connect and begin a session. Returns the number of the newest batch that was written."""
        connection = await self._database.connect()
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
            self._observer.reconnected()
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
                for each in batch.of_records
                if (led := self.leaders.get(each.partition)) is None or led.epoch < each.epoch or not led.next_position
            }
        )
        if not unknown:
            return
        found = await self._line.connection.fetch(statements.ENDS, *columns(unknown), timeout=APPEND_SECONDS)
        ends = {TopicPartition(topic, partition): end for topic, partition, end in found}
        for each in batch.of_records:
            if each.partition in unknown:
                self._lead(each.partition, each.epoch, ends.get(each.partition, 0) + 1)

    def _lead(self, partition: TopicPartition, epoch: int, next_position: int) -> None:
        led = self.leaders.get(partition)
        if led is None or led.epoch < epoch:
            self.leaders[partition] = Leader(epoch, next_position, readers=0 if led is None else led.readers)
        else:
            led.next_position = next_position

    async def _send(self, batch: _Batch) -> _Leases | None:
        """Send a batch. Returns the lease of each partition, or none if the session has been replaced."""
        line = self._line
        assert line is not None, "there is a connection"
        rewrites = [
            (each, each.data.partition, entry)
            for each in batch.appends
            if each.data is not None
            for entry in each.data.rewrites()
        ]
        if not rewrites:
            return await self._write(line, batch)
        # One transaction, in which the leases stay locked, and the number of the batch counts for all of it.
        async with line.connection.transaction():
            held = await self._write(line, batch)
            for each, partition, entry in rewrites:
                if held is not None and self._is_held(each, held):
                    await rewrite(line.connection, partition, entry)
        return held

    async def _write(self, line: _Line, batch: _Batch) -> _Leases | None:
        """Write records and batches, those of data partitions too."""
        data = [(each.data, each.partition, each.epoch) for each in batch.appends if each.data is not None]
        found = await line.connection.fetch(
            statements.APPEND_WITH_DATA if data else statements.APPEND,
            self._writer,
            line.session,
            batch.number,
            *columns(sorted({each.partition for each in batch.appends})),
            self._node_id,
            *self._record_columns(batch),
            *(batch_columns(data) if data else ()),
            timeout=APPEND_SECONDS,
        )
        held = {TopicPartition(topic, partition): (epoch, node_id) for topic, partition, epoch, node_id in found}
        return held if held.pop(TopicPartition("", -1))[0] else None

    def _record_columns(self, batch: _Batch) -> list[Sequence[Any]]:
        """The values of ``APPEND`` for records, with their positions."""
        rows: list[tuple[str, int, int, int, int, int, str | None, str | None]] = []
        ends: dict[TopicPartition, int] = {}
        for each in batch.of_records:
            led = self.leaders[each.partition]
            if each.epoch != led.epoch:
                continue  # an older epoch: the lease refuses it at any position
            position = ends.get(each.partition, led.next_position)
            for entry in each.entries:
                crc = checksum(each.partition, 0, entry)
                rows.append((*each.partition, position, each.epoch, entry.producer_id, crc, entry.key, entry.value))
                position += 1
            ends[each.partition] = position
        return list(zip(*rows, strict=True)) if rows else [()] * _RECORD_COLUMNS

    def _is_held(self, append: PendingAppend, held: _Leases) -> bool:
        """Whether the lease of an append still had its node and epoch."""
        return held.get(append.partition) == (append.epoch, self._node_id)

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
                self._observer.failed(ErrorCode.UNKNOWN_SERVER_ERROR)
                self._complete(each, ErrorCode.UNKNOWN_SERVER_ERROR)
            elif not self._is_held(each, held):
                self._observer.fenced(each.partition)
                self._complete(each, ErrorCode.NOT_LEADER_OR_FOLLOWER)
            else:
                if each.count:
                    together += 1
                    self._observer.appended(each.count, (now - each.began) * 1_000)
                self._written(each)
        if together:
            self._observer.batch(together, (now - batch.sent) * 1_000)

    def _written(self, append: PendingAppend) -> None:
        """Complete an append that is durable."""
        if append.data is not None:
            self._complete(append, ErrorCode.NONE)
            return
        led = self.leaders[append.partition]
        led.next_position += len(append.entries)
        led.records += len(append.entries)
        self._complete(append, ErrorCode.NONE)
        if led.records >= led.compact_at:
            self._grown(append.partition, led)

    def _fail(self, batch: _Batch, error: ErrorCode) -> None:
        """Complete the appends of a batch that was not written."""
        for each in batch.appends:
            if each.count:
                self._observer.failed(error)
            # There is none yet where not even the end of the log could be read.
            led = self.leaders.get(each.partition)
            if led is not None:
                led.next_position = 0
            self._complete(each, error)

    def _complete(self, append: PendingAppend, error: ErrorCode) -> None:
        try:
            append.stored(error)
        except Exception as problem:
            # The other appends are completed all the same.
            self._logger.error("append_end_raised", problem=repr(problem), exc_info=problem)


def columns(partitions: Iterable[TopicPartition]) -> tuple[list[str], list[int]]:
    """Topics and partition numbers as two arrays."""
    pairs = list(partitions)
    return [topic for topic, _ in pairs], [partition for _, partition in pairs]
