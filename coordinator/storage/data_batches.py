"""Stored batches of data partitions, checked when they are read."""

from __future__ import annotations

from rejoin.coordinator.storage.codec import Unreadable
from rejoin.protocol.records.batches import BatchEntry
from rejoin.protocol.types import TopicIdPartition
from rejoin.protocol.wire.record_batch import is_intact, parse_header


def read_batch(partition: TopicIdPartition, base_offset: int, data: bytes) -> BatchEntry:
    """A stored batch. Raises :class:`Unreadable` where it is damaged."""
    if not is_intact(data) or parse_header(data).base_offset != base_offset:
        raise Unreadable(f"{partition}: the batch at offset {base_offset} is not the one that was written")
    return BatchEntry(base_offset, data)


def check_count(partition: TopicIdPartition, found: int, expected: int) -> None:
    """Raise :class:`Unreadable` if batches of a partition are missing, or there are others."""
    if found != expected:
        raise Unreadable(f"{partition}: there are {found} batches, expected {expected}")
