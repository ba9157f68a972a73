"""Completes batches: stored, sent again, split, or failed. Each batch ends in one ``BatchDone``.

Kafka: Sender.completeBatch, failBatch, canRetry; RecordAccumulator.reenqueue, splitAndReenqueue.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from rejoin.client.core.errors import (
    CodedError,
    InvalidRecordError,
    KafkaError,
    TopicAuthorizationError,
)
from rejoin.client.core.producer import metadata, sequences
from rejoin.client.core.producer.accumulator import release
from rejoin.client.core.producer.context import ProducerContext
from rejoin.client.core.producer.effects import BatchDone
from rejoin.client.core.producer.reactions import ProducerReaction, reaction
from rejoin.client.core.producer.state import PartitionQueue, ProducerBatch, ProducerCoreState, ProduceSent
from rejoin.client.core.producer.transactions import transitions
from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.messages.records.produce import PartitionProduceResponse, ProduceResponse
from rejoin.protocol.wire.record_batch import HEADER_SIZE, increment_sequence, parse_header
from rejoin.protocol.wire.record_encoder import BatchBuilder, encode_record
from rejoin.protocol.wire.records import read_batch

_WITHOUT_ANSWER: Final = PartitionProduceResponse(error_code=ErrorCode.NONE, base_offset=-1)
_NOT_IN_ANSWER: Final = PartitionProduceResponse(
    error_code=ErrorCode.UNKNOWN_SERVER_ERROR, base_offset=-1, error_message="the answer does not have this partition"
)


def answered(state: ProducerCoreState, ctx: ProducerContext, sent: ProduceSent, response: ProduceResponse) -> None:
    """A Produce request was answered, or with acks of 0: written."""
    node = state.node(sent.node_id)
    node.in_flight -= 1
    if ctx.config.required_acks == 0:
        for batch in sent.batches:
            _answered_batch(state, ctx, batch, _WITHOUT_ANSWER)
        return
    if response.throttle_time_ms > 0:
        node.throttled_until = ctx.now + response.throttle_time_ms
    answers = {
        (topic.name, partition.index): partition
        for topic in response.responses
        for partition in topic.partition_responses
    }
    for batch in sent.batches:
        answer = answers.get(batch.partition, _NOT_IN_ANSWER)
        if answer.error_code in (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.FENCED_LEADER_EPOCH):
            metadata.take_hint(state, batch.partition, answer.current_leader, response.node_endpoints)
        _answered_batch(state, ctx, batch, answer)


def lost(state: ProducerCoreState, ctx: ProducerContext, sent: ProduceSent, error: ErrorCode, detail: str) -> None:
    """A Produce request has no answer: the broker may have the batches or not."""
    state.node(sent.node_id).in_flight -= 1
    answer = PartitionProduceResponse(error_code=error, base_offset=-1, error_message=detail)
    for batch in sent.batches:
        _answered_batch(state, ctx, batch, answer)


def _answered_batch(
    state: ProducerCoreState, ctx: ProducerContext, batch: ProducerBatch, answer: PartitionProduceResponse
) -> None:
    queue = batch.queue
    batch.is_sent = False
    error = answer.error_code
    what = reaction("Produce", error)
    if what is ProducerReaction.REFRESH:
        metadata.request_update(state)
    if what is ProducerReaction.COMPLETE:
        if ctx.config.enable_idempotence:
            sequences.acked(queue, batch, answer.base_offset)
        complete(state, ctx, batch, answer.base_offset, answer.log_append_time_ms)
    elif batch.is_done:
        return  # It had expired before.
    elif what is ProducerReaction.SPLIT and batch.count > 1:
        _split(state, ctx, queue, batch)
    elif _may_retry(state, ctx, queue, batch, what, answer):
        _requeue(state, ctx, queue, batch)
    else:
        _fail(state, ctx, queue, batch, what, answer)


# -- the end


def complete(
    state: ProducerCoreState,
    ctx: ProducerContext,
    batch: ProducerBatch,
    base_offset: int = -1,
    log_append_time: int = -1,
    error: KafkaError | None = None,
    record_errors: Mapping[int, KafkaError] | None = None,
) -> None:
    """A batch is done: stored, or failed for good."""
    if batch.is_done:
        return
    batch.is_done = True
    queue = batch.queue
    if batch in queue.in_flight:
        queue.in_flight.remove(batch)
    if batch in queue.batches:
        queue.batches.remove(batch)
        if not queue.batches:
            state.active.pop(queue, None)
    release(state, batch)
    ctx.emit(
        BatchDone(
            batch.partition, batch.tokens, batch.timestamps, base_offset, log_append_time, error, record_errors or {}
        )
    )


def fail_expired(state: ProducerCoreState, ctx: ProducerContext, batch: ProducerBatch, error: KafkaError) -> None:
    """A batch has failed that the broker may have."""
    # Differs: Kafka leaves the sequence of a batch open only if that was sent before, and is not in its first request.
    queue = batch.queue
    complete(state, ctx, batch, error=error)
    if state.transaction is not None:
        transitions.must_abort(state.transaction, error)
        return
    sequences.left_open(state, queue, batch)


def _fail(
    state: ProducerCoreState,
    ctx: ProducerContext,
    queue: PartitionQueue,
    batch: ProducerBatch,
    what: ProducerReaction,
    answer: PartitionProduceResponse,
) -> None:
    error = _error(batch, answer)
    complete(state, ctx, batch, error=error, record_errors=_record_errors(batch, answer))
    if what is ProducerReaction.FATAL:
        state.fatal_error = error
    elif state.transaction is not None:
        transitions.must_abort(state.transaction, error)
    elif not ctx.config.enable_idempotence:
        return
    elif what in (ProducerReaction.RETRY, ProducerReaction.REFRESH):
        # Differs: Kafka leaves a gap, at which all later batches fail, when retries are over.
        sequences.left_open(state, queue, batch)
    else:
        sequences.request_bump(state, queue)


def _error(batch: ProducerBatch, answer: PartitionProduceResponse) -> KafkaError:
    if answer.error_code is ErrorCode.TOPIC_AUTHORIZATION_FAILED:
        return TopicAuthorizationError([batch.partition.topic])
    return _coded_error(batch, answer.error_code, answer.error_message)


def _coded_error(batch: ProducerBatch, error: ErrorCode, message: str | None) -> CodedError:
    topic, partition = batch.partition
    text = f"{topic}-{partition}: {error.name} ({error.value})"
    return CodedError(error, f"{text}: {message}" if message else text)


def _record_errors(batch: ProducerBatch, answer: PartitionProduceResponse) -> dict[int, KafkaError]:
    """The records that the broker found wrong. All others of the batch failed because of them."""
    # Kafka: a single record at fault has the error of the batch.
    errors: dict[int, KafkaError] = {}
    for each in answer.record_errors:
        message = each.batch_index_error_message or answer.error_message
        if len(answer.record_errors) == 1:
            errors[each.batch_index] = _coded_error(batch, answer.error_code, message)
        else:
            errors[each.batch_index] = InvalidRecordError(message or answer.error_code.name)
    return errors


# -- once more


def _may_retry(
    state: ProducerCoreState,
    ctx: ProducerContext,
    queue: PartitionQueue,
    batch: ProducerBatch,
    what: ProducerReaction,
    answer: PartitionProduceResponse,
) -> bool:
    """Whether to send a batch again. With idempotence this decides about its sequence as well."""
    if ctx.now >= batch.created_at + ctx.delivery_timeout_ms or batch.attempts >= ctx.config.retries:
        return False
    if what in (ProducerReaction.RETRY, ProducerReaction.REFRESH):
        return True
    if state.transaction is not None:
        return what is ProducerReaction.CHECK_SEQUENCE and transitions.may_retry(state.transaction, queue, batch)
    if not ctx.config.enable_idempotence:
        return False
    if what is ProducerReaction.CHECK_SEQUENCE:
        sequences.check_sequence(state, queue, batch)
        return True
    if what is ProducerReaction.CHECK_PRODUCER_ID:
        sequences.check_producer_id(state, queue, batch, answer.log_start_offset)
        return True
    return False


def _requeue(state: ProducerCoreState, ctx: ProducerContext, queue: PartitionQueue, batch: ProducerBatch) -> None:
    """Put a batch back into its queue: before those that are sent after it."""
    batch.retry_at = ctx.now + ctx.backoff(batch.attempts)
    batch.attempts += 1
    state.active[queue] = None
    if not ctx.config.enable_idempotence:
        # Kafka: the first that fails is the first to go back, so those behind it overtake it.
        queue.in_flight.remove(batch)
        queue.batches.appendleft(batch)
        return
    earlier = set(queue.in_flight[: queue.in_flight.index(batch)])
    at = sum(1 for each in queue.batches if each in earlier)
    queue.batches.insert(at, batch)


def _split(state: ProducerCoreState, ctx: ProducerContext, queue: PartitionQueue, batch: ProducerBatch) -> None:
    """Send the records of a batch that is too large in smaller ones, with the same sequences."""
    # Kafka: ProducerBatch.split. Differs: a batch of at most batch.size is halved; Kafka sends the same again.
    target = ctx.config.batch_size
    if len(batch.data) <= target:
        target = (HEADER_SIZE + len(batch.data)) // 2
    parts = _parts(batch, target)
    sequence = batch.base_sequence
    for part in parts:
        if batch.has_sequence:
            part.producer = batch.producer
            part.base_sequence = sequence
            sequence = increment_sequence(sequence, part.count)
    at = queue.in_flight.index(batch)
    in_order = ctx.config.enable_idempotence
    queue.in_flight[at : at + 1] = parts if in_order else []
    earlier = set(queue.in_flight[:at]) if in_order else set()
    before = sum(1 for each in queue.batches if each in earlier)
    for index, part in enumerate(parts):
        queue.batches.insert(before + index, part)
    state.active[queue] = None
    _replace_incomplete(state, batch, parts)


def _parts(batch: ProducerBatch, target: int) -> list[ProducerBatch]:
    header = parse_header(batch.data)
    parts: list[ProducerBatch] = []
    builder = BatchBuilder(0)
    for index, record in enumerate(read_batch(batch.data)):
        timestamp = header.base_timestamp + record.timestamp_delta
        fields = (record.key, record.value, record.headers)
        encoded = encode_record(timestamp - builder.base_timestamp, builder.count, *fields)
        if not parts or builder.size + len(encoded) > target:
            builder = BatchBuilder(timestamp)
            encoded = encode_record(0, 0, *fields)
            parts.append(ProducerBatch(batch.queue, batch.created_at, builder, target, 0, is_full=True))
        builder.append(encoded, timestamp)
        parts[-1].tokens.append(batch.tokens[index])
        parts[-1].timestamps.append(batch.timestamps[index])
    return parts


def _replace_incomplete(state: ProducerCoreState, batch: ProducerBatch, parts: list[ProducerBatch]) -> None:
    """Let the parts stand for the batch: for its memory, its time, and those who wait for it."""
    batch.is_done = True
    for part in parts:
        part.reserved = batch.reserved // len(parts)
    parts[0].reserved += batch.reserved % len(parts)
    order: dict[ProducerBatch, None] = {}
    for each in state.incomplete:
        order.update(dict.fromkeys(parts) if each is batch else {each: None})
    state.incomplete = order
    for flush in state.flushes:
        if batch in flush.waiting:
            del flush.waiting[batch]
            flush.waiting.update(dict.fromkeys(parts))
