"""When offsets are committed, and which commits are repeated."""

from __future__ import annotations

from typing import Any

import pytest

from rejoin.client.core.errors import (
    CommitFailedError,
    DisconnectError,
    FencedInstanceIdError,
    KafkaTimeoutError,
    RebalanceInProgressError,
    RetriableCommitFailedError,
)
from rejoin.client.core.inputs import Assigned, Failure, RebalanceEnforced
from rejoin.protocol.errors import ErrorCode as E
from tests.client.core.lab import Lab, tp


def reader(**settings: Any) -> Lab:
    """A stable member that has read t-0 up to 10."""
    lab = Lab(ends={"t-0": 10}, committed={"t-0": 4}, **settings)
    lab.stable("t-0")
    return lab


# -- automatic commits


def test_positions_are_committed_in_poll_when_the_interval_is_over() -> None:
    lab = reader(auto_commit_interval_ms=1_000)
    lab.advance(5_000)
    assert "OffsetCommit gen=1 t-0@10" not in lab.take(), "not without a poll"
    lab.poll(0)
    assert lab.take() == ["OffsetCommit gen=1 t-0@10", "poll -> nothing"]
    lab.answer("OffsetCommit")
    lab.poll(0)
    assert lab.take() == ["poll -> nothing"], "the interval began anew"


def test_a_long_poll_commits_on_its_way() -> None:
    lab = reader(auto_commit_interval_ms=1_000)
    lab.poll(2_500)
    lab.advance(2_500)
    assert [line for line in lab.take() if "Commit" in line] == ["OffsetCommit gen=1 t-0@10"] * 2


def test_a_failed_automatic_commit_is_tried_again_after_the_backoff() -> None:
    lab = reader(auto_commit_interval_ms=60_000)
    lab.auto.add("Heartbeat")
    lab.advance(60_000)
    lab.take()
    lab.poll(1_000)
    assert "OffsetCommit gen=1 t-0@10" in lab.take()
    lab.answer("OffsetCommit", E.COORDINATOR_LOAD_IN_PROGRESS)
    lab.advance(99)
    assert lab.take() == []
    lab.advance(1)
    assert lab.take() == ["OffsetCommit gen=1 t-0@10"]
    lab.answer("OffsetCommit", E.OFFSET_METADATA_TOO_LARGE)
    lab.advance(900)
    assert lab.take() == ["poll -> nothing"], "other errors are only told"


@pytest.mark.parametrize("assignor", ["range", "cooperative-sticky"])
def test_a_rebalance_begins_with_a_commit_that_is_waited_for(assignor: str) -> None:
    lab = reader(assignors=[assignor])
    lab.poll()
    lab.step(RebalanceEnforced("again"))
    assert lab.take() == ["OffsetCommit gen=1 t-0@10"]
    lab.answer("OffsetCommit", E.COORDINATOR_LOAD_IN_PROGRESS)
    lab.advance(100)
    assert lab.take() == ["OffsetCommit gen=1 t-0@10"], "repeated after the backoff"
    lab.answer("OffsetCommit")
    expected = ["JoinGroup 'm' reason='again'"]
    assert lab.take() == (["on_partitions_revoked [t-0]", *expected] if assignor == "range" else expected)


def test_an_eager_consumer_returns_nothing_from_the_commit_before_a_rebalance_on() -> None:
    lab = reader()
    lab.ends["t-0"] = 20
    lab.step(RebalanceEnforced("again"))
    lab.poll(100)
    lab.advance(100)
    assert lab.take() == ["OffsetCommit gen=1 t-0@10", "poll -> nothing"]


def test_the_commit_before_a_rebalance_is_given_up_for_good_errors_and_after_the_rebalance_timeout() -> None:
    lab = reader()
    lab.poll()
    lab.step(RebalanceEnforced("again"))
    lab.answer("OffsetCommit", E.OFFSET_METADATA_TOO_LARGE)
    assert lab.take()[-1] == "JoinGroup 'm' reason='again'"

    lab = reader(max_poll_interval_ms=2_000, request_timeout_ms=60_000)
    lab.auto.add("Heartbeat")
    lab.poll()
    lab.step(RebalanceEnforced("again"))
    lab.take()
    lab.advance(1_999)
    assert lab.take() == []
    lab.advance(1)
    assert lab.take() == ["on_partitions_revoked [t-0]", "JoinGroup 'm' reason='again'"]


