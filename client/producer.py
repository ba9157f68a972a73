"""The Python API: a producer as the clients people know have it.

    async with Producer(bootstrap_servers="127.0.0.1:9092") as producer:
        sent = await producer.send("orders", b"value", key=b"key")    # it is in a batch now
        metadata = await sent                                         # it is stored now
        print(metadata.partition, metadata.offset)

Settings are Kafka's, with underscores for dots (:class:`client.producer_config.ProducerConfig`). A producer belongs to
one event loop, and sends while the caller's code awaits.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import asynccontextmanager
from functools import partial
from types import MappingProxyType, TracebackType
from typing import Any, Final, Self, TypeAlias

from rejoin.client.core.errors import IllegalStateError, ProducerFencedError
from rejoin.client.core.inputs import Elapsed, GroupMetadata, OffsetAndMetadata
from rejoin.client.core.producer.core import CLOSED, ProducerCore
from rejoin.client.core.producer.inputs import Flushed, Produced, ProducerClosed, TransactionCall, TransactionCalled
from rejoin.client.producer_config import checked_producer_config
from rejoin.client.producer_driver import ProducerDriver, RecordMetadata
from rejoin.client.transports.addresses import open_transport
from rejoin.client.transports.base import Transport
from rejoin.protocol.types import TopicPartition
from rejoin.protocol.wire.record_encoder import Headers

Serializer: TypeAlias = Callable[[Any], "bytes | None"]
"""Makes the bytes of a key or a value."""

RecordHeaders: TypeAlias = "Mapping[str, bytes | str | None] | Iterable[tuple[str, bytes | str | None]]"

SendCallback: TypeAlias = Callable[["RecordMetadata | None", "BaseException | None"], object]
"""Called with the metadata of a stored record, or with the error of one that failed."""

_SENDS_PER_YIELD: Final = 128
"""How many records a loop of sends adds before other tasks run, and the producer's own requests leave."""

_DEFAULT_CLIENT_ID: Final = "rejoin-producer"


