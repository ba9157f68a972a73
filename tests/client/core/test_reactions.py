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
from rejoin.client.core.state import MemberState
from rejoin.protocol.errors import ErrorCode as E
from tests.client.core.lab import Lab

BACKOFF = 100
NEW = "''"
KNOWN = "'m'"


def at_join() -> Lab:
    """A member whose JoinGroup, with a member id, waits for its answer."""
    lab = Lab()
    lab.subscribe("t")
    lab.poll(10_000_000)
    lab.find_coordinator()
    lab.give_member_id()
    lab.take()
    return lab


def at_sync() -> Lab:
    lab = at_join()
    lab.joined(5)
    lab.take()
    return lab


def next_join(lab: Lab) -> tuple[int, str]:
    """How long after now the next JoinGroup goes out, and with which member id; the coordinator is found at once."""
    began = lab.now
    while not lab.is_open("JoinGroup"):
        assert lab.now - began < 2_000, lab.lines
        if lab.is_open("FindCoordinator"):
            lab.find_coordinator()
        else:
            lab.advance(10)
    return lab.now - began, repr(lab.find("JoinGroup").request.member_id)  # type: ignore[attr-defined]


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
    lab = at_join()
    lab.answer("JoinGroup", error)
    assert lab.is_open("FindCoordinator") == looks_up
    assert next_join(lab) == (waits, member_id)
    assert f"JoinGroup {member_id} reason='rebalance failed due to {reason}'" in lab.lines


@pytest.mark.parametrize("failure", Failure)
def test_a_lost_join_group_keeps_its_id(failure: Failure) -> None:
    lab = at_join()
    lab.fail("JoinGroup", failure)
    assert lab.is_open("FindCoordinator")
    assert next_join(lab) == (BACKOFF, KNOWN)
    assert "JoinGroup 'm' reason='rebalance failed due to DisconnectException'" in lab.lines


def test_member_id_required_is_used_at_once() -> None:
    lab = Lab()
    lab.subscribe("t")
    lab.poll()
    lab.find_coordinator()
    lab.take()
    lab.give_member_id("given")
    assert lab.take() == ["JoinGroup 'given' reason='need to re-join with the given member-id: given'"]


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
    lab = at_join()
    lab.answer("JoinGroup", error)
    assert [type(each) for each in lab.raised] == [raised]
    assert not lab.is_open("JoinGroup")
    lab.poll()
    assert lab.is_open("JoinGroup")


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
    lab = at_sync()
    lab.answer("SyncGroup", error)
    assert lab.is_open("FindCoordinator") == looks_up
    assert not lab.is_open("SyncGroup")
    assert next_join(lab) == (waits, member_id)


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
    lab = at_sync()
    lab.answer("SyncGroup", error)
    assert [type(each) for each in lab.raised] == [raised]


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
    lab = Lab(enable_auto_commit=False).stable("t-0")
    lab.advance(3_000)
    lab.answer("Heartbeat", error)
    assert lab.core.member_state is state
    assert repr(lab.find("JoinGroup").request.member_id) == member_id  # type: ignore[attr-defined]


@pytest.mark.parametrize("error", [E.COORDINATOR_NOT_AVAILABLE, E.NOT_COORDINATOR])
def test_a_heartbeat_that_finds_no_coordinator_looks_it_up_and_keeps_everything(error: E) -> None:
    lab = Lab().stable("t-0")
    lab.advance(3_000)
    lab.answer("Heartbeat", error)
    assert lab.is_open("FindCoordinator")
    lab.find_coordinator()
    assert lab.core.generation.generation_id == 1
    lab.take()
    lab.advance(100)
    assert lab.take() == ["Heartbeat gen=1"]


@pytest.mark.parametrize(
    "error", [E.COORDINATOR_LOAD_IN_PROGRESS, E.GROUP_AUTHORIZATION_FAILED, E.UNKNOWN_SERVER_ERROR, E.INVALID_REQUEST]
)
def test_other_heartbeat_errors_are_only_failed_heartbeats(error: E) -> None:
    lab = Lab().stable("t-0")
    lab.advance(3_000)
    lab.answer("Heartbeat", error)
    assert lab.raised == []
    assert lab.core.member_state is MemberState.STABLE
    lab.take()
    lab.advance(100)
    assert lab.take() == ["Heartbeat gen=1"], "sent again after the backoff"


def test_a_fenced_heartbeat_raises_from_poll_and_the_next_poll_joins_as_new() -> None:
    lab = Lab(group_instance_id="i").stable("t-0")
    lab.advance(3_000)
    lab.answer("Heartbeat", E.FENCED_INSTANCE_ID)
    assert [type(each) for each in lab.raised] == [FencedInstanceIdError]
    lab.take()
    lab.poll()
    assert lab.take() == [
        "on_partitions_lost [t-0]",
        "JoinGroup '' reason='encountered FENCED_INSTANCE_ID from HEARTBEAT response'",
    ]