def test_a_consumer_that_was_thrown_out_fails_the_commit_without_asking() -> None:
    lab = reader()
    lab.poll()
    lab.advance(3_000)
    lab.take()
    lab.answer("Heartbeat", E.UNKNOWN_MEMBER_ID)
    assert lab.take() == [
        "on_partitions_lost [t-0]",
        "JoinGroup '' reason='encountered UNKNOWN_MEMBER_ID from HEARTBEAT response'",
    ]
    assert "commit_failed" in lab.names()


# -- synchronous commits


def test_commit_sync_without_offsets_commits_every_position() -> None:
    lab = reader(enable_auto_commit=False)
    lab.commit("c")
    assert lab.take() == ["OffsetCommit gen=1 t-0@10"]
    lab.answer("OffsetCommit")
    assert lab.take() == ["commit c -> ok"]


def test_commit_sync_backs_off_exponentially_until_its_time_is_over() -> None:
    lab = reader(enable_auto_commit=False, default_api_timeout_ms=2_000)
    lab.auto.add("Heartbeat")
    lab.commit("c", {"t-0": 5})
    waits = []
    for _ in range(5):
        lab.answer("OffsetCommit", E.COORDINATOR_LOAD_IN_PROGRESS)
        began = lab.now
        while not lab.is_open("OffsetCommit") and lab.done_with("c") is None:
            lab.advance(10)
        waits.append(lab.now - began)
    assert waits == [100, 200, 400, 800, 500]
    assert isinstance(lab.done_with("c"), KafkaTimeoutError)


def test_commit_sync_survives_a_lost_coordinator() -> None:
    lab = reader(enable_auto_commit=False)
    lab.commit("c", {"t-0": 5})
    lab.fail("OffsetCommit", Failure.DISCONNECT)
    lab.find_coordinator()
    lab.advance(100)
    lab.answer("OffsetCommit")
    assert lab.take() == ["OffsetCommit gen=1 t-0@5", "FindCoordinator", "OffsetCommit gen=1 t-0@5", "commit c -> ok"]


def test_commit_sync_fails_at_once_when_the_member_has_no_place() -> None:
    lab = reader(enable_auto_commit=False)
    lab.advance(3_000)
    lab.answer("Heartbeat", E.UNKNOWN_MEMBER_ID)
    lab.take()
    lab.commit("unjoined")
    assert isinstance(lab.done_with("unjoined"), CommitFailedError)
    lab.poll(0)
    lab.commit("preparing", {"t-0": 5})
    assert isinstance(lab.done_with("preparing"), RebalanceInProgressError)
    lab.give_member_id()
    lab.poll(0)
    lab.joined(2)
    lab.poll(0)
    lab.commit("completing", {"t-0": 5})
    assert isinstance(lab.done_with("completing"), RebalanceInProgressError)
    assert not lab.is_open("OffsetCommit")


def test_commit_sync_of_nothing_waits_for_the_asynchronous_ones_before_it() -> None:
    lab = reader(enable_auto_commit=False)
    lab.commit("async", {"t-0": 5}, sync=False)
    lab.step_commit_of_nothing("sync")
    assert lab.done_with("sync") is None
    lab.answer("OffsetCommit")
    assert lab.take()[-2:] == ["commit async -> ok", "commit sync -> ok"]


def test_answers_of_asynchronous_commits_come_before_that_of_a_later_synchronous_one() -> None:
    lab = reader(enable_auto_commit=False)
    lab.commit("first", {"t-0": 5}, sync=False)
    lab.commit("second", {"t-0": 6}, sync=False)
    lab.commit("third", {"t-0": 7})
    lab.answer("OffsetCommit")
    lab.answer("OffsetCommit")
    lab.answer("OffsetCommit")
    assert lab.take()[-3:] == ["commit first -> ok", "commit second -> ok", "commit third -> ok"]


