"""Consume, transform, produce: results are written to another topic before offsets are committed.

Exactly once: the records written for a poll and the offsets of that poll are one transaction; with a commit interval
it takes in several polls. At least once: the records are stored first; after a crash in between they are written again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from rejoin.client.config import CLOSE_TIMEOUT_MS
from rejoin.client.core.errors import CodedError, KafkaError, KafkaTimeoutError
from rejoin.client.core.fetch.consumer_record import ConsumerRecord
from rejoin.client.core.inputs import GroupMetadata, RecordRange
from rejoin.client.producer import Producer
from rejoin.client.producer_driver import RecordMetadata
from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.types import TopicPartition

SOURCE_HEADER: Final = "source"
"""Where a record comes from, as ``orders-3@17``."""

TRANSACTION_TIMEOUT_MS: Final = 10_000
"""Kafka: StreamsConfig, EOS_DEFAULT_TRANSACTION_TIMEOUT. Offsets of a dead process stay pending for so long."""

_BY_A_NEW_TRANSACTION: Final = (
    ErrorCode.INVALID_PRODUCER_EPOCH,
    ErrorCode.INVALID_PRODUCER_ID_MAPPING,
    ErrorCode.UNKNOWN_PRODUCER_ID,
    ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
    ErrorCode.TRANSACTION_ABORTABLE,
)


@dataclass(frozen=True, slots=True)
class Transform:
    """Where the records of a process go. ``settings`` are those of its producers.

    A transaction ends when it is ``commit_interval_ms`` old, before partitions are revoked and when its process stops;
    0: it ends before the next poll.
    """

    topic: str
    exactly_once: bool
    transactional_ids: tuple[str, ...]
    settings: Mapping[str, Any]
    commit_interval_ms: float = 0.0


def is_over_after_abort(error: KafkaError) -> bool:
    """Whether a new transaction may succeed where the aborted one had this error."""
    return error.retriable or (isinstance(error, CodedError) and error.error in _BY_A_NEW_TRANSACTION)


class Transformer:
    """The producer of one consumer. After an error, :meth:`abort` says which records are to be read again."""

    def __init__(self, transform: Transform, index: int, client_id: str, is_stopping: Callable[[], bool]) -> None:
        self.exactly_once = transform.exactly_once
        self._topic = transform.topic
        self._interval = transform.commit_interval_ms / 1_000
        settings = {**transform.settings, "client_id": client_id}
        if transform.exactly_once:
            settings["transactional_id"] = transform.transactional_ids[index]
        self._producer = Producer(**settings)
        self._is_stopping = is_stopping
        self._sent: list[asyncio.Future[RecordMetadata]] = []
        self._written: list[RecordRange] = []
        self._began: float | None = None

    @property
    def is_open(self) -> bool:
        """Whether there are records that :meth:`end` has not stored."""
        return self._began is not None

    @property
    def is_due(self) -> bool:
        """Whether the open transaction should end now."""
        return self._began is not None and asyncio.get_running_loop().time() >= self._began + self._interval

    async def start(self) -> None:
        """Fence the last process with the transactional id, which aborts its open transaction."""
        await self._producer.start()
        if self.exactly_once:
            await self._until_done(self._producer.init_transactions)

    async def begin(self) -> None:
        """Begin with the records of a poll, unless a transaction is open, which takes them in."""
        if self._began is None:
            if self.exactly_once:
                await self._producer.begin_transaction()
            self._began = asyncio.get_running_loop().time()

    async def write(self, taken: RecordRange, records: Iterable[ConsumerRecord]) -> None:
        """Write a record for each of these: the same key and value, and where it comes from."""
        for record in records:
            source = f"{record.topic}-{record.partition}@{record.offset}"
            headers = [*record.headers, (SOURCE_HEADER, source.encode())]
            self._sent.append(await self._producer.send(self._topic, record.value, key=record.key, headers=headers))
        self._written.append(taken)

    async def end(self, group: GroupMetadata) -> None:
        """Have all records stored, and with transactions commit them together with the offsets behind them."""
        if self.exactly_once:
            offsets = {TopicPartition(topic, partition): end for topic, partition, _, end in self._written}
            await self._producer.send_offsets_to_transaction(offsets, group)
            await self._until_done(self._producer.commit_transaction)
        else:
            await self._producer.flush()
            await asyncio.gather(*self._sent)
        self._forget()

    async def abort(self) -> list[RecordRange]:
        """Forget what is open; these records are to be read again. Raises what the producer cannot survive."""
        written = self._forget()
        if self.exactly_once:
            await self._until_done(self._producer.abort_transaction)
        return written

    def _forget(self) -> list[RecordRange]:
        written = self._written
        self._sent, self._written, self._began = [], [], None
        return written

    async def close(self) -> None:
        """Abort the open transaction."""
        await self._producer.close(CLOSE_TIMEOUT_MS)

    async def _until_done(self, call: Callable[[], Awaitable[None]]) -> None:
        """Wait for as long as it takes: the outcome decides where to go on."""
        while True:
            try:
                return await call()
            except KafkaTimeoutError:
                if self._is_stopping():
                    raise