class Producer:
    """Writes records to topics. Idempotent unless ``acks``, ``retries`` or ``enable_idempotence`` say otherwise.

    Keys and values are bytes, or text as UTF-8, unless there is a serializer. ``transport`` lets clients share
    connections. ``random`` gives the numbers for backoffs and sticky partitions.

    Raises ValueError for settings that make no sense.
    """

    def __init__(
        self,
        *,
        key_serializer: Serializer | None = None,
        value_serializer: Serializer | None = None,
        transport: Transport | None = None,
        random: Callable[[], float] = random.random,
        **settings: Any,
    ) -> None:
        self.config = config = checked_producer_config(settings)
        self._is_transactional = config.transactional_id is not None
        self._serialize_key = key_serializer or partial(_plain, "key")
        self._serialize_value = value_serializer or partial(_plain, "value")
        given = None if transport is None else transport.for_client()
        self._owns_transport = given is None or given is not transport
        self._transport = given or open_transport(
            config.bootstrap_servers,
            reconnect_backoff_ms=config.reconnect_backoff_ms,
            reconnect_backoff_max_ms=config.reconnect_backoff_max_ms,
            security=config,
        )
        core = ProducerCore(config, random, versions=self._transport.versions)
        self._driver = ProducerDriver(core, self._transport, config.client_id or _DEFAULT_CLIENT_ID)
        self._sends = 0
        self._closed = False

    # -- life

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def start(self) -> None:
        """Ask for a producer id, if this producer is idempotent. ``async with`` does this."""
        self._driver.step(Elapsed())

    async def flush(self) -> None:
        """Send all that was produced at once, and wait until each of these records is stored or has failed."""
        self._check_open()
        await self._driver.call(Flushed)

    async def close(self, timeout_ms: int | None = None) -> None:
        """Send all that was produced, and close. A second call does nothing.

        What is not stored after ``timeout_ms``, if that is given, has failed.
        """
        if self._closed:
            return
        self._closed = True
        try:
            if self._driver.broken is None:
                await self._driver.call(lambda token: ProducerClosed(token, timeout_ms))
        finally:
            await self._driver.stop()
            if self._owns_transport:
                await self._transport.close()

    def _check_open(self) -> None:
        if self._closed:
            raise IllegalStateError(CLOSED)
        if self._driver.broken is not None:
            raise self._driver.broken

    # -- records

    async def send(
        self,
        topic: str,
        value: Any = None,
        *,
        key: Any = None,
        headers: RecordHeaders = (),
        timestamp: int | None = None,
        partition: int | None = None,
        callback: SendCallback | None = None,
    ) -> asyncio.Future[RecordMetadata]:
        """Add a record to a batch, waiting for metadata and memory up to ``max.block.ms``; returns its future.

        Without a partition the record goes to that of its key, or to a sticky one. The future has the record's
        metadata once it is stored, or the error that it failed with; ``callback`` is called then. Callbacks and futures
        of a partition end in the order of its records.

        Raises TypeError for what the serializer does not take, and IllegalStateError once the producer is closed, or
        outside of a transaction if it has a ``transactional_id``.
        """
        if self._closed or self._driver.broken is not None:
            self._check_open()
        if self._is_transactional:
            self._driver.core.check_transaction()
        key_bytes = key if key.__class__ is bytes or key is None else self._serialize_key(key)
        value_bytes = value if value.__class__ is bytes or value is None else self._serialize_value(value)
        future: asyncio.Future[RecordMetadata] = asyncio.get_running_loop().create_future()
        if callback is not None:
            future.add_done_callback(partial(_call_back, callback))
        given: Headers = _checked_headers(headers) if headers else ()
        self._sends += 1
        if self._driver.produce(Produced(future, topic, partition, key_bytes, value_bytes, given, timestamp)):
            blocked = self._driver.blocked(future)
            if blocked is not None:
                await blocked
        elif self._sends % _SENDS_PER_YIELD:
            return future
        await asyncio.sleep(0)
        return future

    async def send_and_wait(self, topic: str, value: Any = None, **given: Any) -> RecordMetadata:
        """:meth:`send`, and wait until the record is stored. Raises the record's error."""
        return await (await self.send(topic, value, **given))

    # -- transactions

    async def init_transactions(self) -> None:
        """Get a producer id for ``transactional_id``: once, before the first transaction.

        It fences other producers with that id, and aborts what they have left open. This call and those that end a
        transaction raise KafkaTimeoutError after ``max.block.ms``; the same call then waits on.
        """
        await self._transaction_call(TransactionCall.INIT)

    async def begin_transaction(self) -> None:
        """Start a transaction: records sent from now on are part of it."""
        await self._transaction_call(TransactionCall.BEGIN)

    async def send_offsets_to_transaction(
        self, offsets: Mapping[TopicPartition, int | OffsetAndMetadata], group: GroupMetadata
    ) -> None:
        """Commit the next offsets to read with this transaction, for the group of ``Consumer.group_metadata()``.

        Raises CommitFailedError if that consumer is not in its group any more: abort then.
        """
        given = {
            partition: OffsetAndMetadata(offset) if isinstance(offset, int) else offset
            for partition, offset in offsets.items()
        }
        await self._transaction_call(TransactionCall.SEND_OFFSETS, given, group)

    async def commit_transaction(self) -> None:
        """Wait until all of the transaction is stored, and commit it. Raises what made that impossible: abort then.

        Raises ProducerFencedError when another producer has the id by now: close this one.
        """
        await self._transaction_call(TransactionCall.COMMIT)

    async def abort_transaction(self) -> None:
        """Drop unsent records, and abort the transaction."""
        await self._transaction_call(TransactionCall.ABORT)

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[None]:
        """``async with producer.transaction():`` commits at the end, and aborts after an exception."""
        await self.begin_transaction()
        try:
            yield
            await self.commit_transaction()
        except ProducerFencedError:
            raise
        except BaseException:
            if self._driver.core.can_abort:
                await self.abort_transaction()
            raise

    async def _transaction_call(
        self,
        call: TransactionCall,
        offsets: Mapping[TopicPartition, OffsetAndMetadata] = MappingProxyType({}),
        group: GroupMetadata | None = None,
    ) -> None:
        self._check_open()
        await self._driver.call(lambda token: TransactionCalled(token, call, offsets, group))

    @property
    def buffered_bytes(self) -> int:
        """The part of ``buffer.memory`` in use."""
        return self._driver.core.buffered_bytes


def _plain(what: str, given: Any) -> bytes:
    """Bytes as they are, and text as UTF-8."""
    if isinstance(given, str):
        return given.encode()
    if isinstance(given, bytes | bytearray | memoryview):
        return bytes(given)
    raise TypeError(f"{what}: expected bytes or str without a {what}_serializer, not {type(given).__name__}")


def _checked_headers(headers: RecordHeaders) -> Headers:
    pairs = headers.items() if isinstance(headers, Mapping) else headers
    return [(name, None if content is None else _plain(f"header {name}", content)) for name, content in pairs]


def _call_back(callback: SendCallback, future: asyncio.Future[RecordMetadata]) -> None:
    if future.cancelled():
        return
    error = future.exception()
    callback(None if error is not None else future.result(), error)
