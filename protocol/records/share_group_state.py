"""The records of ``__share_group_state``: snapshots of a share-partition's state, and updates of the last snapshot.

They are stored in Kafka's binary form (``wire/state_topics/share_group_state.py``), as record batches.
Kafka: ShareSnapshotKey, ShareSnapshotValue, ShareUpdateKey, ShareUpdateValue.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Annotated, Final, NamedTuple, TypeAlias

from pydantic import PlainSerializer
from pydantic.alias_generators import to_camel

from rejoin.protocol.message import Struct
from rejoin.protocol.records.share_partitions import SharePartitionKey
from rejoin.protocol.types import GroupId, In, Int8, Int16, Int32, Int64, PartitionIndex, TopicId

NO_COUNT: Final = -1
"""A delivery complete count that is not known."""


class ShareRecordType(IntEnum):
    """The type of a record, which its key begins with."""

    SNAPSHOT = 0
    UPDATE = 1


class ShareStateKey(Struct):
    """The key of either type of record. The share coordinator's partition is chosen by it."""

    group_id: GroupId
    topic_id: TopicId
    partition: PartitionIndex


class ShareStateBatch(NamedTuple):
    """Offsets of one delivery state: 0 available, 2 acknowledged, 3 archiving, 4 archived.

    A state may have hundreds, which are compared and merged: tuples cost a fraction of what models do.
    """

    first_offset: Int64
    last_offset: Int64
    delivery_state: Int8
    delivery_count: Int16


def _by_name(batches: tuple[ShareStateBatch, ...]) -> list[dict[str, int]]:
    return [{to_camel(name): value for name, value in each._asdict().items()} for each in batches]


_StateBatches: TypeAlias = Annotated[tuple[ShareStateBatch, ...], PlainSerializer(_by_name)]
"""Batches as objects with the names of their fields where a record is shown as JSON."""


class ShareSnapshotValue(Struct):
    """The whole state of a share-partition."""

    snapshot_epoch: Int32
    state_epoch: Int32
    leader_epoch: Int32
    start_offset: Int64
    delivery_complete_count: Annotated[Int32, In(0, tag=0)] = NO_COUNT
    create_timestamp: Int64
    write_timestamp: Int64
    state_batches: _StateBatches


class ShareUpdateValue(Struct):
    """A change of the state since the snapshot of that epoch. A start offset of -1 is no change."""

    snapshot_epoch: Int32
    leader_epoch: Int32
    start_offset: Int64
    delivery_complete_count: Annotated[Int32, In(0, tag=0)] = NO_COUNT
    state_batches: _StateBatches


ShareStateValue: TypeAlias = ShareSnapshotValue | ShareUpdateValue


class ShareStateRecord(NamedTuple):
    """A record of ``__share_group_state``. A tombstone has the key of a snapshot and no value."""

    key: SharePartitionKey
    value: ShareStateValue | None

    @property
    def type(self) -> ShareRecordType:
        """The type that the key begins with."""
        return ShareRecordType.UPDATE if isinstance(self.value, ShareUpdateValue) else ShareRecordType.SNAPSHOT
