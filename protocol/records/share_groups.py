"""The records of share groups (KIP-932) in ``__consumer_offsets``: keys 10 to 15.

Source: Kafka's ``ShareGroup...Key`` and ``ShareGroup...Value`` of 4.4. They are made as those of consumer groups are
(``consumer_groups.py``): each part of a group has a record of its own, and only a tagged default is left out.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Final, TypeAlias

from rejoin.protocol.records.data import RecordData
from rejoin.protocol.records.keyed import KeyedRecord, VersionedData
from rejoin.protocol.types import GroupId, In, Int8, Int32, Int64, MemberId, PartitionIndex, TopicId, TopicName

MEMBER_KEY: Final = 10
GROUP_KEY: Final = 11
TARGET_METADATA_KEY: Final = 12
TARGET_MEMBER_KEY: Final = 13
CURRENT_ASSIGNMENT_KEY: Final = 14
STATE_PARTITIONS_KEY: Final = 15

_VALUE_VERSION: Final = 0


@dataclass(slots=True, kw_only=True)
class ShareTopicPartitions(RecordData):
    """Partitions of one topic."""

    topic_id: TopicId
    partitions: tuple[PartitionIndex, ...]


# --- members


@dataclass(slots=True, unsafe_hash=True, kw_only=True)
class ShareGroupMemberMetadataKey(RecordData):
    """Which member of which group."""

    group_id: GroupId
    member_id: MemberId


@dataclass(slots=True, kw_only=True)
class ShareGroupMemberMetadataValue(RecordData):
    """A member as it described itself."""

    rack_id: str | None = None
    client_id: str
    client_host: str
    subscribed_topic_names: tuple[TopicName, ...]


@dataclass(slots=True)
class ShareGroupMemberMetadataRecord(KeyedRecord[ShareGroupMemberMetadataKey, ShareGroupMemberMetadataValue]):
    """A member's own description, or the end of the member."""


@dataclass(slots=True, unsafe_hash=True, kw_only=True)
class ShareGroupCurrentMemberAssignmentKey(RecordData):
    """Which member of which group."""

    group_id: GroupId
    member_id: MemberId


@dataclass(slots=True, kw_only=True)
class ShareGroupCurrentMemberAssignmentValue(RecordData):
    """A member's assignment. Its state is always 0: nothing is ever revoked."""

    member_epoch: Int32
    previous_member_epoch: Int32
    state: Int8
    assigned_partitions: tuple[ShareTopicPartitions, ...]


@dataclass(slots=True)
class ShareGroupCurrentMemberAssignmentRecord(
    KeyedRecord[ShareGroupCurrentMemberAssignmentKey, ShareGroupCurrentMemberAssignmentValue]
):
    """The current assignment of a member, or its end."""


# --- groups


@dataclass(slots=True, unsafe_hash=True, kw_only=True)
class ShareGroupMetadataKey(RecordData):
    """Which group."""

    group_id: GroupId


@dataclass(slots=True, kw_only=True)
class ShareGroupMetadataValue(RecordData):
    """The group epoch, and the hash of the topics that the group is subscribed to."""

    epoch: Int32
    metadata_hash: Int64


@dataclass(slots=True)
class ShareGroupMetadataRecord(KeyedRecord[ShareGroupMetadataKey, ShareGroupMetadataValue]):
    """A group, or its end."""


@dataclass(slots=True, unsafe_hash=True, kw_only=True)
class ShareGroupTargetAssignmentMetadataKey(RecordData):
    """Which group."""

    group_id: GroupId


@dataclass(slots=True, kw_only=True)
class ShareGroupTargetAssignmentMetadataValue(RecordData):
    """The group epoch that the target assignment was computed for, and when that was; 0: the next one need not wait."""

    assignment_epoch: Int32
    assignment_timestamp: Annotated[Int64, In(0, tag=0)] = 0


@dataclass(slots=True)
class ShareGroupTargetAssignmentMetadataRecord(
    KeyedRecord[ShareGroupTargetAssignmentMetadataKey, ShareGroupTargetAssignmentMetadataValue]
):
    """The epoch of a group's target assignment, or its end."""


@dataclass(slots=True, unsafe_hash=True, kw_only=True)
class ShareGroupTargetAssignmentMemberKey(RecordData):
    """Which member of which group."""

    group_id: GroupId
    member_id: MemberId


@dataclass(slots=True, kw_only=True)
class ShareGroupTargetAssignmentMemberValue(RecordData):
    """A member's target assignment."""

    topic_partitions: tuple[ShareTopicPartitions, ...]


@dataclass(slots=True)
class ShareGroupTargetAssignmentMemberRecord(
    KeyedRecord[ShareGroupTargetAssignmentMemberKey, ShareGroupTargetAssignmentMemberValue]
):
    """The target assignment of a member, or its end."""


