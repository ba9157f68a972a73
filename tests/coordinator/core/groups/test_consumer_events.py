"""What consumer groups report: epochs, targets, who gives up what, who waits for whom, and rebalances."""

from __future__ import annotations

import pytest

from rejoin.journal.events.consumer_groups import ConversionRefused, GroupConverted
from rejoin.journal.events.coordinator import RebalanceCompleted, RebalanceStarted, StaticMemberReplaced
from rejoin.protocol.embedded.consumer_protocol import Subscription, encode_partitions, encode_subscription
from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.messages.groups.leave_group import LeaveGroupRequest, MemberIdentity
from rejoin.protocol.messages.topics.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from tests.coordinator.core.driver import GROUP
from tests.coordinator.core.groups.consumer_node import ORDERS, ConsumerNode

SUBSCRIPTION = encode_subscription(Subscription((ORDERS,)))
FIRST_TWO = encode_partitions([(ORDERS, 0), (ORDERS, 1)], None, 1)
LAST_TWO = encode_partitions([(ORDERS, 2), (ORDERS, 3)], None, 1)


def node_of_two() -> ConsumerNode:
    """Two members, each with two partitions, at rest in epoch 3."""
    node = ConsumerNode()
    node.heartbeat("a", 0)
    node.heartbeat("b", 0)
    node.heartbeat("a", 2)
    node.heartbeat("a", 2, 0, 1)
    node.heartbeat("b", 3)
    node.new_events()
    return node


def test_the_first_member_begins_and_ends_a_rebalance_with_its_heartbeat() -> None:
    node = ConsumerNode()
    node.heartbeat("a", 0)
    assert node.new_events() == [
        "created",
        "a joined",
        "group epoch 2: a joined",
        "rebalance: a joined",
        "target of epoch 2 by uniform: a orders:0-3",
        "a reached epoch 2: orders:0-3",
        "Empty -> Stable",
        "rebalanced in 0 ms, 0 moved, 4 regained: a orders:0-3",
    ]


def test_a_rebalance_lasts_from_the_new_epoch_until_all_members_have_reached_it() -> None:
    node = ConsumerNode()
    node.heartbeat("a", 0)
    node.new_events()
    node.heartbeat("b", 0)
    assert node.new_events() == [
        "b joined",
        "group epoch 3: b joined",
        "rebalance: b joined",
        "target of epoch 3 by uniform: a orders:0-1, b orders:2-3",
        "b in epoch 3 waits for orders:2-3 of a",
        "Stable -> Reconciling",
    ]
    node.elapse(5_000)
    node.heartbeat("a", 2)
    assert node.new_events() == ["a is to give up orders:2-3, still in epoch 2 (at most 60000 ms)"]
    node.elapse(700)
    node.heartbeat("a", 2, 0, 1)
    assert node.new_events() == ["a has given up orders:2-3 after 700 ms", "a reached epoch 3: orders:0-1"]
    node.elapse(300)
    node.heartbeat("b", 3)
    assert node.new_events() == [
        "b reached epoch 3: orders:2-3",
        "Reconciling -> Stable",
        "rebalanced in 6000 ms, 2 moved, 0 regained: a orders:0-1, b orders:2-3",
    ]
    done = node.emitted(RebalanceCompleted)[-1]
    assert (done.generation, done.group_type, done.leader, done.join_ms, done.sync_ms) == (3, "consumer", None, 0, 6000)
    assert done.owned_before == {"a": {ORDERS: [0, 1, 2, 3]}}


def test_an_epoch_during_a_rebalance_lets_it_begin_anew_and_its_first_cause_counts() -> None:
    node = ConsumerNode()
    node.heartbeat("a", 0)
    node.heartbeat("b", 0)
    node.heartbeat("c", 0)
    assert [event.cause.member_id for event in node.emitted(RebalanceStarted)] == ["a", "b", "c"]
    node.heartbeat("a", 2)
    node.heartbeat("a", 2, 0, 1)
    node.heartbeat("b", 3)
    node.heartbeat("c", 4)
    done = node.emitted(RebalanceCompleted)[-1]
    assert (done.cause.member_id, done.attempts, done.generation) == ("b", 2, 4)


