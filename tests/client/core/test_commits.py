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
from tests.client.core.bench import Bench, tp


def reader(**settings: Any) -> Bench:
    """A stable member that has read t-0 up to 10."""
    bench = Bench(ends={"t-0": 10}, committed={"t-0": 4}, **settings)
    bench.stable("t-0")
    return bench


# -- automatic commits


def test_positions_are_committed_in_poll_when_the_interval_is_over() -> None:
    bench = reader(auto_commit_interval_ms=1_000)
    bench.advance(5_000)
    assert "OffsetCommit gen=1 t-0@10" not in bench.take(), "not without a poll"
    bench.poll(0)
    assert bench.take() == ["OffsetCommit gen=1 t-0@10", "poll -> nothing"]
    bench.answer("OffsetCommit")
    bench.poll(0)
    assert bench.take() == ["poll -> nothing"], "the interval began anew"


def test_a_long_poll_commits_on_its_way() -> None:
    bench = reader(auto_commit_interval_ms=1_000)
    bench.poll(2_500)
    bench.advance(2_500)
    assert [line for line in bench.take() if "Commit" in line] == ["OffsetCommit gen=1 t-0@10"] * 2


def test_a_failed_automatic_commit_is_tried_again_after_the_backoff() -> None:
    bench = reader(auto_commit_interval_ms=60_000)
    bench.auto.add("Heartbeat")
    bench.advance(60_000)
    bench.take()
    bench.poll(1_000)
    assert "OffsetCommit gen=1 t-0@10" in bench.take()
    bench.answer("OffsetCommit", E.COORDINATOR_LOAD_IN_PROGRESS)
    bench.advance(99)
    assert bench.take() == []
    bench.advance(1)
    assert bench.take() == ["OffsetCommit gen=1 t-0@10"]
    bench.answer("OffsetCommit", E.OFFSET_METADATA_TOO_LARGE)
    bench.advance(900)
    assert bench.take() == ["poll -> nothing"], "other errors are only events"


@pytest.mark.parametrize("assignor", ["range", "cooperative-sticky"])
def test_a_rebalance_begins_with_a_commit_that_is_waited_for(assignor: str) -> None:
    bench = reader(assignors=[assignor])
    bench.poll()
    bench.step(RebalanceEnforced("again"))
    assert bench.take() == ["OffsetCommit gen=1 t-0@10"]
    bench.answer("OffsetCommit", E.COORDINATOR_LOAD_IN_PROGRESS)
    bench.advance(100)
    assert bench.take() == ["OffsetCommit gen=1 t-0@10"], "repeated after the backoff"
    bench.answer("OffsetCommit")
    expected = ["JoinGroup 'm' reason='again'"]
    assert bench.take() == (["on_partitions_revoked [t-0]", *expected] if assignor == "range" else expected)


def test_an_eager_consumer_returns_nothing_from_the_commit_before_a_rebalance_on() -> None:
    bench = reader()
    bench.ends["t-0"] = 20
    bench.step(RebalanceEnforced("again"))
    bench.poll(100)
    bench.advance(100)
    assert bench.take() == ["OffsetCommit gen=1 t-0@10", "poll -> nothing"]


def test_the_commit_before_a_rebalance_is_given_up_for_good_errors_and_after_the_rebalance_timeout() -> None:
    bench = reader()
    bench.poll()
    bench.step(RebalanceEnforced("again"))
    bench.answer("OffsetCommit", E.OFFSET_METADATA_TOO_LARGE)
    assert bench.take()[-1] == "JoinGroup 'm' reason='again'"

    bench = reader(max_poll_interval_ms=2_000, request_timeout_ms=60_000)
    bench.auto.add("Heartbeat")
    bench.poll()
    bench.step(RebalanceEnforced("again"))
    bench.take()
    bench.advance(1_999)
    assert bench.take() == []
    bench.advance(1)
    assert bench.take() == ["on_partitions_revoked [t-0]", "JoinGroup 'm' reason='again'"]


