"""Answers with a wrong value, as brokers with a bug have given them; and what a real client makes of one."""

from __future__ import annotations

from typing import Any

import pytest
from confluent_kafka import OFFSET_BEGINNING, Consumer
from confluent_kafka import TopicPartition as AssignedPartition

from rejoin.coordinator.testing import BlockingGroupCoordinator, GroupCoordinator, running, running_in_thread
from rejoin.protocol.embedded.consumer_protocol import decode_assignment
from rejoin.protocol.messages.cluster.metadata import MetadataRequest
from rejoin.protocol.messages.records.fetch import FetchPartition, FetchRequest, FetchTopic
from rejoin.protocol.messages.records.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from rejoin.protocol.types import TopicPartition
from rejoin.protocol.wire.record_batch import size_at
from tests.coordinator.control.samples import parse, stable
from tests.coordinator.service.helpers import join, sync

ENDS = ListOffsetsRequest(
    replica_id=-1,
    isolation_level=0,
    topics=(
        ListOffsetsTopic(
            name="orders", partitions=(ListOffsetsPartition(partition_index=0, current_leader_epoch=-1, timestamp=-1),)
        ),
    ),
)
METADATA = MetadataRequest(topics=None, include_topic_authorized_operations=False)


async def test_an_offset_of_0_out_of_nowhere() -> None:
    async with running(clock="virtual", topics={"orders": 1}, socket=False) as coordinator:
        await coordinator.produce("orders", 0, 5)
        fault = await coordinator.add_fault(wrong="offset_zero")
        for expected in (0, 5):
            answer: Any = await coordinator.call(ENDS, 7)
            assert answer.topics[0].partitions[0].offset == expected
        assert fault.hits == 1


async def test_a_stale_leader_and_an_epoch_gone_back() -> None:
    async with running(clock="virtual", topics={"orders": 1}, socket=False, brokers=3) as coordinator:
        await coordinator.move_leader("orders", 0, 2)
        for wrong, expected in (("stale_leader", (3, 0)), ("older_epoch", (2, 0)), (None, (2, 1))):
            if wrong is not None:
                await coordinator.add_fault(wrong=wrong)  # type: ignore[arg-type]
            answer: Any = await coordinator.call(METADATA, 12, broker=1)
            (partition,) = answer.topics[0].partitions
            assert (partition.leader_id, partition.leader_epoch) == expected


async def test_the_assignment_of_the_generation_before() -> None:
    async with running(clock="virtual", topics={"orders": 3}, socket=False) as coordinator:
        member_id = await stable(coordinator)
        joined: Any = await coordinator.call(parse("JoinGroup", join("g", member_id)), None, "app")
        assert joined.generation_id == 2
        given = sync("g", member_id, 2, {member_id: {"orders": [1]}})
        await coordinator.add_fault(wrong="old_assignment")
        wrong: Any = await coordinator.call(parse("SyncGroup", given), None, "app")
        right: Any = await coordinator.call(parse("SyncGroup", given), None, "app")
        assert len(decode_assignment(wrong.assignment).partitions) == 3
        assert decode_assignment(right.assignment).partitions == (TopicPartition("orders", 1),)


def test_a_flipped_bit_is_found_by_a_real_client_which_fetches_again() -> None:
    with running_in_thread(topics={"orders": 1}) as started:
        coordinator = BlockingGroupCoordinator(started)
        coordinator.produce("orders", 0, ["a", "b", "c"])
        fault = coordinator.add_fault(keys="Fetch", wrong="flipped_bit", count=2)
        consumer = Consumer({"bootstrap.servers": coordinator.bootstrap_servers, "group.id": "g", "check.crcs": True})
        try:
            consumer.assign([AssignedPartition("orders", 0, OFFSET_BEGINNING)])
            values: list[bytes | None] = []
            while len(values) < 3:
                values += [each.value() for each in consumer.consume(10, 0.2) if each.error() is None]
        finally:
            consumer.close()
        assert values == [b"a", b"b", b"c"]
        assert fault.hits >= 1


async def test_a_flipped_bit_is_in_the_first_batch_of_the_answer() -> None:
    async with running(clock="virtual", topics={"orders": 1}, socket=False) as coordinator:
        for value in ("a", "b", "c"):
            await coordinator.produce("orders", 0, [value])
        await coordinator.add_fault(wrong="flipped_bit")
        damaged, whole = [await fetched(coordinator) for _ in range(2)]
        (end,) = [at for at, (one, other) in enumerate(zip(damaged, whole, strict=True)) if one != other]
        assert end == size_at(whole) - 1
        assert damaged[end] == whole[end] ^ 1
        assert len(whole) > 2 * size_at(whole), "other batches follow, as they were"


async def fetched(coordinator: GroupCoordinator) -> bytes:
    """The records of a Fetch from the beginning."""
    partition = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=10_000)
    topic = FetchTopic(topic="orders", partitions=(partition,))
    fetch = FetchRequest(max_wait_ms=0, min_bytes=0, topics=(topic,), forgotten_topics_data=())
    answer: Any = await coordinator.call(fetch, version=12)
    return bytes(answer.responses[0].partitions[0].records)


async def test_rules_that_make_no_sense_are_refused() -> None:
    async with running(clock="virtual", socket=False) as coordinator:
        with pytest.raises(ValueError, match="is for Fetch, not Heartbeat"):
            await coordinator.add_fault(keys="Heartbeat", wrong="flipped_bit")
        with pytest.raises(ValueError, match="leave out error and when"):
            await coordinator.add_fault(wrong="flipped_bit", error="NOT_COORDINATOR")
