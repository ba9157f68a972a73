"""Several brokers in one process, on a virtual clock: who leads what, and what that costs."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from rejoin.coordinator.control.broker_actions import PartitionsQuery
from rejoin.coordinator.control.errors import NotFound
from rejoin.coordinator.testing import GroupCoordinator, OperationRefused, running
from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.messages.cluster.find_coordinator import FindCoordinatorRequest
from rejoin.protocol.messages.cluster.metadata import MetadataRequest
from rejoin.protocol.messages.groups.heartbeat import HeartbeatRequest
from rejoin.protocol.messages.records.describe_producers import DescribeProducersRequest, DescribeProducersTopic
from rejoin.protocol.messages.records.fetch import FetchPartition, FetchRequest, FetchTopic
from rejoin.protocol.messages.records.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from rejoin.protocol.messages.records.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from rejoin.protocol.messages.records.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from rejoin.protocol.messages.topics.create_topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from rejoin.protocol.messages.transactions.init_producer_id import InitProducerIdRequest
from tests.coordinator.core.partitions.real_topic import batch

TOPIC = "orders"
SETTINGS = {"offsets.topic.num.partitions": 3, "replica.lag.time.max.ms": 30_000}


@asynccontextmanager
async def three(**settings: Any) -> AsyncIterator[GroupCoordinator]:
    """Three brokers, and a topic with a partition for each of them."""
    async with running(
        brokers=3, clock="virtual", topics={TOPIC: 3}, socket=False, settings={**SETTINGS, **settings}
    ) as coordinator:
        yield coordinator


async def metadata(coordinator: GroupCoordinator, broker: int) -> Any:
    request = MetadataRequest(topics=None, include_topic_authorized_operations=False)
    return await coordinator.call(request, 12, broker=broker)


async def produce(coordinator: GroupCoordinator, value: str, *, broker: int, acks: int = -1, topic: str = TOPIC) -> Any:
    data = PartitionProduceData(index=0, records=batch(value, at=coordinator.now_ms))
    produced = TopicProduceData(name=topic, partition_data=(data,))
    request = ProduceRequest(acks=acks, timeout_ms=100, topic_data=(produced,))
    response: Any = await coordinator.call(request, 12, broker=broker)
    return response.responses[0].partition_responses[0]


async def latest(coordinator: GroupCoordinator, broker: int) -> Any:
    wanted = ListOffsetsPartition(partition_index=0, current_leader_epoch=-1, timestamp=-1)
    topic = ListOffsetsTopic(name=TOPIC, partitions=(wanted,))
    response: Any = await coordinator.call(
        ListOffsetsRequest(replica_id=-1, isolation_level=0, topics=(topic,)), 7, broker=broker
    )
    return response.topics[0].partitions[0]


async def values(coordinator: GroupCoordinator) -> list[bytes | None]:
    return [record.value for record in await coordinator.records(TOPIC, 0)]


async def test_every_broker_knows_the_leaders_of_the_others() -> None:
    async with three() as coordinator:
        seen = [await metadata(coordinator, broker) for broker in (1, 2, 3)]
        assert seen[0] == seen[1] == seen[2]
        assert [broker.node_id for broker in seen[0].brokers] == [1, 2, 3]
        (topic,) = seen[0].topics
        assert [(each.leader_id, each.leader_epoch, each.isr_nodes) for each in topic.partitions] == [
            (1, 0, (1, 2, 3)),
            (2, 0, (2, 3, 1)),
            (3, 0, (3, 1, 2)),
        ]


async def test_a_leader_that_moves_is_named_by_the_old_one() -> None:
    async with three() as coordinator:
        assert (await produce(coordinator, "a", broker=1)).error_code is ErrorCode.NONE
        assert await coordinator.move_leader(TOPIC, 0) == (TOPIC, 0, 2, 1, [1, 2, 3], [1, 2, 3])
        refused = await produce(coordinator, "b", broker=1)
        assert refused.error_code is ErrorCode.NOT_LEADER_OR_FOLLOWER
        assert (refused.current_leader.leader_id, refused.current_leader.leader_epoch) == (2, 1)
        assert (await produce(coordinator, "b", broker=2)).base_offset == 1
        assert await values(coordinator) == [b"a", b"b"]


async def test_a_follower_sends_old_consumers_to_the_leader() -> None:
    """Versions without a rack, as Kafka's does; the newer ones read its copy."""
    wanted = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1_000)
    topic = FetchTopic(topic=TOPIC, partitions=(wanted,))
    fetch = FetchRequest(max_wait_ms=0, min_bytes=0, topics=(topic,), forgotten_topics_data=())
    async with three() as coordinator:
        await produce(coordinator, "a", broker=1)
        for version, error in ((10, ErrorCode.NOT_LEADER_OR_FOLLOWER), (12, ErrorCode.NONE)):
            followed: Any = await coordinator.call(fetch, version, broker=2)
            ((only,),) = [each.partitions for each in followed.responses]
            assert only.error_code is error


