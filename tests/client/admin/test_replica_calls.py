"""`rejoin.Admin`: elections, reassignments and settings, on several brokers in one process."""

from __future__ import annotations

import pytest

from rejoin import Admin
from rejoin.client import ElectionType, PartitionReassignment, TopicPartition
from rejoin.client.admin.configs import ConfigResource
from rejoin.client.core.effects import Endpoint
from rejoin.client.core.errors import CodedError
from rejoin.coordinator.testing import running
from rejoin.protocol.errors import ErrorCode

ORDERS = TopicPartition("orders", 0)
OTHER = TopicPartition("orders", 1)
NOWHERE = TopicPartition("nowhere", 0)


def errors(outcomes: dict[TopicPartition, CodedError | None]) -> dict[TopicPartition, ErrorCode | None]:
    return {partition: None if problem is None else problem.error for partition, problem in outcomes.items()}


async def test_leaders_are_elected() -> None:
    async with running(brokers=3, topics={"orders": 2}) as node, Admin(bootstrap_servers=node.url) as admin:
        await node.move_leader("orders", 0, 2)
        named = await admin.elect_leaders(partitions=[ORDERS, OTHER, NOWHERE])
        assert errors(named) == {
            NOWHERE: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
            ORDERS: None,
            OTHER: ErrorCode.ELECTION_NOT_NEEDED,
        }
        assert (await node.partition("orders", 0)).leader == 1
        await node.move_leader("orders", 0, 3)
        assert errors(await admin.elect_leaders()) == {ORDERS: None}
        unclean = await admin.elect_leaders(ElectionType.UNCLEAN, [ORDERS])
        assert errors(unclean) == {ORDERS: ErrorCode.ELECTION_NOT_NEEDED}


async def test_replicas_are_reassigned_and_reassignments_cancelled() -> None:
    async with running(brokers=3, topics={"orders": 2}) as node, Admin(bootstrap_servers=node.url) as admin:
        outcomes = await admin.alter_partition_reassignments({ORDERS: [1], NOWHERE: [1], OTHER: [9]})
        assert errors(outcomes) == {
            NOWHERE: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
            ORDERS: None,
            OTHER: ErrorCode.INVALID_REPLICA_ASSIGNMENT,
        }
        assert await admin.list_partition_reassignments() == {}
        await node.cut_off(2, brokers=1)
        (await admin.alter_partition_reassignments({ORDERS: [2, 3]})).check()
        going = {ORDERS: PartitionReassignment(replicas=(2, 3, 1), adding=(2, 3), removing=(1,))}
        assert await admin.list_partition_reassignments() == going
        assert await admin.list_partition_reassignments([OTHER]) == {}
        cancelled = await admin.alter_partition_reassignments({ORDERS: None, OTHER: None})
        assert errors(cancelled) == {ORDERS: None, OTHER: ErrorCode.NO_REASSIGNMENT_IN_PROGRESS}
        assert (await node.partition("orders", 0)).replicas == [1]


async def test_a_denied_administrator_changes_nothing() -> None:
    settings = {"authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer"}
    async with (
        running(brokers=3, topics={"orders": 1}, settings=settings) as node,
        Admin(bootstrap_servers=node.bootstrap_servers) as admin,
    ):
        for call in (
            admin.elect_leaders(),
            admin.alter_partition_reassignments({ORDERS: [1]}),
            admin.list_partition_reassignments(),
        ):
            with pytest.raises(CodedError) as refusal:
                await call
            assert refusal.value.error is ErrorCode.CLUSTER_AUTHORIZATION_FAILED
        assert len((await node.partition("orders", 0)).replicas) == len({1, 2, 3})


async def test_settings_of_topics_and_brokers_are_set_and_removed() -> None:
    rate, retention = "leader.replication.throttled.rate", "retention.ms"
    topic, broker = ConfigResource.topic("orders"), ConfigResource.broker(2)
    async with running(brokers=3, topics={"orders": 1}) as node, Admin(bootstrap_servers=node.url) as admin:
        cluster = await admin.cluster(["orders"])
        nodes = {str(each.node_id): Endpoint(each.node_id, each.host, each.port) for each in cluster.brokers}
        assert [each.node_id for each in cluster.brokers] == [1, 2, 3]
        assert [each.name for each in cluster.topics] == ["orders"]
        for value in ("1000", None):
            changes = {topic: {retention: value}, broker: {rate: value}}
            assert list((await admin.incremental_alter_configs(changes, nodes)).values()) == [None, None]
        wrong = await admin.incremental_alter_configs({topic: {retention: "long"}}, nodes)
        refusal = wrong[topic]
        assert refusal is not None
        assert refusal.error is ErrorCode.INVALID_CONFIG
