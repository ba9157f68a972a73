"""Movement of a partition's committed offset, and the age of the next record to read."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import Any, Final

from rejoin.pipeline.kafka_cluster.snapshots import NO_OFFSETS, ClusterMember, PartitionOffsets
from rejoin.protocol.types import TopicPartition

MOST_SAMPLES: Final = 240
"""Ends of a log that are remembered; older ones are kept further apart."""


@dataclass(slots=True)
class PartitionProgress:
    """One partition over all snapshots of its group."""

    owner: ClusterMember | None = None
    at_ms: int = 0
    offsets: PartitionOffsets = NO_OFFSETS
    since_ms: int = 0
    """Since then the offset has not moved, with the same owner."""
    lag_then: int | None = None
    end_then: int | None = None
    snapshots: int = 0
    """Snapshots since then."""
    longest_move_ms: int = 0
    """The longest time between two moves of the offset."""
    moves: int = 0
    samples: deque[tuple[int, int]] = field(default_factory=deque)
    """Instants with the end of the log then."""

    def follow(self, at_ms: int, offsets: PartitionOffsets, owner: ClusterMember | None) -> None:
        """Take in the next snapshot."""
        same_owner = self.owner is not None and owner is not None and self.owner.member_id == owner.member_id
        if self.snapshots and same_owner and offsets.committed == self.offsets.committed:
            self.snapshots += 1
            if self.lag_then == 0:
                # There was nothing to read up to now.
                self._stands(at_ms, offsets)
        else:
            if self.snapshots and same_owner:
                self.moves += 1
                self.longest_move_ms = max(self.longest_move_ms, at_ms - self.since_ms)
            self._stands(at_ms, offsets)
        self.at_ms, self.offsets, self.owner = at_ms, offsets, owner
        self._sample(at_ms, offsets.end)

    def _stands(self, at_ms: int, offsets: PartitionOffsets) -> None:
        self.since_ms, self.snapshots = at_ms, 1
        self.lag_then, self.end_then = offsets.lag, offsets.end

    def _sample(self, at_ms: int, end: int | None) -> None:
        if end is None:
            return
        if self.samples and end < self.samples[-1][1]:
            # The topic is another one.
            self.samples.clear()
        if len(self.samples) >= 2 and self.samples[-1][1] == end == self.samples[-2][1]:
            self.samples.pop()
        self.samples.append((at_ms, end))
        if len(self.samples) > MOST_SAMPLES:
            older = list(self.samples)[: MOST_SAMPLES // 2]
            self.samples = deque([*older[::2], *list(self.samples)[MOST_SAMPLES // 2 :]])

    def lag_ms(self) -> int | None:
        """How long ago the next record to read was written, as far as the snapshots show it; 0 without lag.

        The log is taken to grow evenly between two snapshots; for records before the first, at the same rate.
        """
        lag, committed = self.offsets.lag, self.offsets.committed
        if lag is None or committed is None:
            return None
        if lag == 0:
            return 0
        return lag_of(list(self.samples), committed, self.at_ms)

    def as_row(self, partition: TopicPartition) -> dict[str, Any] | None:
        """The row for the rules; None for a partition without an owner."""
        if self.owner is None:
            return None
        return {
            "topic": partition.topic,
            "partition": partition.partition,
            "member_id": self.owner.member_id,
            "owner": self.owner.name,
            "since_ms": self.since_ms,
            "at_ms": self.at_ms,
            "snapshots": self.snapshots,
            "committed": self.offsets.committed,
            "lag": self.offsets.lag,
            "lag_then": self.lag_then,
            "written": None
            if self.offsets.end is None or self.end_then is None
            else max(0, self.offsets.end - self.end_then),
            "moves": self.moves,
            "longest_move_ms": self.longest_move_ms,
        }


def lag_of(samples: list[tuple[int, int]], committed: int, now_ms: int) -> int | None:
    """How long ago the record at ``committed`` was written, from instants with ends of the log."""
    if not samples or samples[-1][1] <= committed:
        return 0 if samples else None
    for (before_ms, before), (at_ms, end) in zip(reversed(list(samples)[:-1]), reversed(samples), strict=False):
        if before <= committed < end:
            return int(now_ms - (before_ms + (at_ms - before_ms) * (committed - before) / (end - before)))
    (first_ms, first), (last_ms, last) = samples[0], samples[-1]
    if last == first or last_ms == first_ms:
        return None
    rate = (last - first) / (last_ms - first_ms)
    return int(now_ms - first_ms + (first - committed) / rate)