# --- share-partitions


@dataclass(slots=True, unsafe_hash=True, kw_only=True)
class ShareGroupStatePartitionMetadataKey(RecordData):
    """Which group."""

    group_id: GroupId


@dataclass(slots=True, kw_only=True)
class StateTopicPartitions(RecordData):
    """Share-partitions of one topic."""

    topic_id: TopicId
    topic_name: TopicName
    partitions: tuple[PartitionIndex, ...]


@dataclass(slots=True, kw_only=True)
class DeletingTopic(RecordData):
    """A topic all of whose share-partitions are deleted."""

    topic_id: TopicId
    topic_name: TopicName


@dataclass(slots=True, kw_only=True)
class ShareGroupStatePartitionMetadataValue(RecordData):
    """The share-partitions whose state is being made, is there, or is being deleted."""

    initializing_topics: tuple[StateTopicPartitions, ...]
    initialized_topics: tuple[StateTopicPartitions, ...]
    deleting_topics: tuple[DeletingTopic, ...]


@dataclass(slots=True)
class ShareGroupStatePartitionMetadataRecord(
    KeyedRecord[ShareGroupStatePartitionMetadataKey, ShareGroupStatePartitionMetadataValue]
):
    """The share-partitions of a group, or their end."""


ShareGroupRecord: TypeAlias = (
    ShareGroupMemberMetadataRecord
    | ShareGroupMetadataRecord
    | ShareGroupTargetAssignmentMetadataRecord
    | ShareGroupTargetAssignmentMemberRecord
    | ShareGroupCurrentMemberAssignmentRecord
    | ShareGroupStatePartitionMetadataRecord
)
"""A record of a share group."""


def share_group_record(group_id: str, value: ShareGroupMetadataValue | None) -> ShareGroupMetadataRecord:
    """The record of a group's epoch; without a value its tombstone."""
    key = VersionedData(GROUP_KEY, ShareGroupMetadataKey(group_id=group_id))
    return ShareGroupMetadataRecord(key, None if value is None else VersionedData(_VALUE_VERSION, value))


def share_member_record(
    group_id: str, member_id: str, value: ShareGroupMemberMetadataValue | None
) -> ShareGroupMemberMetadataRecord:
    """The record of a member's description; without a value its tombstone."""
    key = VersionedData(MEMBER_KEY, ShareGroupMemberMetadataKey(group_id=group_id, member_id=member_id))
    return ShareGroupMemberMetadataRecord(key, None if value is None else VersionedData(_VALUE_VERSION, value))


def share_target_epoch_record(
    group_id: str, value: ShareGroupTargetAssignmentMetadataValue | None
) -> ShareGroupTargetAssignmentMetadataRecord:
    """The record of the assignment epoch; without a value its tombstone."""
    key = VersionedData(TARGET_METADATA_KEY, ShareGroupTargetAssignmentMetadataKey(group_id=group_id))
    versioned = None if value is None else VersionedData(_VALUE_VERSION, value)
    return ShareGroupTargetAssignmentMetadataRecord(key, versioned)


def share_target_record(
    group_id: str, member_id: str, value: ShareGroupTargetAssignmentMemberValue | None
) -> ShareGroupTargetAssignmentMemberRecord:
    """The record of a member's target assignment; a tombstone without a value."""
    data = ShareGroupTargetAssignmentMemberKey(group_id=group_id, member_id=member_id)
    versioned = None if value is None else VersionedData(_VALUE_VERSION, value)
    return ShareGroupTargetAssignmentMemberRecord(VersionedData(TARGET_MEMBER_KEY, data), versioned)


def share_current_record(
    group_id: str, member_id: str, value: ShareGroupCurrentMemberAssignmentValue | None
) -> ShareGroupCurrentMemberAssignmentRecord:
    """The record of a member's current assignment; a tombstone without a value."""
    data = ShareGroupCurrentMemberAssignmentKey(group_id=group_id, member_id=member_id)
    versioned = None if value is None else VersionedData(_VALUE_VERSION, value)
    return ShareGroupCurrentMemberAssignmentRecord(VersionedData(CURRENT_ASSIGNMENT_KEY, data), versioned)


def share_state_record(
    group_id: str, value: ShareGroupStatePartitionMetadataValue | None
) -> ShareGroupStatePartitionMetadataRecord:
    """The record of a group's share-partitions; a tombstone without a value."""
    key = VersionedData(STATE_PARTITIONS_KEY, ShareGroupStatePartitionMetadataKey(group_id=group_id))
    versioned = None if value is None else VersionedData(_VALUE_VERSION, value)
    return ShareGroupStatePartitionMetadataRecord(key, versioned)
