"""The Python API: a consumer as the clients people know have it.

    async with Consumer("orders", bootstrap_servers="127.0.0.1:9092", group_id="billing") as consumer:
        async for record in consumer:
            ...
            await consumer.commit()

``HOST:PORT`` is a broker's listener of Kafka's protocol, ``http://HOST:PORT`` a coordinator's of HTTP, where records
are synthetic.

Settings are Kafka's, with underscores for dots (:class:`client.config.ConsumerConfig`). A consumer belongs to one event
loop; heartbeats go on while the caller's code awaits, and only there: code that blocks the loop blocks them too.
"""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from itertools import count
from types import TracebackType
from typing import Any, Self, TypeAlias, TypeVar
from uuid import uuid4

from rejoin.client.assignors import Assignor, assignor_named
from rejoin.client.config import ConsumerConfig, checked_config
from rejoin.client.core.consumer import CLOSED, ConsumerCore
from rejoin.client.core.effects import CallListener, OffsetsFound, PollReturned
from rejoin.client.core.errors import IllegalStateError, KafkaError
from rejoin.client.core.fetch.consumer_record import ConsumerRecord
from rejoin.client.core.inputs import (
    Assigned,
    Closed,
    CommitAsked,
    CommittedAsked,
    GroupMetadata,
    OffsetAndMetadata,
    OffsetReset,
    OffsetsAsked,
    Paused,
    Polled,
    PositionAsked,
    Processed,
    RebalanceEnforced,
    RecordRange,
    Resumed,
    Sought,
    Subscribed,
    Unsubscribed,
    Woken,
)
from rejoin.client.core.step_context import Deserializer
from rejoin.client.driver import ConsumerRuntime, Driver, Publish
from rejoin.client.records import RecordBuffer, Records, by_range
from rejoin.client.transports.addresses import open_transport
from rejoin.client.transports.base import Transport
from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.java import random_uuid
from rejoin.protocol.types import TopicPartition

Offsets: TypeAlias = Mapping[TopicPartition, "int | OffsetAndMetadata"]
CommitCallback: TypeAlias = Callable[[Mapping[TopicPartition, OffsetAndMetadata], "KafkaError | None"], object]

ITERATION_POLL_MS = 1_000
"""Longest poll of an iteration, in ms."""
Config = TypeVar("Config", bound=ConsumerConfig)
_numbers = count(1)


class RebalanceListener:
    """Called when partitions are assigned and revoked. Override the methods you need; they may be ``async``.

    Any object with some of these methods will do. One without ``on_partitions_lost`` has ``on_partitions_revoked``
    called instead, as in Kafka.
    """

    def on_partitions_revoked(self, revoked: list[TopicPartition]) -> Awaitable[None] | None:
        """These are about to be given up: the last chance to commit them."""
        return None

    def on_partitions_assigned(self, assigned: list[TopicPartition]) -> Awaitable[None] | None:
        """These are new; called after each rebalance, with an empty list where nothing is new."""
        return None

    def on_partitions_lost(self, lost: list[TopicPartition]) -> Awaitable[None] | None:
        """These may have another owner already: committing them would fail."""
        return self.on_partitions_revoked(lost)


