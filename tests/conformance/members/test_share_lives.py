"""Requests of share consumers, as lives on two brokers compare them."""

from __future__ import annotations

from typing import Any

import pytest

from conformance.clients.share_groups_on_kafka import ShareLife, compared, described, requests_by_step
from conformance.members.proxy import ProxiedExchange
from rejoin.protocol.messages.share.share_acknowledge import ShareAcknowledgeRequest
from rejoin.protocol.messages.share.share_group_heartbeat import ShareGroupHeartbeatRequest


def acknowledging(session_epoch: int, *types: int) -> dict[str, Any]:
    batch = {"firstOffset": 0, "lastOffset": 1, "acknowledgeTypes": list(types)}
    topics = [{"partitions": [{"partitionIndex": 3, "acknowledgementBatches": [batch]}]}] if types else []
    return {"shareSessionEpoch": session_epoch, "topics": topics}


def acquiring(**more: int) -> dict[str, Any]:
    row = {"firstOffset": 2, "lastOffset": 4, "deliveryCount": 2}
    return {"responses": [{"partitions": [{"partitionIndex": 0, "acquiredRecords": [row]} | more]}]}


@pytest.mark.parametrize(
    ("api", "request_", "answer", "words"),
    [
        ("ShareGroupHeartbeat", {"memberEpoch": 0}, {"errorCode": 0}, ["joins"]),
        ("ShareGroupHeartbeat", {"memberEpoch": 5}, {"errorCode": 0}, []),
        ("ShareGroupHeartbeat", {"memberEpoch": -1}, {}, ["leaves"]),
        ("ShareFetch", acknowledging(4), {"errorCode": 0, "responses": []}, []),
        ("ShareFetch", acknowledging(4), acquiring(), ["acquires 0:2-4 (2)"]),
        ("ShareFetch", acknowledging(4), {"errorCode": 123}, ["errorCode 123"]),
        ("ShareAcknowledge", acknowledging(-1, 1, 2), {}, ["closes", "acknowledges 3:0-1 as 1,2"]),
        (
            "ShareFetch",
            acknowledging(1),
            acquiring(acknowledgeErrorCode=121),
            ["acquires 0:2-4 (2)", "acknowledgeErrorCode 121"],
        ),
    ],
)
def test_a_request_is_described_by_what_it_changes(
    api: str, request_: dict[str, Any], answer: dict[str, Any], words: list[str]
) -> None:
    assert list(described(api, request_, answer)) == words


def beat(group: str, member: str, epoch: int) -> ProxiedExchange:
    request = ShareGroupHeartbeatRequest(group_id=group, member_id=member, member_epoch=epoch)
    return ProxiedExchange("one", "ShareGroupHeartbeat", 1, 0.0, request)


def test_members_of_one_client_id_are_kept_apart_in_the_step_of_their_group() -> None:
    found = requests_by_step([beat("java-release", "a", 0), beat("java-release", "a", 2), beat("java-release", "b", 0)])
    assert found["release"] == {"one": ["ShareGroupHeartbeat joins"], "one'": ["ShareGroupHeartbeat joins"]}
    assert found["reject"] == {}


def test_the_order_of_closing_and_leaving_does_not_count() -> None:
    close = ShareAcknowledgeRequest(group_id="java-release", member_id="a", share_session_epoch=-1, topics=())
    closing = ProxiedExchange("one", "ShareAcknowledge", 1, 0.0, close)
    leaving = beat("java-release", "a", -1)
    assert requests_by_step([closing, leaving]) == requests_by_step([leaving, closing])


def a_life(step: str, *requests: str) -> ShareLife:
    return ShareLife({}, {step: {"one": list(requests)}}, {})


def test_the_first_request_that_differs_is_shown() -> None:
    kafka, same = (a_life("release", "ShareFetch acquires 0:0-2 (1)", "x") for _ in range(2))
    assert compared("release", kafka, same) == "the same 2"
    other = a_life("release", "ShareFetch acquires 0:0-2 (1)")
    assert compared("release", kafka, other) == "one 1: Kafka x; Rejoin –"


def test_where_time_decides_the_kinds_of_requests_are_compared() -> None:
    kafka = a_life("rolling restart", "ShareFetch acquires 0:0-2 (1)", "ShareFetch acquires 0:3-3 (1)")
    other = a_life("rolling restart", "ShareFetch acquires 0:0-3 (1)")
    assert compared("rolling restart", kafka, other) == "the same kinds"
    closed = a_life("rolling restart", "ShareAcknowledge closes")
    assert compared("rolling restart", kafka, closed) == "kinds: ['acquires', 'closes']"
