"""The events of share groups: epochs, targets, and members that take them over.

They are made from the records of a change when it is stored, so an event never says what the log does not have. There
are no rebalances: nothing is revoked, and no member waits for another.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from rejoin.coordinator.core.groups.modern.changes import RecordChanges
from rejoin.coordinator.core.groups.modern.metadata import TopicsMetadata
from rejoin.coordinator.core.groups.share.assignor import SIMPLE
from rejoin.coordinator.core.groups.share.model.group import ShareGroup
from rejoin.coordinator.core.groups.share.model.member import ShareMember, ShareMemberMetadata
from rejoin.coordinator.core.groups.share.model.state import SHARE
from rejoin.coordinator.core.inputs import Millis
from rejoin.coordinator.core.step_context import StepContext
from rejoin.journal.events.base import Event, PartitionsByTopic
from rejoin.journal.events.consumer_groups import GroupEpochBumped, MemberReconciled, TargetAssignmentComputed
from rejoin.journal.events.coordinator import (
    Cause,
    GroupCreated,
    GroupLoaded,
    GroupStateChanged,
    MemberJoined,
    MemberRejoined,
    Ownership,
)
from rejoin.protocol.records.groups.group_parts import TopicPartitions
from rejoin.protocol.records.groups.share_groups import (
    ShareGroupCurrentMemberAssignmentRecord,
    ShareGroupMetadataRecord,
    ShareGroupTargetAssignmentMemberRecord,
    ShareGroupTargetAssignmentMetadataRecord,
)

_TOPICS_CHANGED: Final = Cause(cause="topic-metadata")


class ShareGroupEvents:
    """Emits what becomes of the groups of one shard."""

    def __init__(self, ctx: StepContext, topics: TopicsMetadata, offsets_partition: int) -> None:
        self._ctx = ctx
        self._topics = topics
        self._offsets_partition = offsets_partition
        self._names: dict[str, str] = {}
        """Topics by id, also those that are gone."""

    def loaded(self, group: ShareGroup) -> None:
        """A group was read from the log."""
        self._ctx.emit(
            GroupLoaded(
                group_id=group.group_id,
                offsets_partition=self._offsets_partition,
                state=group.state,
                generation=group.epoch,
                members=list(group.members),
                offset_count=0,
                group_type=SHARE,
            )
        )

    def stored(self, group: ShareGroup, changes: RecordChanges) -> None:
        """A change is in the log."""
        group_id = group.group_id
        before = group.shown_state
        if not group.persisted:
            group.persisted = True
            group.state_since = self._ctx.now
            partition = self._offsets_partition
            self._ctx.emit(GroupCreated(group_id=group_id, offsets_partition=partition, simple=False, group_type=SHARE))
        for event in changes.events:
            self._ctx.emit(event)
        target: Ownership = {}
        for record in changes.records:
            match record:
                case ShareGroupMetadataRecord() if record.value is not None:
                    self._ctx.emit(
                        GroupEpochBumped(
                            group_id=group_id,
                            generation=record.value.data.epoch,
                            metadata_hash=str(record.value.data.metadata_hash),
                            cause=changes.cause or _TOPICS_CHANGED,
                            state=before,
                        )
                    )
                case ShareGroupTargetAssignmentMemberRecord() if record.value is not None:
                    target[record.key.data.member_id] = self._named(record.value.data.topic_partitions)
                case ShareGroupTargetAssignmentMetadataRecord() if record.value is not None and changes.assignor:
                    self._ctx.emit(
                        TargetAssignmentComputed(
                            group_id=group_id,
                            generation=record.value.data.assignment_epoch,
                            assignor=changes.assignor,
                            member_count=len(group.members),
                            target=target,
                        )
                    )
                case ShareGroupCurrentMemberAssignmentRecord() if record.value is not None:
                    self._ctx.emit(
                        MemberReconciled(
                            group_id=group_id,
                            member_id=record.key.data.member_id,
                            group_instance_id=None,
                            member_epoch=record.value.data.member_epoch,
                            partitions=self._named(record.value.data.assigned_partitions),
                            waited_ms=0,
                        )
                    )
        self._show_state(group)

    def _show_state(self, group: ShareGroup) -> None:
        before, after = group.shown_state, group.state
        if before is not after:
            group.shown_state, group.previous_state, group.state_since = after, before, self._ctx.now
            self._ctx.emit(
                GroupStateChanged(group_id=group.group_id, previous_state=before, state=after, generation=group.epoch)
            )

    def _named(self, topics: Iterable[TopicPartitions]) -> PartitionsByTopic:
        named = {self._name(topic.topic_id): list(topic.partitions) for topic in topics}
        return dict(sorted(named.items()))

    def _name(self, topic_id: str) -> str:
        name = self._topics.named(topic_id)
        if name is None:
            return self._names.get(topic_id, topic_id)
        self._names[topic_id] = name
        return name


def coming(
    group: ShareGroup,
    member: ShareMember | None,
    member_id: str,
    after: ShareMemberMetadata,
    session_timeout_ms: Millis,
    *,
    rejoins: bool,
) -> list[Event]:
    """Events of a member's request: the member is new, rejoins, or changes its subscription."""
    topics = sorted(after.topic_names)
    if member is None:
        joined = MemberJoined(
            group_id=group.group_id,
            member_id=member_id,
            group_instance_id=None,
            client_id=after.client_id,
            client_host=after.client_host,
            session_timeout_ms=session_timeout_ms,
            rebalance_timeout_ms=-1,
            protocols=[SIMPLE],
            topics=topics,
            state=group.state,
            client_reason=None,
            member_type=SHARE,
        )
        return [joined]
    changed = member.metadata.topic_names != after.topic_names
    if not changed and not rejoins:
        return []
    rejoined = MemberRejoined(
        group_id=group.group_id,
        member_id=member_id,
        group_instance_id=None,
        protocols=[SIMPLE],
        topics=topics,
        state=group.state,
        changed=changed,
        client_reason=None,
        member_type=SHARE,
    )
    return [rejoined]