async def test_a_coordinator_that_moves_is_not_the_coordinator_any_more() -> None:
    async with three() as coordinator:
        find = FindCoordinatorRequest(key_type=0, coordinator_keys=("g",))
        found: Any = await coordinator.call(find, 4)
        before = found.coordinators[0].node_id
        after = (await coordinator.move_leader(group="g")).leader
        assert after not in (None, before)
        found = await coordinator.call(find, 4, broker=before)
        assert found.coordinators[0].node_id == after
        heartbeat = HeartbeatRequest(group_id="g", generation_id=1, member_id="m")
        refused: Any = await coordinator.call(heartbeat, 3, broker=before)
        assert refused.error_code is ErrorCode.NOT_COORDINATOR
        asked: Any = await coordinator.call(heartbeat, 3, broker=after)
        assert asked.error_code is ErrorCode.UNKNOWN_MEMBER_ID


async def test_a_new_transaction_log_names_no_coordinator_before_the_controller_does() -> None:
    # Kafka: TxnCoordinator of KafkaApis. There is no leader of the new topic yet, so clients ask again.
    async with three() as coordinator:

        async def find(broker: int) -> Any:
            request = FindCoordinatorRequest(key_type=1, coordinator_keys=("tx",))
            response: Any = await coordinator.call(request, 6, broker=broker)
            return response.coordinators[0]

        async def init(broker: int) -> Any:
            request = InitProducerIdRequest(transactional_id="tx", transaction_timeout_ms=1_000)
            response: Any = await coordinator.call(request, 5, broker=broker)
            return response.error_code

        async with asyncio.timeout(30):
            while (found := await find(1)).error_code is ErrorCode.COORDINATOR_NOT_AVAILABLE:
                pass
        assert found.error_code is ErrorCode.NONE
        assert {broker: (await find(broker)).node_id for broker in (2, 3)} == {2: found.node_id, 3: found.node_id}
        others = {broker for broker in (1, 2, 3) if broker != found.node_id}
        assert {broker: await init(broker) for broker in others} == dict.fromkeys(others, ErrorCode.NOT_COORDINATOR)
        assert await init(found.node_id) is ErrorCode.NONE


async def test_a_killed_broker_is_noticed_when_its_session_is_over() -> None:
    async with three() as coordinator:
        await produce(coordinator, "a", broker=1)
        await coordinator.kill_broker(1)
        assert (await coordinator.partition(TOPIC, 0)).leader == 1
        advanced = await coordinator.advance(9_000)
        assert [timer.timer for timer in advanced.fired] == ["broker_session"]
        assert await coordinator.partition(TOPIC, 0) == (TOPIC, 0, 2, 1, [1, 2, 3], [2, 3])
        assert (await produce(coordinator, "b", broker=2)).error_code is ErrorCode.NONE
        seen = await metadata(coordinator, 2)
        assert [broker.node_id for broker in seen.brokers] == [2, 3]
        assert seen.topics[0].partitions[0].offline_replicas == (1,)
        await coordinator.start_broker(1)
        assert await coordinator.partition(TOPIC, 0) == (TOPIC, 0, 2, 1, [1, 2, 3], [1, 2, 3])
        assert {each.partition for each in await coordinator.elect_preferred()} >= {0}
        assert (await coordinator.partition(TOPIC, 0)).leader == 1
        assert await values(coordinator) == [b"a", b"b"]


async def test_a_broker_that_stops_cleanly_hands_over_first() -> None:
    async with three() as coordinator:
        await produce(coordinator, "a", broker=1)
        assert (await coordinator.stop_broker(1)).state == "stopped"
        assert await coordinator.partition(TOPIC, 0) == (TOPIC, 0, 2, 1, [1, 2, 3], [2, 3])
        assert await values(coordinator) == [b"a"]


