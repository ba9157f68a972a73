"""Rebalances of one group from its events, without a JVM."""

from __future__ import annotations

from typing import Any

import pytest

from rejoin.pipeline.tables.groups.rebalances import EVENTS_READ, rebalances_of_group
from rejoin.pipeline.tables.groups.rows import EventOfGroup, GroupRows, RunSummary


def event(name: str, at_ms: int, node: str = "1", **fields: Any) -> EventOfGroup:
    return EventOfGroup("run", "g", "coordinator", node, fields.pop("seq", at_ms), at_ms, name, **fields)


def rows_of(*events: EventOfGroup, **options: int) -> list[dict[str, Any]]:
    return rebalances_of_group(GroupRows(events, (), RunSummary(0)), **options)


def test_another_coordinator_that_loads_the_group_aborts_what_the_one_before_had_open() -> None:
    rows = rows_of(
        event("rebalance_started", 10, cause="join-new", members=["m"], previous_state="Empty"),
        event("group_loaded", 40, node="2"),
        event("group_loaded", 90, node="3"),
        event("rebalance_started", 95, node="3", cause="join-new", members=["m"], previous_state="Empty"),
    )
    assert [(row["outcome"], row["ended_at_ms"], row["number"]) for row in rows] == [
        ("aborted", 40, 1),
        ("open", None, 2),
    ]


@pytest.mark.parametrize("name", EVENTS_READ)
def test_any_event_may_follow_the_begin_of_a_rebalance(name: str) -> None:
    """So a group may be created again on the coordinator that has forgotten it, as after a reset."""
    started = event("rebalance_started", 10, cause="join-new", members=["m"], previous_state="Empty")
    row, *_ = rows_of(started, event(name, 40, members=["m"], state="Dead", generation=1, member_id="m"))
    if name == "group_created":
        assert (row["outcome"], row["ended_at_ms"]) == ("aborted", 40)


def test_rebalances_that_follow_each_other_closely_are_a_storm_over_all_coordinators() -> None:
    def completed(at_ms: int, node: str) -> list[EventOfGroup]:
        started = event("rebalance_started", at_ms, node, previous_state="Stable")
        return [started, event("rebalance_completed", at_ms + 5, node, generation=1)]

    rows = rows_of(*completed(0, "1"), *completed(200, "1"), *completed(80, "2"), chain_gap_ms=100)
    assert [(row["number"], row["chain"], row["chain_length"]) for row in rows] == [(1, 1, 2), (3, 3, 1), (2, 1, 2)]


def test_the_first_target_of_a_rebalance_counts() -> None:
    [row] = rows_of(
        event("rebalance_started", 0, group_type="consumer", generation=1, previous_state="Stable"),
        event("target_assignment_computed", 5, generation=2, protocol="uniform"),
        event("target_assignment_computed", 9, generation=3, protocol="range"),
    )
    assert (row["joined_at_ms"], row["generation_to"], row["protocol"], row["outcome"]) == (5, 2, "uniform", "open")


@pytest.mark.parametrize("group_type", ["classic", "consumer"])
def test_who_was_in_a_group_before_its_log_begins_is_not_known(group_type: str) -> None:
    known = {"cause": "join-new", "group_type": group_type}
    (row,) = rows_of(event("rebalance_started", 10, **known, previous_state="Stable"))
    assert row["members_before"] is None
    (row,) = rows_of(event("rebalance_started", 10, **known, previous_state="Empty"))
    assert row["members_before"] == []


def test_who_was_in_a_group_of_the_consumer_protocol_follows_from_its_last_rebalance() -> None:
    known = {"cause": "join-new", "previous_state": "Stable", "group_type": "consumer"}
    rows = rows_of(
        event("member_joined", 5, member_id="a", state="Empty"),
        event("rebalance_started", 10, **known | {"previous_state": "Empty"}),
        event("rebalance_completed", 20, members=["a"], members_before=[]),
        event("member_joined", 25, member_id="b", state="Stable"),
        event("rebalance_started", 30, **known),
        event("member_joined", 35, member_id="c", state="Reconciling"),
        event("rebalance_started", 40, **known | {"previous_state": "Reconciling"}),
    )
    assert [(row["outcome"], row["members_before"]) for row in rows] == [
        ("completed", []),
        ("superseded", ["a"]),
        ("open", ["a"]),
    ]
