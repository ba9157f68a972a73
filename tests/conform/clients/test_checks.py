"""The checks over written lives: requests with their answers, without a broker."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from rejoin.conform.clients import checks
from rejoin.conform.clients.course import course_of
from rejoin.conform.clients.error_troubles import SURVIVED
from rejoin.conform.clients.observed import ClientLife, ClientOutcome, ClientVerdict
from rejoin.conform.clients.records import problem_of, read_line
from rejoin.conform.clients.stage import TOPIC
from rejoin.conform.clients.troubles import BY_NAME
from rejoin.coordinator.control.sent_requests import RecordedRequest
from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.registry import BY_NAME as APIS
from rejoin.protocol.types import TopicPartition

VERSIONS = {"Heartbeat": 4, "JoinGroup": 7, "SyncGroup": 5, "OffsetCommit": 8, "FindCoordinator": 4, "LeaveGroup": 4}
VERSIONS |= {
    "Fetch": 12,
    "Metadata": 9,
    "InitProducerId": 4,
    "EndTxn": 3,
    "AddPartitionsToTxn": 3,
    "TxnOffsetCommit": 3,
    "OffsetFetch": 7,
}


def life_of(text: str, *, every_ms: int = 100, closed: bool = False, instance: str | None = None) -> ClientLife:
    """A life of lines: API, member or -, generation or offset, and an error, OK or LOST. ``!`` is the trouble."""
    requests: list[RecordedRequest] = []
    since = 0
    for line in text.strip().splitlines():
        if line.strip() == "!":
            since = len(requests)
            continue
        api, member, number, answer = line.split()
        one = sent(len(requests) + 1, every_ms * len(requests), api, member.strip("-"), int(number), answer)
        if api == "JoinGroup":
            one = one._replace(request=one.request.model_copy(update={"group_instance_id": instance}))
        requests.append(one)
    return ClientLife(tuple(requests), since, closed)


def sent(mark: int, at_ms: int, api: str, member: str, number: int, answer: str) -> RecordedRequest:
    version = VERSIONS[api]
    error = ErrorCode.NONE if answer in ("OK", "LOST") else ErrorCode[answer]
    given: dict[str, Any] = {"group_id": "g", "member_id": member}
    if api == "JoinGroup":
        given |= {"session_timeout_ms": 1, "protocol_type": "consumer", "protocols": ()}
    elif api == "SyncGroup":
        given |= {"generation_id": number, "assignments": ()}
    elif api == "Heartbeat":
        given |= {"generation_id": number}
    elif api == "LeaveGroup":
        given = {"group_id": "g", "members": ({"member_id": member},)}
    elif api == "FindCoordinator":
        given = {"coordinator_keys": ("g",)}
    elif api == "OffsetCommit":
        partition = {"partition_index": 0, "committed_offset": number, "committed_metadata": ""}
        given |= {"generation_id_or_member_epoch": 1, "topics": ({"name": "t", "partitions": (partition,)},)}
    elif api in ("InitProducerId", "EndTxn"):
        given = {"transactional_id": "t", "transaction_timeout_ms": 1, "producer_id": 1, "producer_epoch": 0}
        given |= {"committed": number > 0}
        given = {name: value for name, value in given.items() if name in APIS[api].request.model_fields}
    elif api == "AddPartitionsToTxn":
        topics = ({"name": "t", "partitions": (0,)},)
        given = {"v3_and_below_transactional_id": "t", "v3_and_below_producer_id": 1}
        given |= {"v3_and_below_producer_epoch": 0, "v3_and_below_topics": topics}
    elif api == "TxnOffsetCommit":
        partition = {"partition_index": 0, "committed_offset": number, "committed_metadata": ""}
        given |= {"transactional_id": "t", "producer_id": 1, "producer_epoch": 0}
        given |= {"topics": ({"name": "t", "partitions": (partition,)},)}
    elif api == "Metadata":
        given = {"topics": ()}
    elif api == "OffsetFetch":
        given = {"group_id": "g", "topics": ({"name": "t", "partition_indexes": (0,)},)}
    elif api == "Fetch":
        partition = {"partition": number, "fetch_offset": 0, "partition_max_bytes": 1}
        given = {"max_wait_ms": 1, "min_bytes": 1, "topics": ({"topic": "t", "partitions": (partition,)},)}
    request = APIS[api].request.model_validate(given)
    response: Any = request.error_response(version, error)
    if api == "JoinGroup":
        response = response.model_copy(update={"generation_id": number, "member_id": member or "new"})
    found = None if answer == "LOST" else response
    return RecordedRequest(mark, at_ms, api, version, "client", "127.0.0.1", request, found)


def verdict_of(trouble: str, text: str, **how: Any) -> ClientVerdict:
    instance = "one" if trouble == "fenced" else None
    return BY_NAME[trouble].check(life_of(text, instance=instance, **how))


JOINED = "JoinGroup m 1 OK\nSyncGroup m 1 OK\nHeartbeat m 1 OK\n!\n"

HELD = "Heartbeat m 1 REBALANCE_IN_PROGRESS\nJoinGroup m 1 LOST\n"
GROWN = "Metadata - 0 OK\nJoinGroup m 2 OK\nSyncGroup m 2 OK\n"
TRANSACTION = "InitProducerId - 0 OK\nTxnOffsetCommit m 4 OK\nEndTxn - 1 OK\n"
REFUSED = "".join(f"OffsetCommit m 5 {error.name}\n" for error in SURVIVED["OffsetCommit"])
RIGHT = {
    "coordinator-moves": "Heartbeat m 1 NOT_COORDINATOR\nOffsetCommit m 5 NOT_COORDINATOR\n"
    "FindCoordinator - 0 OK\nHeartbeat m 1 OK",
    "coordinator-unavailable": "Heartbeat m 1 COORDINATOR_NOT_AVAILABLE\n"
    + "FindCoordinator - 0 COORDINATOR_NOT_AVAILABLE\n" * 4
    + "FindCoordinator - 0 OK\nHeartbeat m 1 OK",
    "new-member": "Heartbeat m 1 REBALANCE_IN_PROGRESS\nHeartbeat m 1 REBALANCE_IN_PROGRESS\nOffsetCommit m 5 OK\n"
    "JoinGroup m 2 OK\nSyncGroup m 2 OK\nHeartbeat m 2 OK",
    "removed": "Heartbeat m 1 UNKNOWN_MEMBER_ID\nOffsetCommit m 5 UNKNOWN_MEMBER_ID\nJoinGroup - 2 OK\n"
    "SyncGroup new 2 OK\nHeartbeat new 2 OK",
    "illegal-generation": "Heartbeat m 1 ILLEGAL_GENERATION\nJoinGroup m 2 OK\nSyncGroup m 2 OK\nHeartbeat m 2 OK",
    "connection-cut": "Heartbeat m 1 LOST\nFindCoordinator - 0 OK\nHeartbeat m 1 OK",
    "commit-refused": "OffsetCommit m 5 COORDINATOR_LOAD_IN_PROGRESS\nOffsetCommit m 7 OK",
    "commit-answer-lost": "OffsetCommit m 5 LOST\nOffsetCommit m 5 OK",
    "fenced": "Heartbeat m 1 FENCED_INSTANCE_ID\nHeartbeat m 1 FENCED_INSTANCE_ID",
    "close": "OffsetCommit m 5 OK\nLeaveGroup m 1 OK",
    "close-in-rebalance": "JoinGroup m 2 LOST\nLeaveGroup m 1 OK",
    "slow-rebalance": HELD + "JoinGroup m 2 OK\nSyncGroup m 2 OK\nHeartbeat m 2 OK",
    "topic-grown": GROWN + "Fetch - 4 OK\nFetch - 5 OK",
    "brokers-restart": "FindCoordinator - 0 OK\nHeartbeat m 1 OK",
    "commit-errors": REFUSED + "OffsetCommit m 6 OK\nHeartbeat m 1 OK",
    "join-final": "JoinGroup - 0 GROUP_AUTHORIZATION_FAILED\n" * 4,
    "producer-fenced": TRANSACTION + "TxnOffsetCommit m 5 PRODUCER_FENCED\nEndTxn - 0 PRODUCER_FENCED",
    "transaction-refused": TRANSACTION + "TxnOffsetCommit m 5 ILLEGAL_GENERATION\nEndTxn - 0 OK",
}

WRONG = {
    "close-in-rebalance": {"without leaving": "JoinGroup m 2 LOST\nJoinGroup m 2 OK"},
    "slow-rebalance": {
        "as another member": HELD + "JoinGroup - 2 OK",
        "without waiting for an answer": HELD + "JoinGroup m 1 LOST\n" * 2,
        "did not join again": HELD,
    },
    "topic-grown": {
        "did not join again": "Metadata - 0 OK\nHeartbeat m 1 OK\nFetch - 3 OK",
        "never fetched from partition 5": GROWN + "Fetch - 4 OK",
    },
    "brokers-restart": {
        "as a new member": "FindCoordinator - 0 OK\nJoinGroup - 2 OK",
        "did not look": "Heartbeat m 1 NOT_COORDINATOR\n" * 3,
        "did not connect": "",
    },
    "commit-errors": {
        "did not send OffsetCommit again after COORDINATOR_LOAD_IN_PROGRESS": REFUSED[: REFUSED.index("\n") + 1],
        "did not send OffsetCommit again after UNKNOWN_TOPIC_OR_PARTITION": REFUSED + "Heartbeat m 1 OK",
    },
    "producer-fenced": {
        "began anew": TRANSACTION + "EndTxn - 1 INVALID_PRODUCER_EPOCH\nInitProducerId - 0 OK",
        "sent 9 more requests": TRANSACTION + "EndTxn - 1 PRODUCER_FENCED\n" * 10,
    },
    "transaction-refused": {
        "did not abort": TRANSACTION + "TxnOffsetCommit m 5 ILLEGAL_GENERATION",
        "without its offsets": TRANSACTION + "TxnOffsetCommit m 5 ILLEGAL_GENERATION\nEndTxn - 1 OK",
    },
    "coordinator-moves": {
        "did not look": "Heartbeat m 1 NOT_COORDINATOR\n" * 3,
        "joined as a new member": "Heartbeat m 1 NOT_COORDINATOR\nFindCoordinator - 0 OK\nJoinGroup - 2 OK",
        "sent 6 requests": "Heartbeat m 1 NOT_COORDINATOR\n" * 17 + "FindCoordinator - 0 OK\nHeartbeat m 1 OK",
        "no heartbeat": "Heartbeat m 1 NOT_COORDINATOR\nFindCoordinator - 0 OK",
    },
    "new-member": {
        "did not join": "Heartbeat m 1 REBALANCE_IN_PROGRESS\n" * 5,
        "as another member": "Heartbeat m 1 REBALANCE_IN_PROGRESS\nJoinGroup - 2 OK",
        "old generation": "Heartbeat m 1 REBALANCE_IN_PROGRESS\nJoinGroup m 2 OK\nSyncGroup m 2 OK\n"
        + "Heartbeat m 1 ILLEGAL_GENERATION\n" * 2,
        "no heartbeat": "Heartbeat m 1 REBALANCE_IN_PROGRESS\nJoinGroup m 2 OK\nSyncGroup m 2 OK",
    },
    "removed": {
        "sent heartbeats": "Heartbeat m 1 UNKNOWN_MEMBER_ID\n" * 13,
        "committed as": "Heartbeat m 1 UNKNOWN_MEMBER_ID\n" + "OffsetCommit m 5 UNKNOWN_MEMBER_ID\n" * 2,
        "joined with the member id": "Heartbeat m 1 UNKNOWN_MEMBER_ID\n" + "JoinGroup m 1 UNKNOWN_MEMBER_ID\n" * 2,
    },
    "commit-refused": {
        "did not commit": "OffsetCommit m 5 COORDINATOR_LOAD_IN_PROGRESS\nHeartbeat m 1 OK",
        "never committed offset 5": "OffsetCommit m 5 COORDINATOR_LOAD_IN_PROGRESS\nOffsetCommit m 4 OK",
    },
    "fenced": {
        "joined again": "Heartbeat m 1 FENCED_INSTANCE_ID\nJoinGroup m 2 OK",
        "fences the other": "Heartbeat m 1 UNKNOWN_MEMBER_ID\nJoinGroup - 2 OK",
        "went on with JoinGroup": "Heartbeat m 1 FENCED_INSTANCE_ID\n" + "JoinGroup m 1 FENCED_INSTANCE_ID\n" * 2,
        "went on with OffsetCommit": "Heartbeat m 1 FENCED_INSTANCE_ID\n" + "OffsetCommit m 5 FENCED_INSTANCE_ID\n" * 2,
    },
}


@pytest.mark.parametrize("trouble", RIGHT)
def test_a_right_client_passes(trouble: str) -> None:
    assert verdict_of(trouble, JOINED + RIGHT[trouble]).outcome is ClientOutcome.PASSED


@pytest.mark.parametrize(("trouble", "reason"), [(name, each) for name, lives in WRONG.items() for each in lives])
def test_a_wrong_client_fails_with_its_requests(trouble: str, reason: str) -> None:
    verdict = verdict_of(trouble, JOINED + WRONG[trouble][reason], closed=trouble == "close-in-rebalance")
    assert verdict.outcome is ClientOutcome.FAILED
    assert reason in verdict.reason
    assert verdict.evidence[0].startswith("#")


@pytest.mark.parametrize("trouble", [name for name in RIGHT if name not in ("close", "brokers-restart")])
def test_a_client_that_never_met_the_trouble_is_not_judged(trouble: str) -> None:
    assert verdict_of(trouble, JOINED).outcome is ClientOutcome.NOT_APPLICABLE


def test_attempts_without_time_in_between_fail() -> None:
    life = RIGHT["coordinator-unavailable"]
    verdict = verdict_of("coordinator-unavailable", JOINED + life, every_ms=1)
    assert "without waiting" in verdict.reason
    loading = "JoinGroup - -1 COORDINATOR_LOAD_IN_PROGRESS\n" * 4 + "JoinGroup - 1 OK\nHeartbeat new 1 OK"
    assert verdict_of("coordinator-loading", loading).outcome is ClientOutcome.PASSED
    assert "without waiting" in verdict_of("coordinator-loading", loading, every_ms=1).reason


def test_a_program_that_was_ended_by_its_signal_is_not_judged_by_its_end() -> None:
    assert verdict_of("close", JOINED).outcome is ClientOutcome.NOT_APPLICABLE
    assert verdict_of("close", JOINED, closed=True).outcome is ClientOutcome.FAILED


def test_a_request_in_flight_is_not_held_against_a_client() -> None:
    assert checks.MOST_IN_FLIGHT == 1
    life = "Heartbeat m 1 ILLEGAL_GENERATION\nHeartbeat m 1 OK\nJoinGroup m 2 OK\nSyncGroup m 2 OK\nHeartbeat m 2 OK"
    assert verdict_of("illegal-generation", JOINED + life).outcome is ClientOutcome.PASSED


def test_an_old_generation_is_found_although_each_commit_with_it_leads_to_another_join() -> None:
    rounds = "".join(
        f"JoinGroup m {number} OK\nSyncGroup m {number} OK\nHeartbeat m {number} OK\nHeartbeat m 1 ILLEGAL_GENERATION\n"
        for number in (2, 3)
    )
    verdict = verdict_of("new-member", JOINED + "Heartbeat m 1 REBALANCE_IN_PROGRESS\n" + rounds + "Heartbeat m 3 OK")
    assert "old generation" in verdict.reason


def test_one_refused_join_with_the_old_member_id_fences_no_other_process() -> None:
    fenced = JOINED + "OffsetCommit m 5 FENCED_INSTANCE_ID\nJoinGroup m 1 FENCED_INSTANCE_ID"
    assert verdict_of("fenced", fenced).outcome is ClientOutcome.PASSED


def test_a_join_as_a_new_member_fences_the_other_process_even_where_it_is_refused() -> None:
    fenced = JOINED + "Heartbeat m 1 FENCED_INSTANCE_ID\nJoinGroup - 1 COORDINATOR_LOAD_IN_PROGRESS"
    assert "fences the other process" in verdict_of("fenced", fenced).reason


def test_a_producer_is_fenced_by_any_request_of_its_transaction() -> None:
    life = TRANSACTION + "AddPartitionsToTxn - 0 INVALID_PRODUCER_EPOCH\n" + "EndTxn - 0 INVALID_PRODUCER_EPOCH\n" * 9
    assert verdict_of("producer-fenced", JOINED + life).outcome is ClientOutcome.FAILED


def test_a_program_that_runs_on_fails_where_its_join_waits() -> None:
    joining = life_of(JOINED + "JoinGroup m 2 LOST")
    assert "ran on after SIGTERM" in BY_NAME["close-in-rebalance"].check(replace(joining, hangs=True)).reason


def test_attempts_that_cannot_help_must_wait() -> None:
    refused = "JoinGroup - 0 GROUP_AUTHORIZATION_FAILED\n" * 4
    assert "without waiting" in verdict_of("join-final", JOINED + refused, every_ms=1).reason


@pytest.mark.parametrize(
    ("offsets", "said"),
    [
        ([0, 1, 2], None),
        ([], None),
        ([0, 2], "never processed 1"),
        ([0, 1, 1, 2], "once more than it fetched offsets: 1"),
    ],
)
def test_records_that_a_client_loses_or_doubles_are_found(offsets: list[int], said: str | None) -> None:
    records = tuple((TopicPartition(TOPIC, 0), offset) for offset in offsets)
    problem = problem_of(replace(life_of(JOINED + "OffsetCommit m 3 OK"), processed=records))
    assert problem is None if said is None else said in str(problem)


def test_lines_of_processed_records_are_read_and_others_are_not() -> None:
    assert read_line(b"processed orders 3 17") == (TopicPartition("orders", 3), 17)
    others = (b"", b"processed orders 3", b"processed orders x 1", b"saw orders 3 1")
    assert not any(map(read_line, others))


@pytest.mark.parametrize(
    ("life", "said"),
    [
        (
            """
            Heartbeat m 3 OK
            !
            Heartbeat m 3 ILLEGAL_GENERATION
            JoinGroup - 4 OK
            SyncGroup n 4 OK
            Heartbeat n 4 OK
            """,
            "joined as a new member; generation 3 to 4; well after 300ms",
        ),
        (
            """
            Heartbeat m 3 OK
            !
            Heartbeat m 3 NOT_COORDINATOR
            FindCoordinator - 0 COORDINATOR_NOT_AVAILABLE
            FindCoordinator - 0 COORDINATOR_NOT_AVAILABLE
            FindCoordinator - 0 OK
            Heartbeat m 3 OK
            """,
            "3 refused; 100ms between attempts; well after 400ms",
        ),
        (
            """
            Heartbeat m 3 OK
            !
            Heartbeat m 3 REBALANCE_IN_PROGRESS
            OffsetCommit m 3 OK
            Heartbeat m 3 REBALANCE_IN_PROGRESS
            JoinGroup m 4 OK
            Heartbeat m 4 OK
            """,
            "joined as the same member, committed before; generation 3 to 4; 2 refused; 200ms between attempts; "
            "1 heartbeat meanwhile; well after 400ms",
        ),
        ("JoinGroup - 0 MEMBER_ID_REQUIRED\nJoinGroup m 1 OK\nHeartbeat m 1 OK", "None"),
        (
            "!\nHeartbeat m 1 UNKNOWN_MEMBER_ID\nHeartbeat m 1 UNKNOWN_MEMBER_ID\nMetadata - 0 OK",
            "1 heartbeat meanwhile",
        ),
    ],
)
def test_the_course_of_a_client_says_as_whom_and_when_it_was_well_again(life: str, said: str) -> None:
    assert str(course_of(life_of(life))) == said
