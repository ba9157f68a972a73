"""Members of groups of the consumer protocol over HTTP, over Kafka's protocol, and without a socket between.

The coordinator's clock stands, and where a test advances it the member heartbeats after each second: no session ends by
itself, however busy the machine is.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from typing import Any

import pytest

from rejoin.client import Consumer, TopicPartition
from rejoin.client.transports.in_process import InProcessTransport
from rejoin.coordinator.testing import GroupCoordinator
from tests.client.transports.test_consumer_groups_over_http import GROUP, PARTITIONS, poll_until, stable_with

pytestmark = pytest.mark.group_coordinator(
    clock="virtual",
    topics={"orders": len(PARTITIONS)},
    settings={
        "group.consumer.min.heartbeat.interval.ms": 50,
        "group.consumer.heartbeat.interval.ms": 50,
        "group.consumer.assignment.interval.ms": 0,
    },
)
TRANSPORTS = pytest.mark.parametrize("transport", ["HTTP", "Kafka", "in-process"])
LONG_MS = 3_600_000


def member(coordinator: GroupCoordinator, transport: str, *topics: str, **settings: Any) -> Consumer:
    usual = {"group_id": GROUP, "group_protocol": "consumer", "auto_offset_reset": "earliest", "fetch_max_wait_ms": 20}
    if transport == "in-process":
        return Consumer(*topics, transport=InProcessTransport(coordinator), **{**usual, **settings})
    servers = coordinator.url if transport == "HTTP" else coordinator.bootstrap_servers
    return Consumer(*topics, **{"bootstrap_servers": servers, **usual, **settings})


class Callbacks:
    """What a listener was called with, in order."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, list[TopicPartition]]] = []

    def on_partitions_revoked(self, partitions: Iterable[TopicPartition]) -> None:
        self.calls.append(("revoked", sorted(partitions)))

    def on_partitions_assigned(self, partitions: Iterable[TopicPartition]) -> None:
        self.calls.append(("assigned", sorted(partitions)))

    def on_partitions_lost(self, partitions: Iterable[TopicPartition]) -> None:
        self.calls.append(("lost", sorted(partitions)))


async def polled_until(consumer: Consumer, reached: Callable[[], bool]) -> None:
    async with asyncio.timeout(60):
        while not reached():
            await consumer.poll(20)


@TRANSPORTS
async def test_what_is_given_up_is_committed_before(group_coordinator: GroupCoordinator, transport: str) -> None:
    settings: dict[str, Any] = {"enable_auto_commit": True, "auto_commit_interval_ms": LONG_MS}
    async with member(group_coordinator, transport, "orders", client_id="one", **settings) as one:
        await poll_until(group_coordinator, [one], stable_with(one))
        for partition in PARTITIONS:
            await group_coordinator.produce("orders", partition.partition, 5)
        read = 0
        async with asyncio.timeout(60):
            while read < 30:
                read += len(await one.poll(20))
        assert await one.committed(PARTITIONS[0]) is None, "the interval is an hour"
        async with member(group_coordinator, transport, "orders", client_id="two", **settings) as two:
            records = 0
            async with asyncio.timeout(60):
                while len(two.assignment()) < 3:
                    _, got = await asyncio.gather(one.poll(20), two.poll(20))
                    records += len(got)
            records += len(await two.poll(200))
            assert records == 0, "the new owner goes on behind what the other has read"
            for partition in PARTITIONS:
                committed = await two.committed(partition)
                assert committed is not None
                assert committed.offset == 5


@TRANSPORTS
async def test_a_member_whose_session_ends_loses_its_partitions_and_joins_again(
    group_coordinator: GroupCoordinator, transport: str
) -> None:
    callbacks = Callbacks()
    async with member(group_coordinator, transport, enable_auto_commit=False) as consumer:
        await consumer.subscribe(["orders"], listener=callbacks)
        before = await poll_until(group_coordinator, [consumer], stable_with(consumer))
        (there,) = before.members
        await group_coordinator.expire(GROUP, member=there.member_id)
        await polled_until(consumer, lambda: len(callbacks.calls) >= 3)
        after = await poll_until(group_coordinator, [consumer], stable_with(consumer))
    assert callbacks.calls[:3] == [("assigned", PARTITIONS), ("lost", PARTITIONS), ("assigned", PARTITIONS)]
    assert [each.member_id for each in after.members] == [there.member_id], "a member keeps its id for life"
    assert after.generation > before.generation


@TRANSPORTS
async def test_an_expression_begins_to_match_a_topic(group_coordinator: GroupCoordinator, transport: str) -> None:
    async with member(group_coordinator, transport, regex="orders(-.*)?", metadata_max_age_ms=100) as consumer:
        await poll_until(group_coordinator, [consumer], stable_with(consumer))
        await group_coordinator.set_topic("orders-eu", 2)
        new = [TopicPartition("orders-eu", index) for index in range(2)]
        async with asyncio.timeout(60):
            while sorted(consumer.assignment()) != [*PARTITIONS, *new]:
                # The coordinator looks at most every ten seconds whether expressions match new topics.
                await group_coordinator.advance(1_000)
                await consumer.poll(60)
