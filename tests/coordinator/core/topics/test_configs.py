"""Settings of topics: kept, obeyed and described; who leads, and how large logs are."""

from __future__ import annotations

from typing import Any

import pytest

from rejoin.coordinator.core.inputs import Broker, ClusterSeen, TopicsChanged
from rejoin.coordinator.core.step_context import DiskSpace
from rejoin.coordinator.core.topics.configs import TOPIC_CONFIGS, ConfigError, check, log_config, parsed
from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.messages.cluster.alter_configs import (
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResource,
    IncrementallyAlterableConfig,
)
from rejoin.protocol.messages.cluster.describe_cluster import DescribeClusterRequest
from rejoin.protocol.messages.cluster.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from rejoin.protocol.messages.cluster.describe_log_dirs import DescribableLogDirTopic, DescribeLogDirsRequest
from rejoin.protocol.messages.cluster.metadata import MetadataRequest, MetadataRequestTopic
from rejoin.protocol.messages.topics.create_topics import CreatableTopicConfig, CreateTopicsRequest
from rejoin.protocol.messages.topics.delete_topics import DeleteTopicsRequest, DeleteTopicState
from rejoin.protocol.records.consumer_offsets import OFFSETS_TOPIC
from rejoin.protocol.records.topics import TOPICS_RECORDS
from rejoin.protocol.types import ZERO_UUID
from tests.coordinator.core.driver import PARTITION, TOPIC, DrivenNode, topic
from tests.coordinator.core.partitions.real_topic import RealTopic, batch

SET, DELETE = 0, 1


def create(driven: DrivenNode, name: str, **configs: str) -> Any:
    """A topic with these settings."""
    given = tuple(CreatableTopicConfig(name=key.replace("_", "."), value=value) for key, value in configs.items())
    return driven.ask(CreateTopicsRequest(topics=(topic(name, 1, configs=given),)), 7).topics[0]


def alter(driven: DrivenNode, name: str, config: str, value: str | None, *, kind: int = 2, operation: int = SET) -> Any:
    """Change one setting."""
    change = IncrementallyAlterableConfig(name=config, config_operation=operation, value=value)
    resource = IncrementalAlterConfigsResource(resource_type=kind, resource_name=name, configs=(change,))
    return driven.ask(IncrementalAlterConfigsRequest(resources=(resource,), validate_only=False), 1).responses[0]


def describe(driven: DrivenNode, name: str, *keys: str, kind: int = 2) -> Any:
    """Settings as DescribeConfigs answers."""
    resource = DescribeConfigsResource(resource_type=kind, resource_name=name, configuration_keys=keys or None)
    return driven.ask(DescribeConfigsRequest(resources=(resource,), include_synonyms=True), 4).results[0]


def values(driven: DrivenNode, name: str, *keys: str, kind: int = 2) -> dict[str, str | None]:
    return {config.name: config.value for config in describe(driven, name, *keys, kind=kind).configs}


def test_one_answer_makes_equal_settings_once_so_that_thousands_of_topics_delay_no_request() -> None:
    driven = RealTopic()
    first, second, own = create(driven, "a"), create(driven, "b"), create(driven, "c", retention_ms="1000")
    assert first.configs[0] is second.configs[0]
    assert {config.name: config.value for config in own.configs}["retention.ms"] == "1000"
    names = ("a", "b", "c", "c", "a")
    resources = tuple(
        DescribeConfigsResource(resource_type=2, resource_name=name, configuration_keys=None) for name in names
    )
    results = driven.ask(DescribeConfigsRequest(resources=resources), 4).results
    assert [result.resource_name for result in results] == list(names)
    assert len({id(result.configs[0]) for result in results}) == 2
    retention = [next(c.value for c in result.configs if c.name == "retention.ms") for result in results]
    assert retention == ["604800000", "604800000", "1000", "1000", "604800000"]


def test_a_log_obeys_what_its_topic_was_created_with_and_what_is_changed_later() -> None:
    driven = RealTopic()
    create(driven, "u", retention_ms="1000", cleanup_policy="compact, delete")
    config = driven.partition(topic="u").config
    assert (config.retention_ms, config.cleanup_policy) == (1000, ("compact", "delete"))
    assert alter(driven, "u", "retention.ms", "7").error_code is ErrorCode.NONE
    assert driven.partition(topic="u").config.retention_ms == 7
    alter(driven, "u", "retention.ms", None, operation=DELETE)
    assert driven.partition(topic="u").config.retention_ms == 604_800_000
    assert driven.partition(topic="u").config.cleanup_policy == ("compact", "delete")


