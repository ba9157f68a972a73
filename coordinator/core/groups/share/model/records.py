"""Conversions between the state of a share group and its records, in both directions.

Kafka: GroupCoordinatorRecordHelpers.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from rejoin.coordinator.core.groups.modern.epochs import PartitionsByTopicId
from rejoin.coordinator.core.groups.modern.records import PartRecords, assignment_epoch
from rejoin.coordinator.core.groups.share.model.group import ShareGroup
from rejoin.coordinator.core.groups.share.model.member import (
    NEW_ASSIGNMENT,
    NEW_METADATA,
    RELEASED,
    CurrentShare,
    ShareMemberMetadata,
)
from rejoin.coordinator.core.groups.share.model.state_partitions import PartitionsInState, StatePartitions, StateTopics
from rejoin.coordinator.core.inputs import Millis
from rejoin.protocol.java import utf16_sorted
from rejoin.protocol.records.groups import share_groups as stored
from rejoin.protocol.records.groups.group_parts import TargetPartitions, partitions_of, topic_partitions
from rejoin.protocol.records.groups.share_groups import ShareGroupRecord

PARTS: Final = PartRecords(
    epoch=stored.ShareGroupMetadataRecord,
    member=stored.ShareGroupMemberMetadataRecord,
    target_epoch=stored.ShareGroupTargetAssignmentMetadataRecord,
    target=stored.ShareGroupTargetAssignmentMemberRecord,
    current=stored.ShareGroupCurrentMemberAssignmentRecord,
)

# --- to records


def epoch_record(group_id: str, epoch: int, metadata_hash: int) -> ShareGroupRecord:
    """The group's epoch."""
    value = stored.ShareGroupMetadataValue(epoch=epoch, metadata_hash=metadata_hash)
    return stored.ShareGroupMetadataRecord.of(group_id, value)


def metadata_record(group_id: str, member_id: str, metadata: ShareMemberMetadata) -> ShareGroupRecord:
    """A member as it describes itself."""
    return stored.ShareGroupMemberMetadataRecord.of(
        group_id,
        member_id,
        stored.ShareGroupMemberMetadataValue(
            rack_id=metadata.rack_id,
            client_id=metadata.client_id,
            client_host=metadata.client_host,
            subscribed_topic_names=tuple(utf16_sorted(metadata.topic_names)),
        ),
    )


def target_epoch_record(group_id: str, epoch: int, at: Millis) -> ShareGroupRecord:
    """The epoch of the target, and when it was computed."""
    return stored.ShareGroupTargetAssignmentMetadataRecord.of(group_id, assignment_epoch(epoch, at))


def target_record(group_id: str, member_id: str, target: PartitionsByTopicId) -> ShareGroupRecord:
    """Record of a member's target assignment."""
    value = TargetPartitions(topic_partitions=topic_partitions(target))
    return stored.ShareGroupTargetAssignmentMemberRecord.of(group_id, member_id, value)


def current_record(group_id: str, member_id: str, current: CurrentShare) -> ShareGroupRecord:
    """Record of a member's current assignment."""
    return stored.ShareGroupCurrentMemberAssignmentRecord.of(
        group_id,
        member_id,
        stored.ShareGroupCurrentMemberAssignmentValue(
            member_epoch=current.epoch,
            previous_member_epoch=current.previous_epoch,
            state=0,
            assigned_partitions=topic_partitions(current.assigned),
        ),
    )


def state_record(group_id: str, state_partitions: StatePartitions) -> ShareGroupRecord:
    """Record of a group's share-partitions."""
    return stored.ShareGroupStatePartitionMetadataRecord.of(
        group_id,
        stored.ShareGroupStatePartitionMetadataValue(
            initializing_topics=_state_topics(state_partitions.initializing),
            initialized_topics=_state_topics(state_partitions.initialized),
            deleting_topics=tuple(
                stored.DeletingTopic(topic_id=topic_id, topic_name=name)
                for topic_id, name in state_partitions.deleting.items()
            ),
        ),
    )


def _state_topics(topics: StateTopics) -> tuple[stored.StateTopicPartitions, ...]:
    return tuple(
        stored.StateTopicPartitions(
            topic_id=topic_id, topic_name=state.name, partitions=tuple(sorted(state.partitions))
        )
        for topic_id, state in topics.items()
    )


def group_records(group: ShareGroup) -> list[ShareGroupRecord]:
    """Everything that a group has in the log."""
    group_id, members = group.group_id, group.members.values()
    # A compacted log may have one record of a member and not yet the other.
    records = [
        metadata_record(group_id, each.member_id, each.metadata)
        for each in members
        if each.metadata is not NEW_METADATA
    ]
    if group.epoch > group.first_epoch:
        records.append(epoch_record(group_id, group.epoch, group.metadata_hash))
    records += [target_record(group_id, member_id, target) for member_id, target in group.targets.items()]
    if group.targets or group.assignment_epoch > group.first_epoch:
        records.append(target_epoch_record(group_id, group.assignment_epoch, group.assignment_at))
    records += [
        current_record(group_id, each.member_id, each.current)
        for each in members
        if each.current is not NEW_ASSIGNMENT and each.current is not RELEASED
    ]
    if group.state_partitions is not None:
        records.append(state_record(group_id, group.state_partitions))
    return records


def group_tombstones(group_id: str) -> list[ShareGroupRecord]:
    """The end of everything that a group without members has in the log."""
    return [
        stored.ShareGroupTargetAssignmentMetadataRecord.of(group_id, None),
        stored.ShareGroupStatePartitionMetadataRecord.of(group_id, None),
        stored.ShareGroupMetadataRecord.of(group_id, None),
    ]


# --- from records


def metadata_of(value: stored.ShareGroupMemberMetadataValue) -> ShareMemberMetadata:
    """A member as its record describes it."""
    return ShareMemberMetadata(
        rack_id=value.rack_id,
        client_id=value.client_id,
        client_host=value.client_host,
        topic_names=frozenset(value.subscribed_topic_names),
    )


def current_of(value: stored.ShareGroupCurrentMemberAssignmentValue) -> CurrentShare:
    """A member's current assignment, from its record."""
    return CurrentShare(
        epoch=value.member_epoch,
        previous_epoch=value.previous_member_epoch,
        assigned=partitions_of(value.assigned_partitions),
    )


def state_partitions_of(value: stored.ShareGroupStatePartitionMetadataValue, now: Millis) -> StatePartitions:
    """A group's share-partitions, from their record."""
    return StatePartitions(
        _states(value.initializing_topics, now),
        _states(value.initialized_topics, now),
        {topic.topic_id: topic.topic_name for topic in value.deleting_topics},
    )


def _states(topics: Iterable[stored.StateTopicPartitions], now: Millis) -> StateTopics:
    return {topic.topic_id: PartitionsInState(topic.topic_name, frozenset(topic.partitions), now) for topic in topics}
