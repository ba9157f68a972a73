"""The logs of several brokers in one process, in memory: that of each leader, and how far its followers have copied it.

A follower copies at once what its leader appends, as long as it can reach it. A new leader has what it had copied; what
only the old one had is gone.

Differs: offsets partitions have no followers that lag; what one leader has written the next one reads.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, field

from rejoin.coordinator.core.inputs import FollowersFetched
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
        found.epoch, found.leader, found.replicas = epoch, leader, replicas

    def catch_up(self) -> None:
        """Followers may reach their leaders that could not before."""
        for partition in list(self._data):
            self._fetch(partition)

    def _fetch(self, partition: TopicIdPartition) -> None:
        """Let every follower copy that can, and report how far all are."""
        found = self._data[partition]
        for broker in [broker for broker in found.behind if self._reaches(found.leader, broker)]:
            del found.behind[broker]
        if self.on_fetched is not None and len(found.replicas) > 1:
            ends = found.followers()
            silent = tuple(broker for broker in ends if not self._reaches(found.leader, broker))
            self.on_fetched(found.leader, FollowersFetched(partition, found.epoch, ends, silent))

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