def test_a_consumer_that_was_thrown_out_fails_the_commit_without_asking() -> None:
    bench = reader()
    bench.poll()
    bench.advance(3_000)
    bench.take()
    bench.answer("Heartbeat", E.UNKNOWN_MEMBER_ID)
    assert bench.take() == [
        "on_partitions_lost [t-0]",
        "JoinGroup '' reason='encountered UNKNOWN_MEMBER_ID from HEARTBEAT response'",
    ]
    assert "commit_failed" in bench.names()


# -- synchronous commits


def test_commit_sync_without_offsets_commits_every_position() -> None:
    bench = reader(enable_auto_commit=False)
    bench.commit("c")
    assert bench.take() == ["OffsetCommit gen=1 t-0@10"]
    bench.answer("OffsetCommit")
    assert bench.take() == ["commit c -> ok"]


def test_commit_sync_backs_off_exponentially_until_its_time_is_over() -> None:
    bench = reader(enable_auto_commit=False, default_api_timeout_ms=2_000)
    bench.auto.add("Heartbeat")
    bench.commit("c", {"t-0": 5})
    waits = []
    for _ in range(5):
        bench.answer("OffsetCommit", E.COORDINATOR_LOAD_IN_PROGRESS)
        began = bench.now
        while not bench.is_open("OffsetCommit") and bench.done_with("c") is None:
            bench.advance(10)
        waits.append(bench.now - began)
    assert waits == [100, 200, 400, 800, 500]
    assert isinstance(bench.done_with("c"), KafkaTimeoutError)


def test_commit_sync_survives_a_lost_coordinator() -> None:
    bench = reader(enable_auto_commit=False)
    bench.commit("c", {"t-0": 5})
    bench.fail("OffsetCommit", Failure.DISCONNECT)
    bench.find_coordinator()
    bench.advance(100)
    bench.answer("OffsetCommit")
    assert bench.take() == ["OffsetCommit gen=1 t-0@5", "FindCoordinator", "OffsetCommit gen=1 t-0@5", "commit c -> ok"]


def test_commit_sync_fails_at_once_without_membership() -> None:
    bench = reader(enable_auto_commit=False)
    bench.advance(3_000)
    bench.answer("Heartbeat", E.UNKNOWN_MEMBER_ID)
    bench.take()
    bench.commit("unjoined")
    assert isinstance(bench.done_with("unjoined"), CommitFailedError)
    bench.poll(0)
    bench.commit("preparing", {"t-0": 5})
    assert isinstance(bench.done_with("preparing"), RebalanceInProgressError)
    bench.give_member_id()
    bench.poll(0)
    bench.joined(2)
    bench.poll(0)
    bench.commit("completing", {"t-0": 5})
    assert isinstance(bench.done_with("completing"), RebalanceInProgressError)
    assert not bench.is_open("OffsetCommit")


def test_commit_sync_of_nothing_waits_for_the_asynchronous_ones_before_it() -> None:
    bench = reader(enable_auto_commit=False)
    bench.commit("async", {"t-0": 5}, sync=False)
    bench.step_commit_of_nothing("sync")
    assert bench.done_with("sync") is None
    bench.answer("OffsetCommit")
    assert bench.take()[-2:] == ["commit async -> ok", "commit sync -> ok"]


def test_answers_of_asynchronous_commits_come_before_that_of_a_later_synchronous_one() -> None:
    bench = reader(enable_auto_commit=False)
    bench.commit("first", {"t-0": 5}, sync=False)
    bench.commit("second", {"t-0": 6}, sync=False)
    bench.commit("third", {"t-0": 7})
    bench.answer("OffsetCommit")
    bench.answer("OffsetCommit")
    bench.answer("OffsetCommit")
    assert bench.take()[-3:] == ["commit first -> ok", "commit second -> ok", "commit third -> ok"]


# -- asynchronous commits


