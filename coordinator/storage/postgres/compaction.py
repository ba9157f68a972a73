"""Compaction in PostgreSQL: the leader of a partition removes the records that a later one has replaced."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any, Final

import structlog

from rejoin.coordinator.storage.base import Observer
from rejoin.coordinator.storage.log_throttle import LogThrottle
from rejoin.coordinator.storage.postgres import statements
from rejoin.coordinator.storage.postgres.database import LOST, Database, PostgresError
from rejoin.coordinator.storage.postgres.writer import COMPACT_FROM, Leader
from rejoin.protocol.types import TopicPartition

_SLICE_RECORDS: Final = 1_000


class PostgresCompactor:
    """Compacts the partitions of one node beside its appends, one slice of records after the other."""

    def __init__(
        self,
        database: Database,
        node_id: int,
        observer: Observer,
        spawn: Callable[[Coroutine[Any, Any, None]], None],
    ) -> None:
        self.compacting: set[TopicPartition] = set()
        self._database = database
        self._node_id = node_id
        self._observer = observer
        self._spawn = spawn
        self._closing = False
        self._throttle = LogThrottle(structlog.get_logger("coordinator").bind())

    def stop(self) -> None:
        """Begin nothing new."""
        self._closing = True

    def compact(self, partition: TopicPartition, led: Leader) -> None:
        """Start a compaction, unless the partition is being read: a reader of a record must see its tombstone, too."""
        if partition not in self.compacting and not led.readers and not self._closing:
            self.compacting.add(partition)
            self._spawn(self._compact(partition, led))

    async def _compact(self, partition: TopicPartition, led: Leader) -> None:
        try:
            async with self._database.acquire() as connection:
                records = await connection.fetchval(statements.COUNT, *partition)
                has_transactions = await connection.fetchval(statements.HAS_TRANSACTIONS, *partition)
                query = statements.DOOMED_WITH_TRANSACTIONS if has_transactions else statements.DOOMED
                doomed = [position for (position,) in await connection.fetch(query, *partition)]
                for begin in range(0, len(doomed), _SLICE_RECORDS):
                    some = doomed[begin : begin + _SLICE_RECORDS]
                    leads = (led.epoch, self._node_id)
                    if led.readers or not await connection.fetchval(statements.REMOVE, *partition, *leads, some):
                        return
                    led.records -= len(some)
                    self._observer.compacted(partition, len(some))
                alive = max(0, records - len(doomed))
                await connection.execute(statements.LEFT, *partition, alive)
            led.compact_at = max(COMPACT_FROM, 2 * alive)
        except (*LOST, PostgresError) as problem:
            self._throttle.failed("compaction_failed", problem, level="warning")
        finally:
            self.compacting.discard(partition)
