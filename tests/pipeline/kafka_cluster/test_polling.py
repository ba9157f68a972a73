"""Snapshots of a cluster over Kafka's protocol: our own listener, with our own consumers."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

from rejoin.client import Consumer, TopicPartition
from rejoin.client.admin.admin import Admin, GroupListing
from rejoin.client.core.errors import CodedError
from rejoin.coordinator.testing import GroupCoordinator, running
from rejoin.pipeline.kafka_cluster.polling import ClusterPoller, ClusterProblem, ClusterSnapshot, polling
from rejoin.pipeline.kafka_cluster.snapshots import PartitionOffsets
from rejoin.pipeline.why.cluster import ClusterSource
from rejoin.pipeline.why.story import SourceProblem
from rejoin.protocol.errors import ErrorCode

QUICK: dict[str, Any] = {"auto_offset_reset": "earliest", "enable_auto_commit": False, "fetch_max_wait_ms": 20}


async def polled(kafka: GroupCoordinator, *groups: str) -> ClusterSnapshot:
    async with polling(kafka.bootstrap_servers, wanted=groups) as poller:
        return await poller.poll()


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
async def test_a_group_with_its_members_and_offsets(protocol: str) -> None:
    settings = {"group.initial.rebalance.delay.ms": 0}
    async with running(topics={"orders": 2}, settings=settings) as kafka:
        await kafka.produce("orders", 0, [str(number) for number in range(10)])
        async with (
            asyncio.timeout(60),
            Consumer(
                "orders",
                bootstrap_servers=kafka.bootstrap_servers,
                group_id="orders-app",
                client_id="worker",
                group_protocol=protocol,
                **QUICK,
            ) as consumer,
        ):
            read = 0
            while read < 10:
                read += len(await consumer.poll(100))
            await consumer.commit({TopicPartition("orders", 0): 4})
            snapshot = await polled(kafka)
            while snapshot.groups["orders-app"].state != "Stable":
                await consumer.poll(100)
                snapshot = await polled(kafka)
            group = snapshot.groups["orders-app"]
            assert snapshot.problems == []
            assert group.group_type == protocol
            assert (group.epoch is None) == (protocol == "classic")
            assert [member.client_id for member in group.members] == ["worker"]
            assert set(group.owners) == {TopicPartition("orders", 0), TopicPartition("orders", 1)}
            assert group.offsets[TopicPartition("orders", 0)] == PartitionOffsets(4, 10)
            assert group.offsets[TopicPartition("orders", 1)].end == 0
            assert group.lag == 6
            assert (await polled(kafka, "another")).groups == {}

            source = ClusterSource(kafka.bootstrap_servers, seconds=0)
            story = await asyncio.to_thread(source.story, "orders-app")
            assert (story.status.state, story.status.members, story.status.lag) == ("Stable", 1, 6)
            with pytest.raises(SourceProblem, match="there is no group 'orders'; is it 'orders-app'"):
                await asyncio.to_thread(source.story, "orders")


async def test_a_cluster_that_is_not_there(unused_tcp_port: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rejoin.pipeline.kafka_cluster.polling.TIMEOUT_MS", 50)
    async with polling(f"127.0.0.1:{unused_tcp_port}") as poller:
        with pytest.raises(ClusterProblem, match="is a cluster there"):
            await poller.poll()


async def test_an_address_that_is_none() -> None:
    with pytest.raises(ClusterProblem, match="expected"):
        async with polling("http://127.0.0.1:1,127.0.0.1:2"):
            raise AssertionError


class LoadingAdmin(Admin):
    """Of a cluster whose coordinators are loading."""

    def __init__(self) -> None:
        pass

    async def list_reachable_groups(self, states: Sequence[str] = (), types: Sequence[str] = ()) -> GroupListing:
        raise CodedError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)


async def test_a_coordinator_that_loads_is_said_and_asked_again() -> None:
    snapshot = await ClusterPoller(LoadingAdmin(), "h:1").poll()
    assert (snapshot.groups, snapshot.problems) == ({}, ["h:1: COORDINATOR_LOAD_IN_PROGRESS"])