class Consumer:
    """A member of a group, or a reader of partitions of its own choice.

    ``assignor`` is short for ``partition_assignment_strategy``: names, classes or objects. ``transport`` or ``runtime``
    let many consumers share connections and one wakeup.
    ``on_event`` is called with each event and its instant. Deserializers get bytes, and never None.

    Raises ValueError for settings that make no sense, and for assignors that do not fit together.
    """

    def __init__(
        self,
        *topics: str,
        pattern: str | None = None,
        regex: str | None = None,
        listener: object | None = None,
        assignor: str | Assignor | type[Assignor] | Sequence[str | Assignor | type[Assignor]] | None = None,
        key_deserializer: Deserializer | None = None,
        value_deserializer: Deserializer | None = None,
        transport: Transport | None = None,
        runtime: ConsumerRuntime | None = None,
        on_event: Publish | None = None,
        jitter: Callable[[], float] = random.random,
        **settings: Any,
    ) -> None:
        if not all(isinstance(topic, str) for topic in topics):
            raise ValueError(f"topics: expected each name as an argument of its own, not {topics!r}")

        assignors = None if assignor is None else _assignors(assignor)
        if assignors is not None:
            settings["partition_assignment_strategy"] = tuple(made.name for made in assignors)
        self.config = with_client_id(checked_config(settings))
        if assignors is None:
            assignors = [assignor_named(name) for name in self.config.partition_assignment_strategy]
        self._listener = listener
        self._topics, self._pattern, self._regex = topics, pattern, regex
        self._owns_transport = transport is None and runtime is None
        if runtime is None:
            runtime = ConsumerRuntime(transport or transport_of(self.config), on_event)
        self._runtime = runtime
        transport = runtime.transport.for_client()
        self._core = ConsumerCore(
            self.config,
            assignors,
            jitter,
            versions=transport.versions,
            reads_records=transport.carries_records,
            deserializers=(key_deserializer, value_deserializer),
            member_id=new_member_id(),
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
        """Subscribe to the topics or pattern of the constructor, if any. ``async with`` does this."""
        topics, pattern, regex = self._topics, self._pattern, self._regex
        self._topics, self._pattern, self._regex = (), None, None
        if topics or pattern is not None or regex is not None:
            await self.subscribe(topics, pattern=pattern, regex=regex, listener=self._listener)

    async def close(self, timeout_ms: int | None = None, *, leave: bool = True) -> None:
        """Commit if auto-commit is on, revoke all partitions, leave the group. A second call does nothing.

        ``leave`` false sends nothing to the group, as a crash would. Raises what the rebalance listener raised.
        """
        if self._closed:
            return
        self._closed = True
        self._forget_buffer()
        try:
            if self._driver.broken is None:
                await self._driver.call(lambda token: Closed(token, timeout_ms, leave))
        finally:
            await self._driver.stop()
            if self._owns_transport:
                self._runtime.stop()
                await self._runtime.transport.close()

    # -- choosing what to read

    async def subscribe(
        self,
        topics: str | Iterable[str] = (),
        *,
        pattern: str | None = None,
        regex: str | None = None,
        listener: object | None = None,
    ) -> None:
        """Read these topics, or all whose whole name matches a regular expression, sharing them with the group.

        A ``pattern`` is Python's and matched here; a ``regex`` is RE2's and matched by the coordinator, which takes
        ``group_protocol="consumer"``. Takes effect at the next poll. No topics at all means unsubscribe. Raises
        IllegalStateError when partitions were assigned by hand, and InvalidGroupIdError without a group.
        """
        if [bool(topics), pattern is not None, regex is not None].count(True) > 1:
            raise IllegalStateError("subscribe to topics or to a pattern, not to both")
        if listener is not None:
            self._listener = listener
        names = (topics,) if isinstance(topics, str) else tuple(topics)
        await self._driver.call(lambda token: Subscribed(names, pattern, token, regex))

    async def unsubscribe(self) -> None:
        """Read nothing any more and leave the group. Nothing is committed."""
        self._forget_buffer()
        await self._driver.call(Unsubscribed)

    async def assign(self, partitions: Iterable[TopicPartition | tuple[str, int]]) -> None:
        """Read exactly these partitions, without the group's help; offsets are still committed for the group."""
        wanted = tuple(TopicPartition(*partition) for partition in partitions)
        await self._driver.call(lambda token: Assigned(wanted, token))

    def subscription(self) -> tuple[str, ...]:
        """Subscribed topics; with a pattern, those known to match."""
        return self._core.subscribed_topics()

    def topic_errors(self) -> Mapping[str, ErrorCode]:
        """Why topics are not there, as UNKNOWN_TOPIC_OR_PARTITION; they are asked for until they are."""
        return self._core.topic_errors()

    def assignment(self) -> list[TopicPartition]:
        """Partitions that this consumer owns, by topic and partition."""
        return self._core.assignment()

    def group_metadata(self) -> GroupMetadata:
        """This consumer's membership. Raises IllegalStateError without a group."""
        if self.config.group_id is None:
            raise IllegalStateError("this consumer has no group.id")
        generation = self._core.group_generation
        return GroupMetadata(
            self.config.group_id, generation.generation_id, generation.member_id, self.config.group_instance_id
        )

    def enforce_rebalance(self, reason: str = "") -> None:
        """Join again at the next poll, and give the coordinator this reason (KIP-800).

        Raises IllegalStateError without a group, and once the consumer is closed.
        """
        # Kafka: ClassicKafkaConsumer.enforceRebalance.
        if self._closed:
            raise IllegalStateError(CLOSED)
        if self.config.group_id is None:
            raise IllegalStateError("this consumer has no group.id")
        self._driver.step(RebalanceEnforced(reason))

    # -- records

    async def poll(self, timeout_ms: int = 0, max_records: int | None = None) -> Records:
        """Records, waiting up to ``timeout_ms`` for the first; joins and rejoins the group on the way.

        Raises whatever Kafka's poll raises: see :mod:`rejoin.client.core.errors`.
        """
        if self._buffer:
            return self._buffer.take_all()
        return self._records(await self._driver.poll(Polled(timeout_ms, max_records)))

    def _records(self, returned: PollReturned) -> Records:
        return Records(returned.ranges, by_range(returned, self._runtime.clock.now()))

    async def getmany(
        self, *partitions: TopicPartition, timeout_ms: int = 0, max_records: int | None = None
    ) -> dict[TopicPartition, list[ConsumerRecord]]:
        """As :meth:`poll`, by partition and, if some are named, from these only."""
        self._forget_buffer()
        only = frozenset(partitions) if partitions else None
        return self._records(await self._driver.poll(Polled(timeout_ms, max_records, only))).by_partition()

    async def getone(self) -> ConsumerRecord:
        """The next record, however long that takes. Commits meanwhile cover the records handed out."""
        while not self._buffer:
            self._buffer.fill(await self._driver.poll(Polled(ITERATION_POLL_MS)), self._runtime.clock.now())
        return self._buffer.next()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> ConsumerRecord:
        if self._closed:
            raise StopAsyncIteration
        return await self.getone()

    def processed(self, records: Records | Iterable[RecordRange]) -> None:
        """Emit an event that these records are processed. It has no effect on the consumer."""
        ranges = records.ranges if isinstance(records, Records) else tuple(records)
        self._driver.step(Processed(ranges))

    def wakeup(self) -> None:
        """Make the poll that runs, or else the next one, raise WakeupError."""
        self._driver.step(Woken())

    def _forget_buffer(self) -> None:
        """Records that were fetched for iteration and not handed out count as not read."""
        owned = set(self._core.assignment())
        for partition, start in self._buffer.positions().items():
            if partition in owned:
                self._driver.step(Sought((partition,), start))
        self._buffer.clear()

    # -- offsets

    async def commit(self, offsets: Offsets | None = None, *, timeout_ms: int | None = None) -> None:
        """Commit these offsets, or all that was handed out, and wait for it; retriable errors are repeated.

        Raises CommitFailedError when this consumer is no member any more, RebalanceInProgressError when it should poll
        first, FencedInstanceIdError, and KafkaTimeoutError after ``default.api.timeout.ms``.
        """
        given = self._to_commit(offsets)
        await self._driver.call(lambda token: CommitAsked(token, given, True, timeout_ms))

    def commit_async(self, offsets: Offsets | None = None, callback: CommitCallback | None = None) -> None:
        """Commit in the background and do not repeat. ``callback`` is called during a later poll, commit or close."""
        given = self._to_commit(offsets)

        def done(error: KafkaError | None) -> None:
            if callback is not None:
                callback(given, error)

        self._driver.step(CommitAsked(done, given, False))

    def _to_commit(self, offsets: Offsets | None) -> dict[TopicPartition, OffsetAndMetadata]:
        if offsets is None:
            handed_out = self._core.consumed()
            for partition, start in self._buffer.positions().items():
                if partition in handed_out:
                    handed_out[partition] = handed_out[partition]._replace(offset=start)
            return handed_out
        return {
            TopicPartition(*partition): offset if isinstance(offset, OffsetAndMetadata) else OffsetAndMetadata(offset)
            for partition, offset in offsets.items()
        }

    async def committed(self, partition: TopicPartition, timeout_ms: int | None = None) -> OffsetAndMetadata | None:
        """The group's committed offset for a partition, or None."""
        found = await self._found(lambda token: CommittedAsked(token, (TopicPartition(*partition),), timeout_ms))
        offset = found.offsets.get(partition)
        return None if offset is None else OffsetAndMetadata(offset, found.metadata.get(partition, ""))

    async def position(self, partition: TopicPartition, timeout_ms: int | None = None) -> int:
        """The offset of the next record to be handed out. Raises IllegalStateError if the partition is not owned."""
        if (start := self._buffer.positions().get(TopicPartition(*partition))) is not None:
            return start
        found = await self._found(lambda token: PositionAsked(token, TopicPartition(*partition), timeout_ms))
        offset = found.offsets[partition]
        assert offset is not None, "a position that was found is a number"
        return offset

    async def beginning_offsets(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int | None]:
        """The first offset of each partition."""
        return await self._offsets(dict.fromkeys(partitions, OffsetReset.EARLIEST.value))

    async def end_offsets(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int | None]:
        """The next offset of each partition."""
        return await self._offsets(dict.fromkeys(partitions, OffsetReset.LATEST.value))

    async def offsets_for_times(self, times: Mapping[TopicPartition, int]) -> dict[TopicPartition, int | None]:
        """The first offset at or after a time (ms since 1970), None where there is none yet."""
        if any(time < 0 for time in times.values()):
            raise IllegalStateError("the target time cannot be negative")
        return await self._offsets(times)

    async def _offsets(self, timestamps: Mapping[TopicPartition, int]) -> dict[TopicPartition, int | None]:
        return dict((await self._found(lambda token: OffsetsAsked(token, timestamps))).offsets)

    async def _found(self, make: Callable[[Any], Any]) -> OffsetsFound:
        found = await self._driver.call(make)
        assert isinstance(found, OffsetsFound), "a question is answered with offsets"
        return found

    def lag(self, partition: TopicPartition) -> int | None:
        """Records left in an owned partition, as far as its end is known."""
        return self._core.lag(partition)

    def seek(self, partition: TopicPartition, offset: int) -> None:
        """Go on from this offset. Raises IllegalStateError for a negative one or a partition that is not owned."""
        if offset < 0:
            raise IllegalStateError("seek offset must not be a negative number")
        self._seek([partition], offset)

    def seek_to_beginning(self, *partitions: TopicPartition) -> None:
        """Go on from the beginning of these partitions, or of all owned ones."""
        self._seek(partitions or self.assignment(), OffsetReset.EARLIEST)

    def seek_to_end(self, *partitions: TopicPartition) -> None:
        """Go on from the end of these partitions, or of all owned ones."""
        self._seek(partitions or self.assignment(), OffsetReset.LATEST)

    def _seek(self, partitions: Sequence[TopicPartition], to: int | OffsetReset) -> None:
        owned = set(self._core.assignment())
        for topic, number in partitions:
            if (topic, number) not in owned:
                raise IllegalStateError(f"no current assignment for partition {topic}-{number}")
        self._buffer.drop(partitions)
        self._driver.step(Sought(tuple(partitions), to))

    def pause(self, *partitions: TopicPartition) -> None:
        """Return no records of these until they are resumed; the group does not notice."""
        self._driver.step(Paused(partitions))

    def resume(self, *partitions: TopicPartition) -> None:
        """The opposite of :meth:`pause`."""
        self._driver.step(Resumed(partitions))

    def paused(self) -> list[TopicPartition]:
        """Paused partitions."""
        return self._core.paused()

    # -- the listener

    def _call_listener(self, effect: CallListener) -> Any:
        method = getattr(self._listener, f"on_partitions_{effect.kind}", None)
        if method is None and effect.kind == "lost":
            # Kafka: ConsumerRebalanceListener.onPartitionsLost calls onPartitionsRevoked unless overridden.
            method = getattr(self._listener, "on_partitions_revoked", None)
        return None if method is None else method(list(effect.partitions))


def new_member_id() -> str:
    """A random id in Kafka's form of 22 characters."""
    return random_uuid(lambda: uuid4().hex)


def _assignors(
    given: str | Assignor | type[Assignor] | Sequence[str | Assignor | type[Assignor]],
) -> list[Assignor]:
    several: Sequence[str | Assignor | type[Assignor]]
    if isinstance(given, str):
        several = [name.strip() for name in given.split(",") if name.strip()]
    elif isinstance(given, Assignor | type):
        several = [given]
    else:
        several = given
    made: list[Assignor] = []
    for one in several:
        if isinstance(one, str):
            made.append(assignor_named(one))
        else:
            made.append(one() if isinstance(one, type) else one)
    return made


def with_client_id(config: Config) -> Config:
    """Kafka's way to name clients that have no name."""
    if config.client_id:
        return config
    suffix = config.group_instance_id or str(next(_numbers))
    name = f"consumer-{config.group_id}-{suffix}" if config.group_id is not None else f"consumer-{suffix}"
    return config.model_copy(update={"client_id": name})


def transport_of(config: ConsumerConfig) -> Transport:
    """A transport to the bootstrap servers."""
    return open_transport(
        config.bootstrap_servers,
        reconnect_backoff_ms=config.reconnect_backoff_ms,
        reconnect_backoff_max_ms=config.reconnect_backoff_max_ms,
        security=config,
    )
