"""The records of ``__consumer_offsets``, in the JSON that Kafka's console consumer prints for them.

Source: Kafka's ``GroupMetadataKey``/``Value`` and ``OffsetCommitKey``/``Value``. Field names are the records'
own, which differ from the requests' (``sessionTimeout``, not ``sessionTimeoutMs``). A record without a value
is a tombstone.
"""

from __future__ import annotations

from typing import Final, Literal

from pydantic import TypeAdapter

from rejoin.protocol.message import Struct
from rejoin.protocol.types import Bytes, Int16, Int32, Int64, TopicPartition

OFFSETS_TOPIC: Final = "__consumer_offsets"


class OffsetCommitKey(Struct):
    """Which offset: of one partition, for one group."""

    group: str
    topic: str
    partition: Int32


class OffsetCommitValue(Struct):
    """A committed offset. Timestamps are ms since 1970; an expiry of its own is in version 1 only (-1: none)."""

    offset: Int64
    leader_epoch: Int32 = -1
    metadata: str = ""
    commit_timestamp: Int64
    expire_timestamp: Int64 = -1


class MemberMetadata(Struct):
    """A member as it is stored: its subscription for the selected protocol only. Timeouts in ms."""

    member_id: str
    group_instance_id: str | None = None
    client_id: str
    client_host: str
    rebalance_timeout: Int32 = -1
    session_timeout: Int32
    subscription: Bytes
    assignment: Bytes


class GroupMetadataKey(Struct):
    """Which group."""

    group: str


class GroupMetadataValue(Struct):
    """A group as it was when its leader's assignment was stored, or when it turned Empty."""

    protocol_type: str
    generation: Int32
    protocol: str | None
    leader: str | None
    current_state_timestamp: Int64 = -1
    members: tuple[MemberMetadata, ...]


class VersionedOffsetCommitKey(Struct):
    """The key of an offset record with its version, 1."""

    version: Literal[0, 1] = 1
    data: OffsetCommitKey


class VersionedGroupMetadataKey(Struct):
    """The key of a group record with its version, 2."""

    version: Literal[2] = 2
    data: GroupMetadataKey


class VersionedOffsetCommitValue(Struct):
    """The value of an offset record: version 3, or 1 where it carries its own expiry."""

    version: Literal[0, 1, 2, 3, 4] = 3
    data: OffsetCommitValue


class VersionedGroupMetadataValue(Struct):
    """The value of a group record, version 3."""

    version: Literal[0, 1, 2, 3, 4] = 3
    data: GroupMetadataValue


class OffsetRecord(Struct):
    """A committed offset, or its end. With a producer id it counts only once that producer's transaction commits."""

    key: VersionedOffsetCommitKey
    value: VersionedOffsetCommitValue | None = None
    producer_id: Int64 = -1


class GroupRecord(Struct):
    """A group, or its end."""

    key: VersionedGroupMetadataKey
    value: VersionedGroupMetadataValue | None = None


class TransactionMarker(Struct):
    """The end of a producer's transaction in this offsets partition. Kafka keeps it as a control batch."""

    producer_id: Int64
    producer_epoch: Int16
    committed: bool


Record = OffsetRecord | GroupRecord | TransactionMarker
"""One entry of an offsets partition."""

RECORDS: Final[TypeAdapter[Record]] = TypeAdapter(Record)
"""Reads and writes a record as one JSON object."""


def offsets_partition(index: int) -> TopicPartition:
    """A partition of the offsets topic."""
    return TopicPartition(OFFSETS_TOPIC, index)


def group_record(group_id: str, value: GroupMetadataValue | None) -> GroupRecord:
    """The record of a group; without a value its tombstone."""
    versioned = None if value is None else VersionedGroupMetadataValue(data=value)
    return GroupRecord(key=VersionedGroupMetadataKey(data=GroupMetadataKey(group=group_id)), value=versioned)


def offset_record(
    group_id: str, topic: str, partition: int, value: OffsetCommitValue | None, producer_id: int = -1
) -> OffsetRecord:
    """The record of a committed offset; without a value its tombstone."""
    key = VersionedOffsetCommitKey(data=OffsetCommitKey(group=group_id, topic=topic, partition=partition))
    if value is None:
        return OffsetRecord(key=key)
    # Kafka: GroupCoordinatorRecordHelpers. Only version 1 has a place for an expiry of the offset's own.
    version: Literal[1, 3] = 3 if value.expire_timestamp == -1 else 1
    return OffsetRecord(key=key, value=VersionedOffsetCommitValue(version=version, data=value), producer_id=producer_id)
