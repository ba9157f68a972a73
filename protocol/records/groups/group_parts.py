"""Records of groups that have one for each part of their state: consumer groups, share groups and streams groups.

The key is a group, or a member of one, and its version is the type of the record. Values are of version 0. Without a
value a record is the tombstone of that part.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Annotated, ClassVar, Final, Self

from rejoin.protocol.records.data import RecordData
from rejoin.protocol.records.keyed import KeyedRecord, Value, VersionedData
from rejoin.protocol.types import GroupId, In, Int32, Int64, MemberId, PartitionIndex, TopicId

VALUE_VERSION: Final = 0


@dataclass(slots=True, unsafe_hash=True, kw_only=True)
class GroupPartKey(RecordData):
    """Which group."""

    group_id: GroupId


@dataclass(slots=True, unsafe_hash=True, kw_only=True)
class MemberPartKey(RecordData):
    """Which member of which group."""

    group_id: GroupId
    member_id: MemberId


@dataclass(slots=True)
class GroupPart(KeyedRecord[GroupPartKey, Value]):
    """A record about a whole group."""

    key_version: ClassVar[int]

    @classmethod
    def of(cls, group_id: str, value: Value | None) -> Self:
        """The record of a group; without a value its tombstone."""
        key = VersionedData(cls.key_version, GroupPartKey(group_id=group_id))
        return cls(key, None if value is None else VersionedData(VALUE_VERSION, value))


@dataclass(slots=True)
class MemberPart(KeyedRecord[MemberPartKey, Value]):
    """A record about a member of a group."""

    key_version: ClassVar[int]

    @classmethod
    def of(cls, group_id: str, member_id: str, value: Value | None) -> Self:
        """The record of a member; without a value its tombstone."""
        key = VersionedData(cls.key_version, MemberPartKey(group_id=group_id, member_id=member_id))
        return cls(key, None if value is None else VersionedData(VALUE_VERSION, value))


@dataclass(slots=True, kw_only=True)
class AssignmentEpoch(RecordData):
    """The group epoch that the target assignment was computed for, and when that was; 0: the next one need not wait."""

    assignment_epoch: Int32
    assignment_timestamp: Annotated[Int64, In(0, tag=0)] = 0


@dataclass(slots=True, kw_only=True)
class TopicPartitions(RecordData):
    """Partitions of one topic."""

    topic_id: TopicId
    partitions: tuple[PartitionIndex, ...]


@dataclass(slots=True, kw_only=True)
class TargetPartitions(RecordData):
    """A member's target assignment."""

    topic_partitions: tuple[TopicPartitions, ...]


def topic_partitions(partitions: Mapping[str, Iterable[int]]) -> tuple[TopicPartitions, ...]:
    """Partitions by topic id as a record has them."""
    return tuple(
        TopicPartitions(topic_id=topic_id, partitions=tuple(sorted(indexes)))
        for topic_id, indexes in partitions.items()
    )


def partitions_of(topics: Iterable[TopicPartitions]) -> dict[str, frozenset[int]]:
    """Partitions by topic id, from a record."""
    return {topic.topic_id: frozenset(topic.partitions) for topic in topics}
