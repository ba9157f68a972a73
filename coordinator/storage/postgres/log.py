"""The logs in PostgreSQL, shared by several nodes. ``writer.py`` appends, and ``compaction.py`` removes."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Coroutine
from typing import Any, Final

import structlog

from rejoin.coordinator.storage.base import Observer, OnStored, Piece, Together, one_by_one
from rejoin.coordinator.storage.codec import Row, Unreadable, check, decode, encode
from rejoin.coordinator.storage.log_throttle import LogThrottle
from rejoin.coordinator.storage.postgres import statements
from rejoin.coordinator.storage.postgres.compaction import PostgresCompactor
from rejoin.coordinator.storage.postgres.database import LOST, Database, PostgresError
from rejoin.coordinator.storage.postgres.writer import (
    COMPACT_FROM,
    FIRST_PAUSE,
    LONGEST_PAUSE,
    Leader,
    PendingAppend,
    Writer,
)
from rejoin.coordinator.storage.remedy import of_database
from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.records.keyed import Record
from rejoin.protocol.types import TopicPartition

PIECE_RECORDS: Final = 1_000
_READERS: Final = 2


class PostgresLog:
    """The logs of one node. Epochs come from the table ``leases``, which the lease store writes."""

    def __init__(self, database: Database, node_id: int, observer: Observer | None = None) -> None:
        self.database = database
        self.node_id = node_id
        self.observer = observer or Observer()
        self.compactor = PostgresCompactor(database, node_id, self.observer, self.spawn)
        self.writer = Writer(database, node_id, self.observer, self.compactor.compact)
        self._tasks: set[asyncio.Task[None]] = set()
        self._reading = asyncio.Semaphore(_READERS)
        self._logger: Any = structlog.get_logger("coordinator").bind()
        self._throttle = LogThrottle(self._logger)

    async def start(self, together: Together = one_by_one) -> None:
        """Start the log, and the database if needed. Raises :class:`StoreProblem` if the database cannot be used."""
        await self.database.start()
        async with self.database.acquire() as connection:
            await connection.execute(statements.FORGET_WRITERS)
        self.writer.start(together)

    async def close(self, patience_s: float = 5.0) -> None:
        """Write the waiting appends, for at most ``patience_s``. Those that are left get no completion.

        The database stays open: others may use it.
        """
        self.compactor.stop()
        await self.writer.close(patience_s)
        for task in list(self._tasks):
            task.cancel()
        if self._tasks:
            await asyncio.wait(list(self._tasks))

    def spawn(self, work: Coroutine[Any, Any, None]) -> None:
        """Do something beside the appends, until the log is closed."""
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def append(self, partition: TopicPartition, epoch: int, records: tuple[Record, ...], stored: OnStored) -> None:
        append = PendingAppend(partition, epoch, (), stored, time.perf_counter())
        try:
            append.entries = [encode(record) for record in records]
        except (TypeError, ValueError) as problem:
            self._logger.error("record_not_storable", partition=partition, problem=str(problem))
            append.is_bad = True
        self.writer.append(append)

    # --- reading

    def read(self, partition: TopicPartition, epoch: int, piece: Piece) -> None:
        began = time.perf_counter()

        def begin(error: ErrorCode) -> None:
            if error is ErrorCode.NONE:
                self.spawn(self._read(partition, piece, began))
            elif error is not ErrorCode.NOT_LEADER_OR_FOLLOWER:
                # The store does not work now. The partition is loading until it is read, so this goes on.
                self.spawn(self._read_later(partition, epoch, piece))

        # After all earlier appends, so that each is either read or refused.
        self.append(partition, epoch, (), begin)

    async def _read_later(self, partition: TopicPartition, epoch: int, piece: Piece) -> None:
        await asyncio.sleep(LONGEST_PAUSE)
        self.read(partition, epoch, piece)

    async def _read(self, partition: TopicPartition, piece: Piece, began: float) -> None:
        led = self.writer.leaders[partition]
        led.readers += 1
        try:
            async with self._reading:
                await self._read_pieces(partition, piece, began, led)
        except Unreadable as problem:
            self._logger.error(
                "partition_damaged",
                partition=partition,
                problem=str(problem),
                advice=of_database(self.database.shown).for_offsets_partition(),
            )
            self.observer.damaged(partition, str(problem))
        finally:
            led.readers -= 1

    async def _read_pieces(self, partition: TopicPartition, piece: Piece, began: float, led: Leader) -> None:
        after = records = 0
        pause = FIRST_PAUSE
        alive: int | None = None
        while self.writer.leaders[partition] is led:
            try:
                async with self.database.acquire() as connection:
                    if alive is None:
                        alive = await connection.fetchval(statements.ALIVE, *partition) or 0
                    rows: list[Row] = [
                        tuple(row) for row in await connection.fetch(statements.READ, *partition, after, PIECE_RECORDS)
                    ]
            except (*LOST, PostgresError) as problem:
                self._throttle.failed("read_failed", problem, level="warning")
                await asyncio.sleep(pause)
                pause = min(2 * pause, LONGEST_PAUSE)
                continue
            self._throttle.recovered("read_failed", "read_again")
            check(partition, [(0, *row[1:]) for row in rows])
            found = decode(partition.topic, ((producer_id, key, value) for _, producer_id, _, key, value in rows))
            after = rows[-1][0] if rows else after
            records += len(found)
            is_last = len(rows) < PIECE_RECORDS
            if is_last:
                led.records = records
                led.compact_at = max(COMPACT_FROM, 2 * alive)
                self.observer.read(partition, records, (time.perf_counter() - began) * 1_000)
            piece(found, is_last)
            if is_last:
                return
            # Heartbeats come first.
            await asyncio.sleep(0)
