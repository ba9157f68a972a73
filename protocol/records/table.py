"""The table of record types: for each log, which key version means which type, and how it is read and written.

Storage, the formatter of logs and the loader work from this table. A new type of record is its structs and one entry.
Records of the topics' log (``topics.py``) are not in it: that log has no keys and is not compacted.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

from rejoin.protocol.records.consumer_offsets import OFFSETS_TOPIC, GroupRecord, OffsetRecord
from rejoin.protocol.records.keyed import KeyedRecord


class Owner(StrEnum):
    """Which part of the coordinator replays records of a type."""

    OFFSETS = "offsets"
    CLASSIC_GROUPS = "classic groups"
    CONSUMER_GROUPS = "consumer groups"
    TRANSACTIONS = "transactions"


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

    def reads_value(self, version: int) -> bool:
        return self.value_versions[0] <= version <= self.value_versions[1]


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