@pytest.mark.parametrize("error", [E.UNKNOWN_MEMBER_ID, E.ILLEGAL_GENERATION, E.FENCED_INSTANCE_ID])
def test_a_heartbeat_of_an_earlier_generation_is_ignored(error: E) -> None:
    lab = Lab(enable_auto_commit=False).stable("t-0")
    lab.advance(3_000)
    late = lab.find("Heartbeat")
    lab.advance(3_000)
    lab.open.remove(late)
    lab.answer("Heartbeat", E.REBALANCE_IN_PROGRESS)
    lab.rejoin("t-0", generation=2)
    lab.open.append(late)
    lab.answer("Heartbeat", error)
    assert lab.core.generation.generation_id == 2
    assert lab.raised == []


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
    lab = Lab(enable_auto_commit=False).stable("t-0")
    lab.commit("sync", {"t-0": 7})
    lab.answer("OffsetCommit", error)
    if sync_repeats:
        assert lab.done_with("sync") is None
        while not lab.is_open("OffsetCommit"):
            if lab.is_open("FindCoordinator"):
                lab.find_coordinator()
            else:
                lab.advance(10)
        lab.answer("OffsetCommit")
        assert "commit sync -> ok" in lab.take()
    else:
        assert type(lab.done_with("sync")) is raised

    lab = Lab(enable_auto_commit=False).stable("t-0")
    lab.step_out_of_poll()
    lab.commit("async", {"t-0": 7}, sync=False)
    lab.answer("OffsetCommit", error)
    assert lab.done_with("async") is None, "told during a later call"
    lab.poll(0)
    if error is E.FENCED_INSTANCE_ID:
        assert [type(each) for each in lab.raised] == [FencedInstanceIdError]
    else:
        told = lab.done_with("async")
        assert type(told) is (RetriableCommitFailedError if sync_repeats else raised)


@pytest.mark.parametrize(("error", "keeps_id"), [(E.UNKNOWN_MEMBER_ID, False), (E.ILLEGAL_GENERATION, True)], ids=str)
def test_a_commit_that_is_refused_resets_the_membership(error: E, keeps_id: bool) -> None:
    lab = Lab(enable_auto_commit=False).stable("t-0")
    lab.step_out_of_poll()
    lab.commit("sync", {"t-0": 7})
    lab.answer("OffsetCommit", error)
    assert lab.core.member_state is MemberState.UNJOINED
    assert lab.core.generation == (-1, "m" if keeps_id else "", None)


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
    lab = Lab(committed={"t-0": 3}, ends={"t-0": 5})
    lab.auto.discard("OffsetFetch")
    lab.stable("t-0")
    lab.answer("OffsetFetch", error)
    assert lab.raised == []
    assert lab.is_open("FindCoordinator") == looks_up
    if looks_up:
        lab.find_coordinator()
    lab.advance(BACKOFF)
    lab.answer("OffsetFetch")
    assert lab.take()[-1] == "poll -> t-0[3,5)"


@pytest.mark.parametrize(
    ("error", "raised"),
    [(E.GROUP_AUTHORIZATION_FAILED, GroupAuthorizationError), (E.UNKNOWN_SERVER_ERROR, UnexpectedError)],
    ids=lambda value: value.name if isinstance(value, E) else value.__name__,
)
def test_offset_fetch_raises_errors_of_the_group(error: E, raised: type[KafkaError]) -> None:
    lab = Lab()
    lab.auto.discard("OffsetFetch")
    lab.stable("t-0")
    lab.answer("OffsetFetch", error)
    assert [type(each) for each in lab.raised] == [raised]


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
    lab = Lab()
    lab.auto.discard("OffsetFetch")
    lab.stable("t-0")
    lab.answer("OffsetFetch", partition_error=error)
    assert [type(each) for each in lab.raised] == [raised]


@pytest.mark.parametrize(
    "error", [E.COORDINATOR_NOT_AVAILABLE, E.COORDINATOR_LOAD_IN_PROGRESS, E.NOT_COORDINATOR, E.REQUEST_TIMED_OUT]
)
def test_find_coordinator_is_repeated(error: E) -> None:
    lab = Lab()
    lab.subscribe("t")
    lab.poll()
    lab.answer("FindCoordinator", error)
    assert lab.raised == []
    assert not lab.is_open("FindCoordinator")
    lab.advance(BACKOFF)
    assert lab.is_open("FindCoordinator")


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
    lab = Lab()
    lab.subscribe("t")
    lab.poll()
    lab.answer("FindCoordinator", error)
    assert [type(each) for each in lab.raised] == [raised]


def test_every_error_has_one_reaction_to_every_request() -> None:
    for api in TABLES:
        for error in E:
            assert reaction(api, error) is not None
