"""Committed offsets of one group: what is stored, what transactions hold back, and when it expires.

Kafka: OffsetMetadataManager, ClassicGroup.offsetExpirationCondition.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple, TypeAlias

from rejoin.coordinator.core.inputs import Millis
from rejoin.journal.events.coordinator import CommittedOffset
from rejoin.protocol.records.consumer_offsets import OffsetCommitValue

Place: TypeAlias = tuple[str, int]
"""A partition of a topic: name and index."""


class Held(NamedTuple):
    """An offset that waits for its transaction to end; ``number`` tells which of two was written later."""

    number: int
    value: OffsetCommitValue


@dataclass(slots=True)
class Offsets:
    """The offsets of one group. They live and die with it."""

    stored: dict[Place, OffsetCommitValue] = field(default_factory=dict)
    pending: dict[int, dict[Place, Held]] = field(default_factory=dict)
    """By producer id: offsets of transactions that are still open."""
    numbers: dict[Place, int] = field(default_factory=dict)
    """When each stored offset was written, counted in offsets of this group."""
    written: int = 0
    on_the_way: dict[Place, int] = field(default_factory=dict)
    """How many commits of a place are being written; a deletion must write a tombstone for them, too."""

    def __bool__(self) -> bool:
        return bool(self.stored or self.pending)

    def is_pending(self, place: Place) -> bool:
        """Whether an open transaction holds an offset for this partition."""
        return any(place in offsets for offsets in self.pending.values())

    def knows(self, place: Place) -> bool:
        """Whether there is, or is about to be, anything for this partition."""
        return place in self.stored or place in self.on_the_way or self.is_pending(place)

    def depart(self, places: list[Place]) -> None:
        """These places are being written."""
        for place in places:
            self.on_the_way[place] = self.on_the_way.get(place, 0) + 1

    def arrive(self, places: list[Place]) -> None:
        """These writes have ended, one way or the other."""
        for place in places:
            left = self.on_the_way[place] - 1
            if left:
                self.on_the_way[place] = left
            else:
                del self.on_the_way[place]

    def store(self, place: Place, value: OffsetCommitValue) -> None:
        """Keep an offset that counts at once."""
        self.written += 1
        self.stored[place] = value
        self.numbers[place] = self.written

    def hold(self, producer_id: int, place: Place, value: OffsetCommitValue) -> None:
        """Keep an offset until its transaction ends."""
        self.written += 1
        self.pending.setdefault(producer_id, {})[place] = Held(self.written, value)

    def end_transaction(self, producer_id: int, committed: bool) -> dict[Place, OffsetCommitValue]:
        """Let a producer's offsets count, or drop them; returns those that count now, or those dropped."""
        held = self.pending.pop(producer_id, {})
        if not committed:
            return {place: offset.value for place, offset in held.items()}
        # Kafka: replayEndTransactionMarker. What was written last wins, not the transaction that ended last.
        counting = {place: offset for place, offset in held.items() if offset.number > self.numbers.get(place, 0)}
        for place, offset in counting.items():
            self.stored[place] = offset.value
            self.numbers[place] = offset.number
        return {place: offset.value for place, offset in counting.items()}

    def forget(self, place: Place) -> OffsetCommitValue | None:
        """Drop what is stored or pending for a partition; returns what was stored."""
        for producer_id, offsets in list(self.pending.items()):
            if offsets.pop(place, None) is not None and not offsets:
                del self.pending[producer_id]
        self.numbers.pop(place, None)
        return self.stored.pop(place, None)

    def places(self) -> list[Place]:
        """Every partition that a tombstone is due for when the group goes: stored, pending or being written."""
        known = dict.fromkeys(self.stored)
        for offsets in self.pending.values():
            known.update(dict.fromkeys(offsets))
        known.update(dict.fromkeys(self.on_the_way))
        return sorted(known)

    def expired(
        self, now: Millis, retention_ms: int, counts_from: Callable[[OffsetCommitValue], Millis], guarded: _Guard
    ) -> list[Place]:
        """Partitions whose offsets are too old, where ``guarded`` tells which topics must stay."""
        return [
            place
            for place, value in sorted(self.stored.items())
            if not guarded(place[0])
            and not self.is_pending(place)
            and now >= (value.expire_timestamp if value.expire_timestamp != -1 else counts_from(value) + retention_ms)
        ]


_Guard: TypeAlias = Callable[[str], bool]


def shown(place: Place, value: OffsetCommitValue) -> CommittedOffset:
    """An offset as events show it."""
    return CommittedOffset(
        topic=place[0],
        partition=place[1],
        offset=value.offset,
        leader_epoch=value.leader_epoch,
        metadata=value.metadata,
    )