def test_a_bump_before_the_target_belongs_to_the_rebalance_that_has_begun() -> None:
    node = ConsumerNode(group_consumer_assignment_interval_ms=1_000)
    node.heartbeat("a", 0)
    node.heartbeat("b", 0)
    node.heartbeat("c", 0)
    node.new_events()
    assert [event.cause.member_id for event in node.emitted(RebalanceStarted)] == ["a", "b"]
    node.elapse(1_000)
    node.heartbeat("a", 2)
    assert "target of epoch 4 by uniform: a orders:0-1, b orders:2, c orders:3" in node.new_events()


def test_a_member_that_leaves_begins_a_rebalance_and_the_last_one_ends_it_empty() -> None:
    node = node_of_two()
    node.heartbeat("b", -1)
    assert node.new_events() == [
        "b removed (left)",
        "group epoch 4: b left",
        "rebalance: b left",
        "Stable -> Assigning",
    ]
    node.heartbeat("a", 3)
    assert node.new_events() == [
        "target of epoch 4 by uniform: a orders:0-3",
        "a reached epoch 4: orders:0-3",
        "Assigning -> Stable",
        "rebalanced in 0 ms, 0 moved, 2 regained: a orders:0-3",
    ]
    node.heartbeat("a", -1)
    assert node.new_events() == [
        "a removed (left)",
        "group epoch 5: a left",
        "rebalance: a left",
        "Stable -> Empty",
        "generation 5 is empty",
    ]


def test_a_session_and_a_rebalance_timeout_are_causes() -> None:
    node = node_of_two()
    node.elapse(44_000)
    node.heartbeat("a", 3)
    node.elapse(1_000)
    assert node.emitted(RebalanceStarted)[-1].cause.cause == "session-expiry"
    node = ConsumerNode()
    node.heartbeat("a", 0)
    node.heartbeat("b", 0)
    node.heartbeat("a", 2)
    for _ in range(6):
        node.elapse(10_000)
        node.heartbeat("a", 2)
        node.heartbeat("b", 3)
    cause = node.emitted(RebalanceStarted)[-1].cause
    assert (cause.cause, cause.member_id) == ("rebalance-expiry", "a")


def test_a_topic_that_grows_and_a_changed_subscription_are_causes() -> None:
    node = node_of_two()
    grown = (CreatePartitionsTopic(name=ORDERS, count=6, assignments=None),)
    node.ask(CreatePartitionsRequest(topics=grown, timeout_ms=1, validate_only=False), 3, principal="User:setup")
    node.heartbeat("a", 3)
    assert "group epoch 4: the subscribed topics have changed" in node.new_events()
    node.heartbeat("b", 3, subscribed_topic_names=("t",))
    assert node.new_events()[:3] == [
        "b rejoined with changed metadata",
        "group epoch 5: b joined again with changed metadata",
        "rebalance: b joined again with changed metadata",
    ]


def test_an_assignor_that_most_members_ask_for_is_a_cause() -> None:
    node = node_of_two()
    node.heartbeat("a", 3, server_assignor="range")
    assert "group epoch 4: with a most members ask for another assignor" in node.new_events()


def test_a_static_member_that_comes_back_is_the_same_member_and_no_rebalance_begins() -> None:
    node = ConsumerNode()
    node.heartbeat("a", 0, instance_id="one")
    node.new_events()
    node.heartbeat("a", -2, instance_id="one")
    assert node.new_events() == ["one left for a moment and keeps orders:0-3: a", "Stable -> Reconciling"]
    node.heartbeat("a2", 0, instance_id="one")
    assert node.new_events() == [
        "one is back: a2 replaces a, without a rebalance",
        "a2 reached epoch 2: orders:0-3",
        "Reconciling -> Stable",
    ]
    assert node.emitted(StaticMemberReplaced)[-1].session_timeout_ms == 45_000
    node.heartbeat("b", 0)
    node.heartbeat("a2", 2, instance_id="one")
    node.heartbeat("a2", 2, 0, 1, instance_id="one")
    node.heartbeat("b", 3)
    done = node.emitted(RebalanceCompleted)[-1]
    assert (done.members_before, done.moved) == (["a2"], 2)


