"""A member of a consumer group: what it sends, in which order it takes over and gives up, what errors lead to."""

from __future__ import annotations

from typing import Any

import pytest

from rejoin.client.config import checked_config
from rejoin.client.core.errors import (
    CodedError,
    CommitFailedError,
    FencedInstanceIdError,
    GroupAuthorizationError,
    IllegalStateError,
    ListenerError,
    TopicAuthorizationError,
)
from rejoin.client.core.group.consumer.state import FOLLOWS, MembershipState
from rejoin.client.core.inputs import Failure
from rejoin.client.core.reactions import ON_CONSUMER_GROUP_HEARTBEAT
from rejoin.protocol.errors import ErrorCode as E
from rejoin.protocol.types import TopicPartition
from tests.client.core.bench import Bench, tp
from tests.client.core.heartbeats import INTERVAL_MS, MEMBER_ID

HEARTBEAT = "ConsumerGroupHeartbeat"
LONG = 10_000_000


def joining(**settings: Any) -> Bench:
    """A consumer in an open poll that is about to send its first heartbeat."""
    settings.setdefault("enable_auto_commit", False)
    settings.setdefault("max_poll_interval_ms", 60_000)
    return Bench(group_protocol="consumer", **settings)


def joined(*assigned: str, **settings: Any) -> Bench:
    """A stable member with these partitions, which has acknowledged them; the poll stays open."""
    bench = joining(**settings)
    bench.subscribe("t")
    bench.poll(LONG)
    bench.find_coordinator()
    bench.answer(HEARTBEAT, epoch=2, assigned=assigned)
    bench.answer(HEARTBEAT, epoch=2)
    bench.take()
    return bench


def test_it_joins_with_all_fields_takes_over_and_says_what_it_owns() -> None:
    bench = joining(client_rack="r", group_remote_assignor="range")
    bench.subscribe("t")
    bench.poll(LONG)
    bench.take()
    bench.find_coordinator()
    assert bench.take() == ["heartbeat 0 names=t assignor=range rack=r timeout=60000 owns=[]"]
    bench.answer(HEARTBEAT, epoch=2, assigned=["t-0", "t-1"])
    assert bench.take() == ["on_partitions_assigned [t-0 t-1]", "heartbeat 2 owns=[t-0 t-1]"]
    bench.answer(HEARTBEAT, epoch=2)
    bench.advance(INTERVAL_MS - 1)
    assert bench.take() == []
    bench.advance(1)
    assert bench.take() == ["heartbeat 2"]
    assert bench.core.generation.generation_id == 2
    assert bench.core.group_generation.member_id == MEMBER_ID


def test_it_joins_only_in_a_poll() -> None:
    bench = joining()
    bench.subscribe("t")
    bench.advance(1_000)
    assert HEARTBEAT not in bench.asked


def test_what_it_loses_is_revoked_before_the_rest_is_assigned() -> None:
    bench = joined("t-0")
    bench.advance(INTERVAL_MS)
    bench.answer(HEARTBEAT, epoch=2, assigned=["t-1"])
    assert bench.take() == [
        "heartbeat 2",
        "on_partitions_revoked [t-0]",
        "on_partitions_assigned [t-1]",
        "heartbeat 2 owns=[t-1]",
    ]
    assert bench.core.assignment() == tp("t-1")


def test_an_assignment_of_nothing_is_taken_over_and_acknowledged_too() -> None:
    bench = joining()
    bench.subscribe("t")
    bench.poll(LONG)
    bench.find_coordinator()
    bench.take()
    bench.answer(HEARTBEAT, epoch=3, assigned=[])
    assert bench.take() == ["on_partitions_assigned []", "heartbeat 3 owns=[]"]


