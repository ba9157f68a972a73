"""Every row of the tables of reactions: what a consumer does about each error of each request."""

from __future__ import annotations

import pytest

from rejoin.client.core.errors import (
    CodedError,
    CommitFailedError,
    FencedInstanceIdError,
    GroupAuthorizationError,
    KafkaError,
    RebalanceInProgressError,
    RetriableCommitFailedError,
    TopicAuthorizationError,
    UnexpectedError,
)
from rejoin.client.core.inputs import Failure
from rejoin.client.core.reactions import TABLES, reaction
from rejoin.client.core.state.membership import MemberState
from rejoin.protocol.errors import ErrorCode as E
from tests.client.core.bench import Bench

BACKOFF = 100
NEW = "''"
KNOWN = "'m'"


def at_join() -> Bench:
    """A member whose JoinGroup, with a member id, waits for its answer."""
    bench = Bench()
    bench.subscribe("t")
    bench.poll(10_000_000)
    bench.find_coordinator()
    bench.give_member_id()
    bench.take()
    return bench


def at_sync() -> Bench:
    bench = at_join()
    bench.joined(5)
    bench.take()
    return bench


def next_join(bench: Bench) -> tuple[int, str]:
    """How long after now the next JoinGroup goes out, and with which member id; the coordinator is found at once."""
    began = bench.now
    while not bench.is_open("JoinGroup"):
        assert bench.now - began < 2_000, bench.lines
        if bench.is_open("FindCoordinator"):
            bench.find_coordinator()
        else:
            bench.advance(10)
    return bench.now - began, repr(bench.join_request().member_id)


@pytest.mark.parametrize(
    ("error", "waits", "member_id", "looks_up", "reason"),
    [
        (E.COORDINATOR_LOAD_IN_PROGRESS, BACKOFF, KNOWN, False, "CoordinatorLoadInProgressException"),
        (E.COORDINATOR_NOT_AVAILABLE, BACKOFF, KNOWN, True, "CoordinatorNotAvailableException"),
        (E.NOT_COORDINATOR, BACKOFF, KNOWN, True, "NotCoordinatorException"),
        (E.UNKNOWN_MEMBER_ID, 0, NEW, False, "UnknownMemberIdException"),
        (E.REBALANCE_IN_PROGRESS, 0, KNOWN, False, "RebalanceInProgressException"),
    ],
    ids=lambda value: value.name if isinstance(value, E) else "",
)
def test_join_group_goes_round(error: E, waits: int, member_id: str, looks_up: bool, reason: str) -> None:
    bench = at_join()
    bench.answer("JoinGroup", error)
    assert bench.is_open("FindCoordinator") == looks_up
    assert next_join(bench) == (waits, member_id)
    assert f"JoinGroup {member_id} reason='rebalance failed due to {reason}'" in bench.lines


@pytest.mark.parametrize("failure", Failure)
def test_a_lost_join_group_keeps_its_id(failure: Failure) -> None:
    bench = at_join()
    bench.fail("JoinGroup", failure)
    assert bench.is_open("FindCoordinator")
    assert next_join(bench) == (BACKOFF, KNOWN)
    assert "JoinGroup 'm' reason='rebalance failed due to DisconnectException'" in bench.lines


def test_member_id_required_is_used_at_once() -> None:
    bench = Bench()
    bench.subscribe("t")
    bench.poll()
    bench.find_coordinator()
    bench.take()
    bench.give_member_id("given")
    assert bench.take() == ["JoinGroup 'given' reason='need to re-join with the given member-id: given'"]


@pytest.mark.parametrize(
    ("error", "raised"),
    [
        (E.FENCED_INSTANCE_ID, FencedInstanceIdError),
        (E.GROUP_MAX_SIZE_REACHED, CodedError),
        (E.INCONSISTENT_GROUP_PROTOCOL, CodedError),
        (E.INVALID_SESSION_TIMEOUT, CodedError),
        (E.INVALID_GROUP_ID, CodedError),
        (E.UNSUPPORTED_VERSION, CodedError),
        (E.GROUP_AUTHORIZATION_FAILED, GroupAuthorizationError),
        (E.ILLEGAL_GENERATION, UnexpectedError),
        (E.UNKNOWN_SERVER_ERROR, UnexpectedError),
        (E.OFFSET_METADATA_TOO_LARGE, UnexpectedError),
    ],
    ids=lambda value: value.name if isinstance(value, E) else value.__name__,
)
def test_join_group_raises_from_poll_and_the_next_poll_tries_again(error: E, raised: type[KafkaError]) -> None:
    bench = at_join()
    bench.answer("JoinGroup", error)
    assert [type(each) for each in bench.raised] == [raised]
    assert not bench.is_open("JoinGroup")
    bench.poll()
    assert bench.is_open("JoinGroup")