def test_commit_async_is_never_repeated_and_calls_back_in_a_later_call() -> None:
    bench = reader(enable_auto_commit=False)
    bench.commit("c", {"t-0": 5}, sync=False)
    bench.answer("OffsetCommit", E.REQUEST_TIMED_OUT)
    assert bench.done_with("c") is None
    bench.find_coordinator_again()
    bench.poll(0)
    error = bench.done_with("c")
    assert isinstance(error, RetriableCommitFailedError)
    assert not bench.is_open("OffsetCommit")


def test_commit_async_looks_an_unknown_coordinator_up_once() -> None:
    bench = reader(enable_auto_commit=False)
    bench.advance(3_000)
    bench.fail("Heartbeat", Failure.DISCONNECT)
    bench.commit("kept", {"t-0": 5}, sync=False)
    assert not bench.is_open("OffsetCommit")
    bench.find_coordinator()
    assert bench.is_open("OffsetCommit")
    bench.fail("OffsetCommit")
    bench.commit("lost", {"t-0": 6}, sync=False)
    bench.fail("FindCoordinator")
    bench.poll(0)
    error = bench.done_with("lost")
    assert isinstance(error, RetriableCommitFailedError)
    assert isinstance(error.__cause__, DisconnectError)


def test_after_a_fenced_commit_every_call_raises() -> None:
    bench = reader(enable_auto_commit=False, group_instance_id="i")
    bench.commit("c", {"t-0": 5}, sync=False)
    bench.answer("OffsetCommit", E.FENCED_INSTANCE_ID)
    for token in ("again", "and again"):
        bench.commit(token, {"t-0": 6})
        assert isinstance(bench.done_with(token), FencedInstanceIdError)
    bench.poll(0)
    assert isinstance(bench.raised[-1], FencedInstanceIdError)


@pytest.mark.parametrize("error", [E.UNKNOWN_MEMBER_ID, E.ILLEGAL_GENERATION, E.FENCED_INSTANCE_ID])
def test_a_commit_answered_after_the_next_join_went_out_says_the_group_rebalances(error: E) -> None:
    bench = reader(enable_auto_commit=False, assignors=["cooperative-sticky"])
    bench.commit("c", {"t-0": 5})
    bench.advance(3_000)
    bench.answer("Heartbeat", E.ILLEGAL_GENERATION)
    bench.poll(0)
    assert bench.is_open("JoinGroup")
    bench.answer("OffsetCommit", error)
    assert isinstance(bench.done_with("c"), RebalanceInProgressError)
    assert bench.core.generation.member_id == "m", "nothing is reset"


def test_a_consumer_without_subscription_commits_as_no_member() -> None:
    bench = Bench(ends={"t-0": 10}, committed={"t-0": 4}, enable_auto_commit=False, group_instance_id="i")
    bench.step(Assigned(tuple(tp("t-0"))))
    bench.poll()
    bench.find_coordinator()
    assert bench.take() == ["FindCoordinator", "poll -> t-0[4,10)"]
    bench.commit("c")
    request: Any = bench.find("OffsetCommit").request
    assert (request.generation_id_or_member_epoch, request.member_id, request.group_instance_id) == (-1, "", None)


def test_a_negative_offset_is_refused_here() -> None:
    bench = reader(enable_auto_commit=False)
    bench.commit("c", {"t-0": -1})
    assert "commit c -> IllegalStateError" in bench.take()


def test_assigning_partitions_by_hand_commits_when_that_is_due() -> None:
    bench = Bench(ends={"t-0": 10}, committed={"t-0": 4}, auto_commit_interval_ms=1_000)
    bench.step(Assigned(tuple(tp("t-0"))))
    bench.poll()
    bench.find_coordinator()
    bench.poll(0)
    bench.advance(1_000)
    bench.take()
    bench.step(Assigned(tuple(tp("t-1"))))
    assert bench.take() == ["OffsetCommit gen=-1 t-0@10"]
