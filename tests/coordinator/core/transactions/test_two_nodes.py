"""A transaction whose coordinator is another node than the leader of its records: requests between the nodes."""

from __future__ import annotations

from typing import Any

import pytest

from rejoin.coordinator.core.inputs import Broker, ClusterSeen, Context, LogDamaged, Token
from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.message import Request
from rejoin.protocol.messages.cluster.find_coordinator import FindCoordinatorRequest
from rejoin.protocol.messages.transactions.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
)
from rejoin.protocol.records.consumer_offsets import offsets_partition
from rejoin.protocol.types import TopicIdPartition, TopicPartition
from rejoin.transcript.driver import NodeLogs
from tests.coordinator.core.driver import TOPIC, DrivenNode
from tests.coordinator.core.transactions.producer import TXN, Producer, fetch, markers, node

PARTITIONS = 8


class Pair:
    """Two nodes: the first leads the records, the second coordinates the transactional id."""

    def __init__(self, **settings: Any) -> None:
        logs = NodeLogs()
        self.nodes = [
            DrivenNode(
                logs=logs,
                leads=False,
                broker_id=number,
                offsets_topic_num_partitions=PARTITIONS,
                transaction_state_log_num_partitions=1,
                transaction_partition_verification_enable=True,
                **settings,
            )
            for number in (1, 2)
        ]
        self.records, self.coordinator = self.nodes
        leaders = {offsets_partition(index): 2 for index in range(PARTITIONS)}
        leaders[self.lease_of(TOPIC)] = 1
        brokers = tuple(Broker(number, f"node-{number}", 9_000 + number) for number in (1, 2))
        for driven in self.nodes:
            driven.step(ClusterSeen(brokers, leaders))
            driven.peers = dict(enumerate(self.nodes, 1))
        for partition, number in leaders.items():
            self.nodes[number - 1].elect(partition)
        for driven in self.nodes:
            driven.ask(FindCoordinatorRequest(key_type=1, coordinator_keys=(TXN,)), 6)

    def lease_of(self, topic: str) -> TopicPartition:
        identity = self.records.node._partitions.identify(topic, 0)
        assert isinstance(identity, TopicIdPartition)
        return self.records.node._partitions.leased_by(identity)


@pytest.fixture
def pair() -> Pair:
    made = Pair()
    if made.lease_of(TOPIC) == made.lease_of("__transaction_state"):
        pytest.fail("both partitions have one leader: choose another number of partitions")
    return made


def test_partitions_are_added_and_markers_written_across_nodes(pair: Pair) -> None:
    there, here = Producer(pair.coordinator), Producer(pair.records)
    assert here.init() is ErrorCode.NOT_COORDINATOR
    assert there.init() is ErrorCode.NONE
    here.use(there.producer_id, there.epoch)
    assert here.produce() is ErrorCode.NONE
    assert there.described().transaction_state == "Ongoing"
    assert there.end() is ErrorCode.NONE
    assert there.described().transaction_state == "CompleteCommit"
    assert markers(bytes(fetch(pair.records).records)) == [(there.producer_id, there.epoch)]


def test_markers_are_sent_again_until_their_leader_is_back(pair: Pair) -> None:
    there, here = Producer(pair.coordinator), Producer(pair.records)
    there.init()
    here.use(there.producer_id, there.epoch)
    here.produce()
    pair.coordinator.peers = {}
    assert there.end() is ErrorCode.NONE
    pair.coordinator.elapse(5_000)
    assert there.described().transaction_state == "PrepareCommit"
    assert fetch(pair.records).last_stable_offset == 0
    pair.coordinator.peers = {1: pair.records}
    pair.coordinator.elapse(1_000)
    assert there.described().transaction_state == "CompleteCommit"
    assert fetch(pair.records).last_stable_offset == 2


def damage(leader: DrivenNode, lease: TopicPartition) -> None:
    """Let a node take its partitions anew, and find the log of the topic damaged."""
    leader.logs.defers_reads = True
    leader.resign(lease)
    leader.elect(lease)
    for partition, done in leader.logs.pending_reads:
        if isinstance(partition, TopicIdPartition) and partition.topic == TOPIC:
            leader.step(LogDamaged(partition, leader.logs.of(lease).epoch))
        else:
            done(tuple(leader.logs.of(partition).records))
    leader.logs.pending_reads.clear()
    leader.logs.defers_reads = False


