"""The logs of several brokers in one process, in memory: that of each leader, and how far its followers have copied it.

A follower copies at once what its leader appends, as long as it can reach it. A new leader has what it had copied; what
only the old one had is gone.

Differs: offsets partitions have no followers that lag; what one leader has written the next one reads.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, field

from rejoin.coordinator.core.effects import HighWatermarkMoved
from rejoin.coordinator.core.inputs import FollowersFetched, Replicated
from rejoin.coordinator.storage.base import Damaged, DataPiece, OnStored, Piece, Together, one_by_one
from rejoin.coordinator.storage.memory import MemoryLog, trimmed
from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.records.batches import BatchEntry, DataEntry, LogStartEntry
from rejoin.protocol.records.keyed import Record
from rejoin.protocol.types import LogPartition, TopicIdPartition, TopicPartition


@dataclass(slots=True)
class _ReplicatedPartition:
    """One data partition: the leader's log, and where the logs of its followers end that are behind."""

    epoch: int = -1
    leader: int = -1
    replicas: tuple[int, ...] = ()
    entries: list[DataEntry] = field(default_factory=list)
    end_offset: int = 0
    behind: dict[int, int] = field(default_factory=dict)
    high_watermark: int = 0
    watermarks_behind: dict[int, int] = field(default_factory=dict)
    """The high watermark that each follower knows which has not heard of the newest one."""
    followed: dict[int, int] = field(default_factory=dict)
    """Followers whose brokers read their copies, with the offset up to which each was given."""

    def end_of(self, broker: int) -> int:
        """Where the log of a broker ends."""
        return self.end_offset if broker == self.leader else self.behind.get(broker, self.end_offset)

    def followers(self) -> dict[int, int]:
        """Where the log of each follower ends."""
        return {broker: self.end_of(broker) for broker in self.replicas if broker != self.leader}

    def place(self, replicas: tuple[int, ...]) -> None:
        """Keep copies at other brokers: a new one begins with nothing, and one that is gone counts no more."""
        for broker in replicas:
            if broker not in self.replicas:
                self.behind[broker] = 0
        self.behind = {broker: end for broker, end in self.behind.items() if broker in replicas}
        self.replicas = replicas

    def high_watermark_at(self, broker: int) -> int:
        """The high watermark as a follower knows it."""
        return min(self.watermarks_behind.get(broker, self.high_watermark), self.end_of(broker))

    def copied_by(self, broker: int, offset: int) -> tuple[DataEntry, ...]:
        """The entries of a follower's log; with an offset of 0 or more, batches from there on alone."""
        end = self.end_of(broker)
        if offset < 0:
            return tuple([each for each in self.entries if not isinstance(each, BatchEntry) or each.base_offset < end])
        found: list[DataEntry] = []
        for each in reversed(self.entries):
            if isinstance(each, BatchEntry):
                if each.base_offset < offset:
                    break
                if each.base_offset < end:
                    found.append(each)
        return tuple(reversed(found))

    def truncate(self, end_offset: int) -> None:
        """Drop what begins at an offset or behind it."""
        self.entries = [
            entry for entry in self.entries if not isinstance(entry, BatchEntry) or entry.base_offset < end_offset
        ]
        self.end_offset = end_offset
        self.behind = {broker: min(end, end_offset) for broker, end in self.behind.items()}


