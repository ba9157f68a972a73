"""The one driver of a single producer's core: a virtual clock, two brokers, and scripted answers.

    bench = Bench(linger_ms=0)
    bench.produce("a", "b")        # records of partition t-0 with these values
    bench.take()                   # what the producer did since the last time, in order
    bench.answer(base_offset=0)    # the oldest Produce request

Metadata and InitProducerId are answered by themselves unless a test wants to do that.
"""

from __future__ import annotations

from typing import Any

from rejoin.client.core.effects import CallDone, Send
from rejoin.client.core.inputs import Answered, Elapsed, Failed, Failure
from rejoin.client.core.producer.core import ProducerCore
from rejoin.client.core.producer.effects import BatchDone, ProducerEffect, RecordFailed, SendBlocked, SendUnblocked
from rejoin.client.core.producer.inputs import Flushed, Produced, ProducerClosed, ProducerInput
from rejoin.client.producer_config import checked_producer_config
from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.message import Response
from rejoin.protocol.messages.cluster.metadata import (
    MetadataRequest,
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from rejoin.protocol.messages.leader_hints import UNKNOWN_LEADER, LeaderIdAndEpoch, NodeEndpoint
from rejoin.protocol.messages.records.produce import (
    BatchIndexAndErrorMessage,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceResponse,
)
from rejoin.protocol.messages.transactions.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from rejoin.protocol.types import TopicPartition
from rejoin.protocol.wire.record_batch import parse_header
from rejoin.protocol.wire.records import read_batch

NONE = ErrorCode.NONE


class Bench:
    """One producer and its scripted surroundings. ``topics``: name to number of partitions; broker 1 leads them all."""

    def __init__(self, *, topics: dict[str, int] | None = None, random: float = 0.5, **settings: Any) -> None:
        settings.setdefault("linger_ms", 0)
        self.core = ProducerCore(checked_producer_config(settings), lambda: random)
        self.topics = {"t": 1} if topics is None else topics
        self.leaders: dict[TopicPartition, tuple[int, int]] = {}
        self.now = self.started = 1_000_000
        self.answers_metadata = self.answers_init = True
        self.metadata_problem = ""
        self.producer = (7, 0)
        self.init_error = NONE
        self.topic_error = NONE
        self.in_flight: list[Send] = []
        self.lines: list[str] = []
        self.requests: list[str] = []

    # -- inputs

    def step(self, what: ProducerInput) -> None:
        effects = self.core.step(what, self.now)
        for effect in effects:
            self._apply(effect)

    def produce(self, *values: str, partition: int | None = 0, topic: str = "t", key: bytes | None = None) -> None:
        """Records whose token is their value."""
        for value in values:
            self.step(Produced(value, topic, partition, key, value.encode()))

    def flush(self) -> None:
        self.step(Flushed("flush"))

    def close(self, timeout_ms: int | None = None) -> None:
        self.step(ProducerClosed("close", timeout_ms))

    def advance(self, ms: int) -> None:
        """Let time pass, firing each deadline."""
        until = self.now + ms
        while (due := self.core.next_deadline()) is not None and due <= until:
            self.now = max(self.now, due)
            self.step(Elapsed())
        self.now = until

    def answer(
        self,
        error: ErrorCode = NONE,
        *,
        index: int = 0,
        base_offset: int = 0,
        bad_records: tuple[int, ...] = (),
        leader: tuple[int, int] | None = None,
        log_start_offset: int = 0,
        throttle_ms: int = 0,
    ) -> None:
        """Answer a Produce request, the oldest by default, with one result for all of its partitions."""
        sent = self.in_flight.pop(index)
        assert isinstance(sent.request, ProduceRequest)
        topics = tuple(
            TopicProduceResponse(
                name=topic.name,
                partition_responses=tuple(
                    PartitionProduceResponse(
                        index=data.index,
                        error_code=error,
                        base_offset=base_offset if error is NONE else -1,
                        log_start_offset=log_start_offset,
                        record_errors=tuple(
                            BatchIndexAndErrorMessage(batch_index=at, batch_index_error_message="bad")
                            for at in bad_records
                        ),
                        current_leader=UNKNOWN_LEADER
                        if leader is None
                        else LeaderIdAndEpoch(leader_id=leader[0], leader_epoch=leader[1]),
                    )
                    for data in topic.partition_data
                ),
            )
            for topic in sent.request.topic_data
        )
        endpoints = (
            () if leader is None else (NodeEndpoint(node_id=leader[0], host=f"node{leader[0]}", port=9092, rack=None),)
        )
        response = ProduceResponse(responses=topics, throttle_time_ms=throttle_ms, node_endpoints=endpoints)
        self.step(Answered(sent.request_id, response))

    def lose(self, failure: Failure = Failure.DISCONNECT, *, index: int = 0) -> None:
        """No answer comes for a Produce request."""
        self.step(Failed(self.in_flight.pop(index).request_id, failure))

    # -- outputs

    def take(self) -> list[str]:
        """What the producer did since the last time."""
        lines, self.lines = self.lines, []
        return lines

    def batches(self, index: int = 0) -> dict[str, list[str]]:
        """The values of each batch in a Produce request in flight."""
        request = self.in_flight[index].request
        assert isinstance(request, ProduceRequest)
        return {
            f"{topic.name}-{data.index}": [(record.value or b"").decode() for record in read_batch(data.records or b"")]
            for topic in request.topic_data
            for data in topic.partition_data
        }

    def _apply(self, effect: ProducerEffect) -> None:
        match effect:
            case Send():
                self._send(effect)
            case SendBlocked():
                self.lines.append(f"{effect.token} waits")
            case SendUnblocked():
                self.lines.append(f"{effect.token} goes on")
            case RecordFailed():
                self.lines.append(f"{effect.token} failed: {effect.error}")
            case BatchDone():
                self._done(effect)
            case CallDone():
                self.lines.append(f"{effect.token} done" + (f": {effect.error}" if effect.error else ""))

    def _done(self, done: BatchDone) -> None:
        for index, token in enumerate(done.tokens):
            error = done.record_errors.get(index, done.error)
            at = done.base_offset + index if done.base_offset >= 0 else -1
            shown = f"{done.partition.topic}-{done.partition.partition}@{at}"
            self.lines.append(f"{token} failed: {error}" if error else f"{token} stored {shown}")

    def _send(self, send: Send) -> None:
        match send.request:
            case MetadataRequest():
                self.requests.append("Metadata")
                if self.metadata_problem:
                    self.step(Failed(send.request_id, Failure.DISCONNECT, self.metadata_problem))
                elif self.answers_metadata:
                    self.step(Answered(send.request_id, self.metadata(send.request)))
            case InitProducerIdRequest():
                self.requests.append("InitProducerId")
                if self.answers_init:
                    producer_id, epoch = self.producer
                    self.step(Answered(send.request_id, self._producer_id(producer_id, epoch)))
            case ProduceRequest():
                self.in_flight.append(send)
                self.lines.append(self._shown(send, send.request))

    def _producer_id(self, producer_id: int, epoch: int) -> Response:
        if self.init_error is not NONE:
            return InitProducerIdResponse(error_code=self.init_error, producer_epoch=-1)
        return InitProducerIdResponse(producer_id=producer_id, producer_epoch=epoch)

    @staticmethod
    def _shown(send: Send, request: ProduceRequest) -> str:
        parts = []
        for topic in request.topic_data:
            for data in topic.partition_data:
                header = parse_header(data.records or b"")
                identity = f" {header.producer_epoch}/{header.base_sequence}" if header.has_producer_id else ""
                parts.append(f"{topic.name}-{data.index}{identity} x{header.records_count}")
        assert send.to is not None, "a Produce request goes to a leader"
        return f"Produce to {send.to.node_id}: {', '.join(parts)}"

    def metadata(self, request: MetadataRequest | None = None) -> MetadataResponse:
        """What the brokers answer now."""
        wanted = self.topics if request is None else [topic.name or "" for topic in request.topics or ()]
        return MetadataResponse(
            brokers=tuple(MetadataResponseBroker(node_id=n, host=f"node{n}", port=9092) for n in (1, 2)),
            topics=tuple(self._topic(name) for name in wanted),
        )

    def _topic(self, name: str) -> MetadataResponseTopic:
        if self.topic_error is not NONE or name not in self.topics:
            error = self.topic_error if self.topic_error is not NONE else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            return MetadataResponseTopic(name=name, error_code=error)
        partitions = []
        for index in range(self.topics[name]):
            leader, epoch = self.leaders.get(TopicPartition(name, index), (1, 0))
            partitions.append(
                MetadataResponsePartition(
                    partition_index=index, leader_id=leader, leader_epoch=epoch, replica_nodes=(), isr_nodes=()
                )
            )
        return MetadataResponseTopic(name=name, partitions=tuple(partitions))
