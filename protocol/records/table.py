"""The table of record types: for each log, which key version means which type, and how it is read and written.

Storage, the formatter of logs and the loader work from this table. A new type of record is its structs and one entry.
Records of the topics' log (``topics.py``) are not in it: that log has no keys and is not compacted.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from typing import Any, Final, cast, get_args

from pydantic import TypeAdapter

from rejoin.protocol.records import consumer_groups, share_groups
from rejoin.protocol.records.consumer_offsets import OFFSETS_TOPIC, GroupRecord, OffsetRecord
from rejoin.protocol.records.keyed import KeyedRecord, VersionedData


class Owner(StrEnum):
    """Which part of the coordinator replays records of a type."""

    OFFSETS = "offsets"
    CLASSIC_GROUPS = "classic groups"
    CONSUMER_GROUPS = "consumer groups"
    SHARE_GROUPS = "share groups"


@dataclass(frozen=True, slots=True)
class RecordType:
    """A type of record. Versions are inclusive; values from ``flexible_from`` on have tagged fields on the wire.

    A log is compacted by the whole key with its version, so keys of two versions are two keys, as in Kafka.
    """

    name: str
    owner: Owner
    key_versions: tuple[int, int]
    value_versions: tuple[int, int]
    flexible_from: int | None
    record: type[KeyedRecord[Any, Any]]

    def read(self, key: str, value: str | None, producer_id: int) -> KeyedRecord[Any, Any]:
        """The record with this key and value in JSON. Raises ``ValueError`` for what is not one."""
        read_key, read_value = _readers(self)
        if value is None:
            return self.record(read_key(key), None, producer_id)
        found = read_value(value)
        if not self.value_versions[0] <= found.version <= self.value_versions[1]:
            raise ValueError(f"{self.name} has no version {found.version}")
        return self.record(read_key(key), found, producer_id)


Reader = Callable[[str], VersionedData[Any]]


@cache
def _readers(record_type: RecordType) -> tuple[Reader, Reader]:
    """Readers of a record type's keys and values, which also validate them."""
    (base,) = cast(Any, record_type.record).__orig_bases__
    key, value = (TypeAdapter[VersionedData[Any]](VersionedData[data]) for data in get_args(base))  # type: ignore[valid-type]
    return key.validate_json, value.validate_json


RECORD_TYPES: Final[dict[str, dict[int, RecordType]]] = {}
"""By topic, by the version of the key."""

BY_RECORD: Final[dict[type[KeyedRecord[Any, Any]], RecordType]] = {}


def register(topic: str, record_type: RecordType) -> RecordType:
    """Add a type of record to the log of a topic, under each version of its key."""
    first, last = record_type.key_versions
    types = RECORD_TYPES.setdefault(topic, {})
    types.update(dict.fromkeys(range(first, last + 1), record_type))
    BY_RECORD[record_type.record] = record_type
    return record_type


OFFSET_COMMIT: Final = register(
    OFFSETS_TOPIC, RecordType("OffsetCommit", Owner.OFFSETS, (0, 1), (0, 4), 4, OffsetRecord)
)
GROUP_METADATA: Final = register(
    OFFSETS_TOPIC, RecordType("GroupMetadata", Owner.CLASSIC_GROUPS, (2, 2), (0, 4), 4, GroupRecord)
)


def _of_groups_with_epochs(owner: Owner, key: int, record: type[KeyedRecord[Any, Any]]) -> RecordType:
    """A type of the records of consumer or share groups: one key, and one version, which is flexible."""
    name = record.__name__.removesuffix("Record")
    return register(OFFSETS_TOPIC, RecordType(name, owner, (key, key), (0, 0), 0, record))


def _of_consumer_groups(key: int, record: type[KeyedRecord[Any, Any]]) -> RecordType:
    return _of_groups_with_epochs(Owner.CONSUMER_GROUPS, key, record)


def _of_share_groups(key: int, record: type[KeyedRecord[Any, Any]]) -> RecordType:
    return _of_groups_with_epochs(Owner.SHARE_GROUPS, key, record)


CONSUMER_GROUP_TYPES: Final = (
    _of_consumer_groups(consumer_groups.GROUP_KEY, consumer_groups.ConsumerGroupMetadataRecord),
    _of_consumer_groups(consumer_groups.PARTITION_METADATA_KEY, consumer_groups.ConsumerGroupPartitionMetadataRecord),
    _of_consumer_groups(consumer_groups.MEMBER_KEY, consumer_groups.ConsumerGroupMemberMetadataRecord),
    _of_consumer_groups(
        consumer_groups.TARGET_METADATA_KEY, consumer_groups.ConsumerGroupTargetAssignmentMetadataRecord
    ),
    _of_consumer_groups(consumer_groups.TARGET_MEMBER_KEY, consumer_groups.ConsumerGroupTargetAssignmentMemberRecord),
    _of_consumer_groups(
        consumer_groups.CURRENT_ASSIGNMENT_KEY, consumer_groups.ConsumerGroupCurrentMemberAssignmentRecord
    ),
    _of_consumer_groups(consumer_groups.REGULAR_EXPRESSION_KEY, consumer_groups.ConsumerGroupRegularExpressionRecord),
)

SHARE_GROUP_TYPES: Final = (
    _of_share_groups(share_groups.MEMBER_KEY, share_groups.ShareGroupMemberMetadataRecord),
    _of_share_groups(share_groups.GROUP_KEY, share_groups.ShareGroupMetadataRecord),
    _of_share_groups(share_groups.TARGET_METADATA_KEY, share_groups.ShareGroupTargetAssignmentMetadataRecord),
    _of_share_groups(share_groups.TARGET_MEMBER_KEY, share_groups.ShareGroupTargetAssignmentMemberRecord),
    _of_share_groups(share_groups.CURRENT_ASSIGNMENT_KEY, share_groups.ShareGroupCurrentMemberAssignmentRecord),
    _of_share_groups(share_groups.STATE_PARTITIONS_KEY, share_groups.ShareGroupStatePartitionMetadataRecord),
)
