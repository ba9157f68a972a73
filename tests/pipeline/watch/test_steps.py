"""Steps of a watch, without a JVM: each event counts once, and each rebalance ends once."""

from __future__ import annotations

import errno
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pyarrow as pa
import pytest

from rejoin.pipeline.incremental.group_states import KEY
from rejoin.pipeline.incremental.runs import SCHEMA
from rejoin.pipeline.incremental.tables import IncrementalTables
from rejoin.pipeline.watch.store import WatchStore
from rejoin.pipeline.watch.tables import WatchTables

GROUP = dict(zip(KEY, ("run-1", "orders-app", "coordinator", "1"), strict=True))
A, B = "a-00000000-0000-4000-8000-000000000001", "b-00000000-0000-4000-8000-000000000002"


def at(topic: str, *partitions: int) -> list[dict[str, Any]]:
    return [{"topic": topic, "partition": partition} for partition in partitions]


class Story:
    """Events of a group as its coordinator emits them."""

    def __init__(self) -> None:
        self.rows: list[dict[str, Any]] = []

    def add(self, at_ms: int, event: str, **fields: Any) -> Story:
        known = {"seq": len(self.rows) + 1, "at_ms": at_ms, "event": event, "confidence": "exact"}
        self.rows.append(GROUP | known | fields)
        return self

    def joins(self, at_ms: int, member: str, state: str) -> Story:
        return self.add(at_ms, "member_joined", member_id=member, state=state)

    def begins(self, at_ms: int, generation: int, state: str, members: list[str], cause: str = "join-new") -> Story:
        return self.add(
            at_ms,
            "rebalance_started",
            generation=generation,
            previous_state=state,
            cause=cause,
            cause_member_id=A,
            initial=state == "Empty",
            members=members,
        )

    def meets(self, at_ms: int, generation: int, members: list[str], join_ms: int) -> Story:
        return self.add(
            at_ms,
            "join_phase_ended",
            generation=generation,
            leader=members[0],
            protocol="range",
            members=members,
            absent=[],
            join_ms=join_ms,
        )

    def completes(self, at_ms: int, generation: int, before: list[str], after: list[str], **ms: int) -> Story:
        self.add(at_ms, "assignment_received", generation=generation, leader=after[0])
        return self.add(
            at_ms,
            "rebalance_completed",
            generation=generation,
            leader=after[0],
            previous_leader=before[0] if before else None,
            protocol="range",
            members=after,
            members_before=before,
            moved=1,
            regained=2,
            **ms,
        )


def first_rebalance() -> Story:
    """Two members come, and the group is Stable after 3 s."""
    story = Story().joins(1_000, A, "Empty").begins(1_000, 0, "Empty", [A]).joins(2_500, B, "PreparingRebalance")
    return story.meets(4_000, 1, [A, B], 3_000).completes(4_100, 1, [], [A, B], join_ms=3_000, sync_ms=100)


class Steps:
    """A watch that takes in rows step by step."""

    def __init__(self, folder: Path) -> None:
        self.tables = IncrementalTables(folder)

    def take(self, rows: list[dict[str, Any]]) -> tuple[list[SimpleNamespace], SimpleNamespace]:
        """Rebalances that ended in a step, and the state of the group after it."""
        ended = self.tables.take(pa.Table.from_pylist(rows, SCHEMA), self.tables.step + 1)
        [state] = self.tables.groups()
        return [SimpleNamespace(**row) for row in ended.to_pylist()], SimpleNamespace(**state)


@pytest.fixture
def steps(tmp_path: Path) -> Steps:
    return Steps(tmp_path)


