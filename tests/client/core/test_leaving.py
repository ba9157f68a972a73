"""Unsubscribing, closing, static members: requests to the group, and calls of the listener."""

from __future__ import annotations

from typing import Any

import pytest

from rejoin.client.core.errors import IllegalStateError, ListenerError
from rejoin.client.core.inputs import Assigned, Closed, CommitAsked, Polled, RebalanceEnforced
from rejoin.client.core.state.membership import MemberState
from rejoin.protocol.errors import ErrorCode as E
from tests.client.core.bench import Bench, tp


def member(**settings: Any) -> Bench:
    """A stable member that owns t-0, has read it up to 10, and does not poll."""
    bench = Bench(ends={"t-0": 10}, committed={"t-0": 4}, **settings)
    bench.stable("t-0")
    return bench


def test_close_commits_gives_up_and_leaves_in_this_order() -> None:
    bench = member()
    bench.close()
    assert bench.take() == ["OffsetCommit gen=1 t-0@10"]
    bench.answer("OffsetCommit")
    assert bench.take() == ["on_partitions_revoked [t-0]", "LeaveGroup 'm' reason='the consumer is being closed'"]
    bench.answer("LeaveGroup")
    assert bench.take() == ["close -> ok"]
    assert bench.core.closed
    assert bench.core.next_deadline() is None


def test_close_without_auto_commit_does_not_commit() -> None:
    bench = member(enable_auto_commit=False)
    bench.close()
    assert bench.take() == ["on_partitions_revoked [t-0]", "LeaveGroup 'm' reason='the consumer is being closed'"]


def test_a_static_member_closes_silently() -> None:
    bench = member(group_instance_id="i", enable_auto_commit=False)
    bench.close()
    assert bench.take() == ["on_partitions_revoked [t-0]", "close -> ok"]


def test_close_without_leaving_sends_nothing() -> None:
    bench = member()
    bench.close(leave=False)
    assert bench.take() == ["close -> ok"]


def test_kafka_streams_closes_with_a_commit_and_without_leaving() -> None:
    bench = member(internal_leave_group_on_close=False)
    bench.close()
    bench.answer("OffsetCommit")
    assert bench.take() == ["OffsetCommit gen=1 t-0@10", "close -> ok"]


def test_close_during_a_rebalance_loses_what_is_still_owned() -> None:
    bench = member(enable_auto_commit=False, assignors=["cooperative-sticky"])
    bench.step(RebalanceEnforced("again"))
    bench.poll(0)
    bench.take()
    bench.close()
    assert bench.take() == ["on_partitions_lost [t-0]", "LeaveGroup 'm' reason='the consumer is being closed'"]
    bench.fail("JoinGroup")
    bench.advance(30_000)
    assert bench.core.closed


def test_close_after_being_thrown_out_loses_and_does_not_leave() -> None:
    bench = member(enable_auto_commit=False)
    bench.advance(3_000)
    bench.answer("Heartbeat", E.UNKNOWN_MEMBER_ID)
    bench.take()
    bench.close()
    assert bench.take() == ["on_partitions_lost [t-0]", "close -> ok"]


def test_a_consumer_that_only_got_its_id_leaves_too() -> None:
    bench = Bench(enable_auto_commit=False)
    bench.subscribe("t")
    bench.poll()
    bench.find_coordinator()
    bench.give_member_id("m")
    bench.take()
    bench.close()
    assert bench.take()[-1] == "LeaveGroup 'm' reason='the consumer is being closed'"


def test_a_consumer_that_never_joined_just_closes() -> None:
    bench = Bench()
    bench.close()
    assert bench.take() == ["close -> ok"]


def test_close_gives_up_after_its_time() -> None:
    bench = member()
    bench.step(Closed("close", timeout_ms=2_000))
    bench.advance(2_000)
    assert bench.take()[-1] == "close -> ok"
    assert bench.open == []


