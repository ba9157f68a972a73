"""Records become batches, by partition. What finds no partition or no memory is parked, and tried again in order.

Always true: ``memory_used`` is what the batches in ``incomplete`` have reserved, and at most ``buffer.memory``.
Kafka: RecordAccumulator, KafkaProducer.doSend, CompressionRatioEstimator.
"""

from __future__ import annotations

from collections import deque
from enum import Enum, auto
from typing import Final

from rejoin.client.core.errors import KafkaError, KafkaTimeoutError, RecordTooLargeError
from rejoin.client.core.inputs import Millis
from rejoin.client.core.producer.context import ProducerContext
from rejoin.client.core.producer.effects import RecordFailed, SendBlocked, SendUnblocked
from rejoin.client.core.producer.inputs import Produced
from rejoin.client.core.producer.partitioner import by_key, next_sticky
from rejoin.client.core.producer.state import Parked, PartitionQueue, ProducerBatch, ProducerCoreState, TopicState
from rejoin.client.core.producer.transactions import transitions
from rejoin.protocol.types import TopicPartition
from rejoin.protocol.wire.compression import CompressionType
from rejoin.protocol.wire.record_batch import HEADER_SIZE
from rejoin.protocol.wire.record_encoder import BatchBuilder, encode_record

_ESTIMATE_FACTOR: Final = 1.05
_RATIO_STEPS: Final = (0.05, 0.005)
_LEAST_RATIO: Final = 0.1


class AppendOutcome(Enum):
    """The outcome for a record."""

    APPENDED = auto()
    """It is in a batch that existed and takes more."""
    CHANGED = auto()
    """It is in a new batch, or filled one: there may be something to send."""
    NEEDS_METADATA = auto()
    NEEDS_MEMORY = auto()


def append(state: ProducerCoreState, ctx: ProducerContext, produced: Produced, now: Millis) -> AppendOutcome:
    """Add a record to the last batch of its partition, or to a new one. Raises KafkaError for one too large."""
    topic = state.topics.get(produced.topic)
    if topic is None or not topic.leaders:
        return AppendOutcome.NEEDS_METADATA
    topic.used_at = now
    partition = produced.partition
    config = ctx.config
    if partition is None:
        if produced.key is None or config.partitioner_ignore_keys:
            return _append_sticky(state, ctx, topic, produced, now)
        partition = by_key(produced.key, len(topic.leaders))
    elif not 0 <= partition < len(topic.leaders):
        return AppendOutcome.NEEDS_METADATA
    queue = topic.queues.get(partition) or _new_queue(topic, partition)
    return (
        AppendOutcome.APPENDED
        if _append_to_last(ctx, queue, produced, now)
        else _append_new(state, ctx, topic, queue, produced, now)
    )


def _append_sticky(
    state: ProducerCoreState, ctx: ProducerContext, topic: TopicState, produced: Produced, now: Millis
) -> AppendOutcome:
    """Add a record to the sticky partition, which changes with every ``batch.size`` bytes."""
    batch_size = ctx.config.batch_size
    if not 0 <= topic.sticky_partition < len(topic.leaders):
        _choose_sticky(ctx, topic)
    queue = _sticky_queue(topic)
    if topic.sticky_bytes >= batch_size and _all_full(queue):
        _choose_sticky(ctx, topic)
        queue = _sticky_queue(topic)
    outcome = AppendOutcome.APPENDED
    size = _append_to_last(ctx, queue, produced, now)
    if not size:
        if topic.sticky_bytes >= batch_size and _all_full(queue):
            # The last batch had no room for the record, and is full by that.
            _choose_sticky(ctx, topic)
            queue = _sticky_queue(topic)
            size = _append_to_last(ctx, queue, produced, now)
        if not size:
            outcome = _append_new(state, ctx, topic, queue, produced, now)
            if outcome is not AppendOutcome.CHANGED:
                return outcome
            builder = queue.batches[-1].builder
            size = builder.size if builder is not None else 0
    topic.sticky_bytes += size
    if topic.sticky_bytes >= 2 * batch_size or (topic.sticky_bytes >= batch_size and _all_full(queue)):
        _choose_sticky(ctx, topic)
    return outcome


