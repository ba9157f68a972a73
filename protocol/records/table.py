"""The table of record types: for each log, which key version means which type, and how it is read and written.

Storage, the formatter of logs and the loader work from this table. A new type of record is its structs and one entry.
Records of the topics' log (``topics.py``) are not in it: that log has no keys and is not compacted.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from typing import Any, Final, cast, get_args, get_origin

from pydantic import TypeAdapter

from rejoin.protocol.records.consumer_offsets import OFFSETS_TOPIC, GroupRecord, OffsetRecord
from rejoin.protocol.records.groups import consumer_groups, share_groups, streams_groups
from rejoin.protocol.records.groups.group_parts import VALUE_VERSION, GroupPart, MemberPart
from rejoin.protocol.records.keyed import KeyedRecord, VersionedData


class Owner(StrEnum):
    """Which part of the coordinator replays records of a type."""

    OFFSETS = "offsets"
    CLASSIC_GROUPS = "classic groups"
    CONSUMER_GROUPS = "consumer groups"
    SHARE_GROUPS = "share groups"
    STREAMS_GROUPS = "streams groups"


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


def _data_of(record: type[KeyedRecord[Any, Any]]) -> tuple[Any, Any]:
    """The types of a record's key and value. Those of parts of a group have only the value in their bases."""
    (base,) = cast(Any, record).__orig_bases__
    *key, value = get_args(base)
    return (key[0] if key else _data_of(get_origin(base))[0]), value


@cache
def _readers(record_type: RecordType) -> tuple[Reader, Reader]:
    """Readers of a record type's keys and values, which also validate them."""
    key, value = (TypeAdapter[VersionedData[Any]](VersionedData[data]) for data in _data_of(record_type.record))  # type: ignore[valid-type]
    return key.validate_json, value.validate_json


RECORD_TYPES: Final[dict[str, dict[int, RecordType]]] = {}
"""By topic, by the version of the key."""

BY_RECORD: Final[dict[type[KeyedRecord[Any, Any]], RecordType]] = {}
"""All types, also those that no log has yet."""


def define(record_type: RecordType) -> RecordType:
    """Add a type of record that can be read and written."""
    BY_RECORD[record_type.record] = record_type
    return record_type


def register(topic: str, record_type: RecordType) -> RecordType:
    """Add a type of record to the log of a topic, under each version of its key."""
    first, last = record_type.key_versions
    types = RECORD_TYPES.setdefault(topic, {})
    types.update(dict.fromkeys(range(first, last + 1), record_type))
    return define(record_type)


OFFSET_COMMIT: Final = register(
    OFFSETS_TOPIC, RecordType("OffsetCommit", Owner.OFFSETS, (0, 1), (0, 4), 4, OffsetRecord)
)
GROUP_METADATA: Final = register(
    OFFSETS_TOPIC, RecordType("GroupMetadata", Owner.CLASSIC_GROUPS, (2, 2), (0, 4), 4, GroupRecord)
)


def _of_parts(owner: Owner, *records: type[GroupPart[Any] | MemberPart[Any]]) -> tuple[RecordType, ...]:
    """Types of the records that groups with epochs have for their parts."""
    return tuple(_of_part(owner, record.key_version, record) for record in records)


def _registered(types: tuple[RecordType, ...]) -> tuple[RecordType, ...]:
    return tuple(register(OFFSETS_TOPIC, each) for each in types)


def _of_part(owner: Owner, key: int, record: type[KeyedRecord[Any, Any]]) -> RecordType:
    """A type with one key, and one version, which is flexible."""
    name = record.__name__.removesuffix("Record")
    return RecordType(name, owner, (key, key), (VALUE_VERSION, VALUE_VERSION), 0, record)


CONSUMER_GROUP_TYPES: Final = _registered(
    (
        *_of_parts(
            Owner.CONSUMER_GROUPS,
            consumer_groups.ConsumerGroupMetadataRecord,
            consumer_groups.ConsumerGroupPartitionMetadataRecord,
            consumer_groups.ConsumerGroupMemberMetadataRecord,
            consumer_groups.ConsumerGroupTargetAssignmentMetadataRecord,
            consumer_groups.ConsumerGroupTargetAssignmentMemberRecord,
            consumer_groups.ConsumerGroupCurrentMemberAssignmentRecord,
        ),
        _of_part(
            Owner.CONSUMER_GROUPS,
            consumer_groups.REGULAR_EXPRESSION_KEY,
            consumer_groups.ConsumerGroupRegularExpressionRecord,
        ),
    )
)

SHARE_GROUP_TYPES: Final = _registered(
    _of_parts(
        Owner.SHARE_GROUPS,
        share_groups.ShareGroupMemberMetadataRecord,
        share_groups.ShareGroupMetadataRecord,
        share_groups.ShareGroupTargetAssignmentMetadataRecord,
        share_groups.ShareGroupTargetAssignmentMemberRecord,
        share_groups.ShareGroupCurrentMemberAssignmentRecord,
        share_groups.ShareGroupStatePartitionMetadataRecord,
    )
)

STREAMS_GROUP_TYPES: Final = _registered(
    _of_parts(
        Owner.STREAMS_GROUPS,
        streams_groups.StreamsGroupMetadataRecord,
        streams_groups.StreamsGroupMemberMetadataRecord,
        streams_groups.StreamsGroupTargetAssignmentMetadataRecord,
        streams_groups.StreamsGroupTargetAssignmentMemberRecord,
        streams_groups.StreamsGroupCurrentMemberAssignmentRecord,
        streams_groups.StreamsGroupTopologyRecord,
    )
)
