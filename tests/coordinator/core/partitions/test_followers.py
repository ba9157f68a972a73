"""A partition with followers: its leader's core, with a controller and followers played by the test."""

from __future__ import annotations

from typing import Any

from rejoin.coordinator.core.effects import AlterPartition, Effect
from rejoin.coordinator.core.inputs import Broker, ClusterSeen, Elected, FollowersFetched, PartitionRegistration
from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.messages.cluster.metadata import MetadataRequest, MetadataRequestTopic
from rejoin.protocol.messages.records.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from rejoin.protocol.types import ZERO_UUID, TopicIdPartition
from tests.coordinator.core.driver import TOPIC
from tests.coordinator.core.partitions.real_topic import RealTopic, batch

BROKERS = tuple(Broker(number, f"broker-{number}", 9_092) for number in (1, 2, 3))


class Replicated(RealTopic):
    """Broker 1 of three leads the topic's partition, which has a replica at each of them."""

    def __init__(self, **settings: Any) -> None:
        self.wanted_isr: list[tuple[int, ...]] = []
        super().__init__(leads=False, **settings)
        (topic_id,) = self.node.topic_ids()
        self.identity = TopicIdPartition(topic_id, 0, TOPIC)
        self.register((1, 2, 3))
        self.step(Elected(self.identity, 0))

    def register(self, isr: tuple[int, ...], leader: int = 1, epoch: int = 0) -> None:
        """The controller has decided on the partition."""
        registration = PartitionRegistration((1, 2, 3), isr, leader, epoch)
        self.step(ClusterSeen(BROKERS, {}, {self.identity: registration}))

    def fetched(self, **end_offsets: int) -> None:
        """Followers have got so far: ``b2=1``."""
        by_broker = {int(name[1:]): end for name, end in end_offsets.items()}
        self.step(FollowersFetched(self.identity, 0, by_broker))

    def carry_out(self, effect: Effect) -> None:
        if isinstance(effect, AlterPartition):
            self.wanted_isr.append(effect.isr)
        else:
            super().carry_out(effect)

    def end_for_readers(self) -> int:
        wanted = ListOffsetsPartition(partition_index=0, current_leader_epoch=0, timestamp=-1)
        topic = ListOffsetsTopic(name=TOPIC, partitions=(wanted,))
        response = self.ask(ListOffsetsRequest(replica_id=-1, isolation_level=0, topics=(topic,)), 7)
        offset: int = response.topics[0].partitions[0].offset
        return offset


def test_acks_all_waits_for_the_replicas_in_sync_and_readers_see_no_more() -> None:
    driven = Replicated()
    sent = driven.send_batch(batch("a"), acks=-1)
    assert driven.produce(batch("b"), acks=1).error_code is ErrorCode.NONE
    driven.fetched(b2=2)
    assert sent not in driven.replies
    assert driven.end_for_readers() == 0
    driven.fetched(b3=1)
    assert driven.answer_to(sent).error_code is ErrorCode.NONE
    assert driven.end_for_readers() == 1


def test_a_follower_that_is_behind_for_too_long_is_not_in_sync_and_may_come_back() -> None:
    driven = Replicated(replica_lag_time_max_ms=30_000)
    sent = driven.send_batch(batch("a"), acks=-1, timeout_ms=60_000)
    driven.fetched(b2=1)
    driven.elapse(29_999)
    assert driven.wanted_isr == []
    driven.elapse(1)
    assert driven.wanted_isr == [(1, 2)]
    driven.register((1, 2))
    assert driven.answer_to(sent).error_code is ErrorCode.NONE
    driven.fetched(b3=1)
    assert driven.wanted_isr == [(1, 2), (1, 2, 3)]


def test_too_few_replicas_in_sync_take_no_records_that_all_must_have() -> None:
    driven = Replicated()
    driven.configure(min_insync_replicas=2)
    driven.register((1,))
    assert driven.produce(batch("a"), acks=-1).error_code is ErrorCode.NOT_ENOUGH_REPLICAS
    assert driven.produce(batch("a"), acks=1).error_code is ErrorCode.NONE
    assert driven.end_for_readers() == 0  # readers see nothing that could be lost


def test_metadata_has_replicas_leader_and_epoch_as_the_controller_decided() -> None:
    driven = Replicated()
    driven.register((2, 3), leader=2, epoch=7)
    named = MetadataRequestTopic(topic_id=ZERO_UUID, name=TOPIC)
    (partition,) = (
        driven.ask(MetadataRequest(topics=(named,), include_topic_authorized_operations=False), 12).topics[0].partitions
    )
    assert (partition.leader_id, partition.leader_epoch) == (2, 7)
    assert (partition.replica_nodes, partition.isr_nodes) == ((1, 2, 3), (2, 3))