async def test_a_paused_broker_answers_when_it_goes_on_as_what_it_is_then() -> None:
    async with three() as coordinator:
        await coordinator.pause_broker(1)
        asked = produce(coordinator, "lost", broker=1)

        task = asyncio.ensure_future(asked)
        await coordinator.advance(9_000)
        assert not task.done()
        assert (await produce(coordinator, "kept", broker=2)).error_code is ErrorCode.NONE
        await coordinator.resume_broker(1)
        assert (await task).error_code is ErrorCode.NOT_LEADER_OR_FOLLOWER
        assert await values(coordinator) == [b"kept"]


async def test_a_broker_cut_off_from_the_controller_believes_in_itself_and_stores_nothing() -> None:
    async with three() as coordinator:
        await coordinator.cut_off(1, controller=True)
        await coordinator.advance(9_000)
        stale = await metadata(coordinator, 1)
        assert stale.topics[0].partitions[0].leader_id == 1
        assert (await produce(coordinator, "a", broker=1)).error_code is ErrorCode.NOT_LEADER_OR_FOLLOWER
        assert (await produce(coordinator, "b", broker=2)).error_code is ErrorCode.NONE
        await coordinator.heal(1)
        assert await metadata(coordinator, 1) == await metadata(coordinator, 2)
        assert (await coordinator.partition(TOPIC, 0)).isr == [1, 2, 3]


async def test_a_follower_that_lags_holds_up_acks_all_until_it_is_out_of_sync() -> None:
    async with three() as coordinator:
        await coordinator.cut_off(3, brokers=1)
        assert (await produce(coordinator, "a", broker=1, acks=1)).error_code is ErrorCode.NONE
        assert (await latest(coordinator, 1)).offset == 0
        await coordinator.advance(30_000)
        assert (await coordinator.partition(TOPIC, 0)).isr == [1, 2]
        assert (await latest(coordinator, 1)).offset == 1
        await coordinator.heal(3)
        assert (await coordinator.partition(TOPIC, 0)).isr == [1, 2, 3]


async def test_an_unclean_leader_loses_what_it_does_not_have_and_says_so() -> None:
    async with three() as coordinator:
        await produce(coordinator, "both", broker=1)
        await coordinator.cut_off(2, brokers=(1, 3))
        await coordinator.cut_off(3, brokers=(1,))
        assert (await produce(coordinator, "acks 1", broker=1, acks=1)).error_code is ErrorCode.NONE
        await coordinator.advance(30_000)
        assert (await coordinator.partition(TOPIC, 0)).isr == [1]
        await coordinator.kill_broker(1)
        await coordinator.advance(9_000)
        assert (await coordinator.partition(TOPIC, 0)).leader is None
        with pytest.raises(OperationRefused, match="in sync"):
            await coordinator.move_leader(TOPIC, 0, 2)
        led = await coordinator.move_leader(TOPIC, 0, 2, unclean=True)
        assert (led.leader, led.isr) == (2, [2])
        assert await values(coordinator) == [b"both"]
        assert (await produce(coordinator, "next", broker=2, acks=1)).base_offset == 1
        # A consumer that read offset 1 in epoch 0 learns that epoch 0 ended there.
        wanted = OffsetForLeaderPartition(partition=0, current_leader_epoch=led.leader_epoch, leader_epoch=0)
        topic = OffsetForLeaderTopic(topic=TOPIC, partitions=(wanted,))
        ends: Any = await coordinator.call(OffsetForLeaderEpochRequest(topics=(topic,)), 4, broker=2)
        assert ends.topics[0].partitions[0].end_offset == 1


async def test_too_few_in_sync_refuse_acks_all() -> None:
    async with three() as coordinator:
        config = CreatableTopicConfig(name="min.insync.replicas", value="2")
        safe = CreatableTopic(name="safe", num_partitions=1, replication_factor=3, assignments=(), configs=(config,))
        await coordinator.call(CreateTopicsRequest(topics=(safe,)), 7)
        for broker in (2, 3):
            await coordinator.stop_broker(broker)
        assert (await produce(coordinator, "a", broker=1)).error_code is ErrorCode.NONE
        refused = await produce(coordinator, "a", broker=1, topic="safe")
        assert refused.error_code is ErrorCode.NOT_ENOUGH_REPLICAS
        assert (await produce(coordinator, "a", broker=1, topic="safe", acks=1)).error_code is ErrorCode.NONE


async def test_without_a_broker_that_runs_requests_are_refused() -> None:
    async with three() as coordinator:
        for broker in (1, 2, 3):
            await coordinator.kill_broker(broker)
        with pytest.raises(OperationRefused, match="every broker is stopped; start one first"):
            await coordinator.set_topic("new", 2)
        await coordinator.start_broker(2)
        await coordinator.set_topic("new", 2)


