"""Unsubscribing, closing, static members: who tells the group, and what the listener hears."""

from __future__ import annotations

from typing import Any

import pytest

from rejoin.client.core.errors import IllegalStateError, ListenerError
from rejoin.client.core.inputs import Assigned, Closed, CommitAsked, Polled, RebalanceEnforced
from rejoin.client.core.state import MemberState
from rejoin.protocol.errors import ErrorCode as E
from tests.client.core.lab import Lab, tp


def member(**settings: Any) -> Lab:
    """A stable member that owns t-0, has read it up to 10, and does not poll."""
    lab = Lab(ends={"t-0": 10}, committed={"t-0": 4}, **settings)
    lab.stable("t-0")
    return lab


def test_close_commits_gives_up_and_leaves_in_this_order() -> None:
    lab = member()
    lab.close()
    assert lab.take() == ["OffsetCommit gen=1 t-0@10"]
    lab.answer("OffsetCommit")
    assert lab.take() == ["on_partitions_revoked [t-0]", "LeaveGroup 'm' reason='the consumer is being closed'"]
    lab.answer("LeaveGroup")
    assert lab.take() == ["close -> ok"]
    assert lab.core.closed
    assert lab.core.next_deadline() is None


def test_close_without_auto_commit_does_not_commit() -> None:
    lab = member(enable_auto_commit=False)
    lab.close()
    assert lab.take() == ["on_partitions_revoked [t-0]", "LeaveGroup 'm' reason='the consumer is being closed'"]


def test_a_static_member_closes_without_a_word() -> None:
    lab = member(group_instance_id="i", enable_auto_commit=False)
    lab.close()
    assert lab.take() == ["on_partitions_revoked [t-0]", "close -> ok"]


def test_close_without_leaving_says_nothing_to_anybody() -> None:
    lab = member()
    lab.close(leave=False)
    assert lab.take() == ["close -> ok"]


def test_kafka_streams_closes_with_a_commit_and_without_leaving() -> None:
    lab = member(internal_leave_group_on_close=False)
    lab.close()
    lab.answer("OffsetCommit")
    assert lab.take() == ["OffsetCommit gen=1 t-0@10", "close -> ok"]


def test_close_during_a_rebalance_loses_what_is_still_owned() -> None:
    lab = member(enable_auto_commit=False, assignors=["cooperative-sticky"])
    lab.step(RebalanceEnforced("again"))
    lab.poll(0)
    lab.take()
    lab.close()
    assert lab.take() == ["on_partitions_lost [t-0]", "LeaveGroup 'm' reason='the consumer is being closed'"]
    lab.fail("JoinGroup")
    lab.advance(30_000)
    assert lab.core.closed


def test_close_after_being_thrown_out_loses_and_does_not_leave() -> None:
    lab = member(enable_auto_commit=False)
    lab.advance(3_000)
    lab.answer("Heartbeat", E.UNKNOWN_MEMBER_ID)
    lab.take()
    lab.close()
    assert lab.take() == ["on_partitions_lost [t-0]", "close -> ok"]


def test_a_consumer_that_only_got_its_id_leaves_too() -> None:
    lab = Lab(enable_auto_commit=False)
    lab.subscribe("t")
    lab.poll()
    lab.find_coordinator()
    lab.give_member_id("m")
    lab.take()
    lab.close()
    assert lab.take()[-1] == "LeaveGroup 'm' reason='the consumer is being closed'"


def test_a_consumer_that_never_joined_just_closes() -> None:
    lab = Lab()
    lab.close()
    assert lab.take() == ["close -> ok"]


def test_close_gives_up_after_its_time() -> None:
    lab = member()
    lab.step(Closed("close", timeout_ms=2_000))
    lab.advance(2_000)
    assert lab.take()[-1] == "close -> ok"
    assert lab.open == []


