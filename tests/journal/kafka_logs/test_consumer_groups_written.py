"""Groups of the consumer protocol in the words of Kafka's own log, and read back from there."""

from __future__ import annotations

import re

from rejoin.coordinator.control.broker_log_writer.writer import BrokerLog
from rejoin.journal.kafka_logs.template import Version
from rejoin.pipeline.reading.broker_logs.messages import read_message
from rejoin.protocol.embedded.consumer_protocol import Subscription, encode_partitions, encode_subscription
from rejoin.protocol.messages.groups.leave_group import LeaveGroupRequest, MemberIdentity
from tests.coordinator.core.driver import GROUP
from tests.coordinator.core.groups.consumer_node import ORDERS, ConsumerNode

SUBSCRIPTION = encode_subscription(Subscription((ORDERS,)))
_OF_GROUP = re.compile(r"\[GroupId g\]|group g ")
_HASH = re.compile(r"(?<=with metadata hash )-?\d+")
_PREFIX = re.compile(r"\[[^\]]*\] (INFO|WARN) \[GroupCoordinator id=1[^\]]*\] (.*) \([\w.$]+\)")


def log_of(node: ConsumerNode, version: Version) -> list[str]:
    """What a broker of a version would have logged of a group."""
    log = BrokerLog(version, 1, 1)
    lines = [line for event in node.events for line in log.lines(event, 0)]
    found = [_PREFIX.fullmatch(line) for line in lines]
    return [_HASH.sub("H", match[2]) for match in found if match is not None and _OF_GROUP.search(match[2])]


def life() -> ConsumerNode:
    """A dynamic and a static member, each of which goes and comes."""
    node = ConsumerNode()
    node.heartbeat("a", 0)
    node.heartbeat("s", 0, instance_id="one")
    node.heartbeat("a", 2)
    node.heartbeat("a", 2, 0, 1)
    node.heartbeat("s", 3, instance_id="one")
    node.heartbeat("s", -2, instance_id="one")
    node.heartbeat("s2", 0, instance_id="one")
    node.heartbeat("a", -1)
    node.elapse(45_000)
    return node


def test_members_epochs_and_targets() -> None:
    assert log_of(life(), (4, 4)) == [
        "[GroupId g] Member a joins the consumer group using the consumer protocol.",
        "[GroupId g] Bumped group epoch to 2 with metadata hash H.",
        "[GroupId g] Computed a new target assignment for epoch 2 with 'uniform' assignor in 0ms.",
        "[GroupId g] Static member s with instance id one joins the consumer group using the consumer protocol.",
        "[GroupId g] Bumped group epoch to 3 with metadata hash H.",
        "[GroupId g] Computed a new target assignment for epoch 3 with 'uniform' assignor in 0ms.",
        "[GroupId g] Static member s with instance id one temporarily left the consumer group.",
        "[GroupId g] Static member with instance id one re-joins the consumer group using the consumer protocol. "
        "Created a new member s2 to replace the existing member s.",
        "[GroupId g] Member a left the consumer group.",
        "[GroupId g] Bumped group epoch to 4 with metadata hash H.",
        "[GroupId g] Member s2 fenced from the group because the member session expired.",
        "[GroupId g] Bumped group epoch to 5 with metadata hash H.",
    ]


def test_the_first_version_prints_no_hash_and_older_ones_have_no_such_groups() -> None:
    assert "[GroupId g] Bumped group epoch to 2." in log_of(life(), (4, 0))
    assert log_of(life(), (3, 9)) == []


def test_a_member_that_does_not_give_up_its_partitions() -> None:
    node = ConsumerNode()
    node.heartbeat("a", 0)
    node.heartbeat("b", 0)
    node.heartbeat("a", 2)
    for _ in range(6):
        node.elapse(10_000)
        node.heartbeat("a", 2)
        node.heartbeat("b", 3)
    fenced = "[GroupId g] Member a fenced from the group because it failed to transition from epoch 2 within 60000ms."
    assert fenced in log_of(node, (4, 4))


def test_a_group_that_is_upgraded_and_downgraded() -> None:
    node = ConsumerNode()
    given = encode_partitions([(ORDERS, 0)], None, 1)
    node.classic_members(2, (given, b""), SUBSCRIPTION)
    before = len(log_of(node, (4, 4)))
    node.heartbeat("m", 0)
    node.heartbeat("m", -1)
    lines = log_of(node, (4, 4))[before:]
    assert lines == [
        "[GroupId g] Converted the classic group to a consumer group.",
        "[GroupId g] Member m joins the consumer group using the consumer protocol.",
        "[GroupId g] Bumped group epoch to 2 with metadata hash H.",
        "[GroupId g] Computed a new target assignment for epoch 2 with 'uniform' assignor in 0ms.",
        "[GroupId g] Member m left the consumer group.",
        "Preparing to rebalance group g in state PreparingRebalance with old generation 2 (reason: Downgrade group g "
        "from consumer to classic for member leaving.).",
        "[GroupId g] Converted the consumer group to a classic group.",
    ]


def test_an_empty_group_that_changes_its_protocol() -> None:
    node = ConsumerNode()
    (member,) = node.classic_members(1, (b"",), SUBSCRIPTION)
    node.ask(LeaveGroupRequest(group_id=GROUP, members=(MemberIdentity(member_id=member),)), 5)
    node.heartbeat("m", 0)
    node.heartbeat("m", -1)
    node.classic_members(1, (b"",), SUBSCRIPTION)
    lines = [line for line in log_of(node, (4, 4)) if "Converted" in line]
    assert lines == [
        "[GroupId g] Converted the empty classic group to a consumer group.",
        "[GroupId g] Converted the empty consumer group to a classic group.",
    ]
    statements = [read_message(line) for line in lines]
    assert [each and (each.kind, each.group, each.values["protocol"]) for each in statements] == [
        ("converted_empty", "g", "consumer"),
        ("converted_empty", "g", "classic"),
    ]


def test_a_group_that_may_not_change() -> None:
    node = ConsumerNode(group_consumer_migration_policy="disabled")
    (member,) = node.classic_members(1, (b"",), SUBSCRIPTION)
    node.heartbeat("m", 0)
    refused = "Cannot upgrade classic group g to consumer group because online upgrade is disabled."
    assert log_of(node, (4, 4))[-1] == refused
    node.ask(LeaveGroupRequest(group_id=GROUP, members=(MemberIdentity(member_id=member),)), 5)


def test_a_broker_that_no_longer_leads_the_partition() -> None:
    node = ConsumerNode()
    node.heartbeat("a", 0)
    node.resign()
    log = BrokerLog((4, 4), 1, 1)
    lines = [line for event in node.events for line in log.lines(event, 0)]
    assert any("[GroupId=g] Unloaded group metadata for group epoch 2." in line for line in lines)