async def test_what_cannot_be_done_is_refused() -> None:
    async with three() as coordinator:
        with pytest.raises(OperationRefused, match="there is no broker '4'"):
            await coordinator.kill_broker(4)
        with pytest.raises(OperationRefused, match="broker 1 is running; expected one that is stopped"):
            await coordinator.start_broker(1)
        with pytest.raises(ValueError, match="topic and partition, or group"):
            await coordinator.move_leader(TOPIC)
    with pytest.raises(ValueError, match="expected 1 to 100"):
        async with running(brokers=0):
            pass
    async with running(socket=False) as alone:
        with pytest.raises(OperationRefused, match="brokers=3"):
            await alone.brokers()


async def test_a_reset_starts_all_brokers_anew() -> None:
    async with three() as coordinator:
        await coordinator.set_topic("made", 2)
        assert (await produce(coordinator, "a", broker=1)).error_code is ErrorCode.NONE
        await coordinator.move_leader(TOPIC, 0, 2)
        rule = await coordinator.add_fault(error="NOT_COORDINATOR", keys="Heartbeat")
        await coordinator.kill_broker(3)
        await coordinator.cut_off(2, clients=True, controller=True, brokers=1)
        for _ in range(2):
            await coordinator.reset()
            assert [(each.state, each.is_fenced) for each in await coordinator.brokers()] == [("running", False)] * 3
            for broker in (1, 2, 3):
                known = await metadata(coordinator, broker)
                assert [topic.name for topic in known.topics if not topic.is_internal] == [TOPIC]
            found = await coordinator.partition(TOPIC, 0)
            assert (found.leader, found.leader_epoch, found.isr) == (1, 0, found.replicas)
            assert (await produce(coordinator, "b", broker=1)).base_offset == 0
        assert rule.hits == 0
        heartbeat = HeartbeatRequest(group_id="g", generation_id=1, member_id="m")
        answer: Any = await coordinator.call(heartbeat)
        assert answer.error_code is ErrorCode.UNKNOWN_MEMBER_ID
        await coordinator.advance(60_000)


async def test_snapshots_and_transcripts_of_several_brokers_are_refused() -> None:
    async with three() as coordinator:
        with pytest.raises(OperationRefused, match="a single broker"):
            await coordinator.snapshot()
        with pytest.raises(OperationRefused, match=r"a single broker, and there are several; requests\(\)"):
            await coordinator.transcript()


async def test_only_what_is_there_can_be_asked_for() -> None:
    async with three() as coordinator:
        with pytest.raises(OperationRefused, match=r"node: expected a broker of this process: 1, 2, 3; not 9"):
            await coordinator.add_fault(keys="Heartbeat", node=[3, 9], error="NOT_COORDINATOR")
        await coordinator.add_fault(keys="Heartbeat", node=3, error="NOT_COORDINATOR")
        control = coordinator.app.control
        assert control is not None
        with pytest.raises(NotFound, match=r"there is no topic 'orderz'; is it 'orders'[?]"):
            control.broker_actions.partitions(PartitionsQuery(topics=("orders", "orderz")))
        assert len(control.broker_actions.partitions(PartitionsQuery(topics=("orders",)))["partitions"]) == 3


async def test_followers_describe_the_producers_of_their_leader() -> None:
    async with three() as coordinator:
        assert (await produce(coordinator, "a", broker=1)).error_code is ErrorCode.NONE
        initialised: Any = await coordinator.call(
            InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=1), 5, broker=1
        )
        data = batch("b", at=coordinator.now_ms, producer_id=initialised.producer_id, producer_epoch=0, base_sequence=0)
        topic = TopicProduceData(name=TOPIC, partition_data=(PartitionProduceData(index=0, records=data),))
        await coordinator.call(ProduceRequest(acks=-1, timeout_ms=100, topic_data=(topic,)), 12, broker=1)
        wanted = DescribeProducersTopic(name=TOPIC, partition_indexes=(0, 2))
        request = DescribeProducersRequest(topics=(wanted, wanted))
        described: list[Any] = [await coordinator.call(request, 0, broker=broker) for broker in (1, 2, 3)]
        assert described[0] == described[1] == described[2]
        for found in described[1].topics:
            assert [each.error_code for each in found.partitions] == [ErrorCode.NONE] * 2
            (producer,) = found.partitions[0].active_producers
            assert (producer.producer_id, producer.last_sequence) == (initialised.producer_id, 0)
