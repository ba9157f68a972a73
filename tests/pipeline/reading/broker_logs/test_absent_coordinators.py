"""Absences of a coordinator in requests alone: by errors, and by a silence of all members."""

from __future__ import annotations

from typing import Any

from rejoin.pipeline.reading.broker_logs.exchanges.coordinators import loads
from rejoin.pipeline.reading.broker_logs.generations import SourcedExchange
from rejoin.pipeline.reading.broker_logs.requests import complete
from rejoin.pipeline.reading.request_log import LoggedExchange
from rejoin.protocol.errors import ErrorCode

NONE = ErrorCode.NONE


def beat(at_ms: int, member: str, connection: str, error: ErrorCode = NONE) -> SourcedExchange:
    request = {"groupId": "g", "generationId": 1, "memberId": member}
    return exchange(at_ms, "HEARTBEAT", member, connection, request, {"errorCode": int(error)})


def exchange(
    at_ms: int, api: str, member: str, connection: str, request: dict[str, Any], response: dict[str, Any]
) -> SourcedExchange:
    code = ErrorCode(response["errorCode"])
    made = LoggedExchange(
        line=at_ms,
        api=api,
        api_version=4,
        correlation_id=at_ms,
        client_id=member,
        client_host="10.0.0.1",
        connection=connection,
        software=None,
        group_id="g",
        error=None if code is NONE else code.name,
        request=request,
        response=response,
        arrived_at_ms=at_ms - 1,
        answered_at_ms=at_ms,
        total_ms=1.0,
        queue_ms=0.0,
        local_ms=1.0,
        parked_ms=0.0,
        throttle_ms=0.0,
    )
    return SourcedExchange(made, "node", "kafka-request.log")


def absences(*asked: SourcedExchange) -> list[tuple[str, int]]:
    """Stops and loads that the requests show, in order."""
    events = [(event["event"], event["at_ms"]) for event in complete([], list(asked))]
    return sorted((each for each in events if each[0] in ("broker_stopped", "group_loaded")), key=lambda one: one[1])


def test_a_group_is_loaded_with_the_first_request_behind_the_last_error() -> None:
    away = [
        beat(60_000, "a", "a2", ErrorCode.NOT_COORDINATOR),
        beat(60_100, "b", "b2", ErrorCode.COORDINATOR_LOAD_IN_PROGRESS),
        beat(60_200, "a", "a2"),
        beat(60_300, "b", "b2", ErrorCode.COORDINATOR_LOAD_IN_PROGRESS),
        beat(60_900, "b", "b2"),
    ]
    asked = [beat(1_000, "a", "a1"), beat(2_000, "b", "b1"), *away]
    assert absences(*asked) == [("broker_stopped", 2_000), ("group_loaded", 60_899)]


def test_two_absences_are_two() -> None:
    error = ErrorCode.NOT_COORDINATOR
    asked = [beat(60_000, "a", "a", error), beat(61_000, "a", "a"), beat(90_000, "a", "a", error)]
    asked.append(beat(90_500, "a", "a"))
    assert [row["at_ms"] for row in loads(asked)] == [60_999, 90_499]


def test_the_first_group_of_a_cluster_is_not_loaded_again() -> None:
    request = {"groupId": "g", "memberId": "", "protocols": []}
    answer = {"errorCode": 0, "generationId": 1, "memberId": "a", "leader": "a", "members": []}
    refused = {"errorCode": int(ErrorCode.COORDINATOR_NOT_AVAILABLE)}
    asked = [exchange(1_000, "FIND_COORDINATOR", "a", "a", {"keyType": 0}, refused)]
    asked += [exchange(2_000, "JOIN_GROUP", "a", "a", request, answer)]
    assert loads(asked) == []


def test_members_that_fall_silent_together_and_come_back_by_other_connections_had_no_coordinator() -> None:
    asked = [beat(1_000, "a", "a1"), beat(2_000, "b", "b1")]
    asked += [beat(60_000, "a", "a2", ErrorCode.UNKNOWN_MEMBER_ID), beat(75_000, "b", "b2")]
    assert absences(*asked) == [("broker_stopped", 2_000), ("group_loaded", 59_999)]


def test_one_member_alone_or_one_that_kept_its_connection_says_nothing_of_the_coordinator() -> None:
    before = [beat(1_000, "a", "a1"), beat(2_000, "b", "b1")]
    assert absences(*before, beat(60_000, "a", "a2")) == []
    assert absences(*before, beat(60_000, "a", "a2"), beat(61_000, "b", "b1")) == []


def test_a_short_silence_is_none() -> None:
    asked = [beat(1_000, "a", "a1"), beat(2_000, "b", "b1"), beat(5_000, "a", "a2"), beat(5_100, "b", "b2")]
    assert absences(*asked) == []


def join(at_ms: int, member: str, connection: str, generation: int, *members: str) -> SourcedExchange:
    request = {"groupId": "g", "memberId": member, "sessionTimeoutMs": 10_000, "protocolType": "consumer"}
    answer = {"errorCode": 0, "generationId": generation, "memberId": member, "leader": "b", "protocolName": "range"}
    answer["members"] = [{"memberId": each, "metadata": ""} for each in members]
    return exchange(at_ms, "JOIN_GROUP", member, connection, request, answer)


def causes(*asked: SourcedExchange) -> list[tuple[str | None, int]]:
    return [
        (event.get("cause_member_id"), event["at_ms"])
        for event in complete([], list(asked))
        if event["event"] == "rebalance_started" and event["cause"] == "session-expiry"
    ]


FIRST = (join(1_000, "b", "b1", 1, "a", "b"), join(1_000, "a", "a1", 1), beat(3_000, "a", "a1"))


def test_a_session_that_cannot_have_ended_began_no_rebalance() -> None:
    seen = beat(5_000, "b", "b1", ErrorCode.REBALANCE_IN_PROGRESS)
    assert causes(*FIRST, seen, join(5_500, "b", "b1", 2, "b")) == []
    later = beat(14_000, "b", "b1", ErrorCode.REBALANCE_IN_PROGRESS)
    assert causes(*FIRST, later, join(14_500, "b", "b1", 2, "b")) == [("a", 12_999)]


def test_no_session_ends_while_the_coordinator_is_away() -> None:
    away = [beat(40_000, "b", "b2", ErrorCode.COORDINATOR_LOAD_IN_PROGRESS), beat(41_000, "b", "b2")]
    seen = beat(52_000, "b", "b2", ErrorCode.REBALANCE_IN_PROGRESS)
    ((member, at_ms),) = causes(*FIRST, *away, seen, join(52_500, "b", "b2", 2, "b"))
    assert member == "a"
    assert 41_000 <= at_ms <= 52_000
