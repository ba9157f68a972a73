"""Which node each partition is read from: its leader, the leader that another node names, or a replica."""

from __future__ import annotations

from typing import Any

import pytest

from rejoin.client.assignors import assignor_named
from rejoin.client.config import ConsumerConfig
from rejoin.client.core.consumer import ConsumerCore
from rejoin.client.core.effects import Effect, Send
from rejoin.client.core.inputs import Answered, Assigned, Elapsed, Failed, Failure, Input, Polled, Sought
from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.messages.cluster.metadata import (
    MetadataRequest,
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from rejoin.protocol.messages.leader_hints import LeaderIdAndEpoch, NodeEndpoint
from rejoin.protocol.messages.records.fetch import (
    FetchablePartitionResponse,
    FetchableTopicResponse,
    FetchRequest,
    FetchResponse,
)
from rejoin.protocol.types import TopicPartition
from tests.client.core.fetch.test_batches import batch, plain

TOPIC_ID = "t" * 21 + "A"
EPOCH = 5
AGE_MS = 300_000
NO_LEADER = -1


class Reader:
    """A consumer of one topic in a cluster of three nodes, which is in a poll and reads from offset 0."""

    def __init__(self, *leaders: int) -> None:
        config = ConsumerConfig(client_id="c", metadata_max_age_ms=AGE_MS)
        self.core = ConsumerCore(config, [assignor_named("range")], lambda: 0.5, reads_records=True)
        self.now = 1_000
        self.leaders = leaders
        self.waiting: list[Send] = []
        partitions = tuple(TopicPartition("t", number) for number in range(len(leaders)))
        for what in (Assigned(partitions), Sought(partitions, 0), Polled(10 * AGE_MS)):
            self.step(what)

    def step(self, what: Input) -> None:
        effects: list[Effect] = self.core.step(what, self.now)
        for effect in effects:
            if isinstance(effect, Send):
                self.waiting.append(effect)

    def learn(self) -> None:
        """Get an answer to Metadata."""
        (asked,) = (sent for sent in self.waiting if isinstance(sent.request, MetadataRequest))
        self.waiting.remove(asked)
        nodes = tuple(MetadataResponseBroker(node_id=node, host="h", port=9_000 + node) for node in (1, 2, 3))
        partitions = tuple(
            MetadataResponsePartition(partition_index=number, leader_id=leader, leader_epoch=EPOCH)
            for number, leader in enumerate(self.leaders)
        )
        topic = MetadataResponseTopic(name="t", topic_id=TOPIC_ID, partitions=partitions)
        self.step(Answered(asked.request_id, MetadataResponse(brokers=nodes, topics=(topic,))))

    def fetches(self) -> dict[int, list[int]]:
        """The partitions that are asked for now, by node."""
        return {node: [each.partition for each in self._wanted(sent)] for node, sent in self._fetches().items()}

    def epochs(self) -> dict[int, list[tuple[int, int]]]:
        """The offsets that are asked for now, and the leader epochs they are asked for in, by node."""
        return {
            node: [(each.fetch_offset, each.current_leader_epoch) for each in self._wanted(sent)]
            for node, sent in self._fetches().items()
        }

    def _fetches(self) -> dict[int, Send]:
        return {sent.to.node_id: sent for sent in self.waiting if sent.to and isinstance(sent.request, FetchRequest)}

    @staticmethod
    def _wanted(sent: Send) -> list[Any]:
        assert isinstance(sent.request, FetchRequest)
        return [partition for topic in sent.request.topics for partition in topic.partitions]

    def answer(self, node: int, *endpoints: NodeEndpoint, **fields: Any) -> None:
        """Let a node answer its Fetch, with the same for each partition."""
        sent = self._fetches()[node]
        self.waiting.remove(sent)
        partitions = tuple(
            FetchablePartitionResponse(partition_index=each.partition, **fields) for each in self._wanted(sent)
        )
        topic = FetchableTopicResponse(topic_id=TOPIC_ID, partitions=partitions)
        self.step(Answered(sent.request_id, FetchResponse(responses=(topic,), node_endpoints=endpoints)))

    def fail(self, node: int) -> None:
        """Let the connection of a Fetch end."""
        sent = self._fetches()[node]
        self.waiting.remove(sent)
        self.step(Failed(sent.request_id, Failure.DISCONNECT))

    def wait(self, millis: int) -> None:
        self.now += millis
        self.step(Elapsed())


@pytest.mark.parametrize(
    ("leaders", "fetches"),
    [
        ((1, 2, 3), {1: [0], 2: [1], 3: [2]}),
        ((2, 2, 1), {2: [0, 1], 1: [2]}),
        ((3, 3, 3), {3: [0, 1, 2]}),
        ((1, NO_LEADER, 2), {1: [0], 2: [2]}),
    ],
)
def test_each_leader_is_asked_for_what_it_leads(leaders: tuple[int, ...], fetches: dict[int, list[int]]) -> None:
    reader = Reader(*leaders)
    reader.learn()
    assert reader.fetches() == fetches
    first = next(iter(fetches))
    reader.answer(first)
    assert reader.fetches() == fetches, "one request to each node: those of the others go on"


FOURTH = NodeEndpoint(node_id=4, host="h", port=9_004)


@pytest.mark.parametrize(
    ("error", "hint", "endpoints", "expected"),
    [
        ("NOT_LEADER_OR_FOLLOWER", (2, 6), (), {2: [(0, 6)]}),
        ("FENCED_LEADER_EPOCH", (2, 6), (), {2: [(0, 6)]}),
        ("NOT_LEADER_OR_FOLLOWER", (4, 6), (FOURTH,), {4: [(0, 6)]}),
        ("NOT_LEADER_OR_FOLLOWER", (4, 6), (), {1: [(0, 5)]}),
        ("NOT_LEADER_OR_FOLLOWER", (2, 5), (), {1: [(0, 5)]}),
        ("NOT_LEADER_OR_FOLLOWER", (2, 4), (), {1: [(0, 5)]}),
        ("NOT_LEADER_OR_FOLLOWER", (-1, -1), (), {1: [(0, 5)]}),
    ],
)
def test_a_leader_that_another_node_names_counts_if_its_epoch_is_newer(
    error: str, hint: tuple[int, int], endpoints: tuple[NodeEndpoint, ...], expected: dict[int, list[tuple[int, int]]]
) -> None:
    reader = Reader(1)
    reader.learn()
    leader = LeaderIdAndEpoch(leader_id=hint[0], leader_epoch=hint[1])
    reader.answer(1, *endpoints, error_code=ErrorCode[error], current_leader=leader)
    assert reader.epochs() == expected
    reader.wait(1_000)
    reader.learn()
    assert reader.epochs() == expected, "metadata of an older epoch changes nothing"


@pytest.mark.parametrize(
    ("then", "expected"),
    [
        ("records", 2),
        ("nothing", 2),
        ("OFFSET_OUT_OF_RANGE", 1),
        ("NOT_LEADER_OR_FOLLOWER", 1),
        ("disconnected", 1),
        ("too old", 1),
    ],
)
def test_a_replica_that_the_leader_names_is_read_from_as_long_as_that_works(then: str, expected: int) -> None:
    reader = Reader(1)
    reader.learn()
    reader.answer(1, preferred_read_replica=2)
    assert reader.epochs() == {2: [(0, EPOCH)]}
    offset = 0
    match then:
        case "records":
            offset = 3
            reader.answer(2, high_watermark=3, records=batch(0, plain(3), epoch=EPOCH))
            reader.step(Polled(AGE_MS))
        case "nothing":
            reader.answer(2)
        case "disconnected":
            reader.fail(2)
            reader.wait(1_000)
        case "too old":
            reader.wait(AGE_MS)
            reader.answer(2)
        case error:
            reader.answer(2, error_code=ErrorCode[error])
    assert reader.epochs() == {expected: [(offset, EPOCH)]}


def test_a_replica_that_is_not_known_is_not_read_from() -> None:
    reader = Reader(1)
    reader.learn()
    reader.answer(1, preferred_read_replica=9)
    assert reader.fetches() == {1: [0]}
