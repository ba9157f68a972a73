"""Several nodes with one share-partition, so that its leader and the coordinator of its state are different nodes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from rejoin.coordinator.core.inputs import Broker, ClusterSeen, ConnectionLost, Context
from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.message import Request
from rejoin.protocol.messages.cluster.find_coordinator import FindCoordinatorRequest
from rejoin.protocol.messages.records.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from rejoin.protocol.messages.share.acknowledgements import AcknowledgementBatch
from rejoin.protocol.messages.share.share_acknowledge import (
    ShareAcknowledgePartition,
    ShareAcknowledgeRequest,
    ShareAcknowledgeTopic,
)
from rejoin.protocol.messages.share.share_fetch import (
    ShareFetchPartition,
    ShareFetchRequest,
    ShareFetchTopic,
)
from rejoin.protocol.messages.share.share_group_state import (
    InitializedPartition,
    InitializedTopic,
    InitializeShareGroupStateRequest,
)
from rejoin.protocol.records.consumer_offsets import offsets_partition
from rejoin.protocol.records.share_partitions import SHARE_GROUP_STATE_TOPIC
from rejoin.protocol.types import TopicIdPartition, TopicPartition
from rejoin.protocol.wire.compression import CompressionType
from rejoin.protocol.wire.record_encoder import BatchBuilder, encode_record
from rejoin.transcript.driver import NodeLogs
from tests.coordinator.core.driver import GROUP, TOPIC, DrivenNode

PARTITIONS: Final = 8
LEADER, COORDINATOR = 1, 2
"""The ids of the nodes that lead the records and the share coordinator's topic, to begin with."""

ACCEPT, RELEASE = 1, 2
WAIT_MS: Final = 100


class Cluster:
    """Nodes with ids from 1 on, one log for all."""

    def __init__(self, count: int, **settings: Any) -> None:
        self.logs = NodeLogs()
        self.nodes = {
            number: DrivenNode(
                logs=self.logs,
                leads=False,
                broker_id=number,
                offsets_topic_num_partitions=PARTITIONS,
                share_coordinator_state_topic_num_partitions=1,
                **settings,
            )
            for number in range(1, count + 1)
        }
        identity = self._identify(TOPIC)
        self.topic_id: str = identity.topic_id
        self.records = self._lease(identity)
        self.leaders = {offsets_partition(index): LEADER for index in range(PARTITIONS)}
        self.see()
        for driven in self.nodes.values():
            driven.peers = dict(self.nodes)
            key = f"{GROUP}:{self.topic_id}:0"
            driven.ask(FindCoordinatorRequest(key_type=2, coordinator_keys=(key,)), 6)
        self.states = self._lease(self._identify(SHARE_GROUP_STATE_TOPIC))
        assert self.states != self.records, "choose another number of partitions"
        self.leaders[self.states] = COORDINATOR
        self.see()
        for partition, number in self.leaders.items():
            self.nodes[number].elect(partition)

    def _identify(self, topic: str) -> TopicIdPartition:
        identity = self.nodes[LEADER].node._partitions.identify(topic, 0)
        assert isinstance(identity, TopicIdPartition)
        return identity

    def _lease(self, partition: TopicIdPartition) -> TopicPartition:
        return self.nodes[LEADER].node._partitions.leased_by(partition)

    def see(self) -> None:
        """Every node learns who leads what."""
        brokers = tuple(Broker(number, f"node-{number}", 9_000 + number) for number in self.nodes)
        for driven in self.nodes.values():
            driven.step(ClusterSeen(brokers, dict(self.leaders)))

    def move(self, partition: TopicPartition, to: int) -> None:
        """Another node leads a partition."""
        self.nodes[self.leaders[partition]].resign(partition)
        self.leaders[partition] = to
        self.see()
        self.nodes[to].elect(partition)

    def reach(self, number: int, *, reachable: bool) -> None:
        """Other nodes can reach one, or cannot."""
        for driven in self.nodes.values():
            driven.peers.pop(number, None)
            if reachable:
                driven.peers[number] = self.nodes[number]

    def elapse(self, length_ms: int) -> None:
        """Let time pass on all nodes, with each timer at its own time."""
        until = self.nodes[LEADER].now + length_ms
        while True:
            due = {number: driven.next_deadline() for number, driven in self.nodes.items()}
            first = min((at, number) for number, at in due.items() if at is not None)
            if first[0] > until:
                break
            for driven in self.nodes.values():
                driven.now = max(driven.now, first[0])
            self.nodes[first[1]].fire()
        for driven in self.nodes.values():
            driven.now = until

    def initializes(self, start_offset: int = 0, state_epoch: int = 1) -> ErrorCode:
        """The group coordinator, whichever node it is, has the state made."""
        partition = InitializedPartition(partition=0, state_epoch=state_epoch, start_offset=start_offset)
        topics = (InitializedTopic(topic_id=self.topic_id, partitions=(partition,)),)
        request = InitializeShareGroupStateRequest(group_id=GROUP, topics=topics)
        coordinator = self.nodes[self.leaders[self.states]]
        code: ErrorCode = coordinator.ask(request, 0).results[0].partitions[0].error_code
        return code

    def writes(self, count: int) -> None:
        """Records for the group."""
        leader = self.nodes[self.leaders[self.records]]
        builder = BatchBuilder(leader.now)
        for offset in range(count):
            builder.append(encode_record(0, offset, None, b"v"), leader.now)
        data = PartitionProduceData(index=0, records=bytes(builder.seal(CompressionType.NONE)))
        topic = TopicProduceData(name=TOPIC, partition_data=(data,))
        answer = leader.ask(ProduceRequest(acks=-1, timeout_ms=1_000, topic_data=(topic,)), 9)
        assert answer.responses[0].partition_responses[0].error_code is ErrorCode.NONE