def test_positions_are_committed_before_every_reconciliation() -> None:
    bench = joined("t-0", enable_auto_commit=True, ends={"t-0": 10}, committed={"t-0": 4}, auto_commit_interval_ms=LONG)
    bench.poll(LONG)
    bench.advance(INTERVAL_MS)
    bench.take()
    bench.answer(HEARTBEAT, epoch=2, assigned=["t-0", "t-1"])
    assert bench.take() == ["OffsetCommit gen=2 t-0@10"]
    bench.answer("OffsetCommit", E.COORDINATOR_LOAD_IN_PROGRESS)
    bench.advance(100)
    assert set(bench.take()) == {"OffsetCommit gen=2 t-0@10"}
    while bench.is_open("OffsetCommit"):
        bench.answer("OffsetCommit", E.OFFSET_METADATA_TOO_LARGE)
    assert bench.take()[:2] == ["on_partitions_assigned [t-1]", "heartbeat 2 owns=[t-0 t-1]"]


def test_a_reconciliation_waits_for_a_poll() -> None:
    bench = joined("t-0")
    bench.step_out_of_poll()
    bench.advance(INTERVAL_MS)
    bench.answer(HEARTBEAT, epoch=2, assigned=[])
    assert bench.take() == ["heartbeat 2"]
    bench.poll(0)
    assert bench.take() == [
        "on_partitions_revoked [t-0]",
        "on_partitions_assigned []",
        "heartbeat 2 owns=[]",
        "poll -> nothing",
    ]


def test_heartbeats_go_on_while_the_listener_takes_its_time() -> None:
    bench = joined("t-0")
    bench.hold_listener = True
    bench.advance(INTERVAL_MS)
    bench.answer(HEARTBEAT, epoch=2, assigned=["t-1"])
    bench.take()
    bench.advance(INTERVAL_MS)
    assert bench.take() == ["heartbeat 2"]
    bench.answer(HEARTBEAT, epoch=2)
    bench.listener_done()
    bench.listener_done()
    assert bench.take() == ["on_partitions_assigned [t-1]", "heartbeat 2 owns=[t-1]"]


def test_a_newer_target_follows_when_the_running_one_is_acknowledged() -> None:
    bench = joined("t-0")
    bench.hold_listener = True
    bench.advance(INTERVAL_MS)
    bench.answer(HEARTBEAT, epoch=2, assigned=["t-1"])
    bench.advance(INTERVAL_MS)
    bench.answer(HEARTBEAT, epoch=2, assigned=["t-0", "t-1"])
    bench.hold_listener = False
    bench.take()
    bench.listener_done()
    assert bench.take() == ["on_partitions_assigned [t-1]", "heartbeat 2 owns=[t-1]", "on_partitions_assigned [t-0]"]
    bench.answer(HEARTBEAT, epoch=3)
    assert bench.take() == ["heartbeat 3 owns=[t-0 t-1]"]


def test_with_a_late_answer_the_older_assignment_is_acknowledged_while_the_newer_is_taken_over() -> None:
    # Kafka: HeartbeatState.buildRequestData sends what was taken over last, in RECONCILING as well.
    bench = joined("t-0")
    bench.hold_listener = True
    bench.advance(INTERVAL_MS)
    bench.answer(HEARTBEAT, epoch=2, assigned=["t-0", "t-1"])
    bench.advance(INTERVAL_MS)
    bench.listener_done()
    bench.advance(INTERVAL_MS)
    assert bench.take() == ["heartbeat 2", "on_partitions_assigned [t-1]", "heartbeat 2"], "no acknowledgement"
    bench.answer(HEARTBEAT, epoch=3, assigned=["t-0", "t-1", "t-2"])
    assert bench.take() == ["on_partitions_assigned [t-2]", "heartbeat 3 owns=[t-0 t-1]"]
    bench.listener_done()
    bench.answer(HEARTBEAT, epoch=3)
    assert bench.take() == ["heartbeat 3 owns=[t-0 t-1 t-2]"]


@pytest.mark.parametrize("kind", ["revoked", "assigned"])
def test_what_the_listener_raises_is_raised_and_nothing_is_acknowledged(kind: str) -> None:
    bench = joined("t-0")
    bench.listener_raises = {kind: ValueError("no")}
    bench.advance(INTERVAL_MS)
    bench.take()
    bench.answer(HEARTBEAT, epoch=2, assigned=["t-1"])
    assert isinstance(bench.raised.pop(), ListenerError)
    assert not any("owns" in line for line in bench.take())
    bench.listener_raises = {}
    bench.poll(LONG)
    assert bench.take()[-1] == "heartbeat 2 owns=[t-1]"


