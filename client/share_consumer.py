"""The Python API of share groups (KIP-932): records as from a queue, each acknowledged on its own.

    async with ShareConsumer("jobs", bootstrap_servers="127.0.0.1:9092", group_id="workers") as consumer:
        async for record in consumer:
            ...                               # the next fetch accepts it

    async with ShareConsumer("jobs", group_id="workers", share_acknowledgement_mode="explicit") as consumer:
        for record in await consumer.poll(1_000):
            consumer.acknowledge(record, AcknowledgeType.RELEASE if is_busy(record) else AcknowledgeType.ACCEPT)
        await consumer.commit()

Settings are Kafka's, with underscores for dots (:class:`client.share_config.ShareConsumerConfig`). Group, transports
and the event loop are as for :class:`client.consumer.Consumer`.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Mapping
from types import TracebackType
from typing import Any, Self, TypeAlias, overload

from rejoin.client.consumer import ITERATION_POLL_MS, new_member_id, transport_of, with_client_id
from rejoin.client.core.effects import AcknowledgementCallback, PollReturned
from rejoin.client.core.errors import KafkaError
from rejoin.client.core.fetch.consumer_record import ConsumerRecord
from rejoin.client.core.inputs import Closed, Millis, Polled, Processed, RecordRange, Subscribed, Unsubscribed, Woken
from rejoin.client.core.share.core import ShareConsumerCore
from rejoin.client.core.share.inputs import RecordAcknowledged, ShareCommitAsked
from rejoin.client.core.step_context import Deserializer
from rejoin.client.driver import ConsumerRuntime, Driver, Publish
from rejoin.client.records import RecordBuffer, Records, by_range
from rejoin.client.share_config import checked_share_config
from rejoin.client.transports.base import Transport
from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.messages.share.acknowledgements import AcknowledgeType
from rejoin.protocol.types import TopicPartition

AcknowledgementListener: TypeAlias = Callable[[TopicPartition, tuple[int, ...], "KafkaError | None"], object]
"""Called with a partition, offsets, and the error of their acknowledgement or None."""


class ShareConsumer:
    """A member of a share group.

    ``on_acknowledged`` is called with the result of acknowledgements during a later poll, commit or close. Other
    arguments are those of :class:`~client.consumer.Consumer`. Raises ValueError for settings that make no sense.
    """

    def __init__(
        self,
        *topics: str,
        key_deserializer: Deserializer | None = None,
        value_deserializer: Deserializer | None = None,
        on_acknowledged: AcknowledgementListener | None = None,
        transport: Transport | None = None,
        runtime: ConsumerRuntime | None = None,
        on_event: Publish | None = None,
        jitter: Callable[[], float] = random.random,
        **settings: Any,
    ) -> None:
        if not all(isinstance(topic, str) for topic in topics):
            raise ValueError(f"topics: expected each name as an argument of its own, not {topics!r}")
        self.config = with_client_id(checked_share_config(settings))
        self._topics = topics
        self._on_acknowledged = on_acknowledged
        self._owns_transport = transport is None and runtime is None
        if runtime is None:
            runtime = ConsumerRuntime(transport or transport_of(self.config), on_event)
        self._runtime = runtime
        transport = runtime.transport.for_client()
        self._core = ShareConsumerCore(
            self.config,
            jitter,
            member_id=new_member_id(),
            explicit=self.config.share_acknowledgement_mode == "explicit",
            limit_records=self.config.share_acquire_mode == "record_limit",
            versions=transport.versions,
            deserializers=(key_deserializer, value_deserializer),
        )
        self._driver = Driver(runtime, self._core, self._call_listener, transport)
        self._buffer = RecordBuffer()
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
        """Subscribe to the topics of the constructor, if any. ``async with`` does this."""
        topics, self._topics = self._topics, ()
        if topics:
            await self.subscribe(topics)

    async def close(self, timeout_ms: int | None = None, *, leave: bool = True) -> None:
        """Send the acknowledgements that are left, release all other records, leave the group.

        A second call does nothing. ``leave`` false sends nothing, as a crash would.
        """
        if self._closed:
            return
        self._closed = True
        self._buffer.clear()
        try:
            if self._driver.broken is None:
                await self._driver.call(lambda token: Closed(token, timeout_ms, leave))
        finally:
            await self._driver.stop()
            if self._owns_transport:
                self._runtime.stop()
                await self._runtime.transport.close()

    # -- choosing what to read

    async def subscribe(self, topics: str | Iterable[str]) -> None:
        """Read these topics, sharing their records with the group. No topics at all means unsubscribe."""
        names = (topics,) if isinstance(topics, str) else tuple(topics)
        await self._driver.call(lambda token: Subscribed(names, token=token))

    async def unsubscribe(self) -> None:
        """Read nothing any more and leave the group."""
        self._buffer.clear()
        await self._driver.call(Unsubscribed)

    def subscription(self) -> tuple[str, ...]:
        """Subscribed topics."""
        return self._core.subscribed_topics()

    def topic_errors(self) -> Mapping[str, ErrorCode]:
        """Why topics are not there, as UNKNOWN_TOPIC_OR_PARTITION; they are asked for until they are."""
        return self._core.topic_errors()

    def assignment(self) -> list[TopicPartition]:
        """Partitions that this consumer reads, perhaps with others, by topic and partition."""
        return self._core.assignment()

    @property
    def member_id(self) -> str:
        """The id of this member, for as long as it lives."""
        return self._core.describe().member_id

    @property
    def acquisition_lock_timeout_ms(self) -> Millis | None:
        """How long a delivered record stays locked, in ms; none before the first fetch."""
        return self._core.lock_timeout_ms

    # -- records

    async def poll(self, timeout_ms: int = 0) -> Records:
        """Records, waiting up to ``timeout_ms`` for the first. Each has its ``delivery_count``.

        In implicit mode this accepts the records of the last poll. In explicit mode it raises IllegalStateError unless
        each of them is acknowledged. Renewed records are returned again.
        """
        if self._buffer:
            return self._buffer.take_all()
        returned = await self._driver.poll(Polled(timeout_ms))
        return Records(returned.ranges, by_range(returned, self._runtime.clock.now()))

    async def getone(self) -> ConsumerRecord:
        """The next record, however long that takes."""
        while not self._buffer:
            returned: PollReturned = await self._driver.poll(Polled(ITERATION_POLL_MS))
            self._buffer.fill(returned, self._runtime.clock.now())
        return self._buffer.next()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> ConsumerRecord:
        if self._closed:
            raise StopAsyncIteration
        return await self.getone()

    def processed(self, ranges: Iterable[RecordRange]) -> None:
        """Emit an event that these records are processed. It has no effect on the consumer."""
        self._driver.step(Processed(tuple(ranges)))

    def wakeup(self) -> None:
        """Make the poll that runs, or else the next one, raise WakeupError."""
        self._driver.step(Woken())

    # -- acknowledgements

    @overload
    def acknowledge(self, record: ConsumerRecord, type: AcknowledgeType | int = ..., /) -> None: ...

    @overload
    def acknowledge(self, topic: str, partition: int, offset: int, type: AcknowledgeType | int = ..., /) -> None: ...

    def acknowledge(self, *given: Any) -> None:
        """Decide about a record of the last poll, named by itself or by topic, partition and offset: accept by default.

        Sent with the next fetch or commit. Raises IllegalStateError in implicit mode, and for any other record.
        """
        where, rest = (given[0][:3], given[1:]) if isinstance(given[0], ConsumerRecord) else (given[:3], given[3:])
        topic, partition, offset = where
        kind = AcknowledgeType(*rest) if rest else AcknowledgeType.ACCEPT
        results: list[KafkaError | None] = []
        self._driver.step(RecordAcknowledged(results.append, topic, partition, offset, kind))
        if results and results[0] is not None:
            raise results[0]

    async def commit(self, *, timeout_ms: int | None = None) -> dict[TopicPartition, KafkaError | None]:
        """Send the acknowledgements so far and wait for their results: for each partition an error or None.

        In implicit mode this accepts all records that were handed out. Retriable errors are repeated for up to
        ``timeout_ms``, by default ``default.api.timeout.ms``.
        """
        unread = self._unread()
        results: Mapping[TopicPartition, KafkaError | None] = await self._driver.call(
            lambda token: ShareCommitAsked(token, timeout_ms, unread)
        )
        return dict(results)

    def commit_async(self) -> None:
        """Send the acknowledgements so far without waiting; ``on_acknowledged`` is called with their results."""
        self._driver.step(ShareCommitAsked(None, None, self._unread()))

    def _unread(self) -> frozenset[tuple[str, int, int]]:
        return frozenset((record.topic, record.partition, record.offset) for record in self._buffer.unread())

    def records_in_flight(self) -> dict[TopicPartition, list[int]]:
        """Offsets that polls have returned and that are not acknowledged yet."""
        return self._core.records_in_flight()

    def _call_listener(self, effect: Any) -> None:
        if self._on_acknowledged is not None and isinstance(effect, AcknowledgementCallback):
            self._on_acknowledged(effect.partition, effect.offsets, effect.error)