class ReplicatedLogs:
    """All logs. ``reaches`` says whether a follower can copy from a leader; ``on_fetched`` gets how far it has."""

    def __init__(self, reaches: Callable[[int, int], bool]) -> None:
        self._reaches = reaches
        self._offsets = MemoryLog()
        self._epochs: dict[TopicPartition, int] = {}
        self._data: dict[TopicIdPartition, _ReplicatedPartition] = {}
        self.on_replicated: Callable[[int, Replicated], None] | None = None
        """Called with a follower, and what it has copied."""
        self.on_fetched: Callable[[int, FollowersFetched], None] | None = None
        """Called with a leader, and its state of the followers."""

    async def start(self, together: Together = one_by_one) -> None:
        """Nothing to do."""

    async def close(self) -> None:
        """Nothing to do."""

    def clear(self) -> None:
        """Remove every log."""
        self._offsets = MemoryLog()
        self._epochs.clear()
        self._data.clear()

    # --- leaders

    def begin_epoch(self, partition: LogPartition, epoch: int, leader: int, replicas: tuple[int, ...]) -> None:
        """A broker leads a partition with the log that it has; older leaders append no more."""
        if isinstance(partition, TopicPartition):
            self._epochs[partition] = epoch
            return
        found = self._data.setdefault(partition, _ReplicatedPartition())
        if epoch <= found.epoch:
            if epoch == found.epoch and replicas != found.replicas:
                found.place(replicas)
            return
        if leader in found.replicas:
            before, end = found.leader, found.end_of(leader)
            if before != leader:
                # The old leader is a follower from now on, with what both have.
                found.behind[before] = end
            found.truncate(end)
            found.behind.pop(leader, None)
            found.place(replicas)
            found.watermarks_behind.pop(leader, None)
        found.epoch, found.leader, found.replicas = epoch, leader, replicas
        found.followed = {
            broker: end for broker, end in found.followed.items() if broker != leader and broker in replicas
        }
        for broker in found.followed:
            self._give(partition, found, broker, whole=True)

    def catch_up(self) -> None:
        """Followers may reach their leaders that could not before."""
        for partition in list(self._data):
            self._fetch(partition)

    def _fetch(self, partition: TopicIdPartition) -> None:
        """Let every follower copy that can, and report how far all are."""
        found = self._data[partition]
        for behind in (found.behind, found.watermarks_behind):
            for broker in [broker for broker in behind if self._reaches(found.leader, broker)]:
                del behind[broker]
        for broker in found.followed:
            self._give(partition, found, broker)
        if self.on_fetched is not None and len(found.replicas) > 1:
            ends = found.followers()
            silent = tuple(broker for broker in ends if not self._reaches(found.leader, broker))
            self.on_fetched(found.leader, FollowersFetched(partition, found.epoch, ends, silent))

    # --- followers that are read

    def follow(self, partition: TopicIdPartition, broker: int) -> None:
        """Give a follower's copy to its broker, now and as it grows."""
        found = self._data.get(partition)
        if found is None:
            found = _ReplicatedPartition()  # the topic is gone
        self._give(partition, found, broker, whole=True)

    def high_watermark_moved(self, moved: HighWatermarkMoved) -> None:
        """Followers that reach their leader hear of its high watermark."""
        found = self._data.get(moved.partition)
        if found is None or moved.epoch < found.epoch:
            return
        for broker in found.replicas:
            if broker != found.leader and not self._reaches(found.leader, broker):
                found.watermarks_behind.setdefault(broker, found.high_watermark)
        found.high_watermark = moved.high_watermark
        for broker in found.followed:
            self._give(moved.partition, found, broker)

    def _give(
        self, partition: TopicIdPartition, found: _ReplicatedPartition, broker: int, *, whole: bool = False
    ) -> None:
        """Hand in what a follower's broker has not been given."""
        entries = found.copied_by(broker, -1 if whole else found.followed[broker])
        known = found.high_watermark_at(broker)
        found.followed[broker] = found.end_of(broker)
        if self.on_replicated is not None:
            self.on_replicated(broker, Replicated(partition, entries, known, whole))

    # --- as the log of offsets partitions

    def append(self, partition: TopicPartition, epoch: int, records: tuple[Record, ...], stored: OnStored) -> None:
        if epoch < self._epochs.get(partition, 0):
            stored(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        else:
            self._offsets.append(partition, epoch, records, stored)

    def read(self, partition: TopicPartition, epoch: int, piece: Piece) -> None:
        if epoch >= self._epochs.get(partition, 0):
            self._offsets.read(partition, epoch, piece)

    # --- as the logs of data partitions

    def append_data(
        self,
        partition: TopicIdPartition,
        epoch: int,
        leased_by: TopicPartition,
        entries: tuple[DataEntry, ...],
        stored: OnStored,
    ) -> None:
        found = self._data.get(partition)
        if found is None or epoch < found.epoch:
            stored(ErrorCode.NOT_LEADER_OR_FOLLOWER)
            return
        for broker in found.replicas:
            if broker != found.leader and not self._reaches(found.leader, broker):
                found.behind.setdefault(broker, found.end_offset)
        found.entries += entries
        found.end_offset = max([found.end_offset, *map(_end_of, entries)])
        if any(type(entry) is not BatchEntry for entry in entries):
            found.entries = trimmed(found.entries)
            for broker in found.followed:
                self._give(partition, found, broker, whole=True)
        self._fetch(partition)
        stored(ErrorCode.NONE)

    def read_data(self, partition: TopicIdPartition, epoch: int, piece: DataPiece, damaged: Damaged) -> None:
        found = self._data.get(partition)
        if found is not None and epoch >= found.epoch:
            piece(tuple(found.entries), True)
            self._fetch(partition)

    def delete_data(self, partition: TopicIdPartition, epoch: int, leased_by: TopicPartition) -> None:
        self._data.pop(partition, None)

    def keep_only(self, topic_ids: Collection[str]) -> None:
        """Nothing to do: a log ends with its topic."""


def _end_of(entry: DataEntry) -> int:
    match entry:
        case BatchEntry():
            return entry.next_offset
        case LogStartEntry():
            return entry.offset
    return 0
