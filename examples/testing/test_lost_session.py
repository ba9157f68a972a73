"""A consumer loses its session and comes back: with pytest, the fixture, and a real consumer."""

from __future__ import annotations

import asyncio

import pytest

from rejoin.client import Consumer
from rejoin.coordinator.testing import GroupCoordinator
from rejoin.protocol.types import TopicPartition


class Partitions(asyncio.Queue[tuple[str, int]]):
    """The listener's calls, in order."""

    def on_partitions_assigned(self, assigned: list[TopicPartition]) -> None:
        self.put_nowait(("assigned", len(assigned)))

    def on_partitions_lost(self, lost: list[TopicPartition]) -> None:
        self.put_nowait(("lost", len(lost)))


@pytest.mark.group_coordinator(clock="virtual", topics={"orders": 3})
async def test_a_consumer_loses_its_session_and_comes_back(group_coordinator: GroupCoordinator) -> None:
    changes = Partitions()
    async with (
        asyncio.timeout(30),
        Consumer(
            "orders",
            listener=changes,
            bootstrap_servers=group_coordinator.url,
            group_id="orders-app",
            session_timeout_ms=45_000,
            heartbeat_interval_ms=20,
        ) as consumer,
    ):
        polling = asyncio.ensure_future(poll_on(consumer))
        await group_coordinator.wait_for_group("orders-app", waiting=1)
        await group_coordinator.advance(3_000)  # the initial rebalance delay
        await group_coordinator.wait_for_group("orders-app", state="Stable", assigned=3)
        assert await changes.get() == ("assigned", 3)

        silence = await group_coordinator.add_fault(keys="Heartbeat", pause=True, count=-1)
        await silence.wait()
        advanced = await group_coordinator.advance(45_000)
        assert "session" in [fired.timer for fired in advanced.fired]

        await silence.remove()
        assert await changes.get() == ("lost", 3)
        await group_coordinator.wait_for_group("orders-app", waiting=1)
        await group_coordinator.advance(3_000)
        await group_coordinator.wait_for_group("orders-app", state="Stable", assigned=3, generation=3)
        assert await changes.get() == ("assigned", 3)
        polling.cancel()


async def poll_on(consumer: Consumer) -> None:
    """Poll until asked to stop."""
    while True:
        await consumer.poll(timeout_ms=50)