def test_close_waits_for_asynchronous_commits_that_wait_for_the_coordinator() -> None:
    bench = member(enable_auto_commit=False)
    bench.advance(3_000)
    bench.fail("Heartbeat")
    bench.commit("async", {"t-0": 9}, sync=False)
    bench.close()
    bench.take()
    bench.find_coordinator()
    assert bench.take() == [
        "OffsetCommit gen=1 t-0@9",
        "on_partitions_revoked [t-0]",
        "LeaveGroup 'm' reason='the consumer is being closed'",
    ]
    bench.answer("OffsetCommit")
    bench.answer("LeaveGroup")
    assert bench.take() == ["commit async -> ok", "close -> ok"]


def test_a_commit_that_fails_at_close_is_only_an_event() -> None:
    bench = member()
    bench.close()
    bench.answer("OffsetCommit", E.OFFSET_METADATA_TOO_LARGE)
    bench.answer("LeaveGroup")
    assert bench.take()[-1] == "close -> ok"
    assert "commit_failed" in bench.names()


def test_a_listener_that_raises_at_close_keeps_the_member_from_leaving() -> None:
    bench = member(enable_auto_commit=False)
    bench.listener_raises["revoked"] = RuntimeError("oops")
    bench.close()
    assert bench.take() == ["on_partitions_revoked [t-0]", "close -> ListenerError"]
    assert isinstance(bench.done_with("close"), ListenerError)


def test_closing_ends_a_poll() -> None:
    bench = member(enable_auto_commit=False)
    bench.poll()
    bench.close()
    assert bench.take()[0] == "poll -> nothing"


def test_a_closed_consumer_refuses_everything() -> None:
    bench = member()
    bench.close(leave=False)
    bench.step(Polled(0))
    assert isinstance(bench.raised[-1], IllegalStateError)
    bench.step(CommitAsked("commit"))
    assert isinstance(bench.done_with("commit"), IllegalStateError)
    bench.step(Closed("again"))
    assert bench.done_with("again") is True


# -- unsubscribe


def test_unsubscribe_gives_up_and_leaves_without_a_commit() -> None:
    bench = member()
    bench.unsubscribe()
    assert bench.take() == [
        "on_partitions_revoked [t-0]",
        "LeaveGroup 'm' reason='the consumer unsubscribed from all topics'",
        "unsubscribe -> ok",
    ]
    bench.poll(0)
    assert isinstance(bench.raised[-1], IllegalStateError)


def test_a_static_member_unsubscribes_silently() -> None:
    bench = member(group_instance_id="i")
    bench.unsubscribe()
    assert bench.take() == ["on_partitions_revoked [t-0]", "unsubscribe -> ok"]


def test_unsubscribing_and_subscribing_again_joins_as_new() -> None:
    bench = member()
    bench.unsubscribe()
    bench.answer("LeaveGroup")
    bench.take()
    bench.subscribe("t")
    bench.poll(0)
    assert bench.take() == ["JoinGroup '' reason='consumer pro-actively leaving the group'", "poll -> nothing"]


def test_a_listener_that_raises_keeps_the_consumer_in_the_group() -> None:
    bench = member()
    bench.listener_raises["revoked"] = RuntimeError("oops")
    bench.unsubscribe()
    assert bench.take() == ["on_partitions_revoked [t-0]", "unsubscribe -> ListenerError"]
    assert bench.core.member_state is MemberState.STABLE


@pytest.mark.parametrize("what", ["topics", "partitions"])
def test_subscribing_to_nothing_is_unsubscribing(what: str) -> None:
    bench = member()
    if what == "topics":
        bench.subscribe()
    else:
        bench.step(Assigned(()))
    assert "LeaveGroup 'm' reason='the consumer unsubscribed from all topics'" in bench.take()


def test_topics_and_partitions_do_not_mix() -> None:
    bench = member()
    bench.step(Assigned(tuple(tp("t-0")), "assign"))
    assert isinstance(bench.done_with("assign"), IllegalStateError)
