"""What is found in groups of the consumer protocol and on the way there, and what comes close and is nothing."""

from __future__ import annotations

from typing import Any

import pytest

from tests.pipeline.findings.test_findings_rules import MARCH_3, MINUTE, found, session

Row = dict[str, Any]


def event(at_ms: int, name: str, member: str | None = None, **more: Any) -> Row:
    about = {"source": "coordinator", "node": "1", "at_ms": MARCH_3 + at_ms, "event": name, "member_id": member}
    return {**about, "confidence": "exact", **more}


def asked(at_ms: int, member: str, *partitions: int) -> Row:
    listed = [{"topic": "orders", "partition": partition} for partition in partitions]
    return event(at_ms, "revocation_requested", member, partitions=listed, rebalance_timeout_ms=60_000)


def member(name: str, joined: int, ended: int | None = None, end: str = "open", **more: Any) -> Row:
    ended_at = None if ended is None else MARCH_3 + ended
    return session(name, MARCH_3 + joined, ended_at, end, f"client-{name}", **{"group_protocol": "consumer"} | more)


# --- stuck reconciliation


def test_a_member_that_does_not_give_up_its_partitions_is_named_with_what_it_holds() -> None:
    rows = found(
        session=[member("a", 0, 2 * MINUTE, "rebalance-expiry"), member("b", MINUTE)],
        event=[asked(MINUTE, "a", 2, 3)],
    )
    stuck = rows["stuck-reconciliation"]
    assert (stuck["members"], stuck["numbers"]["partitions"], stuck["numbers"]["longest_ms"]) == (
        ["client-a"],
        2,
        MINUTE,
    )
    assert "orders-2, orders-3" in stuck["text"]
    assert stuck["setting"] == "max.poll.interval.ms"


def test_a_log_that_has_only_the_removal_names_the_member() -> None:
    rows = found(session=[member("a", 0, 2 * MINUTE, "rebalance-expiry"), member("b", MINUTE, 3 * MINUTE, "left")])
    assert rows["stuck-reconciliation"]["members"] == ["client-a"]


def test_a_member_that_gives_up_slowly_but_in_time_is_not_stuck() -> None:
    rows = found(
        session=[member("a", 0), member("b", MINUTE)],
        event=[asked(MINUTE, "a", 2, 3), event(MINUTE + 25_000, "revocation_completed", "a")],
    )
    assert "stuck-reconciliation" not in rows


# --- epoch fencing loops


def test_a_member_that_is_fenced_again_and_again_goes_on_with_an_epoch_it_does_not_have() -> None:
    fenced = [event(at, "member_epoch_fenced", "a", member_epoch=3, current_epoch=7) for at in (0, 5_000, 10_000)]
    loop = found(session=[member("a", 0)], event=fenced)["epoch-fencing-loop"]
    assert (loop["members"], loop["numbers"]) == (["client-a"], {"fenced": 3.0})
    assert "with epoch 3 where the coordinator has 7" in loop["text"]


@pytest.mark.parametrize("instants", [(0, 5_000), (0, 11 * MINUTE, 22 * MINUTE)])
def test_a_member_that_is_fenced_now_and_then_is_none(instants: tuple[int, ...]) -> None:
    fenced = [event(at, "member_epoch_fenced", "a", member_epoch=3, current_epoch=7) for at in instants]
    assert "epoch-fencing-loop" not in found(session=[member("a", 0)], event=fenced)


# --- migration


def refused(at_ms: int, reason: str, culprit: str | None = None) -> Row:
    return event(at_ms, "conversion_refused", "new", group_type="consumer", reason=reason, culprit=culprit)


def test_a_group_that_may_not_move_says_by_whom_and_why() -> None:
    classic = session("old", MARCH_3, None, "open", "old-client")
    blocked = found(session=[classic], event=[refused(0, "user-data", "old"), refused(5_000, "user-data", "old")])
    assert blocked["migration-blocked"]["members"] == ["old-client", "new"]
    assert "hands out user data" in blocked["migration-blocked"]["text"]
    by_policy = found(session=[classic], event=[refused(0, "policy")])["migration-blocked"]
    assert by_policy["setting"] == "group.consumer.migration.policy"


def test_a_group_that_moves_in_the_end_was_not_blocked() -> None:
    moved = event(9_000, "group_converted", "new", group_type="consumer")
    assert "migration-blocked" not in found(event=[refused(0, "no-protocol"), moved])


def moved(before_ms: int, after_ms: int) -> list[Row]:
    classic = session("c1", MARCH_3, MARCH_3 + MINUTE, "left", "billing", session_timeout_ms=before_ms)
    return [
        classic,
        session(
            "m1",
            MARCH_3 + MINUTE,
            None,
            "open",
            "billing",
            session_timeout_ms=after_ms,
            group_protocol="consumer",
        ),
    ]


def test_a_session_timeout_of_the_client_ends_with_the_move() -> None:
    lost = found(session=moved(6_000, 45_000))["session-timeout-of-the-broker"]
    assert (lost["members"], lost["numbers"]["before_ms"]) == (["billing"], 6_000)
    assert "6 s" in lost["text"]
    assert "45 s" in lost["text"]


def test_a_client_that_had_the_brokers_timeout_loses_nothing() -> None:
    assert "session-timeout-of-the-broker" not in found(session=moved(45_000, 45_000))
