"""Heartbeats beside poll, the three clocks of a member, and what ends a membership."""

from __future__ import annotations

from typing import Any

import pytest

from rejoin.client.core.inputs import Failure
from rejoin.client.core.state import MemberState
from rejoin.journal.events.client import CoordinatorLost, GroupLeft, HeartbeatFailed, PollTimeoutExceeded
from rejoin.protocol.errors import ErrorCode as E
from tests.client.core.lab import Lab


def member(**settings: Any) -> Lab:
    """A stable member whose poll has returned."""
    settings.setdefault("enable_auto_commit", False)
    lab = Lab(**settings).stable("t-0")
    lab.step_out_of_poll()
    return lab


def test_heartbeats_go_out_every_interval_counted_from_sending() -> None:
    lab = member()
    lab.advance(2_999)
    assert lab.take() == []
    lab.advance(1)
    assert lab.take() == ["Heartbeat gen=1"]
    lab.advance(3_000)
    assert lab.take() == ["Heartbeat gen=1"], "the first has no answer yet; that does not matter"


def test_there_are_no_heartbeats_before_the_group_has_a_generation() -> None:
    lab = Lab()
    lab.subscribe("t")
    lab.poll(60_000)
    lab.find_coordinator()
    lab.give_member_id()
    lab.take()
    lab.advance(20_000)
    assert lab.take() == []
    lab.joined(1)
    lab.take()
    lab.advance(3_000)
    assert lab.take() == ["Heartbeat gen=1"], "they begin before SyncGroup is answered"


def test_failed_heartbeats_back_off_exponentially() -> None:
    lab = member()
    lab.advance(3_000)
    waits = []
    for _ in range(6):
        lab.answer("Heartbeat", E.COORDINATOR_LOAD_IN_PROGRESS)
        began = lab.now
        while not lab.is_open("Heartbeat"):
            lab.advance(10)
        waits.append(lab.now - began)
    assert waits == [100, 200, 400, 800, 1_000, 1_000]
    lab.answer("Heartbeat")
    lab.advance(2_000)
    lab.take()
    assert not lab.is_open("Heartbeat"), "a good answer ends the backoff"


@pytest.mark.parametrize(("jitter", "wait"), [(0.0, 80), (0.5, 100), (1.0, 120)])
def test_backoff_has_twenty_percent_of_jitter(jitter: float, wait: int) -> None:
    lab = member(jitter=jitter)
    lab.advance(3_000)
    lab.take()
    lab.answer("Heartbeat", E.COORDINATOR_LOAD_IN_PROGRESS)
    lab.advance(wait - 1)
    assert lab.take() == []
    lab.advance(1)
    assert lab.take() == ["Heartbeat gen=1"]


def test_a_heartbeat_request_is_made_once_a_generation() -> None:
    lab = member()
    lab.advance(3_000)
    first = lab.find("Heartbeat").request
    lab.answer("Heartbeat")
    lab.advance(3_000)
    assert lab.find("Heartbeat").request is first


def test_the_client_side_session_only_makes_it_look_for_the_coordinator() -> None:
    lab = member(session_timeout_ms=10_000)
    lab.advance(9_999)
    lab.take()
    lab.advance(1)
    assert lab.take() == ["cancelled", "cancelled", "cancelled", "FindCoordinator"]
    assert lab.core.assignment() == [("t", 0)]
    assert lab.core.generation.generation_id == 1
    lab.find_coordinator()
    lab.advance(3_000)
    assert lab.take()[-1] == "Heartbeat gen=1"


def test_an_unreachable_coordinator_is_looked_up_again_and_again() -> None:
    lab = member()
    lab.advance(3_000)
    lab.fail("Heartbeat", Failure.TIMEOUT)
    waits = []
    for _ in range(5):
        began = lab.now
        while not lab.is_open("FindCoordinator"):
            lab.advance(10)
        waits.append(lab.now - began)
        lab.fail("FindCoordinator")
    assert waits == [0, 100, 200, 400, 800]
    assert lab.core.generation.generation_id == 1


