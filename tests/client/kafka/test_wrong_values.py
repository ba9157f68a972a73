"""Our consumer and brokers that answer with wrong values: what it finds out, and what it must believe."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from rejoin.client import Consumer
from rejoin.client.core.errors import LogTruncationError
from rejoin.client.core.fetch.consumer_record import ConsumerRecord
from rejoin.coordinator.testing import GroupCoordinator, running
from tests.client.test_over_the_listener import P0, P1, fill, read, reader


@pytest.fixture
async def kafka() -> AsyncIterator[GroupCoordinator]:
    """Three brokers. Of the first partition five records are of leader epoch 0, and five of epoch 1."""
    async with running(brokers=3, topics={"orders": 2}, settings={"group.initial.rebalance.delay.ms": 0}) as cluster:
        await fill(cluster, 0, 0, 5)
        await cluster.move_leader("orders", 0, 2)
        await fill(cluster, 0, 5, 10)
        yield cluster


async def offsets(consumer: Consumer, count: int) -> list[int]:
    return [record.offset for record in await read(consumer, count)]


async def committed(kafka: GroupCoordinator) -> None:
    """A group has read the first partition to its end."""
    async with reader(kafka, group_id="g") as consumer:
        await consumer.assign([P0])
        await read(consumer, 10)
        await consumer.commit()


async def test_a_committed_offset_of_0_is_believed_and_all_is_read_again(kafka: GroupCoordinator) -> None:
    await committed(kafka)
    fault = await kafka.add_fault(keys="OffsetFetch", wrong="offset_zero", count=1)
    async with reader(kafka, group_id="g") as consumer:
        await consumer.assign([P0])
        assert await offsets(consumer, 10) == list(range(10))
    assert fault.hits == 1


async def test_an_end_of_0_makes_the_latest_the_earliest(kafka: GroupCoordinator) -> None:
    fault = await kafka.add_fault(keys="ListOffsets", wrong="offset_zero", count=1)
    async with reader(kafka, auto_offset_reset="latest") as consumer:
        await consumer.assign([P0])
        assert await offsets(consumer, 10) == list(range(10))
    assert fault.hits == 1


async def test_an_older_epoch_of_a_committed_offset_looks_like_a_truncated_log(kafka: GroupCoordinator) -> None:
    await committed(kafka)
    await kafka.add_fault(keys="OffsetFetch", wrong="older_epoch", count=2)
    async with reader(kafka, group_id="g", auto_offset_reset="none", enable_auto_commit=False) as consumer:
        await consumer.assign([P0])
        with pytest.raises(LogTruncationError, match="the log of orders-0 was truncated at 5: position 10 is gone"):
            await consumer.poll(30_000)
    async with reader(kafka, group_id="g") as consumer:
        await consumer.assign([P0])
        assert await offsets(consumer, 5) == list(range(5, 10))


@pytest.mark.parametrize("wrong", ["stale_leader", "older_epoch"])
async def test_metadata_of_the_past_costs_a_new_reader_a_request_and_another_none(
    kafka: GroupCoordinator, wrong: Any
) -> None:
    begun = await kafka.mark()
    fault = await kafka.add_fault(keys="Metadata", wrong=wrong, count=1)
    async with reader(kafka, metadata_max_age_ms=50, retry_backoff_ms=10) as consumer:
        await consumer.assign([P0])
        consumer.seek(P0, 0)
        assert await offsets(consumer, 10) == list(range(10))
        assert fault.hits == 1
        # Kafka: Partition.getLocalLog. A follower, too, compares the epoch first, and only then asks who leads; from
        # version 11 on it would serve the consumer (KIP-392). So the leader of before answers as the leader does.
        assert await fetch_errors(kafka, begun) == {"FENCED_LEADER_EPOCH"}
        begun = await kafka.mark()
        fault = await kafka.add_fault(keys="Metadata", wrong=wrong)
        for number in range(10, 14):
            await fill(kafka, 0, number, number + 1)
            assert await offsets(consumer, 1) == [number]
        await fault.wait()
        await fill(kafka, 0, 14, 15)
        assert await offsets(consumer, 1) == [14]
        assert not await fetch_errors(kafka, begun), "what is older than what is known does not count"


async def fetch_errors(kafka: GroupCoordinator, since: int) -> set[str]:
    """What Fetch was refused with."""
    answers: list[Any] = [request.response for request in await kafka.requests("Fetch", since=since)]
    partitions = [each for answer in answers if answer for topic in answer.responses for each in topic.partitions]
    return {each.error_code.name for each in partitions if each.error_code}


async def test_an_old_assignment_is_believed_until_the_next_rebalance(kafka: GroupCoordinator) -> None:
    async with reader(kafka, "orders", group_id="g", client_id="one") as one:
        await poll_until(lambda: one.assignment() == [P0, P1], one)
        fault = await kafka.add_fault(keys="SyncGroup", client_id="one", wrong="old_assignment", count=1)
        async with reader(kafka, "orders", group_id="g", client_id="two") as two:
            await poll_until(
                lambda: fault.hits == len(two.assignment()) == 1 and one.assignment() == [P0, P1], one, two
            )
            (shared,) = two.assignment()
            end = (await two.end_offsets([shared]))[shared]
            assert end is not None
            await fill(kafka, shared.partition, end, end + 1)
            seen: list[ConsumerRecord] = []
            await poll_until(
                lambda: sum(record[1:3] == (shared.partition, end) for record in seen) == 2, one, two, seen=seen
            )
            await kafka.expire("g", client_id="two")
            await poll_until(lambda: sorted(one.assignment() + two.assignment()) == [P0, P1], one, two)


async def poll_until(holds: Callable[[], bool], *consumers: Consumer, seen: list[ConsumerRecord] | None = None) -> None:
    """Let the consumers poll until something holds; adds what they read to ``seen``."""
    async with asyncio.timeout(30):
        while not holds():
            for records in await asyncio.gather(*(consumer.poll(50) for consumer in consumers)):
                if seen is not None:
                    seen += records
