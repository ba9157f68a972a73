"""Stored batches of data partitions, checked when they are read: by a node, and by ``rejoin log verify``."""

from __future__ import annotations

from rejoin.coordinator.storage.codec import Unreadable
from rejoin.protocol.records.batches import BatchEntry
from rejoin.protocol.types import TopicIdPartition, TopicPartition
from rejoin.protocol.wire.record_batch import MAGIC, BatchHeader, is_intact, parse_header


def read_batch(partition: TopicIdPartition, base_offset: int, data: bytes | None) -> BatchEntry:
    """A stored batch. Raises :class:`Unreadable` where it is damaged."""
    if data is None or not is_intact(data) or not _fits(parse_header(data), base_offset):
        raise Unreadable(f"{named(partition)}: the batch at offset {base_offset} is not the one that was written")
    return BatchEntry(base_offset, data)


def _fits(header: BatchHeader, base_offset: int) -> bool:
    """Whether a header has what is known of it otherwise: its checksum does not cover these fields."""
    return header.base_offset == base_offset and header.magic == MAGIC


def check_count(partition: TopicIdPartition, found: int, expected: int) -> None:
    """Raise :class:`Unreadable` if batches of a partition are missing, or there are others."""
    if found != expected:
        there = "is 1 batch" if found == 1 else f"are {found} batches"
        raise Unreadable(f"{named(partition)}: there {there}, expected {expected}")


def named(partition: TopicIdPartition) -> TopicPartition:
    """A partition as users know it."""
    return TopicPartition(partition.topic, partition.partition)