def test_a_rebalance_has_all_that_led_to_it(steps: Steps) -> None:
    (done,), state = steps.take(first_rebalance().rows)
    assert done.rebalance_id == "run-1/orders-app/1/2"
    assert (done.outcome, done.attempt, done.cause, done.cause_client_id) == ("completed", 1, "join-new", "a")
    assert (done.generation_from, done.generation_to) == (0, 1)
    assert (done.prepared_at_ms, done.joined_at_ms, done.assigned_at_ms, done.stable_at_ms, done.ended_at_ms) == (
        1_000,
        4_000,
        4_100,
        4_100,
        4_100,
    )
    assert (done.unavailable_ms, done.join_ms, done.sync_ms) == (3_100, 3_000, 100)
    assert (done.joined, done.left, done.evicted) == ([A, B], [], [])
    assert (done.slowest_member_id, done.slowest_ms, done.members_waiting_ms) == (B, 1_500, 3_000 + 1_500)
    assert (state.members, state.attempt) == (2, None)


def test_a_rebalance_of_a_consumer_group_lasts_until_its_members_have_reached_the_epoch(steps: Steps) -> None:
    story = Story().joins(0, B, "Stable")
    story.add(
        0,
        "rebalance_started",
        generation=2,
        previous_state="Stable",
        cause="join-new",
        members=[A, B],
        group_type="consumer",
    )
    story.add(800, "target_assignment_computed", generation=3, protocol="uniform")
    story.add(5_000, "revocation_completed", member_id=A, partitions=at("t", 2, 3), revocation_ms=700)
    story.add(5_000, "member_reconciled", member_id=A).add(6_000, "member_reconciled", member_id=B)
    story.add(6_000, "rebalance_completed", generation=3, members=[A, B], members_before=[A], moved=2, regained=0)
    (done,), _ = steps.take(story.rows)
    assert (done.outcome, done.group_type, done.generation_to, done.protocol) == ("completed", "consumer", 3, "uniform")
    assert (done.joined_at_ms, done.given_up, done.revocation_ms) == (800, 2, 700)
    assert (done.slowest_member_id, done.slowest_ms, done.leader) == (B, 6_000, None)


@pytest.mark.parametrize("cut", range(1, 7))
def test_what_goes_on_is_kept_between_batches(cut: int, tmp_path: Path) -> None:
    """Wherever a batch ends, the same row comes out, in the batch in which the rebalance ends."""
    rows = first_rebalance().rows
    (whole,), after = Steps(tmp_path / "whole").take(rows)
    steps = Steps(tmp_path / "cut")
    done, state = steps.take(rows[:cut])
    if cut < len(rows):
        assert done == []
        assert state.attempt == (None if cut == 1 else 1)
        done, state = steps.take(rows[cut:])
    assert (done, state) == ([whole], after)


@pytest.mark.parametrize("cut", range(1, 7))
def test_a_watch_that_ends_between_batches_goes_on(cut: int, tmp_path: Path) -> None:
    rows = first_rebalance().rows
    (whole,), after = Steps(tmp_path / "whole").take(rows)
    steps = Steps(tmp_path / "cut")
    before, _ = steps.take(rows[:cut])
    steps.tables.save(now=True)
    steps = Steps(tmp_path / "cut")
    assert steps.tables.ended().num_rows == len(before)
    ended, state = steps.take(rows[cut:])
    assert ([*before, *ended], state) == ([whole], after)


