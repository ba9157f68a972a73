"""Requests about share groups, right and wrong: who may ask, in Kafka's order, and what is written when stores fail."""

from __future__ import annotations

from typing import Any

import pytest

from rejoin.coordinator.control.broker_log_writer.consumer_groups import ConsumerGroupLog
from rejoin.coordinator.core.groups.share.model.group import ShareGroup
from rejoin.journal.events.consumer_groups import GroupEpochBumped, MemberEpochFenced, MemberReconciled
from rejoin.journal.events.coordinator import GroupCreated, GroupStateChanged, MemberJoined, MemberRemoved
from rejoin.journal.events.share_groups import SharePartitionsInitialized, SharePartitionsInitializing
from rejoin.journal.recording.event_recorder import EventRecorder
from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.messages.cluster.update_features import FeatureUpdateKey, UpdateFeaturesRequest
from rejoin.protocol.messages.groups.leave_group import LeaveGroupRequest, MemberIdentity
from rejoin.protocol.messages.share.share_group_describe import ShareGroupDescribeRequest
from rejoin.protocol.messages.share.share_group_heartbeat import ShareGroupHeartbeatRequest
from rejoin.transcript.driver import NodeLogs
from tests.coordinator.core.driver import GROUP, PARTITION, TOPIC, DrivenNode
from tests.coordinator.core.groups.share.share_traces import TracePersister

ID = "AAAAAAAAAAAAAAAAAAAAAA"


class ShareNode(DrivenNode):
    """A node whose share coordinators answer when a test says so."""

    def __init__(self, **settings: Any) -> None:
        self.persister = TracePersister()
        super().__init__(leads=False, **settings)
        self.node._groups.persister = self.persister
        self.elect()

    def heartbeat(self, member_id: str = ID, epoch: int = 0, **given: Any) -> Any:
        if epoch == 0:
            given = {"subscribed_topic_names": (TOPIC,), **given}
        request = ShareGroupHeartbeatRequest(
            **{"group_id": GROUP, "member_id": member_id, "member_epoch": epoch, **given}
        )
        return self.ask(request, 1)

    def initialized(self, error: ErrorCode = ErrorCode.NONE) -> None:
        """The share coordinators answer the oldest request."""
        ctx = self.node._ctx
        ctx.now, ctx.effects = self.now, []
        self.persister.answer(error)
        effects, ctx.effects = ctx.effects, []
        for effect in effects:
            self.carry_out(effect)

    @property
    def share_group(self) -> ShareGroup:
        group = self.shard().groups[GROUP]
        assert isinstance(group, ShareGroup)
        return group

    def described(self) -> Any:
        return self.ask(ShareGroupDescribeRequest(group_ids=(GROUP,), include_authorized_operations=True), 1).groups[0]


@pytest.mark.parametrize(
    ("given", "error"),
    [
        ({"member_id": ""}, ErrorCode.INVALID_REQUEST),
        ({"member_id": "x" * 37}, ErrorCode.INVALID_REQUEST),
        ({"member_id": " "}, ErrorCode.INVALID_REQUEST),
        ({"group_id": ""}, ErrorCode.INVALID_REQUEST),
        ({"rack_id": ""}, ErrorCode.INVALID_REQUEST),
        ({"subscribed_topic_names": ()}, ErrorCode.INVALID_REQUEST),
        ({"subscribed_topic_names": None}, ErrorCode.INVALID_REQUEST),
        ({"member_epoch": -2}, ErrorCode.INVALID_REQUEST),
        ({"member_epoch": 1}, ErrorCode.GROUP_ID_NOT_FOUND),
        ({"member_epoch": -1}, ErrorCode.GROUP_ID_NOT_FOUND),
        ({"member_id": "x" * 36}, ErrorCode.NONE),
    ],
)
def test_what_a_heartbeat_may_say(given: dict[str, Any], error: ErrorCode) -> None:
    assert ShareNode().heartbeat(**given).error_code is error


def test_denials_come_before_what_is_wrong_with_a_heartbeat() -> None:
    denied = ShareNode(emulator_deny=("User:*:READ:group=g",))
    assert denied.heartbeat(member_id="").error_code is ErrorCode.GROUP_AUTHORIZATION_FAILED
    topics = ShareNode(emulator_deny=("User:*:DESCRIBE:topic=t",))
    assert topics.heartbeat(member_id="").error_code is ErrorCode.INVALID_REQUEST
    assert topics.heartbeat(rack_id="").error_code is ErrorCode.TOPIC_AUTHORIZATION_FAILED


def test_without_the_feature_there_are_no_share_groups() -> None:
    node = ShareNode()
    off = FeatureUpdateKey(feature="share.version", max_version_level=0, upgrade_type=2)
    assert node.ask(UpdateFeaturesRequest(feature_updates=(off,)), 2).error_code is ErrorCode.NONE
    assert node.heartbeat(member_id="").error_code is ErrorCode.UNSUPPORTED_VERSION
    assert node.described().error_code is ErrorCode.UNSUPPORTED_VERSION


