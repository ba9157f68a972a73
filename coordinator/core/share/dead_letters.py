"""Dead letters: records that were rejected or delivered too often, written to the topic that their group names.

Whatever becomes of a letter, its record is archived. Kafka: KIP-1191, ShareGroupDLQManager.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Final, NamedTuple

from rejoin.coordinator.core.fetch.logs import ReadableLogs
from rejoin.coordinator.core.inputs import Millis, TopicsRecords
from rejoin.coordinator.core.partitions.partitions import Partitions
from rejoin.coordinator.core.peers import PeerRequests
from rejoin.coordinator.core.runtime.timers import TimerKey
from rejoin.coordinator.core.share.led_partitions import LedSharePartition, LettersEnded
from rejoin.coordinator.core.share.reading import batches_of
from rejoin.coordinator.core.share.timers import NO_OWNER, ShareTimer
from rejoin.coordinator.core.share.window.effects import DeadLetter, DeadLetterCause
from rejoin.coordinator.core.step_context import StepContext
from rejoin.coordinator.core.topics.changes import TopicChange, TopicChanges
from rejoin.coordinator.core.topics.placement import Placement
from rejoin.coordinator.core.topics.topics import Topics
from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.java import random_uuid
from rejoin.protocol.message import Response
from rejoin.protocol.messages.records.produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from rejoin.protocol.records.batch_run import whole
from rejoin.protocol.wire.compression import CompressionType
from rejoin.protocol.wire.errors import RecordsError
from rejoin.protocol.wire.record_encoder import BatchBuilder, encode_record
from rejoin.protocol.wire.records import read_batch

PRODUCE_VERSION: Final = 9
MOST_ATTEMPTS: Final = 5
FIRST_BACKOFF_MS: Final = 1_000
LONGEST_BACKOFF_MS: Final = 30_000
TIMEOUT_MS: Final = 30_000
ENABLE: Final = "errors.deadletterqueue.group.enable"
CONFIGS: Final = {ENABLE: "true", "message.timestamp.type": "CreateTime"}
"""The settings of a topic for dead letters that is made automatically."""

BATCH_OVERHEAD: Final = 200
"""Bytes of a batch that are not its records, and then some."""

TEXTS: Final = {
    DeadLetterCause.REJECTED: "Offset rejected by client.",
    DeadLetterCause.DELIVERY_COUNT: "Offset delivery count exceeded the threshold.",
}
"""The values of the header ``__dlq.errors.message``, as Kafka 4.4 writes them."""


class SourceRecord(NamedTuple):
    """Key and value of a record that is copied."""

    key: bytes | None = None
    value: bytes | None = None


@dataclass(slots=True)
class _Batch:
    """Letters that are written together."""

    topic: str
    partition: int
    data: bytes
    on_end: LettersEnded
    attempts: int = 0
    error: ErrorCode = ErrorCode.NETWORK_EXCEPTION
    """The last error; this one if no response came."""


class DeadLetters:
    """Writes dead letters, on whichever node the topic's partition is led."""

    def __init__(
        self,
        ctx: StepContext,
        topics: Topics,
        changes: TopicChanges,
        partitions: Partitions,
        logs: ReadableLogs,
        peers: PeerRequests,
        placement: Callable[[], Placement],
    ) -> None:
        self._ctx = ctx
        self._topics = topics
        self._changes = changes
        self._partitions = partitions
        self._logs = logs
        self._peers = peers
        self._placement = placement
        self._waiting: dict[TimerKey, _Batch] = {}
        self._last_number = 0

    def send(self, led: LedSharePartition, letter: DeadLetter, on_end: LettersEnded) -> None:
        """Write records to the group's topic for them; ``on_end`` is called at the end, good or bad."""
        topic = led.settings.dead_letter_topic
        if not topic or topic.startswith("__"):
            on_end(ErrorCode.INVALID_TOPIC_EXCEPTION)
        elif topic in self._topics.by_name:
            self._write(led, letter, topic, on_end)
        elif self._may_create(topic):
            self._changes.make(
                _Creation(
                    self._ctx, self._topics, self._placement, topic, partial(self._write, led, letter, topic, on_end)
                )
            )
        else:
            on_end(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)

    def _may_create(self, topic: str) -> bool:
        settings = self._ctx.settings
        prefix = settings.errors_deadletterqueue_topic_name_prefix
        return settings.errors_deadletterqueue_auto_create_topics_enable and topic.startswith(prefix)

    def _write(self, led: LedSharePartition, letter: DeadLetter, topic: str, on_end: LettersEnded) -> None:
        found = self._topics.by_name.get(topic)
        if found is None:
            on_end(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
            return
        if found.configs.get(ENABLE, "false").lower() != "true":
            on_end(ErrorCode.POLICY_VIOLATION)
            return
        partition = led.key.partition % len(found.partitions)
        most_bytes = int(found.configs.get("max.message.bytes", self._ctx.settings.message_max_bytes))
        batches = list(self._batches(led, letter, most_bytes))
        left, errors = [len(batches)], [ErrorCode.NONE]

        def one_ended(error: ErrorCode) -> None:
            left[0] -= 1
            if error is not ErrorCode.NONE:
                errors[0] = error
            if not left[0]:
                on_end(errors[0])

        for data in batches:
            self._produce(_Batch(topic, partition, data, one_ended))

    # --- records

    def _batches(self, led: LedSharePartition, letter: DeadLetter, most_bytes: int) -> Iterator[bytes]:
        """Batches of at most so many bytes with a record for each offset."""
        now = self._ctx.now
        sources = self._sources(led, letter) if led.settings.copies_records else {}
        builder, count, size = BatchBuilder(now), 0, BATCH_OVERHEAD
        for offset in range(letter.first_offset, letter.last_offset + 1):
            key, value = sources.get(offset, SourceRecord())
            headers = _headers(led, letter, offset)
            record = encode_record(0, count, key, value, headers)
            if count and size + len(record) > most_bytes:
                yield bytes(builder.seal(CompressionType.NONE))
                builder, count, size = BatchBuilder(now), 0, BATCH_OVERHEAD
                record = encode_record(0, 0, key, value, headers)
            builder.append(record, now)
            count += 1
            size += len(record)
        yield bytes(builder.seal(CompressionType.NONE))

    def _sources(self, led: LedSharePartition, letter: DeadLetter) -> dict[int, SourceRecord]:
        """Key and value of the records by offset; one that cannot be read is left out."""
        _, index, topic = led.partition
        found = self._logs.find(topic, index, led.partition.topic_id)
        if isinstance(found, ErrorCode):
            return {}
        sources: dict[int, SourceRecord] = {}
        offset, end = max(letter.first_offset, found.log.log_start_offset), letter.last_offset + 1
        while offset < end:
            data = whole(found.log.read(offset, 0, end, at_least_one=True))
            next_offset = offset
            for batch in batches_of(data):
                next_offset = batch.header.last_offset + 1
                for record in _records(data[batch.begin : batch.end]):
                    sources[batch.header.base_offset + record[0]] = record[1]
            if next_offset <= offset:
                break
            offset = next_offset
        return sources

    # --- writing

    def _produce(self, batch: _Batch) -> None:
        identity = self._partitions.identify(batch.topic, batch.partition)
        leader = None if identity is None else self._partitions.leader_of(identity)[0]
        if leader is None:
            self._try_again(batch)
            return
        data = PartitionProduceData(index=batch.partition, records=batch.data)
        request = ProduceRequest(
            acks=-1, timeout_ms=TIMEOUT_MS, topic_data=(TopicProduceData(name=batch.topic, partition_data=(data,)),)
        )
        self._peers.ask(leader.node_id, request, PRODUCE_VERSION, partial(self._produced, batch))

    def _produced(self, batch: _Batch, response: Response | None) -> None:
        if isinstance(response, ProduceResponse):
            errors = {each.error_code for topic in response.responses for each in topic.partition_responses}
            error = next((each for each in errors if each is not ErrorCode.NONE), ErrorCode.NONE)
            if not any(each.retriable for each in errors):
                batch.on_end(error)
                return
            batch.error = error
        self._try_again(batch)

    def _try_again(self, batch: _Batch) -> None:
        batch.attempts += 1
        if batch.attempts >= MOST_ATTEMPTS:
            batch.on_end(batch.error)
            return
        self._last_number += 1
        timer = TimerKey(ShareTimer.DEAD_LETTERS, NO_OWNER, name=f"{self._last_number:012}")
        self._waiting[timer] = batch
        self._ctx.deadlines.set(timer, self._ctx.now + _backoff(batch.attempts))

    def timer_fired(self, timer: TimerKey) -> None:
        """Letters are to be written once more."""
        batch = self._waiting.pop(timer, None)
        if batch is not None:
            self._produce(batch)


def _backoff(attempts: int) -> Millis:
    return min(FIRST_BACKOFF_MS << attempts - 1, LONGEST_BACKOFF_MS)


def _records(batch: bytes | memoryview) -> Iterator[tuple[int, SourceRecord]]:
    try:
        records = read_batch(batch)
    except RecordsError:
        return
    for record in records:
        yield record.offset_delta, SourceRecord(record.key, record.value)


def _headers(led: LedSharePartition, letter: DeadLetter, offset: int) -> list[tuple[str, bytes | None]]:
    _, partition, topic = led.partition
    texts = {
        "topic": topic,
        "partition": str(partition),
        "offset": str(offset),
        "group": led.group_id,
        "delivery.count": str(letter.delivery_count),
        "message": TEXTS[letter.cause],
    }
    return [(f"__dlq.errors.{name}", text.encode()) for name, text in texts.items()]


class _Creation(TopicChange):
    """The topic for dead letters is made by its first letter."""

    def __init__(
        self,
        ctx: StepContext,
        topics: Topics,
        placement: Callable[[], Placement],
        topic: str,
        on_end: Callable[[], None],
    ) -> None:
        self._ctx = ctx
        self._topics = topics
        self._placement = placement
        self._topic = topic
        self._on_end = on_end

    def decide(self) -> TopicsRecords:
        topics = self._topics
        if self._topic in topics or topics.check_automatic(self._topic) is not ErrorCode.NONE:
            return ()
        count = self._ctx.settings.num_partitions
        topic_id = random_uuid(self._ctx.new_id)
        return topics.internal(self._topic, topic_id, count, CONFIGS, self._placement(), self._ctx.now)

    def ended(self, error: ErrorCode) -> None:
        self._on_end()
