"""Consumer groups as people see them: epochs, who has what, what is to be given up, and what it is all for."""

from __future__ import annotations

from typing import Any

from rejoin.coordinator.core.inputs import SessionLost
from rejoin.coordinator.core.views import ConsumerGroupView, ConsumerMemberView
from rejoin.protocol.messages.topics.create_topics import CreateTopicsRequest
from tests.coordinator.core.driver import GROUP, DrivenNode, join, topic
from tests.coordinator.core.groups.consumer_node import ConsumerNode
from tests.coordinator.core.groups.test_consumer_writes import heartbeat


def view_of(node: DrivenNode) -> ConsumerGroupView:
    view = node.node.describe_group(GROUP)
    assert isinstance(view, ConsumerGroupView)
    return view


def members_of(view: ConsumerGroupView) -> dict[str, Any]:
    """What each member has, is to give up and shall have; with its epoch."""
    found = {}
    for member in view.members:
        assert isinstance(member, ConsumerMemberView)
        held = (member.assignment, member.pending_revocation, member.target)
        found[member.member_id] = (member.member_epoch, *held)
    return found


def test_a_group_in_the_middle_of_reconciling_shows_who_holds_what() -> None:
    node = DrivenNode(group_consumer_assignment_interval_ms=0, group_consumer_min_assignment_interval_ms=0)
    node.ask(CreateTopicsRequest(topics=(topic("u", 2),)), 7)
    node.ask(heartbeat("a", subscribed_topic_names=("u",)), 1)
    view = view_of(node)
    assert (view.state, view.group_epoch, view.assignment_epoch, view.protocol) == ("Stable", 2, 2, "uniform")
    assert members_of(view) == {"a": (2, {"u": [0, 1]}, {}, {"u": [0, 1]})}
    began = view.state_since
    node.elapse(1_000)
    node.ask(heartbeat("b", subscribed_topic_names=("u",)), 1)
    node.ask(heartbeat("a", 2), 1)
    view = view_of(node)
    assert (view.state, view.previous_state) == ("Reconciling", "Stable")
    assert (view.group_epoch, view.assignment_epoch, view.state_since - began) == (3, 3, 1_000)
    (kept,), (wanted,) = members_of(view)["a"][1]["u"], members_of(view)["b"][3]["u"]
    assert {kept, wanted} == {0, 1}
    assert members_of(view) == {
        "a": (2, {"u": [kept]}, {"u": [wanted]}, {"u": [kept]}),
        "b": (3, {}, {}, {"u": [wanted]}),
    }
    first, second = (member.member_state for member in view.members if isinstance(member, ConsumerMemberView))
    assert (first, second) == ("UNREVOKED_PARTITIONS", "UNRELEASED_PARTITIONS")
    assert set(view.deadlines) == {"member_session a", "member_session b", "rebalance a"}
    assert view.subscribed_topics == ["u"]


def test_what_a_member_does_not_name_is_another_ones_at_once_also_if_it_is_just_taking_it_over() -> None:
    # Kafka: CurrentAssignmentBuilder.ownsRevokedPartitions; what the member was assigned with its last answer, and has
    # not acknowledged yet, is missing from its heartbeat as well.
    node = ConsumerNode()
    assert node.heartbeat("a", 0).member_epoch == 2
    node.heartbeat("b", 0)
    answer = node.heartbeat("a", 2, topic_partitions=())
    (kept,) = (each.partitions for each in answer.assignment.topic_partitions)
    (others,) = (each.partitions for each in node.heartbeat("b", 3).assignment.topic_partitions)
    assert sorted((*kept, *others)) == [0, 1, 2, 3]
    assert (answer.member_epoch, len(kept)) == (3, 2), "no revocation is waited for"


def test_a_snapshot_has_what_no_request_shows_and_is_of_one_kind_of_group() -> None:
    node = DrivenNode()
    node.ask(heartbeat("a"), 1)
    node.logs.defers_appends = True
    node.send(heartbeat("b"), 1)
    group = node.node.consumer_group(GROUP)
    assert group is not None
    assert (group.state, group.epoch, group.assignment_epoch) == ("Assigning", 3, 2)
    assert {each.member_id: (each.epoch, each.state.name) for each in group.members.values()} == {
        "a": (2, "STABLE"),
        "b": (2, "STABLE"),
    }
    assert list(group.members["a"].assigned.values()) == [frozenset({0})]
    assert group.members["a"].assigned == group.members["a"].target
    assert node.node.group(GROUP) is None
    assert node.node.consumer_group("h") is None


def test_a_member_whose_session_is_lost_is_gone() -> None:
    node = DrivenNode()
    node.ask(heartbeat("a"), 1)
    node.step(SessionLost(GROUP, "x"))
    assert list(members_of(view_of(node))) == ["a"]
    node.step(SessionLost(GROUP, "a"))
    assert (view_of(node).state, view_of(node).members) == ("Empty", [])


def test_a_classic_member_of_a_consumer_group_is_marked() -> None:
    node = DrivenNode()
    node.ask(heartbeat("a"), 1)
    node.ask(join(), 3)
    kinds = [
        (each.is_classic, each.protocols) for each in view_of(node).members if isinstance(each, ConsumerMemberView)
    ]
    assert kinds == [(False, []), (True, ["range"])]
    assert [member.session_timeout_ms for member in view_of(node).members] == [45_000, 10_000]
