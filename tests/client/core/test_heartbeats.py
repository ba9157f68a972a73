"""Heartbeats beside poll, the three clocks of a member, and what ends a membership."""

from __future__ import annotations

from typing import Any

import pytest

from rejoin.client.core.inputs import Failure
from rejoin.client.core.state.membership import MemberState
from rejoin.journal.events.client import CoordinatorLost, GroupLeft, HeartbeatFailed, PollTimeoutExceeded
from rejoin.protocol.errors import ErrorCode as E
from tests.client.core.bench import Bench


def member(**settings: Any) -> Bench:
    """A stable member whose poll has returned."""
    settings.setdefault("enable_auto_commit", False)
    bench = Bench(**settings).stable("t-0")
    bench.step_out_of_poll()
    return bench


def test_heartbeats_go_out_every_interval_counted_from_sending() -> None:
    bench = member()
    bench.advance(2_999)
    assert bench.take() == []
    bench.advance(1)
    assert bench.take() == ["Heartbeat gen=1"]
    bench.advance(3_000)
    assert bench.take() == ["Heartbeat gen=1"], "the first has no answer yet; that does not matter"


def test_there_are_no_heartbeats_before_the_group_has_a_generation() -> None:
    bench = Bench()
    bench.subscribe("t")
    bench.poll(60_000)
    bench.find_coordinator()
    bench.give_member_id()
    bench.take()
    bench.advance(20_000)
    assert bench.take() == []
    bench.joined(1)
    bench.take()
    bench.advance(3_000)
    assert bench.take() == ["Heartbeat gen=1"], "they begin before SyncGroup is answered"


def test_failed_heartbeats_back_off_exponentially() -> None:
    bench = member()
    bench.advance(3_000)
    waits = []
    for _ in range(6):
        bench.answer("Heartbeat", E.COORDINATOR_LOAD_IN_PROGRESS)
        began = bench.now
        while not bench.is_open("Heartbeat"):
            bench.advance(10)
        waits.append(bench.now - began)
    assert waits == [100, 200, 400, 800, 1_000, 1_000]
    bench.answer("Heartbeat")
    bench.advance(2_000)
    bench.take()
    assert not bench.is_open("Heartbeat"), "a good answer ends the backoff"


@pytest.mark.parametrize(("jitter", "wait"), [(0.0, 80), (0.5, 100), (1.0, 120)])
def test_backoff_has_twenty_percent_of_jitter(jitter: float, wait: int) -> None:
    bench = member(jitter=jitter)
    bench.advance(3_000)
    bench.take()
    bench.answer("Heartbeat", E.COORDINATOR_LOAD_IN_PROGRESS)
    bench.advance(wait - 1)
    assert bench.take() == []
    bench.advance(1)
    assert bench.take() == ["Heartbeat gen=1"]


def test_a_heartbeat_request_is_made_once_a_generation() -> None:
    bench = member()
    bench.advance(3_000)
    first = bench.find("Heartbeat").request
    bench.answer("Heartbeat")
    bench.advance(3_000)
    assert bench.find("Heartbeat").request is first


def test_the_client_side_session_only_makes_it_look_for_the_coordinator() -> None:
    bench = member(session_timeout_ms=10_000)
    bench.advance(9_999)
    bench.take()
    bench.advance(1)
    assert bench.take() == ["cancelled", "cancelled", "cancelled", "FindCoordinator"]
    assert bench.core.assignment() == [("t", 0)]
    assert bench.core.generation.generation_id == 1
    bench.find_coordinator()
    bench.advance(3_000)
    assert bench.take()[-1] == "Heartbeat gen=1"


def test_an_unreachable_coordinator_is_looked_up_again_and_again() -> None:
    bench = member()
    bench.advance(3_000)
    bench.fail("Heartbeat", Failure.TIMEOUT)
    waits = []
    for _ in range(5):
        began = bench.now
        while not bench.is_open("FindCoordinator"):
            bench.advance(10)
        waits.append(bench.now - began)
        bench.fail("FindCoordinator")
    assert waits == [0, 100, 200, 400, 800]
    assert bench.core.generation.generation_id == 1


