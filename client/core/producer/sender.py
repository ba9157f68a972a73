"""Batches leave in Produce requests, one request with a batch of each partition that has one, and come back in answers.

Kafka: Sender, RecordAccumulator.ready and drain.
"""

from __future__ import annotations

from rejoin.client.core.effects import Endpoint
from rejoin.client.core.errors import KafkaError, KafkaTimeoutError
from rejoin.client.core.inputs import Millis
from rejoin.client.core.producer import metadata, sequences
from rejoin.client.core.producer.accumulator import learn_compression
from rejoin.client.core.producer.completion import complete, fail_expired
from rejoin.client.core.producer.context import ProducerContext
from rejoin.client.core.producer.state import PartitionQueue, ProducerBatch, ProducerCoreState, ProduceSent
from rejoin.client.core.producer.transactions import transitions
from rejoin.protocol.messages.records.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from rejoin.protocol.types import ZERO_UUID
from rejoin.protocol.unvalidated import unvalidated
from rejoin.protocol.wire.compression import CompressionType
from rejoin.protocol.wire.record_batch import NO_PRODUCER_EPOCH, NO_PRODUCER_ID, NO_SEQUENCE


def send_ready(state: ProducerCoreState, ctx: ProducerContext) -> None:
    """Send ready batches, up to the most requests in flight to each node."""
    while nodes := _ready_nodes(state, ctx):
        progress = False
        for endpoint in nodes.values():
            batches = _drain(state, ctx, endpoint)
            if batches:
                _send(state, ctx, endpoint, batches)
                progress = True
        if not progress:
            return


# -- what is ready


def _ready_nodes(state: ProducerCoreState, ctx: ProducerContext) -> dict[int, Endpoint]:
    """The nodes with a batch that can wait no longer, and room for another request."""
    ready: dict[int, Endpoint] = {}
    hurry = state.waits_for_memory or state.close is not None or bool(state.flushes) or transitions.is_ending(state)
    for queue in state.active:
        batch = queue.batches[0]
        leader = metadata.leader_of(state, queue.partition)
        if leader.endpoint is None:
            state.metadata.update_requested = True
            continue
        node = state.node(leader.endpoint.node_id)
        if leader.endpoint.node_id in ready or node.in_flight >= ctx.config.max_in_flight_requests_per_connection:
            continue
        if _is_muted(ctx, queue):
            continue
        batch.saw_leader(leader.epoch)
        due = max(_due_at(ctx, queue, batch, hurry=hurry), node.throttled_until)
        if due <= ctx.now:
            ready[leader.endpoint.node_id] = leader.endpoint
        else:
            ctx.wake(due)
    return ready


def _due_at(ctx: ProducerContext, queue: PartitionQueue, batch: ProducerBatch, *, hurry: bool) -> Millis:
    """When the first batch of a queue is to be sent."""
    if batch.attempts:
        return ctx.now if batch.has_new_leader else batch.retry_at
    if hurry or batch.is_full or len(queue.batches) > 1:
        return ctx.now
    return batch.created_at + ctx.config.linger_ms


def _is_muted(ctx: ProducerContext, queue: PartitionQueue) -> bool:
    """With one request in flight per connection, a partition has one at a time, also after its leader moved."""
    # Kafka: guaranteeMessageOrder.
    return ctx.config.max_in_flight_requests_per_connection == 1 and any(batch.is_sent for batch in queue.in_flight)


# -- sending


def _drain(state: ProducerCoreState, ctx: ProducerContext, endpoint: Endpoint) -> list[ProducerBatch]:
    """The first batch of each partition that a node leads, up to ``max.request.size``."""
    size = 0
    drained: list[ProducerBatch] = []
    for queue in list(state.active):
        batch = queue.batches[0]
        leader = metadata.leader_of(state, queue.partition)
        if leader.endpoint is None or leader.endpoint.node_id != endpoint.node_id or _is_muted(ctx, queue):
            continue
        batch.saw_leader(leader.epoch)
        if batch.attempts and not batch.has_new_leader and batch.retry_at > ctx.now:
            continue
        if ctx.config.enable_idempotence and not sequences.may_send(state, queue, batch):
            continue
        if not transitions.may_send(state, batch):
            continue
        estimate = len(batch.data) or (batch.builder.size if batch.builder is not None else 0)
        if drained and size + estimate > ctx.config.max_request_size:
            break
        size += _take_first(state, ctx, queue)
        drained.append(batch)
    return drained