def test_a_step_that_cannot_be_kept_gives_its_rebalances_when_it_is_done_once_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A full disk, for once: no rebalance is left out, and none is given twice."""
    rows = pa.Table.from_pylist(first_rebalance().rows, SCHEMA)
    watch = WatchTables(cast(WatchStore, SimpleNamespace(folder=tmp_path, committed=lambda: 0)))
    monkeypatch.setattr(watch, "_steps", lambda first, last: [(0, rows, 0)] if first == 0 else [])
    kept = IncrementalTables.save

    def full(tables: IncrementalTables, *, now: bool = False) -> bool:
        raise OSError(errno.ENOSPC, "no space left on device")

    monkeypatch.setattr(IncrementalTables, "save", full)
    with pytest.raises(OSError, match="no space"):
        list(watch.updates())
    monkeypatch.setattr(IncrementalTables, "save", kept)
    given = [row["generation_to"] for _ in range(2) for summary in watch.updates() for row in summary.ended]
    assert given == [1]


def test_rows_of_a_batch_may_come_in_any_order(steps: Steps, tmp_path: Path) -> None:
    rows = first_rebalance().rows
    assert steps.take(rows[::-1]) == Steps(tmp_path / "in-order").take(rows)


def test_rows_that_come_again_change_nothing(steps: Steps, tmp_path: Path) -> None:
    rows = first_rebalance().rows
    (whole,), state = steps.take(rows)
    assert steps.take(rows) == ([], state)
    twice = Steps(tmp_path / "twice")
    twice.take(rows[:4])
    assert twice.take(rows[2:]) == ([whole], state)


def test_an_event_that_comes_late_does_not_change_the_state(steps: Steps) -> None:
    rows = Story().joins(0, A, "Empty").joins(5, B, "Empty").rows
    steps.take(rows[1:])
    assert (steps.take(rows[:1])[1].members, steps.take([])[1].at_ms) == (1, 5)


def test_a_rebalance_that_has_to_begin_again_is_superseded_by_its_next_attempt(steps: Steps) -> None:
    story = Story().joins(0, A, "Empty").begins(0, 0, "Empty", [A]).meets(3_000, 1, [A], 3_000)
    story.joins(4_000, B, "CompletingRebalance").begins(4_000, 1, "CompletingRebalance", [A, B])
    story.meets(5_000, 2, [A, B], 1_000).completes(5_500, 2, [], [A, B], join_ms=1_000, sync_ms=500)
    done = [row for one in story.rows for row in steps.take([one])[0]]
    assert [(row.outcome, row.attempt, row.unavailable_ms) for row in done] == [
        ("superseded", 1, 4_000),
        ("completed", 2, 1_500),
    ]
    assert [row.joined for row in done] == [[A], [B]]


def test_members_that_go_while_the_group_is_stable_belong_to_the_rebalance_they_cause(steps: Steps) -> None:
    story = first_rebalance()
    story.add(9_000, "member_removed", member_id=B, cause="session-expiry", state="Stable")
    story.begins(9_000, 1, "Stable", [A], cause="session-expiry")
    story.add(9_500, "member_removed", member_id=A, cause="left", state="PreparingRebalance")
    story.add(9_500, "group_emptied", generation=2)
    (_, done), state = steps.take(story.rows)
    assert (done.outcome, done.evicted, done.left, done.generation_to) == ("emptied", [B], [A], None)
    assert state.members == 0


@pytest.mark.parametrize(
    "end",
    [
        {"event": "group_loaded", "state": "Stable", "generation": 1},
        {"event": "group_deleted"},
        {"event": "group_state_changed", "state": "Dead"},
    ],
)
def test_a_coordinator_that_loses_the_group_aborts_the_rebalance(steps: Steps, end: dict[str, Any]) -> None:
    story = Story().joins(0, A, "Empty").begins(0, 0, "Empty", [A]).add(2_000, **end)
    (done,), state = steps.take(story.rows)
    assert (done.outcome, done.ended_at_ms) == ("aborted", 2_000)
    assert state.attempt is None


def test_a_rebalance_of_which_no_end_was_said_ends_when_the_next_begins(steps: Steps) -> None:
    story = Story().begins(0, 0, "Empty", [A]).begins(9_000, 0, "Empty", [A])
    (done,), state = steps.take(story.rows)
    assert (done.outcome, done.ended_at_ms) == ("aborted", 9_000)
    assert (state.cause, state.attempt) == ("join-new", 1)


def test_a_clock_that_goes_back_does_not_change_the_order(steps: Steps) -> None:
    story = Story().joins(5_000, A, "Empty").begins(5_000, 0, "Empty", [A])
    story.meets(4_000, 1, [A], 3_000).completes(4_100, 1, [], [A], join_ms=3_000, sync_ms=100)
    (done,), _ = steps.take(story.rows)
    assert (done.outcome, done.unavailable_ms, done.join_ms) == ("completed", -900, 3_000)
    assert all(a["seq"] < b["seq"] for a, b in pairwise(story.rows))