@pytest.mark.parametrize(
    ("error", "waits", "member_id", "looks_up"),
    [
        (E.COORDINATOR_NOT_AVAILABLE, BACKOFF, KNOWN, True),
        (E.NOT_COORDINATOR, BACKOFF, KNOWN, True),
        (E.UNKNOWN_MEMBER_ID, 0, NEW, False),
        (E.ILLEGAL_GENERATION, 0, KNOWN, False),
        (E.REBALANCE_IN_PROGRESS, 0, KNOWN, False),
    ],
    ids=lambda value: value.name if isinstance(value, E) else "",
)
def test_sync_group_starts_again_from_join_group(error: E, waits: int, member_id: str, looks_up: bool) -> None:
    bench = at_sync()
    bench.answer("SyncGroup", error)
    assert bench.is_open("FindCoordinator") == looks_up
    assert not bench.is_open("SyncGroup")
    assert next_join(bench) == (waits, member_id)


@pytest.mark.parametrize(
    ("error", "raised"),
    [
        (E.COORDINATOR_LOAD_IN_PROGRESS, UnexpectedError),
        (E.FENCED_INSTANCE_ID, FencedInstanceIdError),
        (E.GROUP_AUTHORIZATION_FAILED, GroupAuthorizationError),
        (E.GROUP_MAX_SIZE_REACHED, UnexpectedError),
        (E.INCONSISTENT_GROUP_PROTOCOL, UnexpectedError),
        (E.UNKNOWN_SERVER_ERROR, UnexpectedError),
    ],
    ids=lambda value: value.name if isinstance(value, E) else value.__name__,
)
def test_sync_group_raises_from_poll(error: E, raised: type[KafkaError]) -> None:
    bench = at_sync()
    bench.answer("SyncGroup", error)
    assert [type(each) for each in bench.raised] == [raised]


@pytest.mark.parametrize(
    ("error", "state", "member_id"),
    [
        (E.UNKNOWN_MEMBER_ID, MemberState.PREPARING_REBALANCE, NEW),
        (E.ILLEGAL_GENERATION, MemberState.PREPARING_REBALANCE, KNOWN),
        (E.REBALANCE_IN_PROGRESS, MemberState.PREPARING_REBALANCE, KNOWN),
    ],
    ids=lambda value: value.name if isinstance(value, E) else "",
)
def test_a_heartbeat_makes_the_running_poll_rejoin(error: E, state: MemberState, member_id: str) -> None:
    bench = Bench(enable_auto_commit=False).stable("t-0")
    bench.advance(3_000)
    bench.answer("Heartbeat", error)
    assert bench.core.member_state is state
    assert repr(bench.join_request().member_id) == member_id


@pytest.mark.parametrize("error", [E.COORDINATOR_NOT_AVAILABLE, E.NOT_COORDINATOR])
def test_a_heartbeat_that_finds_no_coordinator_looks_it_up_and_keeps_everything(error: E) -> None:
    bench = Bench().stable("t-0")
    bench.advance(3_000)
    bench.answer("Heartbeat", error)
    assert bench.is_open("FindCoordinator")
    bench.find_coordinator()
    assert bench.core.generation.generation_id == 1
    bench.take()
    bench.advance(100)
    assert bench.take() == ["Heartbeat gen=1"]


@pytest.mark.parametrize(
    "error", [E.COORDINATOR_LOAD_IN_PROGRESS, E.GROUP_AUTHORIZATION_FAILED, E.UNKNOWN_SERVER_ERROR, E.INVALID_REQUEST]
)
def test_other_heartbeat_errors_are_only_failed_heartbeats(error: E) -> None:
    bench = Bench().stable("t-0")
    bench.advance(3_000)
    bench.answer("Heartbeat", error)
    assert bench.raised == []
    assert bench.core.member_state is MemberState.STABLE
    bench.take()
    bench.advance(100)
    assert bench.take() == ["Heartbeat gen=1"], "sent again after the backoff"


