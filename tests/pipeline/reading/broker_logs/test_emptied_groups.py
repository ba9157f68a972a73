"""A classic group whose members all leave, in requests alone: no JoinGroup shows the generation without members."""

from __future__ import annotations

from typing import Any

from rejoin.pipeline.reading.broker_logs.requests import complete
from tests.pipeline.reading.broker_logs.test_absent_coordinators import exchange

MOVES = ("rebalance_started", "group_emptied", "rebalance_completed", "member_removed")


def joined(at_ms: int, member: str, generation: int) -> list[Any]:
    """A member that joins alone, leads, and assigns nothing to itself."""
    request = {"groupId": "g", "memberId": member, "sessionTimeoutMs": 45_000, "protocols": [{"name": "range"}]}
    answer = {"errorCode": 0, "generationId": generation, "memberId": member, "leader": member}
    answer |= {"protocolName": "range", "members": [{"memberId": member, "metadata": ""}]}
    sync = {"groupId": "g", "generationId": generation, "memberId": member}
    sync["assignments"] = [{"memberId": member, "assignment": "AAAAAAAAAAAAAA=="}]
    return [
        exchange(at_ms, "JOIN_GROUP", member, member, request, answer),
        exchange(at_ms + 10, "SYNC_GROUP", member, member, sync, {"errorCode": 0, "assignment": "AAAAAAAAAAAAAA=="}),
    ]


def left(at_ms: int, member: str) -> Any:
    request = {"groupId": "g", "members": [{"memberId": member, "groupInstanceId": None, "reason": "closed"}]}
    answer = {"errorCode": 0, "members": [{"memberId": member, "errorCode": 0}]}
    return exchange(at_ms, "LEAVE_GROUP", member, member, request, answer)


def moves(*asked: Any) -> list[tuple[str, int, str | None, int | None]]:
    events = sorted(complete([], list(asked)), key=lambda event: event["order_ms"])
    return [
        (event["event"], event["at_ms"], event.get("cause"), event.get("generation"))
        for event in events
        if event["event"] in MOVES
    ]


def test_the_last_member_that_leaves_empties_the_group() -> None:
    assert moves(*joined(1_000, "a", 1), left(5_000, "a"))[2:] == [
        ("member_removed", 5_000, "left", None),
        ("rebalance_started", 5_000, "leave", 1),
        ("group_emptied", 5_000, "leave", 2),
    ]


def test_a_member_that_comes_later_begins_a_rebalance_of_its_own() -> None:
    found = moves(*joined(1_000, "a", 1), left(5_000, "a"), *joined(60_000, "b", 3))
    assert [each for each in found if each[0] != "member_removed"][1:] == [
        ("rebalance_completed", 1_010, "join-new", 1),
        ("rebalance_started", 5_000, "leave", 1),
        ("group_emptied", 5_000, "leave", 2),
        ("rebalance_started", 59_999, "join-new", 2),
        ("rebalance_completed", 60_010, "join-new", 3),
    ]


def test_a_member_that_joins_while_the_last_one_leaves_goes_on_with_its_rebalance() -> None:
    assert "group_emptied" not in [
        each[0] for each in moves(*joined(1_000, "a", 1), left(5_000, "a"), *joined(5_100, "b", 2))
    ]
