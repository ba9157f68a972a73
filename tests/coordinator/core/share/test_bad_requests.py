"""Requests of share groups that no client sends: Kafka's codes, memory that is bounded, and others undisturbed."""

from __future__ import annotations

import tracemalloc
from typing import Any, Final

import pytest

from rejoin.protocol.errors import ErrorCode
from tests.benchmarks.calls import steps_of
from tests.coordinator.core.share.test_sharing import ACCEPT, JOBS, Sharing

RELEASE: Final = 2
MOST_SESSIONS: Final = 20
FLOOD: Final = 400


def acknowledge(node: Sharing, member: str, *batches: tuple[int, int, list[int]]) -> int:
    """The error of acknowledgements of one partition in one request."""
    asked = [{"firstOffset": first, "lastOffset": last, "acknowledgeTypes": types} for first, last, types in batches]
    topics = [{"topicId": JOBS, "partitions": [{"partitionIndex": 0, "acknowledgementBatches": asked}]}]
    epoch = node.epochs[member]
    node.epochs[member] = epoch + 1
    body = {"groupId": "g", "memberId": member, "shareSessionEpoch": epoch, "topics": topics}
    reply: dict[str, Any] = node.ask(member, "ShareAcknowledge", 2, body)
    assert reply["errorCode"] == 0, reply
    return int(reply["responses"][0]["partitions"][0]["errorCode"])


@pytest.fixture
def node() -> Sharing:
    """Member a holds records 0 to 3, and member b 4 and 5."""
    made = Sharing(group_share_max_share_sessions=MOST_SESSIONS)
    made.joins("b")
    made.writes(6)
    assert made.acquires("a", maxRecords=4) == [(0, 3, 1)]
    assert made.acquires("b") == [(4, 5, 1)]
    return made


def test_a_member_that_never_joined_the_group_gets_records(node: Sharing) -> None:
    node.writes(1)
    assert node.acquires("stranger") == [(6, 6, 1)]
    assert acknowledge(node, "stranger", (6, 6, [ACCEPT])) == ErrorCode.NONE
    assert acknowledge(node, "stranger", (4, 4, [ACCEPT])) == ErrorCode.INVALID_RECORD_STATE
    assert acknowledge(node, "b", (4, 5, [ACCEPT])) == ErrorCode.NONE


@pytest.mark.parametrize(
    ("batches", "error"),
    [
        ([(0, 2**31, [ACCEPT])], ErrorCode.INVALID_REQUEST),
        ([(0, 2**63 - 1, [ACCEPT])], ErrorCode.INVALID_REQUEST),
        ([(2**62, 2**63 - 1, [RELEASE])], ErrorCode.INVALID_REQUEST),
        ([(-(2**63), 2**63 - 1, [ACCEPT])], ErrorCode.INVALID_REQUEST),
        ([(0, 2**31, [ACCEPT, ACCEPT])], ErrorCode.INVALID_REQUEST),
        ([(0, 2, [ACCEPT]), (1, 3, [ACCEPT])], ErrorCode.INVALID_REQUEST),
        ([(2, 3, [ACCEPT]), (0, 1, [ACCEPT])], ErrorCode.INVALID_REQUEST),
        ([(0, 2, [ACCEPT]), (2, 3, [ACCEPT])], ErrorCode.INVALID_RECORD_STATE),
        ([(0, 5, [ACCEPT])], ErrorCode.INVALID_RECORD_STATE),
        ([(0, 3, [])], ErrorCode.INVALID_REQUEST),
        ([(0, 3, [127])], ErrorCode.INVALID_REQUEST),
    ],
)
def test_what_a_member_may_not_acknowledge_changes_nothing(
    node: Sharing, batches: list[tuple[int, int, list[int]]], error: ErrorCode
) -> None:
    assert acknowledge(node, "a", *batches) == error
    assert acknowledge(node, "b", (4, 5, [ACCEPT])) == ErrorCode.NONE
    assert acknowledge(node, "a", (0, 3, [ACCEPT])) == ErrorCode.NONE
    assert node.acquires("b") == []


def test_an_absurd_number_of_acknowledgements_costs_no_more_than_reading_them(node: Sharing) -> None:
    def refused(count: int) -> None:
        batches = [(offset, offset, [ACCEPT]) for offset in range(4, 4 + count)]
        assert acknowledge(node, "a", *batches) == ErrorCode.INVALID_RECORD_STATE

    refused(10)
    few, many = steps_of(lambda: refused(1_000)), steps_of(lambda: refused(4_000))
    assert many < 4.5 * few
    assert acknowledge(node, "a", (0, 3, [ACCEPT])) == ErrorCode.NONE


def test_the_same_record_a_thousand_times_is_acknowledged_once_or_not_at_all(node: Sharing) -> None:
    assert acknowledge(node, "a", *[(0, 0, [ACCEPT])] * 1_000) == ErrorCode.INVALID_RECORD_STATE
    assert acknowledge(node, "a", (0, 0, [ACCEPT])) == ErrorCode.NONE


def test_a_flood_of_sessions_takes_no_memory_and_does_not_end_those_of_others(node: Sharing) -> None:
    def flood(name: str) -> set[int]:
        errors = set()
        for number in range(FLOOD):
            member = f"{name}-{number}"
            errors.add(node.fetch(member, epoch=0, maxWaitMs=0)["errorCode"])
            node.driver.replies.clear()
            node.epochs.pop(member)
        return errors

    assert flood("warm") == {0, ErrorCode.SHARE_SESSION_LIMIT_REACHED}
    requests = node.node._requests.share.requests
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        assert flood("many") == {ErrorCode.SHARE_SESSION_LIMIT_REACHED}
        used = tracemalloc.get_traced_memory()[0] - before
    finally:
        tracemalloc.stop()
    assert len(requests._sessions) == MOST_SESSIONS
    assert used / FLOOD < 600, "a request that was refused leaves no more than the test's own notes"
    assert acknowledge(node, "b", (4, 5, [ACCEPT])) == ErrorCode.NONE


def test_a_session_that_is_opened_again_and_again_is_one_session(node: Sharing) -> None:
    for _ in range(FLOOD):
        assert node.fetch("b", epoch=0, maxWaitMs=0)["errorCode"] == 0
    assert len(node.node._requests.share.requests._sessions) == 2
    assert acknowledge(node, "b", (4, 5, [ACCEPT])) == ErrorCode.NONE
