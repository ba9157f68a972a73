"""What a request costs grows as its entries do, so that one of many entries does not hold up the node."""

from __future__ import annotations

import gc
import time
from collections.abc import Iterator
from typing import Any

import pytest

from rejoin.coordinator.core.topics.config_requests import MOST_DESCRIBED
from rejoin.coordinator.core.topics.requests import MOST_NEW_TOPICS, MOST_PER_REQUEST
from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.limits import MAX_ENTRIES
from rejoin.protocol.message import Request
from rejoin.protocol.messages.cluster.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from rejoin.protocol.messages.cluster.metadata import MetadataRequest, MetadataRequestTopic
from rejoin.protocol.messages.groups.delete_groups import DeleteGroupsRequest
from rejoin.protocol.messages.groups.describe_groups import DescribeGroupsRequest
from rejoin.protocol.messages.topics.create_topics import CreatableTopic, CreateTopicsRequest
from rejoin.protocol.messages.topics.delete_topics import DeleteTopicsRequest
from tests.coordinator.core.driver import DrivenNode, topic

NAMES = tuple(f"group-{number}" for number in range(MAX_ENTRIES))


@pytest.fixture(autouse=True)
def _no_collector() -> Iterator[None]:
    gc.disable()
    yield
    gc.enable()


class CountedName(str):
    """A name that counts how often it is compared."""

    compared = 0

    def __eq__(self, other: object) -> bool:
        CountedName.compared += 1
        return str.__eq__(self, other)

    __hash__ = str.__hash__


def test_creating_topics_compares_no_name_with_all_others() -> None:
    names = [CountedName(f"topic-{number}") for number in range(500)]
    topics = tuple(
        CreatableTopic.model_construct(name=name, num_partitions=1, replication_factor=1, assignments=(), configs=())
        for name in names
    )
    driven = DrivenNode()
    CountedName.compared = 0
    answer = driven.ask(CreateTopicsRequest.model_construct(topics=topics, timeout_ms=1, validate_only=False), 5)
    assert len(answer.topics) == len(names)
    assert CountedName.compared < 20 * len(names)


def cpu_of(request: Request, version: int) -> float:
    driven = DrivenNode()
    began = time.process_time()
    driven.receive("token", request, version)
    driven.elapse(0)  # requests that are handled in parts
    assert "token" in driven.replies
    return time.process_time() - began


def test_deleting_many_groups_costs_little_more_than_describing_them() -> None:
    """It once looked through all results for each group, which took seventeen times as long."""
    described = min(cpu_of(DescribeGroupsRequest(groups=NAMES), 6) for _ in range(2))
    deleted = min(cpu_of(DeleteGroupsRequest(groups_names=NAMES), 2) for _ in range(2))
    assert deleted < 6 * described


def test_creating_too_many_topics_is_answered() -> None:
    topics = tuple(topic(name, 1) for name in NAMES[: MOST_NEW_TOPICS + 1])
    answer = DrivenNode().ask(CreateTopicsRequest(topics=topics), 7)
    assert {each.error_code for each in answer.topics} == {ErrorCode.POLICY_VIOLATION}
    assert answer.topics[0].error_message.startswith("a request may make at most 4,000 topics")
    answer = DrivenNode().ask(CreateTopicsRequest(topics=topics[1:]), 7)
    assert {each.error_code for each in answer.topics} == {ErrorCode.NONE}


def test_metadata_makes_no_more_topics_than_create_topics() -> None:
    driven = DrivenNode()
    asked = tuple(MetadataRequestTopic(name=name) for name in NAMES[: MOST_NEW_TOPICS + 100])
    request = MetadataRequest(topics=asked, allow_auto_topic_creation=True)
    for made in (MOST_NEW_TOPICS, len(asked), len(asked)):
        answer = driven.ask(request, 4)
        assert {each.error_code for each in answer.topics} <= {ErrorCode.NONE, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}
        there = driven.ask(request.model_copy(update={"allow_auto_topic_creation": False}), 4)
        assert sum(each.error_code is ErrorCode.NONE for each in there.topics) == made


def test_deleting_too_many_topics_is_answered() -> None:
    answer = DrivenNode().ask(DeleteTopicsRequest(topic_names=NAMES[: MOST_PER_REQUEST + 1], timeout_ms=1), 5)
    assert {each.error_code for each in answer.responses} == {ErrorCode.POLICY_VIOLATION}
    assert answer.responses[0].error_message == "a request may delete at most 10,000 topics"


def test_describing_the_settings_of_too_many_topics_is_answered() -> None:
    def ask(count: int) -> Any:
        wanted = tuple(
            DescribeConfigsResource(resource_type=2, resource_name=name, configuration_keys=None)
            for name in NAMES[:count]
        )
        request = DescribeConfigsRequest(resources=wanted, include_synonyms=False, include_documentation=False)
        return DrivenNode().ask(request, 4)

    answer = ask(MOST_DESCRIBED + 1)
    assert {each.error_code for each in answer.results} == {ErrorCode.POLICY_VIOLATION}
    assert answer.results[0].error_message == "a request may describe at most 4,000 resources; ask in several"
    assert {each.error_code for each in ask(MOST_DESCRIBED).results} == {ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}


@pytest.mark.parametrize(("name", "is_found"), [("+1", True), ("0" * 5_000 + "1", True), ("9" * 5_000, False)])
def test_the_id_of_a_node_is_a_number(name: str, is_found: bool) -> None:
    wanted = DescribeConfigsResource(resource_type=4, resource_name=name, configuration_keys=("broker.id",))
    request = DescribeConfigsRequest(resources=(wanted,), include_synonyms=False, include_documentation=False)
    (result,) = DrivenNode(broker_id=1).ask(request, 4).results
    assert result.error_code is (ErrorCode.NONE if is_found else ErrorCode.INVALID_REQUEST)
