"""What is found within a rebalance, and what comes close and is nothing."""

from __future__ import annotations

from typing import Any

import pytest

from tests.pipeline.findings.test_findings_rules import MARCH_3, MINUTE, found, rebalance, session

Row = dict[str, Any]


def rejoins(every_ms: int, times: int, cause: str = "rejoin-leader", **more: Any) -> dict[str, list[Row]]:
    began = [MARCH_3 + MINUTE + number * every_ms for number in range(times)]
    return {
        "session": [session(name, MARCH_3, None, "open", f"client-{name}") for name in ("m1", "m2", "m3")],
        "rebalance": [
            rebalance(0, MARCH_3, "join-new", "m1", initial=True),
            *(rebalance(number + 1, at, cause, "m1", **more) for number, at in enumerate(began)),
        ],
    }


def test_a_leader_that_joins_again_and_again_is_named_with_what_it_said() -> None:
    loop = found(**rejoins(30_000, 6, client_reason="rebalance enforced by user"))["rejoin-loop"]
    assert (loop["members"], loop["numbers"]["rejoins"]) == (["client-m1"], 6)
    assert loop["title"] == "client-m1, the leader, rejoined 6 times"
    assert "enforceRebalance" in loop["advice"]
    assert "every 30 s" in loop["text"]


def test_metadata_that_always_changes_is_a_loop_and_no_growth() -> None:
    reason = "cached metadata has changed from (version1: {}) at the beginning of the rebalance to (version2: {})"
    rows = found(**rejoins(30_000, 6, client_reason=reason))
    assert "brokers that disagree" in rows["rejoin-loop"]["advice"]
    assert "topic-growth" not in rows


@pytest.mark.parametrize(
    "rows",
    [
        rejoins(30_000, 4),
        rejoins(5 * MINUTE, 6),
        rejoins(30_000, 6, client_reason="need to revoke partitions and re-join", protocol="cooperative-sticky"),
        rejoins(30_000, 6, client_reason="Subscription has changed".lower()),
    ],
    ids=["few", "far apart", "second halves", "subscriptions"],
)
def test_a_member_that_joins_again_now_and_then_or_has_to_is_in_no_loop(rows: dict[str, list[Row]]) -> None:
    assert "rejoin-loop" not in found(**rows)


def synced(joined_ms: int, assigned_ms: int | None, ended_ms: int, **more: Any) -> dict[str, list[Row]]:
    at = MARCH_3 + MINUTE
    assigned = None if assigned_ms is None else at + assigned_ms
    row = rebalance(1, at, "join-new", "m2", joined_at_ms=at + joined_ms, assigned_at_ms=assigned, leader="m1")
    ended = {"ended_at_ms": at + ended_ms, "outcome": "completed" if assigned else "superseded"}
    return {"session": [session("m1", MARCH_3, None, "open", "one")], "rebalance": [row | ended | more]}


def test_a_slow_leader_is_named() -> None:
    held = found(**synced(1_000, 31_000, 31_100))["sync-held-up"]
    assert (held["members"], held["numbers"]["longest_ms"], held["setting"]) == (["one"], 30_000, None)
    assert "it came at last" in held["text"]


def test_a_leader_that_died_before_it_assigned_is_named() -> None:
    rows = synced(1_000, None, 46_000)
    rows["session"] = [session("m1", MARCH_3, MARCH_3 + MINUTE + 46_000, "session-expiry", "one")]
    held = found(**rows)["sync-held-up"]
    assert (held["numbers"]["leaders_removed"], held["setting"]) == (1, "session.timeout.ms")


@pytest.mark.parametrize(
    "rows",
    [
        synced(20_000, 20_100, 20_200),
        synced(1_000, None, 46_000),
        synced(1_000, 31_000, 31_100, group_type="consumer"),
        synced(1_000, None, 46_000, outcome="aborted"),
    ],
    ids=["join phase", "another member", "consumer protocol", "coordinator"],
)
def test_what_else_takes_long_is_no_slow_sync(rows: dict[str, list[Row]]) -> None:
    assert "sync-held-up" not in found(**rows)


def test_a_rebalance_that_goes_on_where_the_source_ends_may_be_stuck() -> None:
    late = rebalance(1, MARCH_3 + 50 * MINUTE, "join-new", "m4", outcome="open", ended_at_ms=None)
    stuck = found(rebalance=[late], session=[session("m1", MARCH_3, None, "open", "one")])["rebalance-still-open"]
    assert (stuck["severity"], stuck["numbers"]["open_ms"]) == ("high", 10 * MINUTE)
    assert "for members to send JoinGroup" in stuck["text"]
    assert "5 min at the most" in stuck["text"]


@pytest.mark.parametrize(
    "more",
    [
        {"prepared_at_ms": MARCH_3 + 60 * MINUTE - 20_000},
        {"outcome": "completed"},
        {"group_type": "consumer"},
    ],
    ids=["just begun", "over", "consumer protocol"],
)
def test_one_that_has_just_begun_is_none(more: Row) -> None:
    late = rebalance(1, MARCH_3 + 50 * MINUTE, "join-new", "m4", outcome="open", ended_at_ms=None)
    assert "rebalance-still-open" not in found(rebalance=[late | more])


def test_a_rebalance_whose_coordinator_stopped_did_not_go_on_however_long_other_sources_are() -> None:
    late = rebalance(1, MARCH_3, "join-new", "m1", outcome="open", joined_at_ms=None, ended_at_ms=None)
    stop = {"event": "broker_stopped", "at_ms": MARCH_3 + 1_000, "source": "broker-log", "confidence": "exact"}
    sessions = [session("m1", MARCH_3, None, "open", "one")]
    assert "rebalance-still-open" in found(rebalance=[late], session=sessions)
    assert "rebalance-still-open" not in found(rebalance=[late], session=sessions, event=[stop])