@pytest.mark.parametrize("nodes", [1, 2])
def test_a_transaction_ends_although_the_log_of_its_records_is_damaged(nodes: int, pair: Pair) -> None:
    leader, coordinator, lease = pair.records, pair.coordinator, pair.lease_of(TOPIC)
    if nodes == 1:
        leader = coordinator = node()
        lease = offsets_partition(0)
    there, here = Producer(coordinator), Producer(leader)
    there.init()
    here.use(there.producer_id, there.epoch)
    here.produce()
    damage(leader, lease)
    assert leader.node.damaged_partitions() == [TopicPartition(TOPIC, 0)]
    assert fetch(leader).error_code is ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert there.init() is ErrorCode.CONCURRENT_TRANSACTIONS, "the open transaction is aborted"
    coordinator.elapse(1_000)
    assert there.described().transaction_state == "CompleteAbort"
    assert there.init() is ErrorCode.NONE


def test_a_damaged_log_is_no_damage_of_the_next_epoch() -> None:
    driven = node()
    damage(driven, offsets_partition(0))
    identity = driven.node._partitions.identify(TOPIC, 0)
    assert identity is not None
    late = LogDamaged(identity, driven.logs.of(offsets_partition(0)).epoch)
    driven.resign()
    driven.elect()
    driven.step(late)
    assert driven.node.damaged_partitions() == []
    assert Producer(driven).init() is ErrorCode.NONE


def test_markers_are_asked_for_in_a_version_that_the_release_has(monkeypatch: pytest.MonkeyPatch) -> None:
    pair = Pair(emulator_as_kafka="4.0")
    there, here = Producer(pair.coordinator), Producer(pair.records)
    there.init()
    here.use(there.producer_id, there.epoch)
    here.produce()
    versions: list[int] = []
    receive = pair.records.request

    def request(token: Token, request: Request, context: Context) -> None:
        if isinstance(request, WriteTxnMarkersRequest):
            versions.append(context.api_version)
        receive(token, request, context)

    monkeypatch.setattr(pair.records, "request", request)
    assert there.end() is ErrorCode.NONE
    assert versions == [1]
    assert there.described().transaction_state == "CompleteCommit"


def test_a_fenced_coordinator_sends_no_further_markers(pair: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    there, here = Producer(pair.coordinator), Producer(pair.records)
    there.init()
    here.use(there.producer_id, there.epoch)
    here.produce()
    pair.records.ask(marker_of_a_later_coordinator(there), 2)
    sent: list[WriteTxnMarkersRequest] = []
    receive = pair.records.request

    def request(token: Token, request: Request, context: Context) -> None:
        if isinstance(request, WriteTxnMarkersRequest):
            sent.append(request)
        receive(token, request, context)

    monkeypatch.setattr(pair.records, "request", request)
    assert there.end() is ErrorCode.NONE
    pair.coordinator.elapse(2 * there.timeout_ms)
    assert len(sent) == 1
    assert there.described().transaction_state == "PrepareCommit"
    assert len(markers(bytes(fetch(pair.records).records))) == 1, "that of the later coordinator"


def marker_of_a_later_coordinator(producer: Producer) -> WriteTxnMarkersRequest:
    marker = WritableTxnMarker(
        producer_id=producer.producer_id,
        producer_epoch=producer.epoch + 1,
        transaction_result=True,
        topics=(WritableTxnMarkerTopic(name=TOPIC, partition_indexes=(0,)),),
        coordinator_epoch=1_000,
        transaction_version=2,
    )
    return WriteTxnMarkersRequest(markers=(marker,))


def test_a_coordinator_that_cannot_be_reached_is_worth_a_retry(pair: Pair) -> None:
    there, here = Producer(pair.coordinator), Producer(pair.records)
    there.init()
    here.use(there.producer_id, there.epoch)
    pair.records.peers = {}
    assert here.produce() is ErrorCode.NOT_ENOUGH_REPLICAS
