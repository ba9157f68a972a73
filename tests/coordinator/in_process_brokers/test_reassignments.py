"""Several brokers in one process: clients elect leaders and move replicas, as Kafka's controller lets them."""

from __future__ import annotations

import asyncio
from typing import Any

from rejoin.client import Consumer, Producer, TopicPartition
from rejoin.coordinator.testing import GroupCoordinator, running
from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.messages.replication.describe_quorum import (
    DescribeQuorumPartition,
    DescribeQuorumRequest,
    DescribeQuorumTopic,
)
from rejoin.protocol.messages.replication.elect_leaders import ElectedTopicPartitions, ElectLeadersRequest
from rejoin.protocol.messages.replication.partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    ListPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from rejoin.protocol.messages.replication.quorum_changes import UnregisterBrokerRequest
from rejoin.protocol.records.consumer_offsets import OFFSETS_TOPIC
from tests.coordinator.in_process_brokers.test_leaders import TOPIC, metadata, produce, three, values

CONSUMER: dict[str, Any] = {"group_id": "g", "auto_offset_reset": "earliest", "fetch_max_wait_ms": 20}
NONE, NOT_NEEDED = ErrorCode.NONE, ErrorCode.ELECTION_NOT_NEEDED


async def elect(coordinator: GroupCoordinator, kind: int, *, broker: int = 2, partition: int | None = 0) -> Any:
    """The error for a partition; without one, the partitions of the topic that an election for all has named."""
    topics = None if partition is None else (ElectedTopicPartitions(topic=TOPIC, partitions=(partition,)),)
    request = ElectLeadersRequest(election_type=kind, topic_partitions=topics)
    response: Any = await coordinator.call(request, 2, broker=broker)
    assert response.error_code is NONE
    (results,) = [each for each in response.replica_election_results if each.topic == TOPIC]
    found = [(each.partition_id, each.error_code) for each in results.partition_result]
    return found if partition is None else found[0][1]


async def reassign(
    coordinator: GroupCoordinator,
    replicas: tuple[int, ...] | None,
    *,
    topic: str = TOPIC,
    broker: int = 2,
    allows: bool = True,
) -> Any:
    wanted = ReassignablePartition(partition_index=0, replicas=replicas)
    request = AlterPartitionReassignmentsRequest(
        allow_replication_factor_change=allows, topics=(ReassignableTopic(name=topic, partitions=(wanted,)),)
    )
    response: Any = await coordinator.call(request, 1, broker=broker)
    if response.error_code is not NONE:
        return response.error_code
    return response.responses[0].partitions[0].error_code


async def ongoing(coordinator: GroupCoordinator, broker: int = 2) -> Any:
    response: Any = await coordinator.call(ListPartitionReassignmentsRequest(), 0, broker=broker)
    return [
        (topic.name, each.partition_index, each.replicas, each.adding_replicas, each.removing_replicas)
        for topic in response.topics
        for each in topic.partitions
    ]


async def test_preferred_leaders_are_elected_where_they_are_in_sync() -> None:
    async with three() as coordinator:
        assert await elect(coordinator, 0) is NOT_NEEDED
        await coordinator.move_leader(TOPIC, 0, 2)
        assert await elect(coordinator, 0) is NONE
        assert await coordinator.partition(TOPIC, 0) == (TOPIC, 0, 1, 2, [1, 2, 3], [1, 2, 3])
        await coordinator.stop_broker(1)
        assert await elect(coordinator, 0) is ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE
        assert await elect(coordinator, 0, partition=None) == [(0, ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE)]
        await coordinator.start_broker(1)
        assert await elect(coordinator, 0, partition=None) == [(0, NONE)]
        assert await elect(coordinator, 0, partition=None) == []


async def test_an_unclean_election_takes_a_replica_that_is_out_of_sync() -> None:
    async with three() as coordinator:
        await produce(coordinator, "both", broker=1)
        await coordinator.cut_off(2, brokers=(1, 3))
        await coordinator.cut_off(3, brokers=(1,))
        await produce(coordinator, "only 1", broker=1, acks=1)
        await coordinator.advance(30_000)
        assert await elect(coordinator, 1) is NOT_NEEDED
        await coordinator.kill_broker(1)
        await coordinator.advance(9_000)
        assert await elect(coordinator, 0) is ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE
        assert await elect(coordinator, 1) is NONE
        assert (await coordinator.partition(TOPIC, 0))[2:] == (2, 1 + 1, [1, 2, 3], [2])
        assert await values(coordinator) == [b"both"]


async def test_a_partition_moves_with_its_records_and_consumers_find_it() -> None:
    async with three() as coordinator:
        assert await reassign(coordinator, (1,)) is NONE
        assert await coordinator.partition(TOPIC, 0) == (TOPIC, 0, 1, 1, [1], [1])
        await produce(coordinator, "a", broker=1)
        assert await reassign(coordinator, (3,)) is NONE
        assert await coordinator.partition(TOPIC, 0) == (TOPIC, 0, 3, 2, [3], [3])
        assert await ongoing(coordinator) == []
        refused = await produce(coordinator, "b", broker=1)
        assert (refused.error_code, refused.current_leader.leader_id) == (ErrorCode.NOT_LEADER_OR_FOLLOWER, 3)
        assert (await produce(coordinator, "b", broker=3)).base_offset == 1
        assert await values(coordinator) == [b"a", b"b"]
        assert (await metadata(coordinator, 1)).topics[0].partitions[0].replica_nodes == (3,)


