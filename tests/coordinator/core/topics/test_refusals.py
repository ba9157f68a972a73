"""What is refused first where several things are wrong with a topic. Each row was compared with Apache Kafka 4.4.0."""

from __future__ import annotations

from typing import Any

import pytest

from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.messages.cluster.metadata import MetadataRequest, MetadataRequestTopic
from rejoin.protocol.messages.topics.create_topics import CreatableTopicConfig
from rejoin.protocol.messages.topics.delete_topics import DeleteTopicsRequest
from tests.coordinator.core.driver import DrivenNode, topic
from tests.coordinator.core.topics.test_configs import alter
from tests.coordinator.core.topics.test_topics import assigned, create

APPEND, SUBTRACT = 2, 3
BAD_CONFIG = {"configs": (CreatableTopicConfig(name="retention.ms", value="x"),)}
EVERY_OPERATION = 3_576
"""READ, WRITE, CREATE, DELETE, ALTER, DESCRIBE, DESCRIBE_CONFIGS and ALTER_CONFIGS as bits."""


@pytest.fixture
def driven() -> DrivenNode:
    made = DrivenNode()
    create(made, topic("a.b", 1))
    return made


@pytest.mark.parametrize(
    ("name", "partitions", "fields", "error"),
    [
        ("a_b", 0, BAD_CONFIG, ErrorCode.INVALID_TOPIC_EXCEPTION),
        ("a.b", 0, BAD_CONFIG, ErrorCode.TOPIC_ALREADY_EXISTS),
        ("new", 0, BAD_CONFIG, ErrorCode.INVALID_CONFIG),
        ("new", 0, {"replication_factor": 0}, ErrorCode.INVALID_REPLICATION_FACTOR),
        ("new", 0, {"replication_factor": 2}, ErrorCode.INVALID_PARTITIONS),
        ("new", 1, {"replication_factor": 2}, ErrorCode.INVALID_REPLICATION_FACTOR),
    ],
)
def test_a_topic_that_cannot_be_created(
    driven: DrivenNode, name: str, partitions: int, fields: dict[str, Any], error: ErrorCode
) -> None:
    (result,) = create(driven, topic(name, partitions, **fields))
    assert result.error_code is error


def test_topics_whose_names_differ_in_dots_and_underscores_are_the_same_to_metrics(driven: DrivenNode) -> None:
    (refused,) = create(driven, topic("a_b", 1))
    assert (
        refused.error_message
        == "topic 'a_b' differs from 'a.b' only in '.' and '_', which are the same in names of metrics"
    )
    (made,) = create(driven, topic("a-b", 1))
    assert made.error_code is ErrorCode.NONE


@pytest.mark.parametrize("nodes", [(9,), (1, 1)])
def test_replicas_must_be_on_nodes_that_there_are_and_on_each_once(driven: DrivenNode, nodes: tuple[int, ...]) -> None:
    (result,) = create(driven, topic("new", -1, **assigned(0, nodes=nodes)))
    assert result.error_code is ErrorCode.INVALID_REPLICA_ASSIGNMENT


@pytest.mark.parametrize(
    ("name", "config", "value", "operation", "error"),
    [
        ("..", "retention.ms", "1", APPEND, ErrorCode.INVALID_CONFIG),
        ("..", "retention.ms", "x", 0, ErrorCode.INVALID_TOPIC_EXCEPTION),
        ("none", "retention.ms", "x", 0, ErrorCode.INVALID_CONFIG),
        ("none", "cleanup.policy", "", APPEND, ErrorCode.INVALID_CONFIG),
        ("none", "cleanup.policy", ",", APPEND, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ("none", "cleanup.policy", "", SUBTRACT, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ("none", "retention.ms", "1", 0, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ("", "retention.ms", "1", 0, ErrorCode.INVALID_REQUEST),
    ],
)
def test_a_setting_that_cannot_be_changed(
    driven: DrivenNode, name: str, config: str, value: str, operation: int, error: ErrorCode
) -> None:
    assert alter(driven, name, config, value, operation=operation).error_code is error


def test_a_topic_that_a_deletion_names_twice_stays(driven: DrivenNode) -> None:
    (result,) = driven.ask(DeleteTopicsRequest(topic_names=("a.b", "a.b"), timeout_ms=1_000), 5).responses
    assert (result.name, result.error_code) == ("a.b", ErrorCode.INVALID_REQUEST)
    (exists,) = create(driven, topic("a.b", 1))
    assert exists.error_code is ErrorCode.TOPIC_ALREADY_EXISTS


def test_metadata_says_which_names_no_topic_may_have_and_what_one_may_do_with_the_others(driven: DrivenNode) -> None:
    asked = tuple(MetadataRequestTopic(name=name) for name in ("..", "none"))
    request = MetadataRequest(
        topics=asked,
        allow_auto_topic_creation=False,
        include_cluster_authorized_operations=False,
        include_topic_authorized_operations=True,
    )
    found = [(each.error_code, each.topic_authorized_operations) for each in driven.ask(request, 9).topics]
    errors = (ErrorCode.INVALID_TOPIC_EXCEPTION, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    assert found == [(error, EVERY_OPERATION) for error in errors]