def test_close_waits_for_asynchronous_commits_that_wait_for_the_coordinator() -> None:
    lab = member(enable_auto_commit=False)
    lab.advance(3_000)
    lab.fail("Heartbeat")
    lab.commit("async", {"t-0": 9}, sync=False)
    lab.close()
    lab.take()
    lab.find_coordinator()
    assert lab.take() == [
        "OffsetCommit gen=1 t-0@9",
        "on_partitions_revoked [t-0]",
        "LeaveGroup 'm' reason='the consumer is being closed'",
    ]
    lab.answer("OffsetCommit")
    lab.answer("LeaveGroup")
    assert lab.take() == ["commit async -> ok", "close -> ok"]


def test_a_commit_that_fails_at_close_is_only_told() -> None:
    lab = member()
    lab.close()
    lab.answer("OffsetCommit", E.OFFSET_METADATA_TOO_LARGE)
    lab.answer("LeaveGroup")
    assert lab.take()[-1] == "close -> ok"
    assert "commit_failed" in lab.names()


def test_a_listener_that_raises_at_close_keeps_the_member_from_leaving() -> None:
    lab = member(enable_auto_commit=False)
    lab.listener_raises["revoked"] = RuntimeError("oops")
    lab.close()
    assert lab.take() == ["on_partitions_revoked [t-0]", "close -> ListenerError"]
    assert isinstance(lab.done_with("close"), ListenerError)


def test_closing_ends_a_poll() -> None:
    lab = member(enable_auto_commit=False)
    lab.poll()
    lab.close()
    assert lab.take()[0] == "poll -> nothing"


def test_a_closed_consumer_refuses_everything() -> None:
    lab = member()
    lab.close(leave=False)
    lab.step(Polled(0))
    assert isinstance(lab.raised[-1], IllegalStateError)
    lab.step(CommitAsked("commit"))
    assert isinstance(lab.done_with("commit"), IllegalStateError)
    lab.step(Closed("again"))
    assert lab.done_with("again") is True


# -- unsubscribe


def test_unsubscribe_gives_up_and_leaves_without_a_commit() -> None:
    lab = member()
    lab.unsubscribe()
    assert lab.take() == [
        "on_partitions_revoked [t-0]",
        "LeaveGroup 'm' reason='the consumer unsubscribed from all topics'",
        "unsubscribe -> ok",
    ]
    lab.poll(0)
    assert isinstance(lab.raised[-1], IllegalStateError)


def test_a_static_member_unsubscribes_without_a_word() -> None:
    lab = member(group_instance_id="i")
    lab.unsubscribe()
    assert lab.take() == ["on_partitions_revoked [t-0]", "unsubscribe -> ok"]


def test_unsubscribing_and_subscribing_again_joins_as_new() -> None:
    lab = member()
    lab.unsubscribe()
    lab.answer("LeaveGroup")
    lab.take()
    lab.subscribe("t")
    lab.poll(0)
    assert lab.take() == ["JoinGroup '' reason='consumer pro-actively leaving the group'", "poll -> nothing"]


def test_a_listener_that_raises_keeps_the_consumer_in_the_group() -> None:
    lab = member()
    lab.listener_raises["revoked"] = RuntimeError("oops")
    lab.unsubscribe()
    assert lab.take() == ["on_partitions_revoked [t-0]", "unsubscribe -> ListenerError"]
    assert lab.core.member_state is MemberState.STABLE


@pytest.mark.parametrize("what", ["topics", "partitions"])
def test_subscribing_to_nothing_is_unsubscribing(what: str) -> None:
    lab = member()
    if what == "topics":
        lab.subscribe()
    else:
        lab.step(Assigned(()))
    assert "LeaveGroup 'm' reason='the consumer unsubscribed from all topics'" in lab.take()


def test_topics_and_partitions_do_not_mix() -> None:
    lab = member()
    lab.step(Assigned(tuple(tp("t-0")), "assign"))
    assert isinstance(lab.done_with("assign"), IllegalStateError)
