"""How many partitions one request may add. Each row was compared with Apache Kafka 4.4.0."""

from __future__ import annotations

from typing import Any

import pytest

from rejoin.coordinator.core.inputs import Context
from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.messages.topics.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from rejoin.protocol.messages.topics.create_topics import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest
from tests.coordinator.core.driver import DrivenNode, topic
from tests.coordinator.core.topics.test_topics import assigned, create, shown

NONE, TOO_LARGE, REPEATED = ErrorCode.NONE, ErrorCode.POLICY_VIOLATION, ErrorCode.INVALID_REQUEST
INT32 = 2**31 - 1
SETTING = {"configs": (CreatableTopicConfig(name="retention.ms", value="5"),)}


@pytest.mark.parametrize(
    ("topics", "errors"),
    [
        ([topic("a", 9_999)], [NONE]),
        ([topic("a", 10_000)], [TOO_LARGE]),
        ([topic("a", 10_001)], [TOO_LARGE]),
        ([topic("a", INT32)], [TOO_LARGE]),
        ([topic("a", INT32), topic("b", INT32)], [TOO_LARGE] * 2),
        ([topic("a", 9_998, **SETTING)], [NONE]),
        ([topic("a", 9_999, **SETTING)], [TOO_LARGE]),
        ([topic("a", 4_999), topic("b", 4_999)], [NONE] * 2),
        ([topic("a", 5_000), topic("b", 5_000)], [TOO_LARGE] * 2),
        ([topic("a", -1), topic("b", 9_997)], [NONE] * 2),
        ([topic("a", -1), topic("b", 9_998)], [TOO_LARGE] * 2),
        ([topic("a", -1, **assigned(0)), topic("b", 10_000)], [TOO_LARGE] * 2),
        ([topic("a", -5), topic("b", 9_999)], [ErrorCode.INVALID_PARTITIONS, NONE]),
        ([topic("t", 10_000)], [ErrorCode.TOPIC_ALREADY_EXISTS]),
        ([topic("t", 10_001)], [TOO_LARGE]),
        ([topic("a b", 10_001), topic("c", 1)], [TOO_LARGE] * 2),
        ([topic("a", 10_001), topic("a", 10_001)], [REPEATED]),
        ([topic("a", 1), topic("a", 1), topic("b", 10_001)], [TOO_LARGE] * 3),
    ],
)
def test_a_request_that_would_make_too_many_partitions_makes_none(
    topics: list[CreatableTopic], errors: list[ErrorCode]
) -> None:
    driven = DrivenNode()
    results = create(driven, *topics)
    assert [result.error_code for result in results] == errors
    made = {result.name for result in results if result.error_code is NONE}
    assert {view.topic for view in driven.node.describe_topics(driven.now)} == made | {"t"}


@pytest.mark.parametrize(
    ("counts", "errors"),
    [
        ({"t": 10_001}, [NONE]),
        ({"t": 10_002}, [TOO_LARGE]),
        ({"t": INT32}, [TOO_LARGE]),
        ({"t": 5_001, "u": 5_001}, [NONE] * 2),
        ({"t": 5_001, "u": 5_002}, [TOO_LARGE] * 2),
        ({"t": INT32, "u": INT32}, [TOO_LARGE] * 2),
        ({"nowhere": 20_000, "t": 2}, [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, NONE]),
        ({"u": -(2**31), "t": 10_001}, [ErrorCode.INVALID_PARTITIONS, NONE]),
        ({"u": 1, "t": 10_002}, [TOO_LARGE] * 2),
    ],
)
def test_topics_that_would_grow_by_too_many_partitions_stay(counts: dict[str, int], errors: list[ErrorCode]) -> None:
    driven = DrivenNode()
    create(driven, topic("u", 1))
    assert [result.error_code for result in grow(driven, counts)] == errors
    sizes = [len(shown(driven, name).partitions) for name in counts]
    grown = zip(counts.items(), errors, strict=True)
    assert sizes == [count if error is NONE else int(name != "nowhere") for (name, count), error in grown]


def grow(driven: DrivenNode, counts: dict[str, int]) -> Any:
    topics = tuple(CreatePartitionsTopic(name=name, count=count, assignments=None) for name, count in counts.items())
    return driven.ask(CreatePartitionsRequest(topics=topics, timeout_ms=1_000, validate_only=False), 3).results


def test_the_one_who_runs_the_node_may_make_more() -> None:
    driven = DrivenNode()
    grown = CreatePartitionsTopic(name="t", count=20_000, assignments=None)
    requests = (
        (CreateTopicsRequest(topics=(topic("large", 50_000),)), 7),
        (CreatePartitionsRequest(topics=(grown,), timeout_ms=1_000, validate_only=False), 3),
    )
    for request, version in requests:
        driven.request(request, request, Context(version, by_operator=True))
    assert [len(shown(driven, name).partitions) for name in ("large", "t")] == [50_000, 20_000]
