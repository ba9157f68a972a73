"""Hands out fetched records: up to ``max.poll.records``, partition by partition, advancing positions.

Source: Kafka's FetchCollector.collectFetch.
"""

from __future__ import annotations

from collections.abc import Collection

from rejoin.client.core.errors import CorruptRecordError, KafkaError, RecordDeserializationError
from rejoin.client.core.fetch.consumer_record import ConsumerRecord
from rejoin.client.core.inputs import RecordRange
from rejoin.client.core.state.consumer import ConsumerState
from rejoin.client.core.state.fetching import BufferedFetch
from rejoin.client.core.step_context import StepContext
from rejoin.protocol.types import TopicPartition

Fetched = tuple[tuple[RecordRange, ...], tuple[list[ConsumerRecord], ...]]


def take(state: ConsumerState, ctx: StepContext, max_records: int, only: Collection[TopicPartition] | None) -> Fetched:
    """Up to ``max_records`` records. Raises the error of the first record; an error behind good ones waits."""
    buffered, kept = state.fetching.buffered, []
    ranges: list[RecordRange] = []
    lists: list[list[ConsumerRecord]] = []
    left = max_records
    error: KafkaError | None = None
    while buffered and left > 0 and error is None:
        fetch = buffered[0]
        owned = state.subscription.assignment.get(fetch.partition)
        if owned is None or owned.position != fetch.batches.next_offset:
            buffered.popleft()
            continue
        if not owned.fetchable or (only is not None and fetch.partition not in only):
            kept.append(buffered.popleft())  # Kafka: what was fetched of a paused partition is kept.
            continue
        try:
            records = fetch.batches.take(left)
        except CorruptRecordError as problem:
            buffered.popleft()
            error = problem
            continue
        records, error = _deserialized(ctx, fetch, records)
        if fetch.batches.next_offset == owned.position and error is None:
            buffered.popleft()
            continue
        start, owned.position = owned.position, fetch.batches.next_offset
        owned.epoch = fetch.batches.epoch if fetch.batches.epoch >= 0 else owned.epoch
        if fetch.batches.is_drained:
            buffered.popleft()
        if records:
            left -= len(records)
            ranges.append(RecordRange(*fetch.partition, min(start, records[0].offset), owned.position))
            lists.append(records)
    buffered.extendleft(reversed(kept))
    if error is not None:
        if not ranges:
            raise error
        state.positions.error = error
    return tuple(ranges), tuple(lists)


def _deserialized(
    ctx: StepContext, fetch: BufferedFetch, records: list[ConsumerRecord]
) -> tuple[list[ConsumerRecord], RecordDeserializationError | None]:
    """The records with keys and values as the user wants them, up to the first that cannot be made."""
    if ctx.deserializers == (None, None):
        return records, None
    made: list[ConsumerRecord] = []
    for index, record in enumerate(records):
        try:
            made.append(deserialized(ctx, record))
        except RecordDeserializationError as error:
            fetch.batches.put_back(records[index:])
            return made, error
    return made, None


def deserialized(ctx: StepContext, record: ConsumerRecord) -> ConsumerRecord:
    """A record with key and value as the user wants them. Raises RecordDeserializationError."""
    of_key, of_value = ctx.deserializers
    if of_key is None and of_value is None:
        return record
    try:
        key = record.key if of_key is None or record.key is None else of_key(record.key)
        value = record.value if of_value is None or record.value is None else of_value(record.value)
    except Exception as problem:
        partition = TopicPartition(record.topic, record.partition)
        raise RecordDeserializationError(partition, record.offset, str(problem)) from problem
    return record._replace(key=key, value=value)