# -- asynchronous commits


def test_commit_async_is_never_repeated_and_told_in_a_later_call() -> None:
    lab = reader(enable_auto_commit=False)
    lab.commit("c", {"t-0": 5}, sync=False)
    lab.answer("OffsetCommit", E.REQUEST_TIMED_OUT)
    assert lab.done_with("c") is None
    lab.find_coordinator_again()
    lab.poll(0)
    error = lab.done_with("c")
    assert isinstance(error, RetriableCommitFailedError)
    assert not lab.is_open("OffsetCommit")


def test_commit_async_looks_an_unknown_coordinator_up_once() -> None:
    lab = reader(enable_auto_commit=False)
    lab.advance(3_000)
    lab.fail("Heartbeat", Failure.DISCONNECT)
    lab.commit("kept", {"t-0": 5}, sync=False)
    assert not lab.is_open("OffsetCommit")
    lab.find_coordinator()
    assert lab.is_open("OffsetCommit")
    lab.fail("OffsetCommit")
    lab.commit("lost", {"t-0": 6}, sync=False)
    lab.fail("FindCoordinator")
    lab.poll(0)
    error = lab.done_with("lost")
    assert isinstance(error, RetriableCommitFailedError)
    assert isinstance(error.__cause__, DisconnectError)


def test_after_a_fenced_commit_every_call_raises() -> None:
    lab = reader(enable_auto_commit=False, group_instance_id="i")
    lab.commit("c", {"t-0": 5}, sync=False)
    lab.answer("OffsetCommit", E.FENCED_INSTANCE_ID)
    for token in ("again", "and again"):
        lab.commit(token, {"t-0": 6})
        assert isinstance(lab.done_with(token), FencedInstanceIdError)
    lab.poll(0)
    assert isinstance(lab.raised[-1], FencedInstanceIdError)


@pytest.mark.parametrize("error", [E.UNKNOWN_MEMBER_ID, E.ILLEGAL_GENERATION, E.FENCED_INSTANCE_ID])
def test_a_commit_answered_after_the_next_join_went_out_says_the_group_rebalances(error: E) -> None:
    lab = reader(enable_auto_commit=False, assignors=["cooperative-sticky"])
    lab.commit("c", {"t-0": 5})
    lab.advance(3_000)
    lab.answer("Heartbeat", E.ILLEGAL_GENERATION)
    lab.poll(0)
    assert lab.is_open("JoinGroup")
    lab.answer("OffsetCommit", error)
    assert isinstance(lab.done_with("c"), RebalanceInProgressError)
    assert lab.core.generation.member_id == "m", "nothing is reset"


def test_a_consumer_without_subscription_commits_as_nobody() -> None:
    lab = Lab(ends={"t-0": 10}, committed={"t-0": 4}, enable_auto_commit=False, group_instance_id="i")
    lab.step(Assigned(tuple(tp("t-0"))))
    lab.poll()
    lab.find_coordinator()
    assert lab.take() == ["FindCoordinator", "poll -> t-0[4,10)"]
    lab.commit("c")
    request: Any = lab.find("OffsetCommit").request
    assert (request.generation_id_or_member_epoch, request.member_id, request.group_instance_id) == (-1, "", None)


def test_a_negative_offset_is_refused_here() -> None:
    lab = reader(enable_auto_commit=False)
    lab.commit("c", {"t-0": -1})
    assert "commit c -> IllegalStateError" in lab.take()


def test_assigning_partitions_by_hand_commits_when_that_is_due() -> None:
    lab = Lab(ends={"t-0": 10}, committed={"t-0": 4}, auto_commit_interval_ms=1_000)
    lab.step(Assigned(tuple(tp("t-0"))))
    lab.poll()
    lab.find_coordinator()
    lab.poll(0)
    lab.advance(1_000)
    lab.take()
    lab.step(Assigned(tuple(tp("t-1"))))
    assert lab.take() == ["OffsetCommit gen=-1 t-0@10"]