def test_settings_are_kept_with_the_topics() -> None:
    driven = RealTopic()
    create(driven, "u", retention_ms="1000")
    alter(driven, "u", "max.message.bytes", "77")
    written = TOPICS_RECORDS.validate_json(TOPICS_RECORDS.dump_json(driven.node.topics_records()))
    after = RealTopic()
    after.step(TopicsChanged(((9, written),), 9, whole=True))
    keys = ("retention.ms", "max.message.bytes", "segment.ms")
    assert values(after, "u", *keys) == {
        "retention.ms": "1000",
        "max.message.bytes": "77",
        "segment.ms": "604800000",
    }
    assert after.partition(topic="u").config.max_message_bytes == 77


def test_a_topic_that_is_made_again_has_none_of_the_settings_of_the_one_before() -> None:
    driven = RealTopic()
    create(driven, "u", retention_ms="1000")
    driven.ask(DeleteTopicsRequest(topics=(DeleteTopicState(name="u", topic_id=ZERO_UUID),), timeout_ms=0), 6)
    create(driven, "u")
    assert values(driven, "u", "retention.ms") == {"retention.ms": "604800000"}
    assert driven.partition(topic="u").config.retention_ms == 604_800_000


def test_the_defaults_of_a_node_are_those_of_its_topics() -> None:
    driven = RealTopic(log_retention_ms=1_000, message_max_bytes=100)
    assert driven.partition().config == log_config({"retention.ms": "1000", "max.message.bytes": "100"})
    assert driven.produce(batch("x" * 100)).error_code is ErrorCode.MESSAGE_TOO_LARGE
    create(driven, "own", **{"retention.ms": "5000"})
    assert driven.partition(topic="own").config.retention_ms == 5_000
    (retention,) = describe(driven, "own", "retention.ms").configs
    sources = [(each.name, each.value, each.source) for each in retention.synonyms]
    assert sources == [
        ("retention.ms", "5000", 1),
        ("log.retention.ms", "1000", 4),
        ("log.retention.hours", "168", 5),
    ]
    assert values(driven, "1", "log.retention.ms", "message.max.bytes", kind=4) == {
        "log.retention.ms": "1000",
        "message.max.bytes": "100",
    }
    alter(driven, "own", "retention.ms", None, operation=1)
    assert driven.partition(topic="own").config.retention_ms == 1_000


APPEND, SUBTRACT = 2, 3
POLICY, THROTTLED = "cleanup.policy", "leader.replication.throttled.replicas"


@pytest.mark.parametrize(
    ("config", "before", "operation", "value", "after"),
    [
        (POLICY, "delete", SET, "delete,delete", "delete"),
        (POLICY, "delete", SET, "compact, delete, compact", "compact,delete"),
        (POLICY, "delete", APPEND, "compact,compact", "delete,compact"),
        (POLICY, "delete", APPEND, " delete", "delete"),
        (POLICY, "delete,compact,delete", SUBTRACT, "delete", "compact,delete"),
        (POLICY, "delete, delete", SUBTRACT, "delete", "delete"),
        (THROTTLED, "0:1", SET, "0:1,0:1", "0:1,0:1"),
        (THROTTLED, "0:1", SET, "0:1,", "0:1,"),
        (THROTTLED, "0:1", APPEND, "1:1,1:1", "0:1,1:1"),
        (THROTTLED, "0:1,0:1", SUBTRACT, "0:1", "0:1"),
    ],
)
def test_what_becomes_of_parts_that_are_listed_twice(
    config: str, before: str, operation: int, value: str, after: str
) -> None:
    """Each row was compared with Apache Kafka 4.4.0."""
    driven = RealTopic()
    alter(driven, TOPIC, config, before)
    assert alter(driven, TOPIC, config, value, operation=operation).error_code is ErrorCode.NONE
    assert values(driven, TOPIC, config) == {config: after}


def test_a_log_has_each_cleanup_policy_once() -> None:
    driven = RealTopic()
    alter(driven, TOPIC, POLICY, "delete,compact,delete")
    assert driven.partition().config.cleanup_policy == ("delete", "compact")


def test_a_new_topic_is_answered_with_its_settings_as_they_were_given() -> None:
    driven = RealTopic()
    made = create(driven, "u", cleanup_policy=" delete , delete ", retention_ms=" 5 ")
    given = {config.name: config.value for config in made.configs if config.config_source == 1}
    assert given == {POLICY: " delete , delete ", "retention.ms": " 5 "}
    assert values(driven, "u", POLICY, "retention.ms") == {POLICY: "delete", "retention.ms": "5"}


def test_a_batch_that_is_larger_than_the_setting_is_refused() -> None:
    driven = RealTopic()
    alter(driven, TOPIC, "max.message.bytes", "80")
    assert driven.produce(batch("x" * 100)).error_code is ErrorCode.MESSAGE_TOO_LARGE


def test_the_rate_of_a_synthetic_topic_is_listed_and_stays() -> None:
    driven = DrivenNode()
    create(driven, "u", emulator_records_per_second="5")
    rate = "emulator.records.per.second"
    assert values(driven, "u", rate) == {rate: "5.0"}
    assert alter(driven, "u", rate, "6").error_code is ErrorCode.INVALID_CONFIG
    assert values(driven, "u", rate) == {rate: "5.0"}
    assert rate not in values(RealTopic(), TOPIC)