def test_a_coordinator_that_hangs_is_one_event_however_many_heartbeats_wait_for_it() -> None:
    bench = member()
    bench.advance(30_000)
    assert bench.take() == ["Heartbeat gen=1"] * 10
    bench.events.clear()
    bench.fail("Heartbeat", Failure.TIMEOUT)
    assert bench.take() == ["cancelled"] * 9 + ["FindCoordinator"]
    emitted = [event for event in bench.events if isinstance(event, CoordinatorLost | HeartbeatFailed)]
    assert [type(event) for event in emitted] == [CoordinatorLost, HeartbeatFailed]
    assert [event.problem for event in emitted if isinstance(event, HeartbeatFailed)] == ["Heartbeat: timeout"]


def test_a_dynamic_member_that_is_not_polled_leaves_and_says_why() -> None:
    bench = member(max_poll_interval_ms=20_000)
    bench.auto.add("Heartbeat")
    bench.advance(19_999)
    bench.take()
    bench.advance(1)
    assert bench.take() == ["LeaveGroup 'm' reason='consumer poll timeout has expired.'"]
    assert [type(event) for event in bench.events if isinstance(event, PollTimeoutExceeded | GroupLeft)] == [
        PollTimeoutExceeded,
        GroupLeft,
    ]
    bench.advance(60_000)
    assert bench.take() == [], "silent from now on"
    bench.poll(0)
    assert bench.take() == [
        "on_partitions_lost [t-0]",
        "JoinGroup '' reason='consumer pro-actively leaving the group'",
        "poll -> nothing",
    ]


def test_a_static_member_that_is_not_polled_goes_silent() -> None:
    bench = member(max_poll_interval_ms=20_000, group_instance_id="i")
    bench.auto.add("Heartbeat")
    bench.advance(20_000)
    assert bench.take() == []
    assert bench.core.member_state is MemberState.UNJOINED
    left = [event for event in bench.events if isinstance(event, GroupLeft)]
    assert [(event.notified, event.reason) for event in left] == [(False, "consumer poll timeout has expired.")]
    bench.advance(60_000)
    assert bench.take() == []


def test_one_long_poll_is_no_missed_poll() -> None:
    bench = member(max_poll_interval_ms=20_000)
    bench.auto.add("Heartbeat")
    bench.poll(120_000)
    bench.advance(120_000)
    assert bench.core.member_state is MemberState.STABLE
    assert [line for line in bench.take() if "Leave" in line] == []


def test_a_listener_that_takes_too_long_is_a_missed_poll() -> None:
    bench = Bench(max_poll_interval_ms=20_000)
    bench.auto.add("Heartbeat")
    bench.hold_listener = True
    bench.stable("t-0")
    bench.advance(20_000)
    assert bench.take() == ["LeaveGroup 'm' reason='consumer poll timeout has expired.'"]


def test_the_poll_interval_does_not_count_while_join_group_waits() -> None:
    bench = Bench(max_poll_interval_ms=20_000)
    bench.subscribe("t")
    bench.poll(0)
    bench.find_coordinator()
    bench.poll(0)
    bench.give_member_id()
    bench.poll(0)
    bench.take()
    bench.advance(60_000)
    assert bench.take() == []


def test_the_poll_interval_counts_anew_after_join_group() -> None:
    bench = Bench(max_poll_interval_ms=20_000)
    bench.auto.add("Heartbeat")
    bench.subscribe("t")
    bench.poll(15_000)
    bench.find_coordinator()
    bench.give_member_id()
    bench.advance(15_000)
    bench.poll(0)
    bench.joined(1)
    bench.take()
    bench.poll(0)
    bench.advance(19_999)
    assert not [line for line in bench.take() if "Leave" in line]
    bench.advance(1)
    assert bench.take() == ["LeaveGroup 'm' reason='consumer poll timeout has expired.'"]


def test_a_long_stop_of_the_whole_process_is_survived() -> None:
    bench = member(session_timeout_ms=10_000, max_poll_interval_ms=300_000)
    bench.now += 60_000
    bench.advance(0)
    assert bench.take() == ["FindCoordinator"]
    bench.find_coordinator()
    assert bench.take() == ["Heartbeat gen=1"]
    bench.answer("Heartbeat", E.UNKNOWN_MEMBER_ID)
    bench.poll(0)
    assert bench.take() == [
        "on_partitions_lost [t-0]",
        "JoinGroup '' reason='encountered UNKNOWN_MEMBER_ID from HEARTBEAT response'",
        "poll -> nothing",
    ]