@pytest.mark.parametrize("error", [E.FENCED_MEMBER_EPOCH, E.UNKNOWN_MEMBER_ID])
def test_a_fenced_member_loses_all_and_joins_again_under_its_id(error: E) -> None:
    bench = joined("t-0")
    bench.advance(INTERVAL_MS)
    bench.take()
    bench.answer(HEARTBEAT, error)
    assert bench.take() == ["on_partitions_lost [t-0]", "heartbeat 0 names=t timeout=60000 owns=[]"]
    assert bench.core.assignment() == []


def test_a_failure_makes_the_next_heartbeat_a_full_one() -> None:
    bench = joined("t-0")
    bench.advance(INTERVAL_MS)
    bench.take()
    bench.fail(HEARTBEAT, Failure.TIMEOUT)
    bench.find_coordinator_again()
    bench.advance(2_000)
    assert "heartbeat 2 names=t timeout=60000 owns=[t-0]" in bench.take()


def test_a_coordinator_that_moved_is_asked_again_at_once() -> None:
    bench = joined("t-0")
    bench.advance(INTERVAL_MS)
    bench.answer(HEARTBEAT, E.NOT_COORDINATOR)
    bench.take()
    bench.find_coordinator_again()
    assert bench.take()[-1] == "heartbeat 2 names=t timeout=60000 owns=[t-0]"


def test_a_coordinator_that_loads_is_asked_after_a_backoff() -> None:
    bench = joined("t-0")
    bench.advance(INTERVAL_MS)
    bench.answer(HEARTBEAT, E.COORDINATOR_LOAD_IN_PROGRESS)
    bench.take()
    bench.advance(100)
    assert bench.take() == ["heartbeat 2 names=t timeout=60000 owns=[t-0]"]


FATAL = {
    E.GROUP_AUTHORIZATION_FAILED: GroupAuthorizationError,
    E.FENCED_INSTANCE_ID: FencedInstanceIdError,
    **dict.fromkeys(
        (
            *(E.INVALID_REQUEST, E.GROUP_MAX_SIZE_REACHED, E.UNRELEASED_INSTANCE_ID, E.UNSUPPORTED_ASSIGNOR),
            *(E.UNSUPPORTED_VERSION, E.INVALID_REGULAR_EXPRESSION, E.GROUP_ID_NOT_FOUND, E.UNKNOWN_SERVER_ERROR),
        ),
        CodedError,
    ),
}


@pytest.mark.parametrize(("error", "raised"), FATAL.items())
def test_a_fatal_error_is_raised_by_every_poll_and_ends_the_heartbeats(error: E, raised: type[Exception]) -> None:
    bench = joined("t-0")
    bench.advance(INTERVAL_MS)
    bench.answer(HEARTBEAT, error)
    assert isinstance(bench.raised.pop(), raised)
    bench.take()
    bench.poll(0)
    assert isinstance(bench.raised.pop(), raised)
    bench.advance(10 * INTERVAL_MS)
    assert not any(line.startswith("heartbeat") for line in bench.take())
    bench.close()
    assert bench.core.closed


def test_a_topic_that_it_may_not_read_is_raised_and_asked_for_again() -> None:
    bench = joined("t-0")
    bench.advance(INTERVAL_MS)
    bench.answer(HEARTBEAT, E.TOPIC_AUTHORIZATION_FAILED)
    assert isinstance(bench.raised.pop(), TopicAuthorizationError)
    bench.poll(LONG)
    bench.advance(100)
    assert bench.take()[-1] == "heartbeat 2 names=t timeout=60000 owns=[t-0]"


def test_every_error_of_the_table_is_tested() -> None:
    others = {E.NOT_COORDINATOR, E.COORDINATOR_NOT_AVAILABLE, E.COORDINATOR_LOAD_IN_PROGRESS}
    others |= {E.FENCED_MEMBER_EPOCH, E.UNKNOWN_MEMBER_ID, E.TOPIC_AUTHORIZATION_FAILED}
    assert ON_CONSUMER_GROUP_HEARTBEAT.keys() == others | FATAL.keys() - {E.UNKNOWN_SERVER_ERROR}


