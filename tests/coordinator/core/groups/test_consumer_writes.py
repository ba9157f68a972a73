"""What a consumer group is while its records are being written, and where they cannot be."""

from __future__ import annotations

from typing import Any

from rejoin.coordinator.core.groups.consumer.model.group import ConsumerGroup
from rejoin.protocol.embedded.consumer_protocol import Subscription, encode_partitions, encode_subscription
from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.messages.groups.consumer_group_describe import ConsumerGroupDescribeRequest
from rejoin.protocol.messages.groups.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from rejoin.protocol.messages.groups.join_group import JoinGroupRequestProtocol
from tests.coordinator.core.driver import GROUP, TOPIC, DrivenNode
from tests.coordinator.core.groups.consumer_node import ORDERS, ConsumerNode

SUBSCRIPTION = encode_subscription(Subscription((ORDERS,)))


def heartbeat(member_id: str, epoch: int = 0, **given: Any) -> ConsumerGroupHeartbeatRequest:
    joining: dict[str, Any] = {
        "rebalance_timeout_ms": 60_000,
        "subscribed_topic_names": (TOPIC,),
        "topic_partitions": (),
    }
    return ConsumerGroupHeartbeatRequest(
        group_id=GROUP, member_id=member_id, member_epoch=epoch, **((joining if epoch == 0 else {}) | given)
    )


def group_of(node: DrivenNode) -> ConsumerGroup | None:
    group = node.shard().groups.get(GROUP)
    assert group is None or isinstance(group, ConsumerGroup)
    return group


def described(node: DrivenNode) -> Any:
    request = ConsumerGroupDescribeRequest(group_ids=(GROUP,), include_authorized_operations=False)
    return node.ask(request, 1).groups[0]


def test_a_group_whose_first_records_cannot_be_written_never_was() -> None:
    node = DrivenNode()
    node.logs.error = ErrorCode.NOT_ENOUGH_REPLICAS
    assert node.ask(heartbeat("a"), 1).error_code is ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert group_of(node) is None
    node.logs.error = None
    assert node.ask(heartbeat("a"), 1).member_epoch == 2


def test_a_member_whose_records_cannot_be_written_is_none_and_what_came_later_stays() -> None:
    node = DrivenNode()
    node.ask(heartbeat("a"), 1)
    node.logs.defers_appends = True
    second, third = node.send(heartbeat("b"), 1), node.send(heartbeat("c"), 1)
    group = group_of(node)
    assert group is not None
    assert list(group.members) == ["a", "b", "c"]
    assert len(described(node).members) == 1  # as the log has it
    node.logs.defers_appends = False
    node.logs.end_append(ErrorCode.NOT_ENOUGH_REPLICAS)
    node.logs.end_append()
    assert node.replies[second].error_code is ErrorCode.COORDINATOR_NOT_AVAILABLE  # type: ignore[attr-defined]
    assert node.replies[third].error_code is ErrorCode.NONE  # type: ignore[attr-defined]
    assert list(group.members) == ["a", "c"]


def test_the_switch_for_offloading_assignors_is_accepted_and_changes_nothing() -> None:
    """Kafka 4.4: with it on, too, assignors run inside the request; the answer has the new target already."""
    played = []
    for offloads in (True, False):
        node = DrivenNode(group_consumer_assignor_offload_enable=offloads)
        joined = [node.ask(heartbeat("a"), 1)]
        node.elapse(1_000)
        joined.append(node.ask(heartbeat("b"), 1))
        played.append((joined, node.log))
    assert [each.member_epoch for each in played[0][0]] == [2, 3]
    assert played[0] == played[1]


def test_a_heartbeat_waits_for_the_records_before_it() -> None:
    node = DrivenNode()
    node.ask(heartbeat("a"), 1)
    node.ask(heartbeat("a", 2), 1)
    node.logs.defers_appends = True
    left = node.send(heartbeat("b"), 1)
    waiting = node.send(heartbeat("a", 2), 1)
    assert node.replies.keys().isdisjoint({left, waiting})
    while node.logs.pending_appends:
        node.logs.end_append()
    assert {left, waiting} <= node.replies.keys()


def test_a_group_that_is_loaded_goes_on_in_its_epochs() -> None:
    node = DrivenNode()
    node.ask(heartbeat("a"), 1)
    before = described(node)
    node.resign()
    node.elect()
    assert described(node) == before
    assert node.ask(heartbeat("a", 2), 1).member_epoch == 2


def test_what_reads_a_group_on_its_way_back_answers_none_of_its_members() -> None:
    node = ConsumerNode(group_consumer_migration_policy="bidirectional")
    classic, _ = node.classic_members(2, (encode_partitions([(ORDERS, 0), (ORDERS, 1)], None, 1), b""), SUBSCRIPTION)
    node.heartbeat("b", 0)
    node.logs.defers_appends = True
    node.send(heartbeat("b", -1), 1)
    joins = node.send(node.join_request((JoinGroupRequestProtocol(name="range", metadata=SUBSCRIPTION),), classic), 5)
    assert len(described(node).members) == 3  # as the log has it
    assert joins not in node.replies
    node.logs.end_append(ErrorCode.NOT_ENOUGH_REPLICAS)
    assert node.replies[joins].error_code is ErrorCode.NOT_COORDINATOR  # type: ignore[attr-defined]
    assert len(described(node).members) == 3
