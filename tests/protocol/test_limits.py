"""One request holds texts as long as Kafka's, and a bounded number of entries; what is remembered is bounded, too."""

from __future__ import annotations

import json
from typing import Any

import pytest
from pydantic import ValidationError

from rejoin.coordinator.core.groups.classic.subscriptions import SubscribedTopics
from rejoin.protocol.embedded.consumer_protocol import Subscription, encode_subscription
from rejoin.protocol.limits import MAX_ENTRIES, MAX_STRING_BYTES
from rejoin.protocol.message import Request
from rejoin.protocol.messages.cluster.find_coordinator import FindCoordinatorRequest
from rejoin.protocol.messages.groups.heartbeat import HeartbeatRequest
from rejoin.protocol.messages.groups.leave_group import LeaveGroupRequest
from rejoin.protocol.messages.offsets.offset_commit import OffsetCommitRequest
from rejoin.protocol.partitioner import partition_for

LONG = "x" * MAX_STRING_BYTES


def heartbeat(group_id: str, instance: str | None = None) -> dict[str, Any]:
    return {"groupId": group_id, "generationId": 1, "memberId": "m", "groupInstanceId": instance}


def commit(partitions: int, topics: int = 1) -> dict[str, Any]:
    marks = [{"partitionIndex": index, "committedOffset": 1, "committedMetadata": ""} for index in range(partitions)]
    return {"groupId": "g", "memberId": "", "topics": [{"name": "t", "partitions": marks}] * topics}


def leave(reason: str) -> dict[str, Any]:
    members = [{"memberId": f"m-{number}", "reason": None} for number in range(3)]
    members[2]["reason"] = reason
    return {"groupId": "g", "members": members}


@pytest.mark.parametrize(
    ("request_type", "version", "body"),
    [
        (HeartbeatRequest, 4, heartbeat(LONG)),
        (HeartbeatRequest, 4, heartbeat("ü" * (MAX_STRING_BYTES // 2))),
        (FindCoordinatorRequest, 4, {"keyType": 0, "coordinatorKeys": ["key"] * MAX_ENTRIES}),
        (OffsetCommitRequest, 8, commit(MAX_ENTRIES - 1)),
    ],
)
def test_what_is_within_the_bounds_is_read(request_type: type[Request], version: int, body: dict[str, Any]) -> None:
    assert request_type.parse(json.dumps(body), version).to_json(version)


@pytest.mark.parametrize(
    ("request_type", "version", "body", "field", "problem"),
    [
        (HeartbeatRequest, 4, heartbeat(LONG + "x"), ("groupId",), "at most 32,767 bytes in UTF-8, not 32,768"),
        (HeartbeatRequest, 4, heartbeat("g", "ü" * 16_384), ("groupInstanceId",), "not 32,768"),
        (LeaveGroupRequest, 5, leave(LONG + "x"), ("members", 2, "reason"), "not 32,768"),
        (
            FindCoordinatorRequest,
            4,
            {"keyType": 0, "coordinatorKeys": ["short", LONG + "x"]},
            ("coordinatorKeys", 1),
            "not 32,768",
        ),
        (
            FindCoordinatorRequest,
            4,
            {"keyType": 0, "coordinatorKeys": ["key"] * (MAX_ENTRIES + 1)},
            ("coordinatorKeys",),
            "at most 20,000 entries in one request",
        ),
        (OffsetCommitRequest, 8, commit(MAX_ENTRIES // 2, topics=2), ("topics", 1, "partitions"), "entries"),
    ],
)
def test_what_is_beyond_them_is_refused_with_its_field(
    request_type: type[Request], version: int, body: dict[str, Any], field: tuple[str | int, ...], problem: str
) -> None:
    with pytest.raises(ValidationError) as refusal:
        request_type.parse(json.dumps(body), version)
    (error,) = refusal.value.errors()
    assert error["loc"] == field
    assert problem in error["msg"]


def test_subscriptions_are_remembered_up_to_so_many_bytes() -> None:
    topics_of = SubscribedTopics(most_bytes=1_000)
    for number in range(100):
        assert topics_of(encode_subscription(Subscription((f"topic-{number}",)))) == (f"topic-{number}",)
        assert topics_of.bytes <= 1_000
    assert topics_of(encode_subscription(Subscription(("t" * 2_000,)))) == ("t" * 2_000,)
    assert topics_of.bytes == 0


def test_a_long_group_id_has_the_partition_that_kafka_gives_it() -> None:
    """Long ones are not remembered; their partition is worked out each time."""
    assert partition_for("polygenelubricants" * 50, 50) == partition_for("polygenelubricants" * 50, 50)
    assert partition_for("a" * 1_000, 7) == abs(java_hash("a" * 1_000)) % 7


def java_hash(text: str) -> int:
    result = 0
    for letter in text:
        result = (31 * result + ord(letter)) % 2**32
    return result - 2**32 if result >= 2**31 else result
