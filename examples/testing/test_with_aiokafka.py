"""A consumer loses its session and comes back: nothing is lost, and uncommitted records come twice."""

from __future__ import annotations

import asyncio
from collections import Counter

import pytest
from aiokafka import AIOKafkaConsumer

from rejoin.coordinator.testing import GroupCoordinator


@pytest.mark.group_coordinator(clock="virtual", topics={"orders": 2}, settings={"group.initial.rebalance.delay.ms": 0})
async def test_a_consumer_loses_its_session_and_comes_back(group_coordinator: GroupCoordinator) -> None:
    consumer = AIOKafkaConsumer(
        "orders",
        bootstrap_servers=group_coordinator.bootstrap_servers,
        group_id="orders-app",
        auto_offset_reset="earliest",
        enable_auto_commit=False,
        session_timeout_ms=45_000,
        heartbeat_interval_ms=50,
    )
    await consumer.start()
    seen: list[str] = []
    await group_coordinator.produce("orders", None, [(f"customer-{n}", f"order-{n}") for n in range(6)])
    await read(consumer, seen, 6)
    await consumer.commit()
    await group_coordinator.produce("orders", 0, ["order-6", "order-7"])
    await read(consumer, seen, 8)

    silence = await group_coordinator.add_fault(keys="Heartbeat", pause=True, count=-1)
    await silence.wait()
    await group_coordinator.advance(45_000)
    await group_coordinator.wait_for_group("orders-app", state="Empty")
    await silence.remove()

    await read(consumer, seen, 10)
    await group_coordinator.produce("orders", 1, ["order-8"])
    await read(consumer, seen, 11)
    await consumer.stop()
    assert set(seen) == {f"order-{n}" for n in range(9)}, "nothing is lost"
    assert {order: times for order, times in Counter(seen).items() if times > 1} == {"order-6": 2, "order-7": 2}


async def read(consumer: AIOKafkaConsumer, seen: list[str], count: int) -> None:
    """Read until so many records have been seen."""
    async with asyncio.timeout(30):
        while len(seen) < count:
            seen.append((await consumer.getone()).value.decode())