def test_close_gives_up_and_leaves() -> None:
    bench = joined("t-0")
    bench.close()
    assert bench.take() == ["poll -> nothing", "on_partitions_revoked [t-0]", "heartbeat -1 names= owns=[]"]
    bench.answer(HEARTBEAT, epoch=-1)
    assert bench.take() == ["close -> ok"]


def test_close_commits_first() -> None:
    bench = joined("t-0", enable_auto_commit=True, ends={"t-0": 10}, committed={"t-0": 4}, auto_commit_interval_ms=LONG)
    bench.close()
    assert bench.take() == ["OffsetCommit gen=2 t-0@10"]
    bench.answer("OffsetCommit")
    assert bench.take() == ["on_partitions_revoked [t-0]", "heartbeat -1 names= owns=[]"]


@pytest.mark.parametrize("leave", [True, False])
def test_a_static_member_leaves_for_a_moment(leave: bool) -> None:
    bench = joined("t-0", group_instance_id="i")
    bench.close(leave=leave)
    assert bench.take()[-1] == "heartbeat -2 names= instance=i owns=[]"


def test_close_without_leaving_sends_nothing() -> None:
    bench = joined("t-0")
    bench.close(leave=False)
    assert bench.take() == ["poll -> nothing", "on_partitions_revoked [t-0]", "close -> ok"]


def test_unsubscribe_leaves_and_a_new_subscription_joins_again() -> None:
    bench = joined("t-0")
    bench.step_out_of_poll()
    bench.unsubscribe()
    assert bench.take() == ["on_partitions_revoked [t-0]", "unsubscribe -> ok", "heartbeat -1 names= owns=[]"]
    bench.answer(HEARTBEAT, epoch=-1)
    bench.subscribe("t")
    bench.poll(LONG)
    assert bench.take() == ["heartbeat 0 names=t timeout=60000 owns=[]"]


def test_a_member_that_does_not_poll_leaves_and_comes_back_with_the_next_poll() -> None:
    bench = joined("t-0")
    bench.step_out_of_poll()
    for _ in range(12):
        bench.advance(INTERVAL_MS)
        if bench.is_open(HEARTBEAT):
            bench.answer(HEARTBEAT, epoch=2)
    assert bench.take()[-1] == "heartbeat -1 owns=[]"
    bench.advance(100_000)
    assert bench.take() == []
    assert "poll_timeout_exceeded" in bench.names()
    bench.poll(LONG)
    assert bench.take() == ["on_partitions_lost [t-0]", "heartbeat 0 names=t timeout=60000 owns=[]"]


def test_without_a_coordinator_the_poll_interval_is_not_looked_at() -> None:
    bench = joined("t-0")
    bench.step_out_of_poll()
    bench.advance(INTERVAL_MS)
    bench.fail(HEARTBEAT)
    bench.fail("FindCoordinator")
    bench.advance(50)
    for _ in range(80):
        if bench.is_open("FindCoordinator"):
            bench.fail("FindCoordinator")
        due = bench.core.next_deadline()
        assert due is not None
        assert due > bench.now, "it would be called over and over"
        bench.advance(1_000)
    assert "poll_timeout_exceeded" not in bench.names()
    if not bench.is_open("FindCoordinator"):
        bench.advance(1_000)
    bench.take()
    bench.find_coordinator()
    assert bench.take()[-1].startswith("heartbeat -1 ")
    assert "poll_timeout_exceeded" in bench.names()


def test_a_changed_subscription_goes_with_the_next_heartbeat() -> None:
    bench = joined("t-0", topics={"t": 2, "u": 1})
    bench.subscribe("t", "u")
    assert bench.take() == []
    bench.advance(INTERVAL_MS)
    assert bench.take() == ["heartbeat 2 names=t,u"]


