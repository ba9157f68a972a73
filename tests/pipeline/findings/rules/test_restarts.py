"""What deployments, autoscalers and restarts of brokers do to a group, and what comes close and is nothing."""

from __future__ import annotations

from typing import Any

import pytest

from tests.pipeline.findings.rules.test_consumer_groups import event
from tests.pipeline.findings.test_findings_rules import MARCH_3, MINUTE, found, rebalance, restarts, session

Row = dict[str, Any]


def static(instance: str, joined: int, ended: int | None = None, end: str = "open") -> Row:
    until = None if ended is None else MARCH_3 + ended
    name = f"{instance}-uuid"
    return session(name, MARCH_3 + joined, until, end, "app", group_instance_id=instance, session_timeout_ms=10_000)


# --- instance ids


def test_instance_ids_that_change_with_each_rollout_are_named() -> None:
    rows = found(
        session=[
            static("pod-a1", 0, 5 * MINUTE, "session-expiry"),
            static("pod-b1", 0, 6 * MINUTE, "session-expiry"),
            static("pod-a2", 5 * MINUTE),
            static("pod-b2", 6 * MINUTE),
        ],
        rebalance=[
            rebalance(1, MARCH_3 + 5 * MINUTE, "join-new", "pod-a2-uuid"),
            rebalance(2, MARCH_3 + 6 * MINUTE, "join-new", "pod-b2-uuid"),
        ],
    )
    renamed = rows["changing-instance-ids"]
    assert (renamed["numbers"]["renamed"], renamed["numbers"]["rebalances"]) == (2, 2)
    assert renamed["members"] == ["pod-a1", "pod-b1", "pod-a2", "pod-b2"]
    assert "died-without-leaving" not in rows


@pytest.mark.parametrize(
    "sessions",
    [
        [static("a", 0, 5 * MINUTE, "session-expiry"), static("b", 0), static("c", 5 * MINUTE)],
        [
            static("a", 0, 5 * MINUTE, "session-expiry"),
            static("b", 0, 6 * MINUTE, "session-expiry"),
            static("a", 5 * MINUTE + 5_000),
            static("b", 6 * MINUTE + 5_000),
        ],
        [
            static("a", 0, 5 * MINUTE, "session-expiry"),
            static("b", 0, 5 * MINUTE, "session-expiry"),
            static("c", 40 * MINUTE),
            static("d", 40 * MINUTE),
        ],
    ],
    ids=["one", "the same ids", "scaled down, and up much later"],
)
def test_members_that_come_back_under_their_ids_or_go_for_good_did_not_change_them(sessions: list[Row]) -> None:
    assert "changing-instance-ids" not in found(session=sessions)


# --- deploys


@pytest.mark.parametrize(
    ("members", "apart_ms", "is_deploy"),
    [(4, 80_000, False), (3, 80_000, True), (4, 11_000, True)],
    ids=["half of the group, far apart", "most of the group", "half of the group, near each other"],
)
def test_two_restarts_are_a_deploy_only_with_a_short_gap_or_most_members(
    members: int, apart_ms: int, is_deploy: bool
) -> None:
    rows = restarts(["a", "b"], 2_000, apart_ms)
    for each in rows["rebalance"]:
        each["members_before"] = ["a-0", "b-0", *(f"m{nth}" for nth in range(members - 2))]
    assert ("rolling-restart" in found(**rows)) is is_deploy


# --- autoscalers


def scaled(every_ms: int, steps: int, by: int = 3) -> dict[str, list[Row]]:
    """Members that come and go together, in turn."""
    sessions = [session("base-1", MARCH_3, None, "open", "base"), session("base-2", MARCH_3, None, "open", "base2")]
    rebalances = [rebalance(0, MARCH_3, "join-new", "base-1", initial=True)]
    for step in range(0, steps, 2):
        begins = MARCH_3 + (step + 1) * every_ms
        for number in range(by):
            name = f"pod-{step}-{number}"
            ends = begins + every_ms + number if step + 1 < steps else None
            end = "left" if ends else "open"
            sessions.append(session(name, begins + number, ends, end, name))
            rebalances.append(rebalance(len(rebalances), begins + number, "join-new", name))
            if ends:
                rebalances.append(rebalance(len(rebalances), ends, "leave", name))
    balance = [{"at_ms": MARCH_3, "members": 2, "partitions": 4}]
    return {"session": sessions, "rebalance": rebalances, "balance": balance}


def test_an_autoscaler_that_goes_up_and_down_is_found_with_its_steps_and_ceiling() -> None:
    thrash = found(**scaled(4 * MINUTE, 6))["thrashing-autoscaler"]
    assert (thrash["numbers"]["steps"], thrash["numbers"]["partitions"], thrash["numbers"]["idle"]) == (6, 4, 1)
    assert "+3, -3, +3, -3, +3, -3" in thrash["text"]
    assert "a maximum of 4 members" in thrash["advice"]


@pytest.mark.parametrize(
    "rows", [scaled(4 * MINUTE, 3), scaled(20 * MINUTE, 6), scaled(4 * MINUTE, 6, by=1)], ids=["few", "slow", "one"]
)
def test_one_that_follows_the_load_is_not(rows: dict[str, list[Row]]) -> None:
    assert "thrashing-autoscaler" not in found(**rows)


# --- racks

CHANGED = "cached metadata has changed from (version3: {orders=[r1, r2]}) to (version4: {orders=[r1]})"


def around(*instants: int, growth: bool = False) -> dict[str, list[Row]]:
    """A broker stops after ten minutes and starts after eleven; the leader's metadata changes at these instants."""
    stop, start = (event(at * MINUTE, name, node="3") for at, name in ((10, "broker_stopped"), (11, "broker_started")))
    grown = event(10 * MINUTE, "topic_grown", topic="orders", partition_count=8, previous_partition_count=4, node="1")
    first = rebalance(0, MARCH_3, "join-new", "m1", initial=True)
    changes = [
        rebalance(nth, MARCH_3 + at, "rejoin-leader", "m1", client_reason=CHANGED) for nth, at in enumerate(instants, 1)
    ]
    members = [session("m1", MARCH_3, None, "open", "one")]
    return {"session": members, "event": [stop, start, *([grown] if growth else [])], "rebalance": [first, *changes]}


def test_two_changes_of_metadata_around_the_restart_of_a_broker_are_racks() -> None:
    rows = found(**around(10 * MINUTE + 5_000, 11 * MINUTE + 30_000))
    racks = rows["flapping-racks"]
    assert (racks["members"], racks["numbers"]["restarts"], racks["confidence"]) == (["broker 3"], 1, "inferred")
    assert "topic-growth" not in rows


@pytest.mark.parametrize(
    "rows",
    [around(11 * MINUTE + 30_000), around(10 * MINUTE + 5_000), around(5 * MINUTE, 30 * MINUTE)],
    ids=["after it alone", "before it alone", "at other times"],
)
def test_one_change_or_changes_at_other_times_are_none(rows: dict[str, list[Row]]) -> None:
    assert "flapping-racks" not in found(**rows)


def test_a_topic_that_was_deleted_is_named_where_the_leader_joins_again() -> None:
    noticed = rebalance(1, MARCH_3 + MINUTE, "rejoin-metadata", "a", client_reason="cached metadata has changed")
    for at, says in ((MINUTE - 2_000, True), (2 * MINUTE, False)):
        rows = found(rebalance=[noticed], event=[event(at, "topic_deleted", topic="orders", partition_count=4)])
        assert ("Shortly before, orders had been deleted." in rows["topic-growth"]["text"]) == says
