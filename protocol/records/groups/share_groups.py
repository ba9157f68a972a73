"""The records of share groups (KIP-932) in ``__consumer_offsets``: keys 10 to 15.

Source: Kafka's ``ShareGroup...Key`` and ``ShareGroup...Value`` of 4.4. Only a tagged default is left out.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, TypeAlias

from rejoin.protocol.records.data import RecordData
from rejoin.protocol.records.groups.group_parts import (
    AssignmentEpoch,
    GroupPart,
    MemberPart,
    TargetPartitions,
    TopicPartitions,
)
from rejoin.protocol.types import Int8, Int32, Int64, PartitionIndex, TopicId, TopicName

# --- members


@dataclass(slots=True, kw_only=True)
class ShareGroupMemberMetadataValue(RecordData):
    """A member as it described itself."""

    rack_id: str | None = None
    client_id: str
    client_host: str
    subscribed_topic_names: tuple[TopicName, ...]


@dataclass(slots=True)
class ShareGroupMemberMetadataRecord(MemberPart[ShareGroupMemberMetadataValue]):
    """A member's own description, or the end of the member."""

    key_version: ClassVar[int] = 10


@dataclass(slots=True, kw_only=True)
class ShareGroupCurrentMemberAssignmentValue(RecordData):
    """A member's assignment. Its state is always 0: nothing is ever revoked."""

    member_epoch: Int32
    previous_member_epoch: Int32
    state: Int8
    assigned_partitions: tuple[TopicPartitions, ...]


@dataclass(slots=True)
class ShareGroupCurrentMemberAssignmentRecord(MemberPart[ShareGroupCurrentMemberAssignmentValue]):
    """The current assignment of a member, or its end."""

    key_version: ClassVar[int] = 14


# --- groups


@dataclass(slots=True, kw_only=True)
class ShareGroupMetadataValue(RecordData):
    """The group epoch, and the hash of the topics that the group is subscribed to."""

    epoch: Int32
    metadata_hash: Int64


@dataclass(slots=True)
class ShareGroupMetadataRecord(GroupPart[ShareGroupMetadataValue]):
    """A group, or its end."""

    key_version: ClassVar[int] = 11


@dataclass(slots=True)
class ShareGroupTargetAssignmentMetadataRecord(GroupPart[AssignmentEpoch]):
    """The epoch of a group's target assignment, or its end."""

    key_version: ClassVar[int] = 12


@dataclass(slots=True)
class ShareGroupTargetAssignmentMemberRecord(MemberPart[TargetPartitions]):
    """The target assignment of a member, or its end."""

    key_version: ClassVar[int] = 13


# --- share-partitions


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
class ShareGroupStatePartitionMetadataRecord(GroupPart[ShareGroupStatePartitionMetadataValue]):
    """The share-partitions of a group, or their end."""

    key_version: ClassVar[int] = 15


ShareGroupRecord: TypeAlias = (
    ShareGroupMemberMetadataRecord
    | ShareGroupMetadataRecord
    | ShareGroupTargetAssignmentMetadataRecord
    | ShareGroupTargetAssignmentMemberRecord
    | ShareGroupCurrentMemberAssignmentRecord
    | ShareGroupStatePartitionMetadataRecord
)
"""A record of a share group."""
