"""Idempotence: the producer id, and the sequence of each batch.

A batch gets producer id, epoch and sequence when it is sent first, and keeps them over retries, so that the broker
knows it again. A gap that cannot be closed is left behind: the epoch grows, and sequences start again at 0.

Kafka: TransactionManager, TxnPartitionEntry, KIP-360.
"""

from __future__ import annotations

from typing import Final

from rejoin.client.core.producer.context import ProducerContext
from rejoin.client.core.producer.state import (
    NO_PRODUCER,
    InitProducerIdSent,
    PartitionQueue,
    ProducerBatch,
    ProducerCoreState,
    ProducerIdAndEpoch,
)
from rejoin.protocol.messages.transactions.init_producer_id import InitProducerIdRequest
from rejoin.protocol.wire.record_batch import NO_SEQUENCE, increment_sequence
from rejoin.protocol.wire.record_encoder import with_producer_state

LAST_EPOCH: Final = 32_767
NO_TRANSACTION_TIMEOUT_MS: Final = 2**31 - 1


# -- the producer id


def ensure_producer_id(state: ProducerCoreState, ctx: ProducerContext) -> None:
    """Resolve what is unknown, move on to a new epoch if that is required, and ask for an id where there is none."""
    idempotence = state.idempotence
    _resolve(state)
    if idempotence.bump_required:
        _bump_epoch(state)
    if idempotence.producer != NO_PRODUCER or idempotence.request_id is not None:
        return
    if ctx.now < idempotence.retry_at:
        ctx.wake(idempotence.retry_at)
        return
    request = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=NO_TRANSACTION_TIMEOUT_MS)
    idempotence.request_id = ctx.send(state, request, InitProducerIdSent())


def id_found(state: ProducerCoreState, producer_id: int, epoch: int) -> None:
    """The broker gave a producer id."""
    idempotence = state.idempotence
    idempotence.request_id = None
    idempotence.attempts = 0
    idempotence.producer = ProducerIdAndEpoch(producer_id, epoch)


def id_not_found(state: ProducerCoreState, ctx: ProducerContext) -> None:
    """Ask again later."""
    idempotence = state.idempotence
    idempotence.request_id = None
    idempotence.retry_at = ctx.now + ctx.backoff(idempotence.attempts)
    idempotence.attempts += 1


def request_bump(state: ProducerCoreState, queue: PartitionQueue) -> None:
    """Start this partition's sequences again, with a new epoch."""
    state.idempotence.bump_required = True
    state.idempotence.to_rewrite[queue] = None


def _bump_epoch(state: ProducerCoreState) -> None:
    # Kafka: bumpIdempotentProducerEpoch. Other partitions follow once nothing of theirs is in flight.
    idempotence = state.idempotence
    producer_id, epoch = idempotence.producer
    if idempotence.producer != NO_PRODUCER:
        exhausted = epoch >= LAST_EPOCH
        idempotence.producer = NO_PRODUCER if exhausted else ProducerIdAndEpoch(producer_id, epoch + 1)
    for queue in idempotence.to_rewrite:
        _start_at_beginning(queue, idempotence.producer)
        queue.unresolved_sequence = None
        idempotence.unresolved.pop(queue, None)
    idempotence.to_rewrite.clear()
    idempotence.bump_required = False


def _start_at_beginning(queue: PartitionQueue, producer: ProducerIdAndEpoch) -> None:
    """Number what is in flight from 0 on, under another producer id or epoch."""
    queue.producer = producer
    queue.last_acked_sequence = NO_SEQUENCE
    queue.next_sequence = 0
    for batch in queue.in_flight:
        batch.producer = producer
        batch.sequence_was_reset = True
        # Without an id there are no sequences either; both come when the batch is sent again.
        batch.base_sequence = NO_SEQUENCE if producer == NO_PRODUCER else queue.next_sequence
        if batch.has_sequence:
            queue.next_sequence = increment_sequence(queue.next_sequence, batch.count)
            if batch.data:
                batch.data = with_producer_state(batch.data, *producer, batch.base_sequence)


