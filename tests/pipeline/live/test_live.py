"""What is remembered of a group between batches, without a JVM: each event once, and each rebalance finished once."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest
from pyspark.sql.streaming.tws_tester import TwsTester
from pyspark.sql.types import Row

from rejoin.pipeline.live.rebalances import FINISHED, LIVE, STANDING, GroupFollower
from rejoin.pipeline.tables.groups.rebalance_events import READS

KEY = ("run-1", "orders-app", "coordinator", "1")
A, B = "a-00000000-0000-4000-8000-000000000001", "b-00000000-0000-4000-8000-000000000002"


def at(topic: str, *partitions: int) -> list[Row]:
    return [Row(topic=topic, partition=partition) for partition in partitions]


class Story:
    """Events of a group as its coordinator emits them."""

    def __init__(self) -> None:
        self.rows: list[Row] = []

    def add(self, at_ms: int, event: str, **fields: Any) -> Story:
        where = dict(zip(("run_id", "group_id", "source", "node"), KEY, strict=True))
        known = {**where, "seq": len(self.rows) + 1, "at_ms": at_ms, "event": event, **fields}
        self.rows.append(Row(**{name: known.get(name) for name in READS}))
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


def follow(tester: TwsTester, rows: list[Row]) -> tuple[list[Row], Row]:
    """Finished rebalances of a batch, and how the group stands."""
    out = tester.test(KEY, rows)
    assert [row.what for row in out] == [FINISHED] * (len(out) - 1) + [STANDING]
    assert all(row.asDict().keys() == set(LIVE.fieldNames()) for row in out)
    return out[:-1], out[-1]


def test_a_rebalance_has_all_that_led_to_it() -> None:
    (done,), standing = follow(TwsTester(GroupFollower()), first_rebalance().rows)
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
    assert (standing.members, standing.rebalance_id) == (2, None)


def test_a_rebalance_of_a_consumer_group_lasts_until_its_members_have_reached_the_epoch() -> None:
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
    (done,), _ = follow(TwsTester(GroupFollower()), story.rows)
    assert (done.outcome, done.group_type, done.generation_to, done.protocol) == ("completed", "consumer", 3, "uniform")
    assert (done.joined_at_ms, done.given_up, done.revocation_ms) == (800, 2, 700)
    assert (done.slowest_member_id, done.slowest_ms, done.leader) == (B, 6_000, None)


@pytest.mark.parametrize("cut", range(1, 7))
def test_what_goes_on_is_kept_between_batches(cut: int) -> None:
    """Wherever a batch ends, the same row comes out, in the batch in which the rebalance ends."""
    rows = first_rebalance().rows
    (whole,), _ = follow(TwsTester(GroupFollower()), rows)
    tester = TwsTester(GroupFollower())
    done, standing = follow(tester, rows[:cut])
    if cut < len(rows):
        assert done == []
        assert standing.rebalance_id == (None if cut == 1 else whole.rebalance_id)
        done, _ = follow(tester, rows[cut:])
    assert done == [whole]


def test_rows_of_a_batch_may_come_in_any_order() -> None:
    rows = first_rebalance().rows
    assert follow(TwsTester(GroupFollower()), rows[::-1]) == follow(TwsTester(GroupFollower()), rows)


def test_rows_that_come_again_change_nothing() -> None:
    rows = first_rebalance().rows
    tester = TwsTester(GroupFollower())
    (whole,), _ = follow(tester, rows)
    assert follow(tester, rows)[0] == []
    twice = TwsTester(GroupFollower())
    follow(twice, rows[:4])
    assert follow(twice, rows[2:])[0] == [whole]


def test_a_rebalance_that_has_to_begin_again_is_superseded_by_its_next_attempt() -> None:
    story = Story().joins(0, A, "Empty").begins(0, 0, "Empty", [A]).meets(3_000, 1, [A], 3_000)
    story.joins(4_000, B, "CompletingRebalance").begins(4_000, 1, "CompletingRebalance", [A, B])
    story.meets(5_000, 2, [A, B], 1_000).completes(5_500, 2, [], [A, B], join_ms=1_000, sync_ms=500)
    tester = TwsTester(GroupFollower())
    done = [row for one in story.rows for row in follow(tester, [one])[0]]
    assert [(row.outcome, row.attempt, row.unavailable_ms) for row in done] == [
        ("superseded", 1, 4_000),
        ("completed", 2, 1_500),
    ]
    assert [row.joined for row in done] == [[A], [B]]


def test_members_that_go_while_the_group_is_stable_belong_to_the_rebalance_they_cause() -> None:
    story = first_rebalance()
    story.add(9_000, "member_removed", member_id=B, cause="session-expiry", state="Stable")
    story.begins(9_000, 1, "Stable", [A], cause="session-expiry")
    story.add(9_500, "member_removed", member_id=A, cause="left", state="PreparingRebalance")
    story.add(9_500, "group_emptied", generation=2)
    (_, done), standing = follow(TwsTester(GroupFollower()), story.rows)
    assert (done.outcome, done.evicted, done.left, done.generation_to) == ("emptied", [B], [A], None)
    assert standing.members == 0


@pytest.mark.parametrize(
    "end",
    [
        {"event": "group_loaded", "state": "Stable", "generation": 1},
        {"event": "group_deleted"},
        {"event": "group_state_changed", "state": "Dead"},
    ],
)
def test_a_coordinator_that_loses_the_group_aborts_the_rebalance(end: dict[str, Any]) -> None:
    story = Story().joins(0, A, "Empty").begins(0, 0, "Empty", [A]).add(2_000, **end)
    (done,), standing = follow(TwsTester(GroupFollower()), story.rows)
    assert (done.outcome, done.ended_at_ms) == ("aborted", 2_000)
    assert standing.rebalance_id is None


def test_a_coordinator_that_never_said_how_it_ended_finishes_nothing() -> None:
    story = Story().begins(0, 0, "Empty", [A]).begins(9_000, 0, "Empty", [A])
    done, standing = follow(TwsTester(GroupFollower()), story.rows)
    assert done == []
    assert (standing.rebalance_id, standing.attempt) == ("run-1/orders-app/1/2", 1)


def test_a_clock_that_goes_back_does_not_change_the_order() -> None:
    story = Story().joins(5_000, A, "Empty").begins(5_000, 0, "Empty", [A])
    story.meets(4_000, 1, [A], 3_000).completes(4_100, 1, [], [A], join_ms=3_000, sync_ms=100)
    (done,), _ = follow(TwsTester(GroupFollower()), story.rows)
    assert (done.outcome, done.unavailable_ms, done.join_ms) == ("completed", -900, 3_000)
    assert all(a.seq < b.seq for a, b in pairwise(story.rows))