class Member:
    """A member of the group, with a session at one node."""

    def __init__(self, cluster: Cluster, name: str, at: int = LEADER) -> None:
        self.cluster = cluster
        self.name = name
        self.at = at
        self.epoch = 0

    @property
    def driven(self) -> DrivenNode:
        return self.cluster.nodes[self.at]

    def _send(self, request: Request) -> int:
        self.driven.requests += 1
        context = Context(2, "client", "/127.0.0.1", connection=f"{self.name}@{self.at}")
        self.driven.request(self.driven.requests, request, context)
        return self.driven.requests

    def turns_to(self, number: int) -> None:
        """Go on with another node, which knows no session yet."""
        self.at, self.epoch = number, 0

    def starts_fetch(self, wait_ms: int = WAIT_MS) -> int:
        """Send a ShareFetch; returns its number."""
        topic = ShareFetchTopic(topic_id=self.cluster.topic_id, partitions=(ShareFetchPartition(partition_index=0),))
        request = ShareFetchRequest(
            group_id=GROUP,
            member_id=self.name,
            share_session_epoch=self.epoch,
            max_wait_ms=wait_ms,
            min_bytes=1,
            max_records=100,
            batch_size=100,
            topics=(topic,) if not self.epoch else (),
            forgotten_topics_data=(),
        )
        self.epoch += 1
        return self._send(request)

    def fetch(self) -> Any:
        """The response to a ShareFetch, which may wait for a short time."""
        number = self.starts_fetch()
        if number not in self.driven.replies:
            self.cluster.elapse(WAIT_MS)
        return self.driven.replies[number]

    def acquires(self) -> list[tuple[int, int, int]]:
        """First offset, last offset and delivery count of what a fetch acquires."""
        return acquired(self.fetch())

    def starts_acknowledging(self, kind: int, *offsets: int) -> int:
        """Send a ShareAcknowledge for single offsets; returns its number."""
        batches = tuple(
            AcknowledgementBatch(first_offset=each, last_offset=each, acknowledge_types=(kind,)) for each in offsets
        )
        partition = ShareAcknowledgePartition(partition_index=0, acknowledgement_batches=batches)
        topic = ShareAcknowledgeTopic(topic_id=self.cluster.topic_id, partitions=(partition,))
        request = ShareAcknowledgeRequest(
            group_id=GROUP, member_id=self.name, share_session_epoch=self.epoch, topics=(topic,)
        )
        self.epoch += 1
        return self._send(request)

    def acknowledges(self, kind: int, *offsets: int) -> Any:
        """The result of a ShareAcknowledge for the partition, with the hint of its leader; none while it waits."""
        response = self.driven.replies.get(self.starts_acknowledging(kind, *offsets))
        return None if response is None else only(response)

    def result(self, number: int) -> Any:
        """The partition in the response to a request."""
        return only(self.driven.replies[number])

    def disconnects(self) -> None:
        """The connection to the node is lost."""
        self.driven.step(ConnectionLost(f"{self.name}@{self.at}"))


def only(response: Any) -> Any:
    """The one partition of a response."""
    assert response.error_code is ErrorCode.NONE, response
    [topic] = response.responses
    [partition] = topic.partitions
    return partition


def acquired(response: Any) -> list[tuple[int, int, int]]:
    """The records that a ShareFetch acquired."""
    assert response.error_code is ErrorCode.NONE, response
    partitions: Sequence[Any] = [each for topic in response.responses for each in topic.partitions]
    assert all(each.error_code is ErrorCode.NONE for each in partitions), partitions
    return [tuple(row.model_dump().values()) for each in partitions for row in each.acquired_records]