def _choose_sticky(ctx: ProducerContext, topic: TopicState) -> None:
    next_sticky(topic, ctx.jitter, adaptive=ctx.config.partitioner_adaptive_partitioning_enable)


def _sticky_queue(topic: TopicState) -> PartitionQueue:
    partition = topic.sticky_partition
    return topic.queues.get(partition) or _new_queue(topic, partition)


def _all_full(queue: PartitionQueue) -> bool:
    return not queue.batches or queue.batches[-1].is_full


def _new_queue(topic: TopicState, partition: int) -> PartitionQueue:
    queue = topic.queues[partition] = PartitionQueue(TopicPartition(topic.name, partition))
    return queue


def _append_to_last(ctx: ProducerContext, queue: PartitionQueue, produced: Produced, now: Millis) -> int:
    """Add a record to the last batch and return its bytes; 0 where that is full or not there."""
    if not queue.batches:
        return 0
    batch = queue.batches[-1]
    builder = batch.builder
    if builder is None or batch.is_full:
        return 0
    timestamp = now if produced.timestamp is None else produced.timestamp
    record = encode_record(
        timestamp - builder.base_timestamp, builder.count, produced.key, produced.value, produced.headers
    )
    size = len(record)
    if HEADER_SIZE + size > ctx.most_bytes:
        _check_size(ctx, HEADER_SIZE + size)
    if builder.size + size > batch.limit:
        batch.is_full = True
        return 0
    builder.append(record, timestamp)
    batch.tokens.append(produced.token)
    batch.timestamps.append(timestamp)
    return size


def _append_new(
    state: ProducerCoreState,
    ctx: ProducerContext,
    topic: TopicState,
    queue: PartitionQueue,
    produced: Produced,
    now: Millis,
) -> AppendOutcome:
    config = ctx.config
    timestamp = now if produced.timestamp is None else produced.timestamp
    record = encode_record(0, 0, produced.key, produced.value, produced.headers)
    size = HEADER_SIZE + len(record)
    if size > ctx.most_bytes:
        _check_size(ctx, size)
    limit = config.batch_size
    if ctx.codec is not CompressionType.NONE:
        limit = int(limit / (topic.compression_ratio * _ESTIMATE_FACTOR))
    reserved = max(min(limit, config.buffer_memory), size)
    if state.memory_used + reserved > config.buffer_memory:
        return AppendOutcome.NEEDS_MEMORY
    builder = BatchBuilder(timestamp)
    builder.append(record, timestamp)
    batch = ProducerBatch(queue, now, builder, limit, reserved, [produced.token], [timestamp])
    batch.is_full = size >= limit
    state.memory_used += reserved
    state.incomplete[batch] = None
    if state.transaction is not None and state.transaction.bumps_epochs:
        # Kafka: TransactionManager.maybeAddPartition. Such a transaction is ended at its coordinator even if nothing
        # of it was sent.
        state.transaction.is_started = True
    queue.batches.append(batch)
    state.active[queue] = None
    return AppendOutcome.CHANGED


def _check_size(ctx: ProducerContext, size: int) -> None:
    # Kafka: ensureValidRecordSize. Java estimates an upper bound, this is the size with the batch's header.
    for setting, most in (
        ("max.request.size", ctx.config.max_request_size),
        ("buffer.memory", ctx.config.buffer_memory),
    ):
        if size > most:
            raise RecordTooLargeError(f"the record has {size} bytes when it is serialized, and {setting} is {most}")


def learn_compression(topic: TopicState, unpacked: int, packed: int) -> None:
    """Take in how well a batch was compressed: later batches hold so much more."""
    # Kafka: CompressionRatioEstimator. It grows fast and shrinks slowly.
    observed = packed / max(1, unpacked)
    grows, shrinks = _RATIO_STEPS
    if observed > topic.compression_ratio:
        topic.compression_ratio = max(topic.compression_ratio + grows, observed)
    else:
        topic.compression_ratio = max(topic.compression_ratio - shrinks, observed, _LEAST_RATIO)


# -- records that wait