def test_a_coordinator_that_hangs_is_told_once_however_many_heartbeats_wait_for_it() -> None:
    lab = member()
    lab.advance(30_000)
    assert lab.take() == ["Heartbeat gen=1"] * 10
    lab.events.clear()
    lab.fail("Heartbeat", Failure.TIMEOUT)
    assert lab.take() == ["cancelled"] * 9 + ["FindCoordinator"]
    told = [event for event in lab.events if isinstance(event, CoordinatorLost | HeartbeatFailed)]
    assert [type(event) for event in told] == [CoordinatorLost, HeartbeatFailed]
    assert [event.problem for event in told if isinstance(event, HeartbeatFailed)] == ["Heartbeat: timeout"]


def test_a_dynamic_member_that_is_not_polled_leaves_and_says_why() -> None:
    lab = member(max_poll_interval_ms=20_000)
    lab.auto.add("Heartbeat")
    lab.advance(19_999)
    lab.take()
    lab.advance(1)
    assert lab.take() == ["LeaveGroup 'm' reason='consumer poll timeout has expired.'"]
    assert [type(event) for event in lab.events if isinstance(event, PollTimeoutExceeded | GroupLeft)] == [
        PollTimeoutExceeded,
        GroupLeft,
    ]
    lab.advance(60_000)
    assert lab.take() == [], "silent from now on"
    lab.poll(0)
    assert lab.take() == [
        "on_partitions_lost [t-0]",
        "JoinGroup '' reason='consumer pro-actively leaving the group'",
        "poll -> nothing",
    ]


def test_a_static_member_that_is_not_polled_goes_silent() -> None:
    lab = member(max_poll_interval_ms=20_000, group_instance_id="i")
    lab.auto.add("Heartbeat")
    lab.advance(20_000)
    assert lab.take() == []
    assert lab.core.member_state is MemberState.UNJOINED
    left = [event for event in lab.events if isinstance(event, GroupLeft)]
    assert [(event.notified, event.reason) for event in left] == [(False, "consumer poll timeout has expired.")]
    lab.advance(60_000)
    assert lab.take() == []


def test_one_long_poll_is_no_missed_poll() -> None:
    lab = member(max_poll_interval_ms=20_000)
    lab.auto.add("Heartbeat")
    lab.poll(120_000)
    lab.advance(120_000)
    assert lab.core.member_state is MemberState.STABLE
    assert [line for line in lab.take() if "Leave" in line] == []


def test_a_listener_that_takes_too_long_is_a_missed_poll() -> None:
    lab = Lab(max_poll_interval_ms=20_000)
    lab.auto.add("Heartbeat")
    lab.hold_listener = True
    lab.stable("t-0")
    lab.advance(20_000)
    assert lab.take() == ["LeaveGroup 'm' reason='consumer poll timeout has expired.'"]


def test_the_poll_interval_does_not_count_while_join_group_waits() -> None:
    lab = Lab(max_poll_interval_ms=20_000)
    lab.subscribe("t")
    lab.poll(0)
    lab.find_coordinator()
    lab.poll(0)
    lab.give_member_id()
    lab.poll(0)
    lab.take()
    lab.advance(60_000)
    assert lab.take() == []


def test_the_poll_interval_counts_anew_after_join_group() -> None:
    lab = Lab(max_poll_interval_ms=20_000)
    lab.auto.add("Heartbeat")
    lab.subscribe("t")
    lab.poll(15_000)
    lab.find_coordinator()
    lab.give_member_id()
    lab.advance(15_000)
    lab.poll(0)
    lab.joined(1)
    lab.take()
    lab.poll(0)
    lab.advance(19_999)
    assert not [line for line in lab.take() if "Leave" in line]
    lab.advance(1)
    assert lab.take() == ["LeaveGroup 'm' reason='consumer poll timeout has expired.'"]


def test_a_long_stop_of_the_whole_process_is_survived() -> None:
    lab = member(session_timeout_ms=10_000, max_poll_interval_ms=300_000)
    lab.now += 60_000
    lab.advance(0)
    assert lab.take() == ["FindCoordinator"]
    lab.find_coordinator()
    assert lab.take() == ["Heartbeat gen=1"]
    lab.answer("Heartbeat", E.UNKNOWN_MEMBER_ID)
    lab.poll(0)
    assert lab.take() == [
        "on_partitions_lost [t-0]",
        "JoinGroup '' reason='encountered UNKNOWN_MEMBER_ID from HEARTBEAT response'",
        "poll -> nothing",
    ]
