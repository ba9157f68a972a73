"""Consumers and their coordinator on the simulator: joins, crashes, restarts and failovers, from beginning to end."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest

from rejoin.client.core.inputs import RebalanceEnforced
from rejoin.journal.events.client import GroupLeft, PollTimeoutExceeded
from tests.client.simulated_group import SimulatedGroup, covered

FAST: dict[str, Any] = {"session_timeout_ms": 10_000}


def test_two_consumers_one_after_the_other() -> None:
    group = SimulatedGroup()
    group.consumer("a")
    group.run(1_000)
    group.consumer("b")
    assert group.state() == "PreparingRebalance"
    group.run(5_100)
    assert group.generation() == 1, "the second came within the initial delay"
    assert group.assignments() == {"a": [0, 1, 2], "b": [3, 4, 5]}
    assert group.members["a"].changes == ["assigned t:0,1,2"]


def test_a_third_consumer_joins_an_eager_group() -> None:
    group = SimulatedGroup()
    group.consumer("a")
    group.consumer("b")
    group.run(10_000)
    began = group.now
    group.consumer("c")
    took = group.run_until_stable()
    assert took <= 3_020, "the slowest heartbeat interval, and no more"
    assert group.now - began == took
    assert group.generation() == 2
    assert covered(group.assignments(), 6)
    assert group.members["a"].changes[1:] == ["revoked t:0,1,2", "assigned t:0,1"]


def test_a_third_consumer_joins_a_cooperative_group() -> None:
    group = SimulatedGroup()
    for name in ("a", "b"):
        group.consumer(name, assignors=("cooperative-sticky",))
    group.run(10_000)
    before = group.assignments()
    group.consumer("c", assignors=("cooperative-sticky",))
    group.run_until_stable()
    assert group.generation() == 3, "one rebalance takes away, the next one gives"
    assert covered(group.assignments(), 6)
    moved = group.assignments()["c"]
    for name in ("a", "b"):
        (lost,) = [partition for partition in before[name] if partition in moved]
        assert group.members[name].changes[1:] == [f"revoked t:{lost}", "assigned", "assigned"]
    given = ",".join(map(str, moved))
    assert group.members["c"].changes == ["assigned", f"assigned t:{given}"]


def test_a_killed_consumer_is_missed_after_its_session() -> None:
    group = SimulatedGroup()
    for name in ("a", "b", "c"):
        group.consumer(name, **FAST)
    group.run(10_000)
    group.kill("c")
    group.run(7_000)
    assert group.generation() == 1
    group.run(7_000)
    assert group.generation() == 2
    assert covered(group.assignments(), 6)


def test_a_closed_consumer_is_missed_at_once() -> None:
    group = SimulatedGroup()
    for name in ("a", "b"):
        group.consumer(name)
    group.run(10_000)
    group.close("b")
    group.run(3_100)
    assert group.assignments() == {"a": [0, 1, 2, 3, 4, 5]}


def test_the_last_member_leaves_a_generation_behind() -> None:
    group = SimulatedGroup()
    group.consumer("a")
    group.run(10_000)
    group.close("a")
    group.run(10)
    assert group.state() == "Empty"
    assert group.generation() == 2
    group.consumer("b")
    group.run(5_000)
    assert group.generation() == 3


def test_a_static_member_restarts_without_a_rebalance() -> None:
    group = SimulatedGroup()
    for name in ("a", "b"):
        group.consumer(name, group_instance_id=name)
    group.run(10_000)
    before = group.assignments()
    for name in ("b", "a"):
        group.kill(name)
        group.run(8_000)
        group.consumer(name, group_instance_id=name)
        group.run(1_000)
        assert group.generation() == 1
        assert group.assignments() == before
    assert group.members["a"].core.is_leader
    assert "assignment_skipped" in [event.name for event in group.members["a"].events]
    group.grow("t", 8)
    group.run(310_000)
    assert covered(group.assignments(), 8), "the leader that came back watches the topics"


def test_an_old_process_of_a_static_member_is_fenced() -> None:
    group = SimulatedGroup()
    old = group.consumer("a", group_instance_id="i")
    group.run(5_000)
    group.consumer("b", group_instance_id="i")
    group.run(3_100)
    assert [problem.partition(":")[0] for problem in old.failures] == ["FencedInstanceIdError"]


def test_a_consumer_that_processes_too_long_leaves_and_comes_back() -> None:
    group = SimulatedGroup(records_per_second=10)
    group.consumer("a", max_poll_interval_ms=20_000)
    group.consumer("slow", max_poll_interval_ms=20_000, processing="30s/poll")
    group.run(60_000)
    slow = group.members["slow"]
    assert any(isinstance(event, PollTimeoutExceeded) for event in slow.events)
    assert any(call.startswith("lost") for call in slow.changes)
    assert [event.reason for event in slow.events if isinstance(event, GroupLeft) and event.notified]


def test_a_paused_process_loses_its_membership_and_rejoins() -> None:
    group = SimulatedGroup()
    group.consumer("a", **FAST)
    group.consumer("b", **FAST)
    group.run(10_000)
    group.pause("b", 20_000)
    group.run(20_000)
    assert group.assignments()["a"] == [0, 1, 2, 3, 4, 5]
    group.run(10_000)
    assert covered(group.assignments(), 6)
    assert group.members["b"].changes[1] == "lost t:3,4,5"


def test_a_topic_that_grows_is_shared_again() -> None:
    group = SimulatedGroup()
    for name in ("a", "b"):
        group.consumer(name, metadata_max_age_ms=30_000)
    group.run(10_000)
    group.grow("t", 9)
    group.run(40_000)
    assert covered(group.assignments(), 9)
    assert group.generation() == 2


def test_a_failover_of_a_stable_group_goes_unnoticed() -> None:
    group = SimulatedGroup(records_per_second=10)
    for name in ("a", "b"):
        group.consumer(name)
    group.run(10_000)
    calls = {name: list(member.changes) for name, member in group.members.items()}
    group.fail_over(down_ms=2_000)
    group.run(20_000)
    assert group.generation() == 1
    assert {name: list(member.changes) for name, member in group.members.items()} == calls
    assert group.failures() == {}


@pytest.mark.parametrize("down_ms", [0, 500, 5_000])
def test_a_failover_in_the_middle_of_a_rebalance_ends_well(down_ms: int) -> None:
    group = SimulatedGroup()
    for name in ("a", "b"):
        group.consumer(name)
    group.run(10_000)
    group.consumer("c")
    group.run(1)
    group.fail_over(down_ms=down_ms)
    group.run_until_stable()
    assert covered(group.assignments(), 6)
    assert group.failures() == {}


def spans_after_orderly_rebalances(assignor: str) -> list[list[tuple[int, int]]]:
    """For each partition what was processed, in order of offsets, by a group that grows and shrinks cleanly."""
    group = SimulatedGroup(records_per_second=50)
    for index in range(4):
        group.consumer(f"c{index}", assignors=(assignor,))
        group.run(4_000)
    group.close("c1")
    group.run(4_000)
    group.step("c0", RebalanceEnforced("for the test"))
    group.run(6_000)
    seen: dict[int, list[tuple[int, int]]] = {partition: [] for partition in range(6)}
    for member in group.members.values():
        for each in member.processed:
            seen[each.partition].append((each.start, each.end))
    return [sorted(spans) for spans in seen.values()]


def test_eager_groups_process_records_once_through_orderly_rebalances() -> None:
    for spans in spans_after_orderly_rebalances("sticky"):
        assert spans[0][0] == 0
        assert all(before[1] == after[0] for before, after in pairwise(spans))


def test_cooperative_groups_may_process_what_they_read_while_joining_twice() -> None:
    # Kafka: the commit comes before the join; what is read on during it, and then moves, is never committed.
    again = 0
    for spans in spans_after_orderly_rebalances("cooperative-sticky"):
        reached = 0
        for start, end in spans:
            assert start <= reached, "nothing is lost"
            again += min(end, reached) - start
            reached = max(reached, end)
    assert again > 0


def test_what_was_not_committed_is_processed_again_after_a_crash() -> None:
    group = SimulatedGroup(records_per_second=50)
    group.consumer("a", **FAST)
    group.run(10_000)
    group.kill("a")
    group.consumer("b", **FAST)
    group.run(20_000)
    done = max(each.end for each in group.members["a"].processed if each.partition == 0)
    resumed = min(each.start for each in group.members["b"].processed if each.partition == 0)
    assert 0 < resumed < done


def test_groups_are_the_same_at_every_run() -> None:
    def play() -> list[str]:
        group = SimulatedGroup(records_per_second=20)
        for name in ("a", "b", "c"):
            group.consumer(name, assignors=("cooperative-sticky",), **FAST)
            group.run(2_500)
        group.kill("b")
        group.run(20_000)
        return [repr(event) for event in group.events]

    assert play() == play()


def test_a_group_of_fifty() -> None:
    group = SimulatedGroup(topics={"t": 200})
    for index in range(50):
        group.consumer(f"c{index}", assignors=("cooperative-sticky",), enable_auto_commit=False)
    group.run(10_000)
    group.run_until_stable()
    assert covered(group.assignments(), 200)
    assert group.generation() == 1
    assert {len(owned) for owned in group.assignments().values()} == {4}
    for index in range(0, 50, 10):
        group.close(f"c{index}")
    group.run_until_stable()
    assert covered(group.assignments(), 200)
