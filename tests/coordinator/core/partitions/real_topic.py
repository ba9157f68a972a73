"""A node whose topic ``t`` has a real log, and what tests ask of it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from rejoin.coordinator.core.partitions.partition import Partition
from rejoin.coordinator.core.partitions.topic_config import TopicConfig
from rejoin.protocol.messages.records.produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    TopicProduceData,
)
from rejoin.protocol.messages.topics.create_topics import CreatableTopic, CreateTopicsRequest
from rejoin.protocol.wire.record_batch import MAGIC, BatchHeader, parse_header, sealed
from rejoin.protocol.wire.records import DefaultRecord, write_records
from tests.coordinator.core.driver import TOPIC, DrivenNode

PRODUCE_VERSION = 12


def batch(*values: str, at: int = 1_700_000_000_000, keys: tuple[str, ...] = (), **header: int) -> bytes:
    """A batch with a record for each value, a millisecond apart; the first at an instant."""
    records = [
        DefaultRecord(index, index, keys[index].encode() if keys else None, value.encode())
        for index, value in enumerate(values)
    ]
    last = len(values) - 1
    made = BatchHeader(0, 0, -1, MAGIC, 0, 0, last, at, at + last, -1, -1, -1, len(values))
    return sealed(made.with_fields(**header), write_records(records))


class RealTopic(DrivenNode):
    """A node with one topic of one partition and a real log."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(emulator_records_per_second=None, **settings)

    def partition(self, index: int = 0, topic: str = TOPIC) -> Partition:
        """A partition that this node leads."""
        identity = self.node._partitions.identify(topic, index)
        assert identity is not None
        found = self.node._partitions.get(identity)
        assert found is not None, "it is led here"
        return found

    def configure(self, **config: Any) -> None:
        """Set what the topic is like."""
        partition = self.partition()
        changed = replace(partition.config, **config)
        assert isinstance(changed, TopicConfig)
        self.node._partitions.configure(partition.partition.topic_id, changed)

    def create(self, name: str, partitions: int = 1) -> None:
        """Another topic."""
        topic = CreatableTopic(name=name, num_partitions=partitions, replication_factor=1, assignments=(), configs=())
        self.ask(CreateTopicsRequest(topics=(topic,)), 7)

    def send_batch(
        self, data: bytes | None, *, acks: int = -1, timeout_ms: int = 1_000, index: int = 0, topic: str = TOPIC
    ) -> int:
        """Send a Produce with one batch for a topic; returns the number under which it is answered."""
        partition = PartitionProduceData(index=index, records=data)
        of_topic = TopicProduceData(name=topic, partition_data=(partition,))
        return self.send(ProduceRequest(acks=acks, timeout_ms=timeout_ms, topic_data=(of_topic,)), PRODUCE_VERSION)

    def answer_to(self, number: int) -> PartitionProduceResponse:
        """What became of the one batch of a request."""
        (topic,) = self.replies[number].responses  # type: ignore[attr-defined]
        (partition,) = topic.partition_responses
        assert isinstance(partition, PartitionProduceResponse)
        return partition

    def produce(self, data: bytes | None, **request: Any) -> PartitionProduceResponse:
        """Produce one batch, and see what becomes of it."""
        return self.answer_to(self.send_batch(data, **request))

    def stored_headers(self) -> list[BatchHeader]:
        """The headers of the batches in the log."""
        return [parse_header(each.data) for each in self.partition().log.batches]
