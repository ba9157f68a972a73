"""Our consumer in a group of the consumer protocol, over HTTP: the coordinator's clock stands, so no session ends."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import pytest

from rejoin.client import Consumer, TopicPartition
from rejoin.coordinator.core.views import GroupView
from rejoin.coordinator.testing import GroupCoordinator

GROUP = "billing"
PARTITIONS = [TopicPartition("orders", index) for index in range(6)]
PATIENCE_SECONDS = 60.0

pytestmark = pytest.mark.group_coordinator(
    clock="virtual",
    topics={"orders": len(PARTITIONS)},
    settings={
        "group.consumer.min.heartbeat.interval.ms": 50,
        "group.consumer.heartbeat.interval.ms": 50,
        "group.consumer.assignment.interval.ms": 0,
    },
)


@asynccontextmanager
async def members(coordinator: GroupCoordinator, *names: str) -> AsyncIterator[dict[str, Consumer]]:
    settings: dict[str, Any] = {
        "bootstrap_servers": coordinator.url,
        "group_id": GROUP,
        "group_protocol": "consumer",
        "enable_auto_commit": False,
        "auto_offset_reset": "earliest",
    }
    async with AsyncExitStack() as stack:
        yield {name: await stack.enter_async_context(Consumer("orders", client_id=name, **settings)) for name in names}


async def poll_until(
    coordinator: GroupCoordinator, consumers: list[Consumer], reached: Callable[[GroupView], bool]
) -> GroupView:
    """Poll with all of them until the group is so, and return how it is."""
    async with asyncio.timeout(PATIENCE_SECONDS):
        while True:
            group = await coordinator.group(GROUP)
            if group is not None and reached(group):
                return group
            await asyncio.gather(*[consumer.poll(20) for consumer in consumers])


def stable_with(*consumers: Consumer) -> Callable[[GroupView], bool]:
    """Whether these are all the members, and have all partitions, each once."""

    def reached(group: GroupView) -> bool:
        owned = sorted(partition for consumer in consumers for partition in consumer.assignment())
        return group.state == "Stable" and len(group.members) == len(consumers) and owned == PARTITIONS

    return reached


async def test_the_others_take_over_what_a_closed_member_had(group_coordinator: GroupCoordinator) -> None:
    async with members(group_coordinator, "one", "two", "three") as consumers:
        one, two, three = consumers.values()
        before = await poll_until(group_coordinator, [one, two, three], stable_with(one, two, three))
        assert [len(consumer.assignment()) for consumer in (one, two, three)] == [2, 2, 2]
        kept = {consumer: set(consumer.assignment()) for consumer in (one, two)}
        for consumer in (one, two, three):
            await consumer.commit({partition: partition.partition + 1 for partition in consumer.assignment()})

        await three.close()
        after = await poll_until(group_coordinator, [one, two], stable_with(one, two))
        assert sorted(member.client_id for member in after.members) == ["one", "two"]
        assert after.generation > before.generation, "another epoch, which both have reached"
        assert all(kept[consumer] < set(consumer.assignment()) for consumer in (one, two)), (
            "no partition that stays was given up"
        )
        for partition in PARTITIONS:
            committed = await one.committed(partition)
            assert committed is not None
            assert committed.offset == partition.partition + 1, "what was committed stays"

    sent = {request.api for request in await group_coordinator.requests(client_id="one")}
    assert "ConsumerGroupHeartbeat" in sent
    assert not sent & {"JoinGroup", "SyncGroup", "Heartbeat", "LeaveGroup"}
    await group_coordinator.wait_for_group(GROUP, state="Empty", members=0, timeout_ms=60_000)