async def test_a_reassignment_goes_on_until_its_new_replicas_have_caught_up() -> None:
    async with three() as coordinator:
        await reassign(coordinator, (1,))
        await produce(coordinator, "a", broker=1)
        await coordinator.cut_off(2, brokers=1)
        assert await reassign(coordinator, (2, 3), broker=3) is NONE
        assert await ongoing(coordinator) == [(TOPIC, 0, (2, 3, 1), (2, 3), (1,))]
        # The replica that can copy is in sync; the reassignment waits for the other.
        assert await coordinator.partition(TOPIC, 0) == (TOPIC, 0, 1, 1, [2, 3, 1], [3, 1])
        assert (await produce(coordinator, "b", broker=1)).error_code is NONE
        await coordinator.heal(2)
        assert await ongoing(coordinator) == []
        assert await coordinator.partition(TOPIC, 0) == (TOPIC, 0, 2, 2, [2, 3], [2, 3])
        assert await values(coordinator) == [b"a", b"b"]


async def test_a_reassignment_is_cancelled() -> None:
    async with three() as coordinator:
        await reassign(coordinator, (1,))
        assert await reassign(coordinator, None) is ErrorCode.NO_REASSIGNMENT_IN_PROGRESS
        await coordinator.stop_broker(3)
        assert await reassign(coordinator, (3,)) is NONE
        assert await ongoing(coordinator) == [(TOPIC, 0, (3, 1), (3,), (1,))]
        assert await reassign(coordinator, None) is NONE
        assert await ongoing(coordinator) == []
        assert (await coordinator.partition(TOPIC, 0)).replicas == [1]
        # Another target replaces the one that has not been reached.
        assert await reassign(coordinator, (3,)) is NONE
        assert await reassign(coordinator, (2, 1)) is NONE
        assert await coordinator.partition(TOPIC, 0) == (TOPIC, 0, 1, 3, [2, 1], [2, 1])


async def test_a_producer_and_a_consumer_of_a_group_go_on_while_replicas_move() -> None:
    settings = {"offsets.topic.num.partitions": 1, "group.initial.rebalance.delay.ms": 0}
    async with running(brokers=3, topics={TOPIC: 1}, settings=settings) as coordinator:
        to: dict[str, Any] = {"bootstrap_servers": coordinator.bootstrap_servers}
        async with Producer(**to) as producer, Consumer(**CONSUMER, **to) as consumer:
            await consumer.subscribe([TOPIC])
            found: list[bytes | None] = []
            for replicas, topic in (((2,), TOPIC), ((1,), OFFSETS_TOPIC), ((3, 1), TOPIC)):
                await producer.send_and_wait(TOPIC, str(len(found)), partition=0)
                async with asyncio.timeout(20):
                    while not (read := [record.value for record in await consumer.poll(100)]):
                        pass
                found += read
                await consumer.commit()
                assert await reassign(coordinator, replicas, topic=topic) is NONE
            assert found == [b"0", b"1", b"2"]
            committed = await consumer.committed(TopicPartition(TOPIC, 0))
        assert committed is not None
        assert committed.offset == len(found)
        leaders = [(await coordinator.partition(topic, 0)).leader for topic in (TOPIC, OFFSETS_TOPIC)]
        assert leaders == [3, 1]


async def test_offsets_partitions_move_with_their_groups() -> None:
    async with three() as coordinator:
        assert await reassign(coordinator, (3, 2), topic=OFFSETS_TOPIC) is NONE
        found = await coordinator.partition(OFFSETS_TOPIC, 0)
        assert (found.leader, sorted(found.isr), found.replicas) == (3, [2, 3], [3, 2])


async def test_wrong_reassignments_change_nothing() -> None:
    async with three() as coordinator:
        before = await coordinator.partition(TOPIC, 0)
        for replicas in ((), (1, 1), (4,), (1, 4)):
            assert await reassign(coordinator, replicas) is ErrorCode.INVALID_REPLICA_ASSIGNMENT
        assert await reassign(coordinator, (1, 2), allows=False) is ErrorCode.INVALID_REPLICATION_FACTOR
        assert await reassign(coordinator, (1,), topic="nowhere") is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        await coordinator.cut_off(2, controller=True)
        assert await reassign(coordinator, (1,)) is ErrorCode.REQUEST_TIMED_OUT
        assert await coordinator.partition(TOPIC, 0) == before


async def test_brokers_are_unregistered_and_the_quorum_has_the_others() -> None:
    async def unregister(broker: int) -> Any:
        response: Any = await coordinator.call(UnregisterBrokerRequest(broker_id=broker), 0)
        return response.error_code

    asked = DescribeQuorumTopic(
        topic_name="__cluster_metadata", partitions=(DescribeQuorumPartition(partition_index=0),)
    )
    async with three() as coordinator:
        assert await unregister(4) is ErrorCode.BROKER_ID_NOT_REGISTERED
        await coordinator.stop_broker(3)
        assert await unregister(3) is NONE
        assert await unregister(3) is ErrorCode.BROKER_ID_NOT_REGISTERED
        assert await reassign(coordinator, (3,)) is ErrorCode.INVALID_REPLICA_ASSIGNMENT
        described: Any = await coordinator.call(DescribeQuorumRequest(topics=(asked,)), 2, broker=2)
        (partition,) = described.topics[0].partitions
        assert (partition.leader_id, [each.replica_id for each in partition.current_voters]) == (1, [1, 2])
        await coordinator.start_broker(3)
        assert await reassign(coordinator, (3,)) is NONE