def test_the_events_of_a_life() -> None:
    node = ShareNode()
    assert node.heartbeat().member_epoch == 2
    node.initialized()
    node.elapse(1_000)
    answer = node.heartbeat(epoch=2)
    assert (answer.member_epoch, answer.assignment.topic_partitions[0].partitions) == (3, (0,))
    assert node.heartbeat(epoch=9).error_code is ErrorCode.FENCED_MEMBER_EPOCH
    node.elapse(45_000)
    kinds = (
        *(GroupCreated, MemberJoined, SharePartitionsInitializing, GroupEpochBumped, MemberReconciled),
        *(GroupStateChanged, SharePartitionsInitialized, MemberEpochFenced, MemberRemoved),
    )
    seen = [type(event) for event in node.events if isinstance(event, kinds)]
    assert seen == [
        *(GroupCreated, MemberJoined, SharePartitionsInitializing, GroupEpochBumped, MemberReconciled),
        *(GroupStateChanged, SharePartitionsInitialized, GroupEpochBumped, MemberReconciled, MemberEpochFenced),
        *(MemberRemoved, GroupEpochBumped, GroupStateChanged),
    ]
    assert [event.cause.cause for event in node.emitted(GroupEpochBumped)] == [
        *("join-new", "partitions-initialized", "session-expiry"),
    ]
    assert {event.group_type for event in node.emitted(GroupCreated)} == {"share"}


def test_a_failed_initialisation_is_tried_again_by_the_next_heartbeat() -> None:
    node = ShareNode()
    node.heartbeat()
    node.initialized(ErrorCode.COORDINATOR_NOT_AVAILABLE)
    assert node.persister.waiting == []
    node.heartbeat(epoch=2)
    assert len(node.persister.waiting) == 1
    (failed,) = node.emitted(SharePartitionsInitialized)
    assert failed.error == "COORDINATOR_NOT_AVAILABLE"


def test_an_initialisation_without_an_answer_is_tried_again_after_half_a_minute() -> None:
    node = ShareNode()
    node.heartbeat()
    node.elapse(29_999)
    node.heartbeat(epoch=2)
    assert len(node.persister.waiting) == 1
    node.elapse(1)
    node.heartbeat(epoch=2)
    assert len(node.persister.waiting) == 2


def test_what_could_not_be_stored_is_undone_and_nothing_is_initialised() -> None:
    logs = NodeLogs()
    node = ShareNode(logs=logs)
    logs.error = ErrorCode.NOT_ENOUGH_REPLICAS
    assert node.heartbeat().error_code is ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert GROUP not in node.shard().groups
    assert node.persister.waiting == []
    logs.error = None
    assert node.heartbeat().member_epoch == 2


def test_a_description_shows_what_is_stored() -> None:
    logs = NodeLogs()
    node = ShareNode(logs=logs)
    logs.defers_appends = True
    assert node.heartbeat() is None
    assert node.described().error_code is ErrorCode.GROUP_ID_NOT_FOUND
    logs.end_append()
    described = node.described()
    assert (described.error_code, described.group_state, described.assignor_name) == (0, "Stable", "simple")
    assert described.authorized_operations == 3400


def test_a_compacted_log_makes_the_same_group() -> None:
    node = ShareNode()
    node.heartbeat()
    node.initialized()
    node.elapse(1_000)
    node.heartbeat(epoch=2)
    before = node.share_group
    records = [record for _, record in node.shard().group_records()]
    log = node.logs.of(PARTITION).records
    node.resign()
    log[:] = sorted(records, key=lambda record: -record.key.version)
    node.elect()
    after = node.share_group
    assert after is not before
    assert (after.epoch, after.assignment_epoch, after.metadata_hash) == (3, 3, before.metadata_hash)
    assert (after.members, after.targets) == (before.members, before.targets)
    assert after.state_partitions is not None
    assert before.state_partitions is not None
    assert after.state_partitions.initialized.keys() == before.state_partitions.initialized.keys()


def test_a_member_of_another_protocol_is_unknown() -> None:
    node = ShareNode()
    node.heartbeat()
    leave = LeaveGroupRequest(group_id=GROUP, members=(MemberIdentity(member_id=ID),))
    assert [each.error_code for each in node.ask(leave, 5).members] == [ErrorCode.UNKNOWN_MEMBER_ID]
    view = node.node.describe_group(GROUP)
    assert view is not None
    assert (view.state, view.protocol, [each.member_id for each in view.members]) == ("Stable", "simple", [ID])
    assert node.node.describe().groups_by_type == {"classic": 0, "consumer": 0, "share": 1, "streams": 0}


def test_a_late_answer_changes_nothing_where_the_group_is_led_no_more() -> None:
    node = ShareNode()
    node.heartbeat()
    node.resign()
    node.initialized()
    node.elect()
    states = node.share_group.state_partitions
    assert states is not None
    assert not states.initialized


def test_a_recording_shows_each_member_that_shares_a_partition() -> None:
    node = ShareNode()
    node.heartbeat()
    node.heartbeat("B" * 22)
    node.initialized()
    node.elapse(1_000)
    node.heartbeat(epoch=2)
    node.heartbeat("B" * 22, 2)
    recorder = EventRecorder()
    for event in node.events:
        recorder.on_event("node-1", event, node.now)
    owners = [row for row in recorder.rows["owners"] if row[1] == GROUP]
    assert [(topic, index, by) for _, _, topic, index, _, by in owners] == [(TOPIC, 0, 1), (TOPIC, 0, 1)]
    assert len({name for *_, name, _ in owners}) == 2
    assert recorder.rows["rebalances"] == []


def test_the_end_of_a_member_bumps_the_epoch_of_a_share_group_without_a_line() -> None:
    node = ShareNode()
    node.heartbeat()
    node.heartbeat(epoch=-1)
    log = ConsumerGroupLog((4, 4))
    written = [lines for event in node.events if (lines := log.lines(event)) is not None]
    kinds = [template.kind for lines in written for template, _ in lines]
    assert kinds[:2] == ["modern_joined", "modern_subscribed"]
    assert kinds.index("modern_left") > kinds.index("modern_bumped")
    assert "modern_bumped" not in kinds[kinds.index("modern_left") :]
