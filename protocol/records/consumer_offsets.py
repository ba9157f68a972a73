"""The records of ``__consumer_offsets``, in the JSON that Kafka's console consumer prints for them.

Source: Kafka's ``GroupMetadataKey``/``Value`` and ``OffsetCommitKey``/``Value``. Field names are the records'
own, which differ from the requests' (``sessionTimeout``, not ``sessionTimeoutMs``).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Final

from rejoin.protocol.records.data import RecordData
from rejoin.protocol.records.keyed import KeyedRecord, VersionedData
from rejoin.protocol.types import (
    ZERO_UUID,
    Bytes,
    GroupId,
    GroupInstanceId,
    In,
    Int32,
    Int64,
    MemberId,
    PartitionIndex,
    TopicId,
    TopicName,
    TopicPartition,
)

OFFSETS_TOPIC: Final = "__consumer_offsets"

OFFSETS_TOPIC_ID: Final = "Y29uc3VtZXJfb2Zmc2V0cw"
"""Constant over nodes and runs. Kafka's is random."""

OFFSET_COMMIT_KEY: Final = 1
GROUP_METADATA_KEY: Final = 2
GROUP_METADATA_VALUE: Final = 3


@dataclass(slots=True, unsafe_hash=True, kw_only=True)
class OffsetCommitKey(RecordData):
    """Which offset: of one partition, for one group."""

    group: GroupId
    topic: TopicName
    partition: PartitionIndex


@dataclass(slots=True, kw_only=True)
class OffsetCommitValue(RecordData):
    """A committed offset. Timestamps are ms since 1970; an expiry of its own is in version 1 only (-1: none).

    Version 4 has the topic id.
    """

    offset: Int64
    leader_epoch: Annotated[Int32, In(3)] = -1
    metadata: str = ""
    commit_timestamp: Int64
    expire_timestamp: Annotated[Int64, In(1, 1)] = -1
    topic_id: Annotated[TopicId, In(4, tag=0)] = ZERO_UUID


@dataclass(slots=True, kw_only=True)
class MemberMetadata(RecordData):
    """A member as it is stored: its subscription for the selected protocol only. Timeouts in ms."""

    member_id: MemberId
    group_instance_id: Annotated[GroupInstanceId | None, In(3)] = None
    client_id: str
    client_host: str
    rebalance_timeout: Annotated[Int32, In(1)] = -1
    session_timeout: Int32
    subscription: Bytes
    assignment: Bytes


@dataclass(slots=True, unsafe_hash=True, kw_only=True)
class GroupMetadataKey(RecordData):
    """Which group."""

    group: GroupId


@dataclass(slots=True, kw_only=True)
class GroupMetadataValue(RecordData):
    """A group as it was when its leader's assignment was stored, or when it turned Empty."""

    protocol_type: str
    generation: Int32
    protocol: str | None
    leader: str | None
    current_state_timestamp: Annotated[Int64, In(2)] = -1
    members: tuple[MemberMetadata, ...]


@dataclass(slots=True)
class OffsetRecord(KeyedRecord[OffsetCommitKey, OffsetCommitValue]):
    """A committed offset, or its end. With a producer id it counts only once that producer's transaction commits."""


@dataclass(slots=True)
class GroupRecord(KeyedRecord[GroupMetadataKey, GroupMetadataValue]):
    """A group, or its end."""


def offsets_partition(index: int) -> TopicPartition:
    """A partition of the offsets topic."""
    return TopicPartition(OFFSETS_TOPIC, index)


def group_record(group_id: str, value: GroupMetadataValue | None) -> GroupRecord:
    """The record of a group; without a value its tombstone."""
    key = VersionedData(GROUP_METADATA_KEY, GroupMetadataKey(group=group_id))
    return GroupRecord(key, None if value is None else VersionedData(GROUP_METADATA_VALUE, value))


def offset_record(
    group_id: str, topic: str, partition: int, value: OffsetCommitValue | None, producer_id: int = -1
) -> OffsetRecord:
    """The record of a committed offset; without a value its tombstone."""
    key = VersionedData(OFFSET_COMMIT_KEY, OffsetCommitKey(group=group_id, topic=topic, partition=partition))
    if value is None:
        return OffsetRecord(key)
    # Kafka: GroupCoordinatorRecordHelpers. Only version 1 has a place for an expiry of the offset's own.
    version = 1 if value.expire_timestamp != -1 else 3 if value.topic_id == ZERO_UUID else 4
    return OffsetRecord(key, VersionedData(version, value), producer_id)