def test_a_regular_expression_is_the_coordinators_to_match() -> None:
    bench = joining()
    bench.subscribe(regex="t.*")
    bench.poll(LONG)
    bench.take()
    bench.find_coordinator()
    assert bench.take() == ["heartbeat 0 names= regex=t.* timeout=60000 owns=[]"]
    bench.answer(HEARTBEAT, epoch=2, assigned=["t-0"])
    assert bench.take() == ["on_partitions_assigned [t-0]", "heartbeat 2 owns=[t-0]"]
    bench.answer(HEARTBEAT, epoch=2)
    bench.step_out_of_poll()
    bench.unsubscribe()
    assert bench.take()[-1] == "heartbeat -1 regex= owns=[]"


def test_a_pattern_is_matched_here() -> None:
    bench = joining(topics={"t": 1, "tt": 1, "u": 1})
    bench.subscribe(pattern="t+")
    bench.poll(LONG)
    bench.take()
    bench.find_coordinator()
    assert bench.take()[-1] == "heartbeat 0 names=t,tt timeout=60000 owns=[]"


def test_a_topic_that_is_not_known_yet_is_looked_up() -> None:
    bench = joining(topics={"t": 2})
    bench.subscribe("t", "u")
    bench.poll(LONG)
    bench.find_coordinator()
    bench.take()
    bench.answer(HEARTBEAT, epoch=2, assigned=["t-0", "u-0"])
    assert bench.take() == ["on_partitions_assigned [t-0]", "heartbeat 2 owns=[t-0]"]
    bench.answer(HEARTBEAT, epoch=2)
    bench.topics["u"] = 1
    bench.advance(2_000)
    assert "on_partitions_assigned [u-0]" in bench.take()


def test_a_commit_with_an_old_epoch_is_repeated_with_the_new_one() -> None:
    bench = joined("t-0")
    bench.step_out_of_poll()
    bench.commit("c", {"t-0": 7})
    bench.answer("OffsetCommit", E.STALE_MEMBER_EPOCH)
    bench.advance(INTERVAL_MS)
    assert bench.done_with("c") is None
    bench.answer(HEARTBEAT, epoch=3)
    while bench.is_open("OffsetCommit"):
        bench.answer("OffsetCommit", E.STALE_MEMBER_EPOCH)
    bench.take()
    bench.advance(2_000)
    assert "OffsetCommit gen=3 t-0@7" in bench.take()
    bench.answer("OffsetCommit")
    assert bench.done_with("c") is True


def test_a_commit_of_an_unknown_member_fails_and_leaves_the_membership_alone() -> None:
    bench = joined("t-0")
    bench.step_out_of_poll()
    bench.commit("c", {"t-0": 7})
    bench.answer("OffsetCommit", E.UNKNOWN_MEMBER_ID)
    assert isinstance(bench.done_with("c"), CommitFailedError)
    assert bench.core.generation.generation_id == 2
    assert bench.core.assignment() == [TopicPartition("t", 0)]


def test_every_state_can_be_reached_and_left() -> None:
    assert FOLLOWS.keys() == set(MembershipState)
    assert set().union(*FOLLOWS.values()) == set(MembershipState) - {MembershipState.FATAL}


@pytest.mark.parametrize(
    ("settings", "problem"),
    [
        (
            {"session_timeout_ms": 10_000},
            "session.timeout.ms cannot be set when group.protocol=consumer: .* group.consumer.session.timeout.ms",
        ),
        (
            {"heartbeat_interval_ms": 1_000},
            "heartbeat.interval.ms cannot be set when group.protocol=consumer: .* group.consumer.heartbeat.interval.ms",
        ),
        (
            {"partition_assignment_strategy": "range"},
            "partition.assignment.strategy cannot be .* group.remote.assignor",
        ),
        ({"group_protocol": "classic", "group_remote_assignor": "range"}, "group.remote.assignor cannot be set"),
        ({"group_protocol": "consumers"}, "group.protocol"),
    ],
)
def test_settings_that_are_the_brokers_are_refused(settings: dict[str, Any], problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        checked_config({"group_protocol": "consumer", "group_id": "g", **settings})


def test_a_classic_member_has_no_regular_expression() -> None:
    bench = Bench()
    bench.subscribe(regex="t.*")
    (done,) = bench.done
    assert isinstance(done.error, IllegalStateError)