def take(state: ProducerCoreState, ctx: ProducerContext, produced: Produced) -> None:
    """Take a record in: into a batch, or parked until that is possible."""
    refusal = state.fatal_error or transitions.refusal(state)
    if refusal is not None:
        ctx.emit(RecordFailed(produced.token, refusal))
        return
    if not _waits_behind(state, produced.topic) and _tried(state, ctx, produced):
        return
    state.parked.append(Parked(produced, ctx.now + ctx.config.max_block_ms))
    ctx.emit(SendBlocked(produced.token))


def fail(state: ProducerCoreState, ctx: ProducerContext, produced: Produced, error: KafkaError) -> None:
    """A record cannot be taken in. Its transaction, which lacks it, must be aborted."""
    # Kafka: KafkaProducer.doSend, maybeTransitionToErrorState.
    if state.transaction is not None:
        transitions.must_abort(state.transaction, error)
    ctx.emit(RecordFailed(produced.token, error))


def _waits_behind(state: ProducerCoreState, topic: str) -> bool:
    """Whether a record of a topic has to wait because others do, whose order it would break."""
    return state.waits_for_memory or any(parked.produced.topic == topic for parked in state.parked)


def _tried(state: ProducerCoreState, ctx: ProducerContext, produced: Produced, *, was_parked: bool = False) -> bool:
    """Append a record if that is possible; false where it has to wait."""
    topic = state.topics.get(produced.topic)
    try:
        if topic is not None and topic.error is not None:
            raise topic.error
        outcome = append(state, ctx, produced, ctx.now)
    except KafkaError as error:
        fail(state, ctx, produced, error)
        return True
    if outcome is AppendOutcome.NEEDS_METADATA:
        _want_topic(state, ctx, produced.topic)
        return False
    if outcome is AppendOutcome.NEEDS_MEMORY:
        state.waits_for_memory = True
        return False
    if was_parked:
        ctx.emit(SendUnblocked(produced.token))
    return True


def _want_topic(state: ProducerCoreState, ctx: ProducerContext, name: str) -> None:
    topic = state.topics.get(name)
    if topic is None:
        # Kafka: requestUpdateForNewTopics. A new topic does not wait for the backoff.
        state.topics[name] = TopicState(name, ctx.now)
        state.metadata.retry_at = ctx.now
    else:
        topic.used_at = ctx.now
    state.metadata.update_requested = True


def retry_parked(state: ProducerCoreState, ctx: ProducerContext) -> None:
    """Go on with the records that wait, in order, and give up on those that waited too long."""
    if not state.parked:
        return
    state.waits_for_memory = False
    still: deque[Parked] = deque()
    waiting_topics: set[str] = set()
    for parked in state.parked:
        produced = parked.produced
        if parked.expires_at <= ctx.now:
            fail(state, ctx, produced, _timed_out(state, ctx, produced))
        elif (
            state.waits_for_memory
            or produced.topic in waiting_topics
            or not _tried(state, ctx, produced, was_parked=True)
        ):
            waiting_topics.add(produced.topic)
            still.append(parked)
    state.parked = still
    if still:
        ctx.wake(still[0].expires_at)


def _timed_out(state: ProducerCoreState, ctx: ProducerContext, produced: Produced) -> KafkaError:
    after = f"after {ctx.config.max_block_ms} ms"
    topic = state.topics.get(produced.topic)
    if topic is None or not topic.leaders:
        because = f": {state.metadata.problem}" if state.metadata.problem else ""
        return KafkaTimeoutError(f"topic {produced.topic} not present in metadata {after}{because}")
    count = len(topic.leaders)
    if produced.partition is not None and produced.partition >= count:
        return KafkaTimeoutError(
            f"partition {produced.partition} of topic {produced.topic}, which has {count} "
            f"partition{'' if count == 1 else 's'}, not present in metadata {after}"
        )
    # Kafka: BufferExhaustedException, which is a TimeoutException.
    return KafkaTimeoutError(f"no memory for a record of topic {produced.topic} {after}: buffer.memory is full")


def release(state: ProducerCoreState, batch: ProducerBatch) -> None:
    """A batch is done: forget it and free its memory."""
    del state.incomplete[batch]
    state.memory_used -= batch.reserved
    for flush in state.flushes:
        flush.waiting.pop(batch, None)
