"""How a consumer joins: the requests it sends, in order, and their contents."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from rejoin.client.assignors import Assignments, Assignor, ClusterView, MemberSubscription, RebalanceProtocol
from rejoin.client.core.errors import AssignorFailedError, IllegalStateError, UnexpectedError
from rejoin.client.core.inputs import RebalanceEnforced
from rejoin.client.core.state.membership import MemberState
from rejoin.client.core.step_context import common_protocol
from rejoin.protocol.embedded.consumer_protocol import decode_assignment, decode_subscription
from rejoin.protocol.errors import ErrorCode as E
from rejoin.protocol.types import TopicPartition
from tests.client.core.bench import Bench


def test_a_dynamic_consumer_joins_its_first_group() -> None:
    bench = Bench(ends={"t-0": 10, "t-1": 3}, auto_offset_reset="earliest")
    bench.subscribe("t")
    bench.poll()
    assert bench.take() == ["FindCoordinator"]
    bench.find_coordinator()
    assert bench.take() == ["JoinGroup '' reason=''"]
    bench.give_member_id("m")
    assert bench.take() == ["JoinGroup 'm' reason='need to re-join with the given member-id: m'"]
    bench.joined(1)
    assert bench.take() == ["SyncGroup gen=1 assignments=0"]
    bench.synced("t-0", "t-1")
    assert bench.take() == ["on_partitions_assigned [t-0 t-1]", "poll -> t-0[0,10) t-1[0,3)"]
    assert bench.core.member_state is MemberState.STABLE


def test_what_a_join_group_says() -> None:
    bench = Bench(
        assignors=["range", "cooperative-sticky"],
        session_timeout_ms=10_000,
        max_poll_interval_ms=60_000,
        client_rack="r1",
        group_instance_id="i",
    )
    bench.subscribe("u", "t")
    bench.poll()
    bench.find_coordinator()
    request: Any = bench.find("JoinGroup").request
    assert (request.session_timeout_ms, request.rebalance_timeout_ms) == (10_000, 60_000)
    assert (request.member_id, request.group_instance_id, request.protocol_type) == ("", "i", "consumer")
    assert [protocol.name for protocol in request.protocols] == ["range", "cooperative-sticky"]
    subscription = decode_subscription(request.protocols[0].metadata)
    assert (subscription.topics, subscription.owned_partitions, subscription.generation_id, subscription.rack_id) == (
        ("t", "u"),
        (),
        -1,
        "r1",
    )


def test_a_cooperative_consumer_sends_what_it_owns_and_its_generation() -> None:
    bench = Bench(assignors=["cooperative-sticky"], enable_auto_commit=False).stable("t-0", generation=4)
    bench.step(RebalanceEnforced())
    request: Any = bench.find("JoinGroup").request
    subscription = decode_subscription(request.protocols[0].metadata)
    assert (subscription.owned_partitions, subscription.generation_id) == ((TopicPartition("t", 0),), 4)


@pytest.mark.parametrize(
    ("request_timeout", "max_poll_interval", "timeout"), [(30_000, 300_000, 305_000), (30_000, 10_000, 30_000)]
)
def test_a_join_group_may_take_as_long_as_the_rebalance(
    request_timeout: int, max_poll_interval: int, timeout: int
) -> None:
    bench = Bench(request_timeout_ms=request_timeout, max_poll_interval_ms=max_poll_interval)
    bench.subscribe("t")
    bench.poll()
    bench.find_coordinator()
    assert bench.find("JoinGroup").timeout_ms == timeout


def test_old_versions_of_requests_are_spoken() -> None:
    versions = {"FindCoordinator": 3, "JoinGroup": 3, "SyncGroup": 2, "OffsetFetch": 9, "LeaveGroup": 2}
    bench = Bench(versions=versions)
    bench.subscribe("t")
    bench.poll()
    for api, check in (("FindCoordinator", "key"), ("JoinGroup", "protocols")):
        send = bench.find(api)
        send.request.check_version(send.version)
        assert getattr(send.request, check)
        if api == "FindCoordinator":
            from rejoin.protocol.messages.cluster.find_coordinator import FindCoordinatorResponse  # noqa: PLC0415

            bench.answer(api, response=FindCoordinatorResponse(node_id=1, host="h", port=1))
    bench.joined(1)
    send = bench.find("SyncGroup")
    send.request.check_version(send.version)
    bench.synced("t-0")
    bench.step_out_of_poll()
    bench.lines.clear()
    bench.step_close_and_answer()
    leave: Any = bench.sent["LeaveGroup"].request
    leave.check_version(2)
    assert leave.member_id == "m"


def test_an_answer_to_join_group_waits_for_the_next_poll() -> None:
    bench = Bench()
    bench.subscribe("t")
    bench.poll(100)
    bench.find_coordinator()
    bench.give_member_id()
    bench.advance(100)
    assert bench.take()[-1] == "poll -> nothing"
    bench.joined(1)
    assert bench.take() == []
    assert bench.core.member_state is MemberState.PREPARING_REBALANCE
    bench.poll(100)
    assert bench.take() == ["SyncGroup gen=1 assignments=0"]


def test_an_answer_to_sync_group_does_not_wait_but_its_callbacks_do() -> None:
    bench = Bench()
    bench.subscribe("t")
    bench.poll(100)
    bench.find_coordinator()
    bench.give_member_id()
    bench.joined(1)
    bench.advance(100)
    bench.take()
    bench.synced("t-0")
    assert bench.core.member_state is MemberState.STABLE
    assert bench.take() == []
    bench.poll(0)
    assert bench.take() == ["on_partitions_assigned [t-0]", "poll -> nothing"]


def test_a_membership_that_ends_between_sync_and_callbacks_starts_again() -> None:
    bench = Bench()
    bench.subscribe("t")
    bench.poll(100)
    bench.find_coordinator()
    bench.give_member_id()
    bench.joined(1)
    bench.advance(100)
    bench.synced("t-0")
    bench.advance(3_000)
    bench.answer("Heartbeat", E.UNKNOWN_MEMBER_ID)
    bench.take()
    bench.poll(0)
    assert bench.take() == [
        "JoinGroup '' reason=\"rebalance failed since the generation/state was modified by heartbeat thread to "
        "Generation{generationId=-1, memberId='', protocol='null'}/UNJOINED before the rebalance callback triggered\"",
        "poll -> nothing",
    ]


# -- reasons (KIP-800)


def test_reason_of_a_heartbeat_that_says_the_group_rebalances() -> None:
    bench = Bench(enable_auto_commit=False).stable("t-0")
    bench.advance(3_000)
    bench.answer("Heartbeat", E.REBALANCE_IN_PROGRESS)
    assert bench.take()[-1] == "JoinGroup 'm' reason='group is already rebalancing'"


def test_reason_of_a_changed_subscription() -> None:
    bench = Bench(enable_auto_commit=False, topics={"t": 1, "u": 1}).stable("t-0")
    bench.subscribe("t", "u")
    assert bench.take()[-1] == "JoinGroup 'm' reason='subscription has changed'"


def test_reason_of_an_enforced_rebalance() -> None:
    bench = Bench(enable_auto_commit=False).stable("t-0")
    bench.step(RebalanceEnforced("because"))
    assert bench.take()[-1] == "JoinGroup 'm' reason='because'"
    bench = Bench(enable_auto_commit=False).stable("t-0")
    bench.step(RebalanceEnforced())
    assert bench.take()[-1] == "JoinGroup 'm' reason='rebalance enforced by user'"


def test_reason_of_a_commit_during_a_rebalance() -> None:
    bench = Bench(enable_auto_commit=False).stable("t-0")
    bench.step_out_of_poll()
    bench.commit("sync", {"t-0": 1})
    bench.answer("OffsetCommit", E.REBALANCE_IN_PROGRESS)
    bench.take()
    bench.poll(0)
    assert "JoinGroup 'm' reason='offset commit failed since group is already rebalancing'" in bench.take()


def test_reason_of_an_assignment_that_does_not_fit() -> None:
    bench = Bench(enable_auto_commit=False, topics={"t": 1, "u": 1})
    bench.subscribe("t")
    bench.poll()
    bench.find_coordinator()
    bench.give_member_id()
    bench.joined(1)
    bench.take()
    bench.synced("u-0")
    assert bench.take() == [
        "on_partitions_revoked []",
        "JoinGroup 'm' reason='received assignment does not match the current subscription'",
    ]
    assert bench.core.assignment() == []


def test_a_long_reason_is_cut_to_255_characters() -> None:
    bench = Bench(enable_auto_commit=False).stable("t-0")
    bench.step(RebalanceEnforced("x" * 300))
    request: Any = bench.find("JoinGroup").request
    assert request.reason == "x" * 255


# -- leading


def leader_at_sync(bench: Bench, *members: Any, generation: int = 1, **fields: Any) -> None:
    bench.subscribe("t")
    bench.poll(10_000_000)
    bench.find_coordinator()
    if not bench.config.is_static:
        bench.give_member_id()
    bench.take()
    bench.joined(generation, leader="m", members=members, **fields)


def given(bench: Bench) -> dict[str, list[tuple[str, int]]]:
    request: Any = bench.find("SyncGroup").request
    return {each.member_id: list(decode_assignment(each.assignment).partitions) for each in request.assignments}


def test_the_leader_assigns_the_topics_of_every_member() -> None:
    bench = Bench(topics={"t": 2, "u": 1})
    leader_at_sync(bench, bench.member("m", "t"), bench.member("n", "t", "u"))
    assert given(bench) == {"m": [("t", 0)], "n": [("t", 1), ("u", 0)]}
    assert bench.core.is_leader


def test_the_leader_asks_for_topics_of_others_before_it_assigns() -> None:
    bench = Bench(topics={"t": 2, "u": 1})
    bench.subscribe("t")
    bench.poll()
    bench.find_coordinator()
    bench.give_member_id()
    bench.auto.discard("Metadata")
    bench.joined(1, leader="m", members=(bench.member("m", "t"), bench.member("n", "u")))
    assert not bench.is_open("SyncGroup")
    asked: Any = bench.find("Metadata").request
    assert [topic.name for topic in asked.topics] == ["t", "u"]
    bench.answer("Metadata")
    assert given(bench) == {"m": [("t", 0), ("t", 1)], "n": [("u", 0)]}


def test_a_leader_that_is_removed_while_it_asks_joins_again() -> None:
    bench = Bench(topics={"t": 2, "u": 1})
    bench.subscribe("t")
    bench.poll(10_000)
    bench.find_coordinator()
    bench.give_member_id()
    bench.auto.discard("Metadata")
    bench.joined(1, leader="m", members=(bench.member("m", "t"), bench.member("n", "u")))
    bench.advance(3_000)
    bench.answer("Heartbeat", E.UNKNOWN_MEMBER_ID)
    assert bench.take()[-1] == "JoinGroup '' reason='rebalance failed due to IllegalGenerationException'"


def test_a_returning_static_leader_skips_the_assignment() -> None:
    bench = Bench(group_instance_id="i", enable_auto_commit=False)
    leader_at_sync(bench, bench.member("m", "t"), generation=7, skip_assignment=True)
    assert given(bench) == {}
    assert bench.core.is_leader
    bench.synced("t-0")
    assert "assignment_skipped" in bench.names()
    bench.take()
    bench.auto.add("Heartbeat")
    bench.topics["t"] = 3
    bench.advance(bench.config.metadata_max_age_ms)
    assert "JoinGroup 'm' reason='cached metadata has changed'" in bench.take(), "it watches the topics again"


class BrokenAssignor(Assignor):
    """Raises, or gives a partition twice."""

    name = "broken"
    how = "raise"

    def assign(self, cluster: ClusterView, members: Mapping[str, MemberSubscription]) -> Assignments:
        if self.how == "raise":
            raise RuntimeError("no idea")
        return {member: [("t", 0), ("t", 1)] for member in members}


class Doubling(BrokenAssignor):
    name = "doubling"
    how = "double"


def test_an_assignor_that_raises_is_raised_from_poll_and_the_group_goes_on() -> None:
    bench = Bench(assignors=[BrokenAssignor()])
    leader_at_sync(bench, bench.member("m", "t"))
    assert not bench.is_open("SyncGroup")
    assert [type(each) for each in bench.raised] == [AssignorFailedError]
    assert "no idea" in str(bench.raised[0])
    assert bench.core.member_state is MemberState.COMPLETING_REBALANCE
    bench.take()
    bench.advance(3_000)
    assert bench.take() == ["Heartbeat gen=1"], "the others are freed by the next join, or when this one goes silent"
    bench.poll()
    assert bench.take() == ["JoinGroup 'm' reason='rebalance failed due to KafkaException'"]


def test_an_assignor_that_breaks_a_rule_is_named_with_partition_and_member() -> None:
    bench = Bench(assignors=[Doubling()])
    leader_at_sync(bench, bench.member("m", "t"), bench.member("n", "t"))
    error = bench.raised[0]
    assert isinstance(error, AssignorFailedError)
    assert (error.partition, error.member_id) == (("t", 0), "n")
    assert str(error) == "assignor doubling: t-0 given to m and to n"
    assert [event.name for event in bench.events if event.name == "assignor_failed"] == ["assignor_failed"]


def test_a_member_whose_subscription_cannot_be_read_is_named() -> None:
    bench = Bench()
    broken = bench.member("n").model_copy(update={"metadata": b"\x00"})
    leader_at_sync(bench, bench.member("m", "t"), broken)
    error = bench.raised[0]
    assert isinstance(error, AssignorFailedError)
    assert error.member_id == "n"


def test_a_protocol_that_was_not_offered_is_an_illegal_state() -> None:
    bench = Bench()
    leader_at_sync(bench, protocol_name="other")
    assert [type(each) for each in bench.raised] == [IllegalStateError]


@pytest.mark.parametrize("data", [b"", b"\x00"])
def test_an_assignment_that_is_none_raises_from_every_poll(data: bytes) -> None:
    bench = Bench()
    bench.subscribe("t")
    bench.poll()
    bench.find_coordinator()
    bench.give_member_id()
    bench.joined(1)
    bench.answer("SyncGroup", assignment=data)
    bench.poll()
    assert [type(each) for each in bench.raised] == [IllegalStateError, IllegalStateError]


def test_a_foreign_protocol_type_is_refused() -> None:
    bench = Bench()
    bench.subscribe("t")
    bench.poll()
    bench.find_coordinator()
    bench.answer(
        "JoinGroup", generation_id=1, member_id="m", leader="x", protocol_type="connect", protocol_name="range"
    )
    assert len(bench.raised) == 1
    assert not isinstance(bench.raised[0], UnexpectedError)


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
    class OnlyCooperative(BrokenAssignor):
        name = "only"
        protocols = (RebalanceProtocol.COOPERATIVE,)

    with pytest.raises(ValueError, match="range, only have no rebalance protocol in common"):
        Bench(assignors=["range", OnlyCooperative()])
