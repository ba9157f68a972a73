"""How a consumer joins: the requests it sends, in order, and what it tells the coordinator."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from rejoin.client.assignors import Assignments, Assignor, ClusterView, MemberSubscription, RebalanceProtocol
from rejoin.client.core.errors import AssignorFailedError, IllegalStateError, UnexpectedError
from rejoin.client.core.inputs import RebalanceEnforced
from rejoin.client.core.state import MemberState
from rejoin.client.core.step_context import common_protocol
from rejoin.protocol.embedded.consumer_protocol import decode_assignment, decode_subscription
from rejoin.protocol.errors import ErrorCode as E
from rejoin.protocol.types import TopicPartition
from tests.client.core.lab import Lab


def test_a_dynamic_consumer_joins_its_first_group() -> None:
    lab = Lab(ends={"t-0": 10, "t-1": 3}, auto_offset_reset="earliest")
    lab.subscribe("t")
    lab.poll()
    assert lab.take() == ["FindCoordinator"]
    lab.find_coordinator()
    assert lab.take() == ["JoinGroup '' reason=''"]
    lab.give_member_id("m")
    assert lab.take() == ["JoinGroup 'm' reason='need to re-join with the given member-id: m'"]
    lab.joined(1)
    assert lab.take() == ["SyncGroup gen=1 assignments=0"]
    lab.synced("t-0", "t-1")
    assert lab.take() == ["on_partitions_assigned [t-0 t-1]", "poll -> t-0[0,10) t-1[0,3)"]
    assert lab.core.member_state is MemberState.STABLE


def test_what_a_join_group_says() -> None:
    lab = Lab(
        assignors=["range", "cooperative-sticky"],
        session_timeout_ms=10_000,
        max_poll_interval_ms=60_000,
        client_rack="r1",
        group_instance_id="i",
    )
    lab.subscribe("u", "t")
    lab.poll()
    lab.find_coordinator()
    request: Any = lab.find("JoinGroup").request
    assert (request.session_timeout_ms, request.rebalance_timeout_ms) == (10_000, 60_000)
    assert (request.member_id, request.group_instance_id, request.protocol_type) == ("", "i", "consumer")
    assert [protocol.name for protocol in request.protocols] == ["range", "cooperative-sticky"]
    told = decode_subscription(request.protocols[0].metadata)
    assert (told.topics, told.owned_partitions, told.generation_id, told.rack_id) == (("t", "u"), (), -1, "r1")


def test_a_cooperative_consumer_tells_what_it_owns_and_since_when() -> None:
    lab = Lab(assignors=["cooperative-sticky"], enable_auto_commit=False).stable("t-0", generation=4)
    lab.step(RebalanceEnforced())
    request: Any = lab.find("JoinGroup").request
    told = decode_subscription(request.protocols[0].metadata)
    assert (told.owned_partitions, told.generation_id) == ((TopicPartition("t", 0),), 4)


@pytest.mark.parametrize(
    ("request_timeout", "max_poll_interval", "timeout"), [(30_000, 300_000, 305_000), (30_000, 10_000, 30_000)]
)
def test_a_join_group_may_take_as_long_as_the_rebalance(
    request_timeout: int, max_poll_interval: int, timeout: int
) -> None:
    lab = Lab(request_timeout_ms=request_timeout, max_poll_interval_ms=max_poll_interval)
    lab.subscribe("t")
    lab.poll()
    lab.find_coordinator()
    assert lab.find("JoinGroup").timeout_ms == timeout


def test_old_versions_of_requests_are_spoken() -> None:
    versions = {"FindCoordinator": 3, "JoinGroup": 3, "SyncGroup": 2, "OffsetFetch": 9, "LeaveGroup": 2}
    lab = Lab(versions=versions)
    lab.subscribe("t")
    lab.poll()
    for api, check in (("FindCoordinator", "key"), ("JoinGroup", "protocols")):
        send = lab.find(api)
        send.request.check_version(send.version)
        assert getattr(send.request, check)
        if api == "FindCoordinator":
            from rejoin.protocol.messages.cluster.find_coordinator import FindCoordinatorResponse  # noqa: PLC0415

            lab.answer(api, response=FindCoordinatorResponse(node_id=1, host="h", port=1))
    lab.joined(1)
    send = lab.find("SyncGroup")
    send.request.check_version(send.version)
    lab.synced("t-0")
    lab.step_out_of_poll()
    lab.lines.clear()
    lab.step_close_and_answer()
    leave: Any = lab.sent["LeaveGroup"].request
    leave.check_version(2)
    assert leave.member_id == "m"


def test_an_answer_to_join_group_waits_for_the_next_poll() -> None:
    lab = Lab()
    lab.subscribe("t")
    lab.poll(100)
    lab.find_coordinator()
    lab.give_member_id()
    lab.advance(100)
    assert lab.take()[-1] == "poll -> nothing"
    lab.joined(1)
    assert lab.take() == []
    assert lab.core.member_state is MemberState.PREPARING_REBALANCE
    lab.poll(100)
    assert lab.take() == ["SyncGroup gen=1 assignments=0"]


def test_an_answer_to_sync_group_does_not_wait_but_its_callbacks_do() -> None:
    lab = Lab()
    lab.subscribe("t")
    lab.poll(100)
    lab.find_coordinator()
    lab.give_member_id()
    lab.joined(1)
    lab.advance(100)
    lab.take()
    lab.synced("t-0")
    assert lab.core.member_state is MemberState.STABLE
    assert lab.take() == []
    lab.poll(0)
    assert lab.take() == ["on_partitions_assigned [t-0]", "poll -> nothing"]


def test_a_membership_that_ends_between_sync_and_callbacks_starts_again() -> None:
    lab = Lab()
    lab.subscribe("t")
    lab.poll(100)
    lab.find_coordinator()
    lab.give_member_id()
    lab.joined(1)
    lab.advance(100)
    lab.synced("t-0")
    lab.advance(3_000)
    lab.answer("Heartbeat", E.UNKNOWN_MEMBER_ID)
    lab.take()
    lab.poll(0)
    assert lab.take() == [
        "JoinGroup '' reason=\"rebalance failed since the generation/state was modified by heartbeat thread to "
        "Generation{generationId=-1, memberId='', protocol='null'}/UNJOINED before the rebalance callback triggered\"",
        "poll -> nothing",
    ]


# -- reasons (KIP-800)


def test_reason_of_a_heartbeat_that_says_the_group_rebalances() -> None:
    lab = Lab(enable_auto_commit=False).stable("t-0")
    lab.advance(3_000)
    lab.answer("Heartbeat", E.REBALANCE_IN_PROGRESS)
    assert lab.take()[-1] == "JoinGroup 'm' reason='group is already rebalancing'"


def test_reason_of_a_changed_subscription() -> None:
    lab = Lab(enable_auto_commit=False, topics={"t": 1, "u": 1}).stable("t-0")
    lab.subscribe("t", "u")
    assert lab.take()[-1] == "JoinGroup 'm' reason='subscription has changed'"


def test_reason_of_an_enforced_rebalance() -> None:
    lab = Lab(enable_auto_commit=False).stable("t-0")
    lab.step(RebalanceEnforced("because"))
    assert lab.take()[-1] == "JoinGroup 'm' reason='because'"
    lab = Lab(enable_auto_commit=False).stable("t-0")
    lab.step(RebalanceEnforced())
    assert lab.take()[-1] == "JoinGroup 'm' reason='rebalance enforced by user'"


def test_reason_of_a_commit_during_a_rebalance() -> None:
    lab = Lab(enable_auto_commit=False).stable("t-0")
    lab.step_out_of_poll()
    lab.commit("sync", {"t-0": 1})
    lab.answer("OffsetCommit", E.REBALANCE_IN_PROGRESS)
    lab.take()
    lab.poll(0)
    assert "JoinGroup 'm' reason='offset commit failed since group is already rebalancing'" in lab.take()


def test_reason_of_an_assignment_that_does_not_fit() -> None:
    lab = Lab(enable_auto_commit=False, topics={"t": 1, "u": 1})
    lab.subscribe("t")
    lab.poll()
    lab.find_coordinator()
    lab.give_member_id()
    lab.joined(1)
    lab.take()
    lab.synced("u-0")
    assert lab.take() == [
        "on_partitions_revoked []",
        "JoinGroup 'm' reason='received assignment does not match the current subscription'",
    ]
    assert lab.core.assignment() == []


def test_a_long_reason_is_cut_to_255_characters() -> None:
    lab = Lab(enable_auto_commit=False).stable("t-0")
    lab.step(RebalanceEnforced("x" * 300))
    request: Any = lab.find("JoinGroup").request
    assert request.reason == "x" * 255


# -- leading


def leader_at_sync(lab: Lab, *members: Any, generation: int = 1, **fields: Any) -> None:
    lab.subscribe("t")
    lab.poll(10_000_000)
    lab.find_coordinator()
    if not lab.config.is_static:
        lab.give_member_id()
    lab.take()
    lab.joined(generation, leader="m", members=members, **fields)


def given(lab: Lab) -> dict[str, list[tuple[str, int]]]:
    request: Any = lab.find("SyncGroup").request
    return {each.member_id: list(decode_assignment(each.assignment).partitions) for each in request.assignments}


def test_the_leader_assigns_everybodys_topics() -> None:
    lab = Lab(topics={"t": 2, "u": 1})
    leader_at_sync(lab, lab.member("m", "t"), lab.member("n", "t", "u"))
    assert given(lab) == {"m": [("t", 0)], "n": [("t", 1), ("u", 0)]}
    assert lab.core.is_leader


def test_the_leader_asks_for_topics_of_others_before_it_assigns() -> None:
    lab = Lab(topics={"t": 2, "u": 1})
    lab.subscribe("t")
    lab.poll()
    lab.find_coordinator()
    lab.give_member_id()
    lab.auto.discard("Metadata")
    lab.joined(1, leader="m", members=(lab.member("m", "t"), lab.member("n", "u")))
    assert not lab.is_open("SyncGroup")
    asked: Any = lab.find("Metadata").request
    assert [topic.name for topic in asked.topics] == ["t", "u"]
    lab.answer("Metadata")
    assert given(lab) == {"m": [("t", 0), ("t", 1)], "n": [("u", 0)]}


def test_a_leader_that_loses_its_place_while_it_asks_joins_again() -> None:
    lab = Lab(topics={"t": 2, "u": 1})
    lab.subscribe("t")
    lab.poll(10_000)
    lab.find_coordinator()
    lab.give_member_id()
    lab.auto.discard("Metadata")
    lab.joined(1, leader="m", members=(lab.member("m", "t"), lab.member("n", "u")))
    lab.advance(3_000)
    lab.answer("Heartbeat", E.UNKNOWN_MEMBER_ID)
    assert lab.take()[-1] == "JoinGroup '' reason='rebalance failed due to IllegalGenerationException'"


def test_a_returning_static_leader_is_told_to_skip_the_assignment() -> None:
    lab = Lab(group_instance_id="i", enable_auto_commit=False)
    leader_at_sync(lab, lab.member("m", "t"), generation=7, skip_assignment=True)
    assert given(lab) == {}
    assert lab.core.is_leader
    lab.synced("t-0")
    assert "assignment_skipped" in lab.names()
    lab.take()
    lab.auto.add("Heartbeat")
    lab.topics["t"] = 3
    lab.advance(lab.config.metadata_max_age_ms)
    assert "JoinGroup 'm' reason='cached metadata has changed'" in lab.take(), "it watches the topics again"


class Broken(Assignor):
    """Raises, or gives a partition twice."""

    name = "broken"
    how = "raise"

    def assign(self, cluster: ClusterView, members: Mapping[str, MemberSubscription]) -> Assignments:
        if self.how == "raise":
            raise RuntimeError("no idea")
        return {member: [("t", 0), ("t", 1)] for member in members}


class Doubling(Broken):
    name = "doubling"
    how = "double"


def test_an_assignor_that_raises_is_raised_from_poll_and_the_group_goes_on() -> None:
    lab = Lab(assignors=[Broken()])
    leader_at_sync(lab, lab.member("m", "t"))
    assert not lab.is_open("SyncGroup")
    assert [type(each) for each in lab.raised] == [AssignorFailedError]
    assert "no idea" in str(lab.raised[0])
    assert lab.core.member_state is MemberState.COMPLETING_REBALANCE
    lab.take()
    lab.advance(3_000)
    assert lab.take() == ["Heartbeat gen=1"], "the others are freed by the next join, or when this one goes silent"
    lab.poll()
    assert lab.take() == ["JoinGroup 'm' reason='rebalance failed due to KafkaException'"]


def test_an_assignor_that_breaks_a_rule_is_named_with_partition_and_member() -> None:
    lab = Lab(assignors=[Doubling()])
    leader_at_sync(lab, lab.member("m", "t"), lab.member("n", "t"))
    error = lab.raised[0]
    assert isinstance(error, AssignorFailedError)
    assert (error.partition, error.member_id) == (("t", 0), "n")
    assert str(error) == "assignor doubling: t-0 given to m and to n"
    assert [event.name for event in lab.events if event.name == "assignor_failed"] == ["assignor_failed"]


def test_a_member_whose_subscription_cannot_be_read_is_named() -> None:
    lab = Lab()
    broken = lab.member("n").model_copy(update={"metadata": b"\x00"})
    leader_at_sync(lab, lab.member("m", "t"), broken)
    error = lab.raised[0]
    assert isinstance(error, AssignorFailedError)
    assert error.member_id == "n"


def test_a_protocol_nobody_offered_is_an_illegal_state() -> None:
    lab = Lab()
    leader_at_sync(lab, protocol_name="other")
    assert [type(each) for each in lab.raised] == [IllegalStateError]


@pytest.mark.parametrize("data", [b"", b"\x00"])
def test_an_assignment_that_is_none_raises_from_every_poll(data: bytes) -> None:
    lab = Lab()
    lab.subscribe("t")
    lab.poll()
    lab.find_coordinator()
    lab.give_member_id()
    lab.joined(1)
    lab.answer("SyncGroup", assignment=data)
    lab.poll()
    assert [type(each) for each in lab.raised] == [IllegalStateError, IllegalStateError]


def test_a_foreign_protocol_type_is_refused() -> None:
    lab = Lab()
    lab.subscribe("t")
    lab.poll()
    lab.find_coordinator()
    lab.answer("JoinGroup", generation_id=1, member_id="m", leader="x", protocol_type="connect", protocol_name="range")
    assert len(lab.raised) == 1
    assert not isinstance(lab.raised[0], UnexpectedError)


@pytest.mark.parametrize(
    ("names", "protocol"),
    [
        (["range"], RebalanceProtocol.EAGER),
        (["cooperative-sticky"], RebalanceProtocol.COOPERATIVE),
        (["range", "cooperative-sticky"], RebalanceProtocol.EAGER),
        (["sticky", "roundrobin"], RebalanceProtocol.EAGER),
    ],
)
def test_the_rebalance_protocol_is_the_highest_that_all_assignors_share(
    names: list[str], protocol: RebalanceProtocol
) -> None:
    from rejoin.client.assignors import assignor_named  # noqa: PLC0415

    assert common_protocol([assignor_named(name) for name in names]) is protocol


def test_assignors_without_a_common_protocol_are_refused() -> None:
    class OnlyCooperative(Broken):
        name = "only"
        protocols = (RebalanceProtocol.COOPERATIVE,)

    with pytest.raises(ValueError, match="range, only have no rebalance protocol in common"):
        Lab(assignors=["range", OnlyCooperative()])
