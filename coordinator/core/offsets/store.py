"""Committed offsets by group id: stored, pending in transactions, and being written.

They live beside the groups, so that a group may change its kind and keep its offsets. Kafka: OffsetMetadataManager.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from rejoin.journal.events.coordinator import CommittedOffset
from rejoin.protocol.records.consumer_offsets import OffsetCommitValue
from rejoin.protocol.types import TopicPartition
from rejoin.protocol.unvalidated import unvalidated


class PendingOffset(NamedTuple):
    """An offset whose transaction is still open; ``number`` says which of two was written later."""

    number: int
    value: OffsetCommitValue


@dataclass(slots=True)
class GroupOffsets:
    """The offsets of one group."""

    stored: dict[TopicPartition, OffsetCommitValue] = field(default_factory=dict)
    pending: dict[int, dict[TopicPartition, PendingOffset]] = field(default_factory=dict)
    """By producer id: offsets of open transactions."""
    holders: dict[TopicPartition, set[int]] = field(default_factory=dict)
    """The producers whose open transactions hold an offset for each partition."""
    numbers: dict[TopicPartition, int] = field(default_factory=dict)
    """When each stored offset was written, counted in offsets of this group."""
    written: int = 0
    in_flight: dict[TopicPartition, int] = field(default_factory=dict)
    """How many commits of a partition are being written; a deletion must write a tombstone for them, too."""

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing, and nothing in flight."""
        return not (self.stored or self.pending or self.in_flight)

    def is_pending(self, partition: TopicPartition) -> bool:
        """Whether an open transaction holds an offset for this partition."""
        return partition in self.holders

    def has(self, partition: TopicPartition) -> bool:
        """Whether there is, or is about to be, anything for this partition."""
        return partition in self.stored or partition in self.in_flight or self.is_pending(partition)

    def begin_writes(self, partitions: Iterable[TopicPartition]) -> None:
        """Count a commit of these partitions as in flight."""
        for partition in partitions:
            self.in_flight[partition] = self.in_flight.get(partition, 0) + 1

    def end_writes(self, partitions: Iterable[TopicPartition]) -> None:
        """A commit of these partitions has ended, stored or failed."""
        for partition in partitions:
            left = self.in_flight[partition] - 1
            if left:
                self.in_flight[partition] = left
            else:
                del self.in_flight[partition]

    def store(self, partition: TopicPartition, value: OffsetCommitValue) -> None:
        """Keep an offset that is visible at once."""
        self.written += 1
        self.stored[partition] = value
        self.numbers[partition] = self.written

    def hold(self, producer_id: int, partition: TopicPartition, value: OffsetCommitValue) -> None:
        """Keep an offset until its transaction ends."""
        self.written += 1
        self.pending.setdefault(producer_id, {})[partition] = PendingOffset(self.written, value)
        self.holders.setdefault(partition, set()).add(producer_id)

    def end_transaction(self, producer_id: int, committed: bool) -> dict[TopicPartition, OffsetCommitValue]:
        """Make a producer's offsets visible, or drop them; returns those that became visible, or were dropped."""
        pending = self.pending.pop(producer_id, {})
        for partition in pending:
            self._release(partition, producer_id)
        if not committed:
            return {partition: offset.value for partition, offset in pending.items()}
        # Kafka: replayEndTransactionMarker. What was written last wins, not the transaction that ended last.
        visible = {
            partition: offset for partition, offset in pending.items() if offset.number > self.numbers.get(partition, 0)
        }
        for partition, offset in visible.items():
            self.stored[partition] = offset.value
            self.numbers[partition] = offset.number
        return {partition: offset.value for partition, offset in visible.items()}

    def remove(self, partition: TopicPartition) -> OffsetCommitValue | None:
        """Drop the stored and pending offsets of a partition; returns the stored one."""
        for producer_id in self.holders.pop(partition, ()):
            offsets = self.pending[producer_id]
            del offsets[partition]
            if not offsets:
                del self.pending[producer_id]
        self.numbers.pop(partition, None)
        return self.stored.pop(partition, None)

    def _release(self, partition: TopicPartition, producer_id: int) -> None:
        """A producer's transaction no longer holds an offset for a partition."""
        holders = self.holders[partition]
        holders.discard(producer_id)
        if not holders:
            del self.holders[partition]

    def partitions(self) -> list[TopicPartition]:
        """Every partition that needs a tombstone when the group goes: stored, pending or in flight."""
        known = dict.fromkeys(self.stored)
        known.update(dict.fromkeys(self.holders))
        known.update(dict.fromkeys(self.in_flight))
        return sorted(known)


class OffsetStore:
    """The offsets of all groups of one shard."""

    __slots__ = ("_by_group",)

    def __init__(self) -> None:
        self._by_group: dict[str, GroupOffsets] = {}

    def get(self, group_id: str) -> GroupOffsets | None:
        """The offsets of a group, or none where nothing was ever committed."""
        return self._by_group.get(group_id)

    def of(self, group_id: str) -> GroupOffsets:
        """The offsets of a group, for writing."""
        offsets = self._by_group.get(group_id)
        if offsets is None:
            offsets = self._by_group[group_id] = GroupOffsets()
        return offsets

    def partitions(self, group_id: str) -> list[TopicPartition]:
        """Every partition that a group has anything for."""
        offsets = self._by_group.get(group_id)
        return [] if offsets is None else offsets.partitions()

    def take_out(self, group_id: str) -> GroupOffsets:
        """Remove a group's offsets, and return them."""
        return self._by_group.pop(group_id, None) or GroupOffsets()

    def put_back(self, group_id: str, offsets: GroupOffsets) -> None:
        """Undo ``take_out``."""
        self._by_group[group_id] = offsets

    def items(self) -> Iterator[tuple[str, GroupOffsets]]:
        """Group ids with their offsets, in the order of their first commits."""
        return iter(self._by_group.items())

    def values(self) -> Iterator[GroupOffsets]:
        """The offsets of each group."""
        return iter(self._by_group.values())

    def count(self) -> int:
        """How many offsets are stored."""
        return sum(len(offsets.stored) for offsets in self._by_group.values())


def committed_offset(partition: TopicPartition, value: OffsetCommitValue) -> CommittedOffset:
    """An offset as events show it."""
    return unvalidated(
        CommittedOffset,
        topic=partition.topic,
        partition=partition.partition,
        offset=value.offset,
        leader_epoch=value.leader_epoch,
        metadata=value.metadata,
    )