def test_a_fenced_heartbeat_raises_from_poll_and_the_next_poll_joins_as_new() -> None:
    bench = Bench(group_instance_id="i").stable("t-0")
    bench.advance(3_000)
    bench.answer("Heartbeat", E.FENCED_INSTANCE_ID)
    assert [type(each) for each in bench.raised] == [FencedInstanceIdError]
    bench.take()
    bench.poll()
    assert bench.take() == [
        "on_partitions_lost [t-0]",
        "JoinGroup '' reason='encountered FENCED_INSTANCE_ID from HEARTBEAT response'",
    ]


@pytest.mark.parametrize("error", [E.UNKNOWN_MEMBER_ID, E.ILLEGAL_GENERATION, E.FENCED_INSTANCE_ID])
def test_a_heartbeat_of_an_earlier_generation_is_ignored(error: E) -> None:
    bench = Bench(enable_auto_commit=False).stable("t-0")
    bench.advance(3_000)
    late = bench.find("Heartbeat")
    bench.advance(3_000)
    bench.open.remove(late)
    bench.answer("Heartbeat", E.REBALANCE_IN_PROGRESS)
    bench.rejoin("t-0", generation=2)
    bench.open.append(late)
    bench.answer("Heartbeat", error)
    assert bench.core.generation.generation_id == 2
    assert bench.raised == []


@pytest.mark.parametrize(
    ("error", "raised", "sync_repeats"),
    [
        (E.COORDINATOR_LOAD_IN_PROGRESS, CodedError, True),
        (E.COORDINATOR_NOT_AVAILABLE, CodedError, True),
        (E.NOT_COORDINATOR, CodedError, True),
        (E.UNKNOWN_TOPIC_OR_PARTITION, CodedError, True),
        (E.REQUEST_TIMED_OUT, CodedError, True),
        (E.UNKNOWN_MEMBER_ID, CommitFailedError, False),
        (E.ILLEGAL_GENERATION, CommitFailedError, False),
        (E.REBALANCE_IN_PROGRESS, RebalanceInProgressError, False),
        (E.FENCED_INSTANCE_ID, FencedInstanceIdError, False),
        (E.GROUP_AUTHORIZATION_FAILED, GroupAuthorizationError, False),
        (E.OFFSET_METADATA_TOO_LARGE, CodedError, False),
        (E.INVALID_COMMIT_OFFSET_SIZE, CodedError, False),
        (E.TOPIC_AUTHORIZATION_FAILED, TopicAuthorizationError, False),
        (E.UNKNOWN_SERVER_ERROR, UnexpectedError, False),
    ],
    ids=lambda value: value.name if isinstance(value, E) else "",
)
def test_offset_commit(error: E, raised: type[KafkaError], sync_repeats: bool) -> None:
    bench = Bench(enable_auto_commit=False).stable("t-0")
    bench.commit("sync", {"t-0": 7})
    bench.answer("OffsetCommit", error)
    if sync_repeats:
        assert bench.done_with("sync") is None
        while not bench.is_open("OffsetCommit"):
            if bench.is_open("FindCoordinator"):
                bench.find_coordinator()
            else:
                bench.advance(10)
        bench.answer("OffsetCommit")
        assert "commit sync -> ok" in bench.take()
    else:
        assert type(bench.done_with("sync")) is raised

    bench = Bench(enable_auto_commit=False).stable("t-0")
    bench.step_out_of_poll()
    bench.commit("async", {"t-0": 7}, sync=False)
    bench.answer("OffsetCommit", error)
    assert bench.done_with("async") is None, "ends during a later call"
    bench.poll(0)
    if error is E.FENCED_INSTANCE_ID:
        assert [type(each) for each in bench.raised] == [FencedInstanceIdError]
    else:
        ended = bench.done_with("async")
        assert type(ended) is (RetriableCommitFailedError if sync_repeats else raised)


