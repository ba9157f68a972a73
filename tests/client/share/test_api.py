"""`rejoin.ShareConsumer` in the process of its coordinator, over HTTP and over Kafka's protocol."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from rejoin import AcknowledgeType, ConsumerRecord, ShareConsumer, TopicPartition, running
from rejoin.client import KafkaError
from rejoin.client.transports.in_process import InProcessTransport
from rejoin.coordinator.testing import GroupCoordinator
from tests.coordinator.testing.share_member import GROUP, configure

P0 = TopicPartition("jobs", 0)


@pytest.fixture
async def coordinator() -> AsyncIterator[GroupCoordinator]:
    settings = {"group_share_assignment_interval_ms": 0}
    async with running(clock="virtual", topics={"jobs": 1}, socket=False, settings=settings) as running_one:
        await configure(running_one)
        yield running_one


async def records(consumer: ShareConsumer, count: int) -> list[ConsumerRecord]:
    """So many records, in bounded time."""
    found: list[ConsumerRecord] = []
    async with asyncio.timeout(30):
        while len(found) < count:
            found += await consumer.poll(100)
    return found


async def test_records_are_accepted_by_the_next_commit(coordinator: GroupCoordinator) -> None:
    done: list[tuple[TopicPartition, tuple[int, ...], KafkaError | None]] = []
    transport = InProcessTransport(coordinator)
    async with ShareConsumer(
        "jobs", group_id=GROUP, transport=transport, on_acknowledged=lambda *result: done.append(result)
    ) as consumer:
        await coordinator.produce("jobs", 0, ["a", "b"])
        found = await records(consumer, 2)
        assert [(record.value, record.delivery_count) for record in found] == [(b"a", 1), (b"b", 1)]
        assert consumer.records_in_flight() == {P0: [0, 1]}
        assert consumer.acquisition_lock_timeout_ms == 30_000
        assert await consumer.commit() == {P0: None}
        assert consumer.records_in_flight() == {}
        assert done == [(P0, (0, 1), None)]
        assert consumer.assignment() == [P0]
        assert consumer.subscription() == ("jobs",)


async def test_an_iteration_accepts_what_it_has_handed_out(coordinator: GroupCoordinator) -> None:
    await coordinator.produce("jobs", 0, ["a", "b", "c"])
    async with ShareConsumer("jobs", group_id=GROUP, transport=InProcessTransport(coordinator)) as consumer:
        async with asyncio.timeout(30):
            assert (await anext(consumer)).value == b"a"
            assert await consumer.commit() == {P0: None}
            assert consumer.records_in_flight() == {P0: [1, 2]}
            assert [record.value for record in await consumer.poll()] == [b"b", b"c"]


async def test_each_record_is_acknowledged_on_its_own(coordinator: GroupCoordinator) -> None:
    await coordinator.produce("jobs", 0, ["a", "b", "c"])
    async with ShareConsumer(
        "jobs", group_id=GROUP, transport=InProcessTransport(coordinator), share_acknowledgement_mode="explicit"
    ) as consumer:
        first, second, third = await records(consumer, 3)
        consumer.acknowledge(first)
        consumer.acknowledge(second, AcknowledgeType.RELEASE)
        with pytest.raises(KafkaError, match="not all records"):
            await consumer.poll()
        consumer.acknowledge("jobs", 0, third.offset, AcknowledgeType.REJECT)
        with pytest.raises(KafkaError, match="not waiting to be acknowledged"):
            consumer.acknowledge("jobs", 0, 99)
        consumer.commit_async()
        (again,) = await records(consumer, 1)
        assert (again.value, again.delivery_count) == (b"b", 2)


@pytest.mark.parametrize("kind", ["http", "kafka"])
async def test_over_sockets(kind: str) -> None:
    settings = {"group_share_assignment_interval_ms": 0}
    async with running(topics={"jobs": 1}, settings=settings) as coordinator:
        await configure(coordinator)
        await coordinator.produce("jobs", 0, ["a"])
        servers = coordinator.bootstrap_servers if kind == "kafka" else coordinator.url
        async with ShareConsumer("jobs", group_id=GROUP, bootstrap_servers=servers) as consumer:
            (record,) = await records(consumer, 1)
            assert (record.value, record.delivery_count) == (b"a", 1)
            assert await consumer.commit() == {P0: None}


@pytest.mark.parametrize("mode", ["batch_optimized", "record_limit"])
async def test_partitions_of_several_brokers(mode: str) -> None:
    settings = {"group_share_assignment_interval_ms": 0}
    async with running(topics={"jobs": 6}, brokers=3, settings=settings) as coordinator:
        await configure(coordinator)
        for partition in range(6):
            await coordinator.produce("jobs", partition, 4)
        async with ShareConsumer(
            "jobs",
            group_id=GROUP,
            bootstrap_servers=coordinator.bootstrap_servers,
            share_acquire_mode=mode,
            max_poll_records=5,
        ) as consumer:
            found = await records(consumer, 24)
            assert sorted((each.partition, each.offset, each.delivery_count) for each in found) == [
                (partition, offset, 1) for partition in range(6) for offset in range(4)
            ]
            assert set((await consumer.commit()).values()) == {None}


@pytest.mark.parametrize(
    ("settings", "problem"),
    [
        ({}, "group.id"),
        ({"group_id": ""}, "a share consumer needs a group"),
        ({"group_id": "g", "auto_offset_reset": "earliest"}, "set share.auto.offset.reset of the group"),
        ({"group_id": "g", "enable.auto.commit": True}, "see share.acknowledgement.mode"),
        ({"group_id": "g", "group_instance_id": "i"}, "no static members"),
        ({"group_id": "g", "isolation_level": "read_committed"}, "set share.isolation.level of the group"),
        ({"group_id": "g", "share_acquire_mode": "batch"}, "share.acquire.mode"),
    ],
)
def test_a_share_consumer_refuses_what_the_group_decides(settings: dict[str, object], problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        ShareConsumer("jobs", **settings)  # type: ignore[arg-type]