def test_a_member_with_an_old_epoch_is_fenced() -> None:
    node = node_of_two()
    assert node.heartbeat("a", 1).error_code is ErrorCode.FENCED_MEMBER_EPOCH
    assert node.new_events() == ["a fenced with epoch 1: it is in 3"]


def test_what_is_not_stored_is_not_reported() -> None:
    node = node_of_two()
    node.logs.error = ErrorCode.NOT_ENOUGH_REPLICAS
    node.heartbeat("c", 0)
    assert not [line for line in node.new_events() if "append" not in line]
    node.logs.error = None
    node.heartbeat("c", 0)
    assert node.new_events()[:2] == ["c joined", "group epoch 4: c joined"]


def test_a_coordinator_that_loads_a_group_goes_on_with_its_rebalance() -> None:
    node = ConsumerNode()
    node.heartbeat("a", 0)
    node.heartbeat("b", 0)
    node.resign()
    node.elect()
    begun = node.emitted(RebalanceStarted)[-1]
    assert (begun.cause.cause, begun.previous_state, begun.members) == ("failover", "Reconciling", ["a", "b"])
    node.heartbeat("a", 2)
    node.heartbeat("a", 2, 0, 1)
    node.heartbeat("b", 3)
    done = node.emitted(RebalanceCompleted)[-1]
    assert (done.moved, done.owned_after) == (2, {"a": {ORDERS: [0, 1]}, "b": {ORDERS: [2, 3]}})


def test_a_classic_group_that_is_upgraded_and_downgraded_says_so() -> None:
    node = ConsumerNode()
    members = node.classic_members(2, (FIRST_TWO, LAST_TWO), SUBSCRIPTION)
    node.new_events()
    assert node.heartbeat("m", 0).error_code is ErrorCode.NONE
    lines = node.new_events()
    assert lines[:4] == [
        "a consumer group from epoch 1 on, through m",
        "m joined",
        "group epoch 2: m is the first with the consumer protocol",
        "rebalance: m is the first with the consumer protocol",
    ]
    assert "created" not in lines
    assert node.emitted(RebalanceStarted)[-1].previous_state == "Stable"
    node.heartbeat("m", -1)
    assert node.emitted(GroupConverted)[-1].group_type == "classic"
    begun = node.emitted(RebalanceStarted)[-1]
    assert (begun.cause.cause, begun.group_type, begun.members) == ("downgrade", "classic", members)


@pytest.mark.parametrize(
    ("policy", "user_data", "reason"),
    [("disabled", None, "policy"), ("bidirectional", b"mine", "user-data")],
)
def test_a_group_that_cannot_move_says_why_and_because_of_whom(
    policy: str, user_data: bytes | None, reason: str
) -> None:
    node = ConsumerNode(group_consumer_migration_policy=policy)
    given = encode_partitions([(ORDERS, 0)], user_data, 1)
    (classic,) = node.classic_members(1, (given,), SUBSCRIPTION)
    assert node.heartbeat("m", 0).error_code is ErrorCode.GROUP_ID_NOT_FOUND
    (refused,) = node.emitted(ConversionRefused)
    culprit = classic if reason == "user-data" else None
    assert (refused.group_type, refused.member_id, refused.reason, refused.culprit) == (
        "consumer",
        "m",
        reason,
        culprit,
    )


def test_a_group_that_cannot_go_back_says_why() -> None:
    node = ConsumerNode(group_consumer_migration_policy="upgrade")
    node.classic_members(1, (FIRST_TWO,), SUBSCRIPTION)
    node.heartbeat("m", 0)
    node.ask(LeaveGroupRequest(group_id=GROUP, members=(MemberIdentity(member_id="m"),)), 5)
    (refused,) = node.emitted(ConversionRefused)
    assert (refused.group_type, refused.member_id, refused.reason) == ("classic", "m", "policy")