def test_the_offsets_topic_has_the_settings_that_kafka_gives_it() -> None:
    driven = DrivenNode()
    found = values(driven, OFFSETS_TOPIC, "cleanup.policy", "segment.bytes")
    assert found == {"cleanup.policy": "compact", "segment.bytes": "104857600"}
    refused = alter(driven, OFFSETS_TOPIC, "retention.ms", "1")
    assert refused.error_code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_a_node_lists_what_it_was_started_with() -> None:
    driven = DrivenNode(num_partitions=7)
    (found,) = describe(driven, "1", "num.partitions", kind=4).configs
    assert (found.value, found.config_source, found.read_only) == ("7", 4, True)
    assert [(synonym.value, synonym.source) for synonym in found.synonyms] == [("7", 4), ("1", 5)]
    assert alter(driven, "1", "num.partitions", "8", kind=4).error_code is ErrorCode.INVALID_REQUEST


@pytest.mark.parametrize("operation", ["DESCRIBE_CONFIGS", "ALTER_CONFIGS"])
def test_who_may_not_gets_an_error_for_the_topic(operation: str) -> None:
    driven = DrivenNode(emulator_deny=(f"User:ANONYMOUS:{operation}:topic=t",))
    answer = describe(driven, TOPIC) if operation == "DESCRIBE_CONFIGS" else alter(driven, TOPIC, "retention.ms", "1")
    assert answer.error_code is ErrorCode.TOPIC_AUTHORIZATION_FAILED


@pytest.mark.parametrize("definition", TOPIC_CONFIGS.values(), ids=lambda definition: definition.name)
def test_every_default_is_a_value_that_a_topic_may_have(definition: Any) -> None:
    parsed(definition, definition.default)


def test_defaults_are_those_of_a_log_without_settings() -> None:
    assert log_config({name: each.default for name, each in TOPIC_CONFIGS.items()}) == log_config({})


@pytest.mark.parametrize(
    "text",
    ["1e3", "1_000", "0x10", "", "١", "9" * 40, "9223372036854775808", "+", "1.0", "None"],
)
def test_what_java_does_not_read_as_a_number_is_refused(text: str) -> None:
    with pytest.raises(ConfigError, match=r"^retention\.ms"):
        check({"retention.ms": text})


def test_leaders_are_those_of_the_data_partitions() -> None:
    """Of a real log; where the leader is another node, only that one knows the epoch."""
    driven = RealTopic()
    nodes = (Broker(1, "one", 9001), Broker(2, "two", 9002))
    asked = MetadataRequest(topics=(MetadataRequestTopic(name=TOPIC),))
    leaders = []
    for leading in (1, 2, 3):
        driven.step(ClusterSeen(nodes, {PARTITION: leading}))
        if leading == 2:
            driven.resign()
        (partition,) = driven.ask(asked, 7).topics[0].partitions
        leaders.append((partition.leader_id, partition.leader_epoch, partition.error_code.name, partition.isr_nodes))
    assert leaders == [(1, 0, "NONE", (1,)), (2, -1, "NONE", (2,)), (-1, -1, "LEADER_NOT_AVAILABLE", ())]


def test_the_size_of_a_log_is_that_of_its_batches() -> None:
    driven = RealTopic()
    sent = batch("a", "b")
    driven.produce(sent)
    (everything,) = driven.ask(DescribeLogDirsRequest(topics=None), 5).results
    assert (everything.total_bytes, everything.usable_bytes) == (-1, -1)
    driven.node.measure_disk(lambda: DiskSpace(1_000, 400))
    (measured,) = driven.ask(DescribeLogDirsRequest(topics=None), 4).results
    assert (measured.total_bytes, measured.usable_bytes) == (1_000, 400)
    assert [(each.name, each.partitions[0].partition_size) for each in everything.topics] == [(TOPIC, len(sent))]
    nowhere = (DescribableLogDirTopic(topic="nowhere", partitions=(0,)),)
    assert driven.ask(DescribeLogDirsRequest(topics=nowhere), 5).results[0].topics == ()
    denied = DrivenNode(emulator_deny=("User:ANONYMOUS:DESCRIBE:cluster=kafka-cluster",))
    refused = denied.ask(DescribeLogDirsRequest(topics=None), 5)
    assert (refused.error_code, refused.results) == (ErrorCode.CLUSTER_AUTHORIZATION_FAILED, ())


def test_controllers_have_no_endpoints_here() -> None:
    request = DescribeClusterRequest(include_cluster_authorized_operations=False, endpoint_type=2)
    assert DrivenNode().ask(request, 1).error_code is ErrorCode.MISMATCHED_ENDPOINT_TYPE
