"""The admin clients of kafka-python, aiokafka and confluent-kafka, each through the life of a topic."""

from __future__ import annotations

import asyncio

import pytest
from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.admin import NewPartitions as AioNewPartitions
from aiokafka.admin import NewTopic as AioNewTopic
from aiokafka.admin.config_resource import ConfigResource as AioResource
from aiokafka.admin.config_resource import ConfigResourceType as AioResourceType
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewPartitions,
    NewTopic,
    ResourceType,
)
from confluent_kafka.error import KafkaException
from kafka.admin import ConfigResource as PythonResource
from kafka.admin import ConfigResourceType as PythonResourceType
from kafka.admin import KafkaAdminClient

from tests.coordinator.service.conftest import Serve
from tests.coordinator.service.helpers import Harness

CONFIGS = {"retention.ms": "1000", "cleanup.policy": "compact"}


def address(node: Harness) -> str:
    (listener,) = node.app.endpoints
    return f"127.0.0.1:{listener.port}"


def listed(node: Harness) -> dict[str, int]:
    """The topics that the node has, with their partitions."""
    return {view.topic: view.partitions for view in node.app.runtime.node.describe_topics(0)}


def with_confluent_kafka(bootstrap: str) -> None:
    admin = AdminClient({"bootstrap.servers": bootstrap})
    admin.create_topics([NewTopic("orders", 2, 1, config=CONFIGS)])["orders"].result(60)
    with pytest.raises(KafkaException, match="nowhere"):
        admin.create_topics([NewTopic("other", 1, 1, config={"nowhere": "1"})])["other"].result(60)
    resource = ConfigResource(ResourceType.TOPIC, "orders")
    (described,) = admin.describe_configs([resource]).values()
    configs = described.result(60)
    assert {name: configs[name].value for name in CONFIGS} == CONFIGS
    assert configs["segment.ms"].is_default
    entry = ConfigEntry("retention.ms", "77", incremental_operation=AlterConfigOpType.SET)
    changed = ConfigResource(ResourceType.TOPIC, "orders", incremental_configs=[entry])
    (altered,) = admin.incremental_alter_configs([changed]).values()
    altered.result(60)
    (described,) = admin.describe_configs([resource]).values()
    assert described.result(60)["retention.ms"].value == "77"
    (of_node,) = admin.describe_configs([ConfigResource(ResourceType.BROKER, "1")]).values()
    assert of_node.result(60)["num.partitions"].value == "1"
    cluster = admin.describe_cluster().result(60)
    assert [node.id for node in cluster.nodes] == [1]
    assert "orders" in admin.list_topics(timeout=60).topics
    admin.create_partitions([NewPartitions("orders", 5)])["orders"].result(60)
    assert len(admin.list_topics("orders", timeout=60).topics["orders"].partitions) == 5
    admin.delete_topics(["orders"])["orders"].result(60)


async def test_confluent_kafka(serve: Serve) -> None:
    node = await serve({"kafka_port": 0})
    await asyncio.to_thread(with_confluent_kafka, address(node))
    assert listed(node) == {}


def with_kafka_python(bootstrap: str) -> None:
    admin = KafkaAdminClient(bootstrap_servers=bootstrap)
    try:
        admin.create_topics({"orders": {"num_partitions": 2, "replication_factor": 1, "configs": CONFIGS}})
        resource = PythonResource(PythonResourceType.TOPIC, "orders")
        configs = admin.describe_configs([resource])["topic"]["orders"]
        assert {name: configs[name]["value"] for name in CONFIGS} == CONFIGS
        admin.alter_configs([PythonResource(PythonResourceType.TOPIC, "orders", {"retention.ms": "77"})])
        assert admin.describe_configs([resource])["topic"]["orders"]["retention.ms"]["value"] == "77"
        assert [node["broker_id"] for node in admin.describe_cluster()["brokers"]] == [1]
        assert admin.list_topics() == ["orders"]
        admin.create_partitions({"orders": 5})
        (described,) = admin.describe_topics(["orders"])
        assert len(described["partitions"]) == 5
        assert admin.describe_log_dirs()
        admin.delete_topics(["orders"])
    finally:
        admin.close()


async def test_kafka_python(serve: Serve) -> None:
    node = await serve({"kafka_port": 0})
    await asyncio.to_thread(with_kafka_python, address(node))
    assert listed(node) == {}


async def test_aiokafka(serve: Serve) -> None:
    node = await serve({"kafka_port": 0})
    admin = AIOKafkaAdminClient(bootstrap_servers=address(node))
    await admin.start()
    try:
        await admin.create_topics([AioNewTopic("orders", 2, 1, topic_configs=CONFIGS)])
        resource = AioResource(AioResourceType.TOPIC, "orders")
        (answer,) = await admin.describe_configs([resource])
        assert CONFIGS.items() <= {each[0]: each[1] for each in answer.resources[0][4]}.items()
        await admin.alter_configs([AioResource(AioResourceType.TOPIC, "orders", {"retention.ms": "77"})])
        (answer,) = await admin.describe_configs([resource])
        assert {"retention.ms": "77"}.items() <= {each[0]: each[1] for each in answer.resources[0][4]}.items()
        assert [each["node_id"] for each in (await admin.describe_cluster())["brokers"]] == [1]
        assert await admin.list_topics() == ["orders"]
        await admin.create_partitions({"orders": AioNewPartitions(5)})
        assert listed(node) == {"orders": 5}
        await admin.delete_topics(["orders"])
    finally:
        await admin.close()
    assert listed(node) == {}
