"""Real processes: a coordinator, consumers, kill -9, eviction and reassignment, and nothing owned twice."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from rejoin.demo.scenes import events
from rejoin.demo.stage import Stage
from rejoin.journal.events import client as client_events
from rejoin.journal.events import coordinator as coordinator_events
from rejoin.journal.events.base import Event
from rejoin.journal.events.client import ConsumerEvent, RecordsProcessed
from rejoin.journal.events.coordinator import MemberRemoved, RebalanceCompleted
from rejoin.journal.reader import read_journal

PARTITIONS = 6
GROUP = "orders-app"
PATIENCE_SECONDS = 120.0


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Stage]:
    stage = Stage(tmp_path, "orders", PARTITIONS, {"group.initial.rebalance.delay.ms": "300"})
    try:
        yield stage
    finally:
        stage.stop()


def until(stage: Stage, reached: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
    """Wait for the group to be so, and return how it is; at no time does a partition have two owners."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while time.monotonic() < deadline:
        stage.check()
        view = stage.group(GROUP)
        if view is not None:
            owned = owners(view)
            assert len(owned) == len(set(owned)), f"a partition has two owners: {view['members']}"
            if reached(view):
                return view
        time.sleep(0.05)
    raise AssertionError(f"the group did not get there: {stage.group(GROUP)}")


def owners(view: dict[str, Any]) -> list[int]:
    return [index for member in view["members"] for index in (member["assignment"] or {}).get("orders", ())]


def stable_with(members: int) -> Callable[[dict[str, Any]], bool]:
    def reached(view: dict[str, Any]) -> bool:
        return view["state"] == "Stable" and len(view["members"]) == members and len(owners(view)) == PARTITIONS

    return reached


def goes_on(before: dict[str, Any], view: dict[str, Any]) -> bool:
    """Whether every partition has a newer commit."""
    stored = committed(before)
    return all(offset > stored.get(partition, -1) for partition, offset in committed(view).items()) and (
        len(committed(view)) == PARTITIONS
    )


def committed(view: dict[str, Any]) -> dict[int, int]:
    return {row["partition"]: row["offset"] for row in view["offsets"]}


def test_a_killed_process_is_evicted_and_its_partitions_are_given_away(stage: Stage) -> None:
    stage.consume("one", GROUP, "cooperative-sticky", session_timeout_ms=6_000)
    victim = stage.consume("two", GROUP, "cooperative-sticky", session_timeout_ms=6_000)
    before = until(stage, stable_with(2))
    lost = next(member for member in before["members"] if member["clientId"] == victim.name)
    victim.crash()
    after = until(stage, stable_with(1))
    # The one that is left reads what it was given.
    until(stage, lambda view: goes_on(after, view))
    stage.stop()

    assert [member["clientId"] for member in after["members"]] != [lost["clientId"]]
    coordinator = list(read_journal(stage.journal, events(coordinator_events, Event), source="coordinator"))
    removed = [row.event for row in coordinator if isinstance(row.event, MemberRemoved)]
    assert (removed[0].member_id, removed[0].cause) == (lost["memberId"], "session-expiry")
    rebalances = [row.event for row in coordinator if isinstance(row.event, RebalanceCompleted)]
    eviction = next(done for done in rebalances if done.cause.cause == "session-expiry")
    assert eviction.cause.member_id == lost["memberId"]
    assert eviction.regained == len(lost["assignment"]["orders"])
    for done in rebalances:
        owned = [(t, i) for topics in done.owned_after.values() for t, indexes in topics.items() for i in indexes]
        assert len(owned) == len(set(owned)), f"generation {done.generation} gave a partition twice"

    consumers = list(read_journal(stage.journal, events(client_events, ConsumerEvent), source="client"))
    processed = {r.partition for row in consumers if isinstance(row.event, RecordsProcessed) for r in row.event.ranges}
    assert processed == set(range(PARTITIONS)), "every partition was read"


def test_sigterm_leaves_at_once_and_says_why(stage: Stage) -> None:
    stage.consume("one", GROUP, "range", session_timeout_ms=30_000)
    leaving = stage.consume("two", GROUP, "range", session_timeout_ms=30_000)
    until(stage, stable_with(2))
    leaving.process.terminate()
    assert leaving.process.wait(PATIENCE_SECONDS) == 0
    stage.consumers.remove(leaving)
    until(stage, stable_with(1))
    rows, _ = stage.rows(0)
    removed = [row for row in rows if row["event"] == "member_removed"]
    assert [(row["cause"], row["client_reason"]) for row in removed] == [("left", "the consumer is being closed")]