def _take_first(state: ProducerCoreState, ctx: ProducerContext, queue: PartitionQueue) -> int:
    """Take the first batch out of a queue, ready to be sent, and return its bytes."""
    batch = queue.batches.popleft()
    del state.active[queue]
    if queue.batches:
        state.active[queue] = None  # behind all others
    if ctx.config.enable_idempotence:
        sequences.number(state, queue, batch)
    if batch not in queue.in_flight:
        queue.in_flight.append(batch)
    if not batch.data:
        _seal(state, ctx, batch)
    batch.is_full = batch.is_sent = True
    batch.sequence_was_reset = False
    return len(batch.data)


def _seal(state: ProducerCoreState, ctx: ProducerContext, batch: ProducerBatch) -> None:
    builder = batch.builder
    assert builder is not None, "a batch has a builder until it is sealed"
    has_sequence = batch.base_sequence != NO_SEQUENCE
    producer_id, epoch = batch.producer if has_sequence else (NO_PRODUCER_ID, NO_PRODUCER_EPOCH)
    is_transactional = ctx.config.transactional_id is not None
    batch.data = builder.seal(ctx.codec, producer_id, epoch, batch.base_sequence, is_transactional=is_transactional)
    batch.builder = None
    topic = state.topics.get(batch.partition.topic)
    if ctx.codec is not CompressionType.NONE and topic is not None:
        learn_compression(topic, builder.size, len(batch.data))


def _send(state: ProducerCoreState, ctx: ProducerContext, endpoint: Endpoint, batches: list[ProducerBatch]) -> None:
    topics: dict[str, list[PartitionProduceData]] = {}
    for batch in batches:
        topic, partition = batch.partition
        data = unvalidated(PartitionProduceData, index=partition, records=batch.data)
        topics.setdefault(topic, []).append(data)
    request = unvalidated(
        ProduceRequest,
        transactional_id=ctx.config.transactional_id,
        acks=ctx.config.required_acks,
        timeout_ms=ctx.config.request_timeout_ms,
        topic_data=tuple(
            unvalidated(TopicProduceData, name=name, topic_id=ZERO_UUID, partition_data=tuple(partitions))
            for name, partitions in topics.items()
        ),
    )
    if state.transaction is not None:
        state.transaction.is_started = True
    ctx.send(state, request, ProduceSent(endpoint.node_id, tuple(batches)), endpoint)
    state.node(endpoint.node_id).in_flight += 1


# -- time


def expire(state: ProducerCoreState, ctx: ProducerContext) -> None:
    """Fail batches older than ``delivery.timeout.ms``, in flight or not; else wake when that is due."""
    while state.incomplete:
        batch = next(iter(state.incomplete))
        at = batch.created_at + ctx.delivery_timeout_ms
        if ctx.now < at:
            ctx.wake(at)
            return
        topic, partition = batch.partition
        problem = KafkaTimeoutError(
            f"expiring {batch.count} record(s) for {topic}-{partition}: {ctx.now - batch.created_at} ms have passed "
            "since the batch was created"
        )
        fail_expired(state, ctx, batch, problem)


def drop_unsent(state: ProducerCoreState, ctx: ProducerContext, error: KafkaError) -> None:
    """Fail every batch that was never sent."""
    # Kafka: abortUndrainedBatches.
    for batch in [batch for batch in state.incomplete if not batch.has_sequence]:
        complete(state, ctx, batch, error=error)


def abort_all(state: ProducerCoreState, ctx: ProducerContext, error: KafkaError) -> None:
    """Fail every batch. Answers that come later are ignored."""
    for batch in list(state.incomplete):
        complete(state, ctx, batch, error=error)
