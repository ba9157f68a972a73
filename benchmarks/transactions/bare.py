"""The rows that a node stores for a transaction, made as it makes them and written by a bare group commit."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

from benchmarks.commits import bare_sqlite_rows
from benchmarks.transactions.producers import GROUP, START, TOPIC, batch
from rejoin.coordinator.core.transactions.log import transaction_batch
from rejoin.coordinator.core.transactions.metadata import TransactionState
from rejoin.coordinator.storage.codec import encode
from rejoin.protocol.records.consumer_offsets import OFFSETS_TOPIC, OffsetCommitValue, offset_record
from rejoin.protocol.records.keyed import Record, TransactionMarker
from rejoin.protocol.records.transaction_state import TransactionLogPartitions, TransactionLogValue
from rejoin.protocol.unvalidated import unvalidated
from rejoin.protocol.wire.control_batches import marker_batch
from rejoin.protocol.wire.records import ControlRecordType, EndTransactionMarker

_CHECKSUM: Final = 3_405_691_582
_FIRST_EPOCHS: Final = 32_000
"""A producer has so many epochs; the ones after that are written like the first ones."""


class _BareProducer:
    """Writes the rows of one producer's transactions."""

    def __init__(self, number: int, write: Callable[[tuple[Any, ...]], Awaitable[None]]) -> None:
        self._transactional_id = f"transformer-{number}"
        self._partition = number
        self._producer_id = 1_000 + number
        self._offset = 0
        self._write = write

    async def transact(self, count: int) -> None:
        """Open, record, open with the offsets, offset, decided, both markers, complete."""
        epoch = count % _FIRST_EPOCHS
        await self._state(TransactionState.ONGOING, epoch, TOPIC)
        await self._batch(batch(self._producer_id, epoch))
        await self._state(TransactionState.ONGOING, epoch, TOPIC, OFFSETS_TOPIC)
        value = OffsetCommitValue(offset=count, metadata="", commit_timestamp=START)
        await self._record(offset_record(GROUP, TOPIC, 0, value))
        await self._state(TransactionState.PREPARE_COMMIT, epoch + 1, TOPIC, OFFSETS_TOPIC)
        marker = EndTransactionMarker(ControlRecordType.COMMIT, 0)
        data, _ = marker_batch(self._producer_id, epoch + 1, marker, count, 0, START)
        ended = TransactionMarker(producer_id=self._producer_id, producer_epoch=epoch + 1, committed=True)
        await asyncio.gather(self._batch(data), self._record(ended))
        await self._state(TransactionState.COMPLETE_COMMIT, epoch + 1)

    async def _state(self, state: TransactionState, epoch: int, *topics: str) -> None:
        """The record of the transactional id."""
        partitions = tuple([unvalidated(TransactionLogPartitions, topic=topic, partition_ids=(0,)) for topic in topics])
        value = unvalidated(
            TransactionLogValue,
            producer_id=self._producer_id,
            previous_producer_id=-1,
            next_producer_id=-1,
            producer_epoch=epoch,
            transaction_timeout_ms=60_000,
            transaction_status=state,
            transaction_partitions=partitions,
            transaction_last_update_timestamp_ms=START,
            transaction_start_timestamp_ms=START,
            client_transaction_version=2,
        )
        self._offset += 1
        await self._batch(transaction_batch(self._transactional_id, value, 1, self._offset, 0, START)[0])

    async def _batch(self, data: bytes) -> None:
        await self._write((self._partition, 0, -1, _CHECKSUM, None, data))

    async def _record(self, record: Record) -> None:
        entry = encode(record)
        await self._write((self._partition, 0, self._producer_id, _CHECKSUM, entry.key, entry.value))


@asynccontextmanager
async def bare_transactions(folder: Path, producers: int) -> AsyncIterator[Callable[[int, int], Awaitable[None]]]:
    """Write the rows of one transaction of a producer, by its number; how many it has had."""
    async with bare_sqlite_rows(folder) as write:
        bare = [_BareProducer(number, write) for number in range(producers)]

        async def transact(number: int, count: int) -> None:
            await bare[number].transact(count)

        yield transact