# -- sending


def may_send(state: ProducerCoreState, queue: PartitionQueue, batch: ProducerBatch) -> bool:
    """Whether the first batch of a queue may be sent now."""
    # Kafka: RecordAccumulator.shouldStopDrainBatchesForPartition.
    producer = state.idempotence.producer
    if producer == NO_PRODUCER:
        return False
    if queue.in_flight and queue.in_flight[0] is batch:
        return True
    if batch in queue.in_flight:
        return False
    if queue.unresolved_sequence is not None:
        return False
    # Differs: Kafka sends on while the first batch of an epoch has no answer. A broker that does not know the producer
    # takes any first sequence (KIP-360): were the first batch to fail, the second would be stored before it.
    return not queue.in_flight or (queue.producer == producer and queue.last_acked_sequence != NO_SEQUENCE)


def number(state: ProducerCoreState, queue: PartitionQueue, batch: ProducerBatch) -> None:
    """Give a batch its sequence when it is sent first."""
    if batch.has_sequence:
        return
    producer = state.idempotence.producer
    if queue.producer != producer and all(each is batch for each in queue.in_flight):
        queue.producer = producer
        queue.next_sequence = 0
        queue.last_acked_sequence = NO_SEQUENCE
    batch.producer = producer
    batch.base_sequence = queue.next_sequence
    queue.next_sequence = increment_sequence(queue.next_sequence, batch.count)
    if batch.data:
        batch.data = with_producer_state(batch.data, *producer, batch.base_sequence)


# -- answers


def acked(queue: PartitionQueue, batch: ProducerBatch, base_offset: int) -> None:
    """The broker has a batch."""
    if batch.producer == queue.producer:
        last = queue.last_acked_sequence
        if last == NO_SEQUENCE or _is_behind(last, batch.last_sequence):
            queue.last_acked_sequence = batch.last_sequence
    queue.last_acked_offset = max(queue.last_acked_offset, base_offset + batch.count - 1 if base_offset >= 0 else -1)


def _is_behind(sequence: int, other: int) -> bool:
    """Whether a sequence is older than another; 0 follows the largest."""
    return 0 < (other - sequence) & 0x7FFF_FFFF < 1 << 30


def left_open(state: ProducerCoreState, queue: PartitionQueue, batch: ProducerBatch) -> None:
    """A batch has failed that the broker may have: wait with new ones until all others are answered."""
    # Kafka: markSequenceUnresolved.
    if batch.has_sequence:
        queue.unresolved_sequence = increment_sequence(batch.last_sequence, 1)
        state.idempotence.unresolved[queue] = None


def _resolve(state: ProducerCoreState) -> None:
    # Kafka: maybeResolveSequences.
    unresolved = state.idempotence.unresolved
    for queue in [queue for queue in unresolved if not queue.in_flight]:
        del unresolved[queue]
        queue.unresolved_sequence = None
        if not queue.is_next(queue.next_sequence):
            request_bump(state, queue)


def check_sequence(state: ProducerCoreState, queue: PartitionQueue, batch: ProducerBatch) -> None:
    """OUT_OF_ORDER_SEQUENCE_NUMBER: an earlier batch may still be in flight; if none is, there is a gap."""
    # Kafka: TransactionManager.canRetry.
    if queue.unresolved_sequence is None:
        if not batch.sequence_was_reset and queue.is_next(batch.base_sequence):
            request_bump(state, queue)
    elif queue.unresolved_sequence == batch.base_sequence:
        request_bump(state, queue)


def check_producer_id(
    state: ProducerCoreState, queue: PartitionQueue, batch: ProducerBatch, log_start_offset: int
) -> None:
    """UNKNOWN_PRODUCER_ID: the broker has forgotten this producer, as those before Kafka 2.4 do."""
    if log_start_offset != -1 and not batch.sequence_was_reset:
        request_bump(state, queue)