@pytest.mark.parametrize(("error", "keeps_id"), [(E.UNKNOWN_MEMBER_ID, False), (E.ILLEGAL_GENERATION, True)], ids=str)
def test_a_commit_that_is_refused_resets_the_membership(error: E, keeps_id: bool) -> None:
    bench = Bench(enable_auto_commit=False).stable("t-0")
    bench.step_out_of_poll()
    bench.commit("sync", {"t-0": 7})
    bench.answer("OffsetCommit", error)
    assert bench.core.member_state is MemberState.UNJOINED
    assert bench.core.generation == (-1, "m" if keeps_id else "", None)


@pytest.mark.parametrize(
    ("error", "looks_up"),
    [
        (E.COORDINATOR_LOAD_IN_PROGRESS, False),
        (E.COORDINATOR_NOT_AVAILABLE, True),
        (E.NOT_COORDINATOR, True),
        (E.UNSTABLE_OFFSET_COMMIT, False),
        (E.REQUEST_TIMED_OUT, False),
    ],
    ids=lambda value: value.name if isinstance(value, E) else "",
)
def test_offset_fetch_is_repeated(error: E, looks_up: bool) -> None:
    bench = Bench(committed={"t-0": 3}, ends={"t-0": 5})
    bench.auto.discard("OffsetFetch")
    bench.stable("t-0")
    bench.answer("OffsetFetch", error)
    assert bench.raised == []
    assert bench.is_open("FindCoordinator") == looks_up
    if looks_up:
        bench.find_coordinator()
    bench.advance(BACKOFF)
    bench.answer("OffsetFetch")
    assert bench.take()[-1] == "poll -> t-0[3,5)"


@pytest.mark.parametrize(
    ("error", "raised"),
    [(E.GROUP_AUTHORIZATION_FAILED, GroupAuthorizationError), (E.UNKNOWN_SERVER_ERROR, UnexpectedError)],
    ids=lambda value: value.name if isinstance(value, E) else value.__name__,
)
def test_offset_fetch_raises_errors_of_the_group(error: E, raised: type[KafkaError]) -> None:
    bench = Bench()
    bench.auto.discard("OffsetFetch")
    bench.stable("t-0")
    bench.answer("OffsetFetch", error)
    assert [type(each) for each in bench.raised] == [raised]


@pytest.mark.parametrize(
    ("error", "raised"),
    [
        (E.UNKNOWN_TOPIC_OR_PARTITION, UnexpectedError),
        (E.TOPIC_AUTHORIZATION_FAILED, TopicAuthorizationError),
        (E.UNKNOWN_SERVER_ERROR, UnexpectedError),
    ],
    ids=lambda value: value.name if isinstance(value, E) else value.__name__,
)
def test_offset_fetch_raises_errors_of_partitions(error: E, raised: type[KafkaError]) -> None:
    bench = Bench()
    bench.auto.discard("OffsetFetch")
    bench.stable("t-0")
    bench.answer("OffsetFetch", partition_error=error)
    assert [type(each) for each in bench.raised] == [raised]


@pytest.mark.parametrize(
    "error", [E.COORDINATOR_NOT_AVAILABLE, E.COORDINATOR_LOAD_IN_PROGRESS, E.NOT_COORDINATOR, E.REQUEST_TIMED_OUT]
)
def test_find_coordinator_is_repeated(error: E) -> None:
    bench = Bench()
    bench.subscribe("t")
    bench.poll()
    bench.answer("FindCoordinator", error)
    assert bench.raised == []
    assert not bench.is_open("FindCoordinator")
    bench.advance(BACKOFF)
    assert bench.is_open("FindCoordinator")


@pytest.mark.parametrize(
    ("error", "raised"),
    [
        (E.GROUP_AUTHORIZATION_FAILED, GroupAuthorizationError),
        (E.INVALID_GROUP_ID, CodedError),
        (E.INVALID_REQUEST, CodedError),
        (E.UNKNOWN_SERVER_ERROR, UnexpectedError),
    ],
    ids=lambda value: value.name if isinstance(value, E) else value.__name__,
)
def test_find_coordinator_raises_the_rest(error: E, raised: type[KafkaError]) -> None:
    bench = Bench()
    bench.subscribe("t")
    bench.poll()
    bench.answer("FindCoordinator", error)
    assert [type(each) for each in bench.raised] == [raised]


def test_every_error_has_one_reaction_to_every_request() -> None:
    for api in TABLES:
        for error in E:
            assert reaction(api, error) is not None
