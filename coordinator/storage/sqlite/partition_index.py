"""The index of a data directory by partition, and how it catches up with the log.

A transaction of appends writes the log, its end position and one checksum of the tail. The index would need a write for
each partition that the transaction touches. So it is updated later, for many records at once, and before anything else
uses it. Records of the tail that newer ones have replaced are removed before they are indexed: of the many commits
of one partition, one record is left.
"""

from __future__ import annotations

import sqlite3
from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

from rejoin.coordinator.storage.base import StoreProblem
from rejoin.coordinator.storage.codec import PLAIN, Entry, checksum
from rejoin.coordinator.storage.sqlite.schema import set_columns
from rejoin.protocol.records.consumer_offsets import OFFSETS_TOPIC
from rejoin.protocol.types import TopicPartition

_COMPACT_FROM: Final = 1_000
_WRITE_ROWS: Final = 10_000
_CATCH_UP_RECORDS: Final = 1_000

_END: Final = ("next_position", "indexed", "tail_checksums")
"""Where the log ends: columns of the table store."""
_INSERT: Final = (
    "INSERT INTO log (position, partition_id, epoch, producer_id, checksum, key, value) VALUES (?, ?, ?, ?, ?, ?, ?)"
)
_INDEX: Final = (
    "INSERT INTO positions SELECT partition_id, position FROM log WHERE position > ? ORDER BY partition_id, position"
)
_COUNT: Final = """
INSERT INTO partitions (id, epoch, records, checksums, alive)
SELECT partition_id, max(epoch), count(*), sum(checksum), 0 FROM log WHERE position > ? GROUP BY partition_id
ON CONFLICT (id) DO UPDATE SET epoch = max(epoch, excluded.epoch), records = records + excluded.records,
    checksums = checksums + excluded.checksums
"""
_ADD: Final = """
INSERT INTO partitions (id, topic, partition, epoch, records, checksums, alive) VALUES (?, ?, ?, ?, 0, 0, 0)
"""
_NEXT_ID: Final = "SELECT max(coalesce(max(id), 0), ?) + 1 FROM partitions"
_LAST_OFFSETS_ID: Final = 2**31 - 1
_ELECT: Final = "UPDATE partitions SET epoch = ? WHERE id = ?"
_DELETE: Final = "DELETE FROM log WHERE position BETWEEN ? AND ?"
_TAKE_OUT: Final = "UPDATE partitions SET records = records - ?, checksums = checksums - ? WHERE id = ?"
_COMPACTED: Final = "UPDATE partitions SET alive = ? WHERE id = ?"

_Written: TypeAlias = tuple[int, int, int, int, int, str | None, str | None]
"""Position, partition id, epoch, producer id, checksum, key, value."""

Doomed: TypeAlias = list[int]
"""Position, partition id and checksum of a record that is to be removed."""


@dataclass(frozen=True, slots=True)
class PartitionStats:
    """A partition as the table ``partitions`` has it."""

    id: int
    epoch: int
    records: int
    checksums: int
    alive: int

    @property
    def is_due(self) -> bool:
        """Whether to compact it now: it has twice the records that the last compaction left."""
        return self.records >= _COMPACT_FROM and self.records >= 2 * self.alive

    @property
    def is_half_due(self) -> bool:
        """Whether the partition is half way to its next compaction."""
        return 2 * (self.records - self.alive) >= max(_COMPACT_FROM - self.alive, self.alive)


class PartitionIndex:
    """Takes part in every transaction of the database."""

    def __init__(self, is_any_read: Callable[[], bool]) -> None:
        self._is_any_read = is_any_read
        self.durable: Mapping[TopicPartition, PartitionStats] = {}
        """The partitions as of the last time the index caught up with the log. Each change replaces the mapping."""
        self.ids: dict[TopicPartition, int] = {}
        """The id of each partition."""
        self.by_id: dict[int, TopicPartition] = {}
        self.removed: deque[Mapping[int, int]] = deque()
        """Records that were removed before they were indexed: counts by partition id, to be reported."""
        self.next_position = 1
        self._changed: Mapping[TopicPartition, PartitionStats] | None = None
        self._has_changes = False
        self._added: list[TopicPartition] = []
        self._rows: list[_Written] = []
        self._newest: dict[tuple[int, str | None], int] = {}
        self._superseded: dict[int, int] = {}
        self._tail_removed = 0
        self._taken_out: Counter[int] = Counter()
        self._indexed = 0
        self._tail_checksums = 0
        self._durable_end = (1, 0, 0)

    @property
    def last_durable_position(self) -> int:
        """The position of the last record that is durable. For any thread."""
        return self._durable_end[0] - 1

    def opened(self, connection: sqlite3.Connection) -> None:
        """Load the index from the database, and catch up with the log."""
        query = f"SELECT {', '.join(_END)} FROM store"
        self._durable_end = connection.execute(query).fetchone()
        self.next_position, self._indexed, self._tail_checksums = self._durable_end
        self.by_id = {stats.id: partition for partition, stats in _partitions(connection).items()}
        self.ids = {partition: number for number, partition in self.by_id.items()}
        connection.execute("BEGIN IMMEDIATE")
        self.catch_up(connection)
        set_columns(connection, self.before_commit(connection))
        connection.execute("COMMIT")
        self.committed()

    def elect(self, connection: sqlite3.Connection, partition: TopicPartition, epoch: int) -> None:
        """Store the newest epoch of a partition."""
        self.catch_up(connection)
        connection.execute(_ELECT, (epoch, self._id(connection, partition, epoch)))

    def _id(self, connection: sqlite3.Connection, partition: TopicPartition, epoch: int) -> int:
        """The id of a partition; a new partition gets one."""
        found = self.ids.get(partition)
        if found is None:
            if partition.topic == OFFSETS_TOPIC:
                found = partition.partition
            else:
                found = int(connection.execute(_NEXT_ID, (_LAST_OFFSETS_ID,)).fetchone()[0])
            connection.execute(_ADD, (found, *partition, epoch))
            self.ids[partition] = found
            self.by_id[found] = partition
            self._added.append(partition)
            self._has_changes = True
        return found

    def write(
        self, connection: sqlite3.Connection, partition: TopicPartition, epoch: int, entries: Sequence[Entry]
    ) -> None:
        """Append entries to a partition.

        The rows of all partitions are inserted together, which takes half the time of inserting them one by one.
        """
        rows, position, newest = self._rows, self.next_position, self._newest
        number = self._id(connection, partition, epoch)
        for entry in entries:
            producer_id, key, value = entry
            crc = checksum(partition, position, entry)
            self._tail_checksums += crc
            rows.append((position, number, epoch, producer_id, crc, key, value))
            if producer_id == PLAIN:
                record_key = (number, key)
                if record_key in newest:
                    self._superseded[newest.pop(record_key)] = number
                if value is not None:  # a tombstone also removes records of open transactions
                    newest[record_key] = position
            position += 1
        self.next_position = position
        if len(rows) >= _WRITE_ROWS:
            self._flush(connection)
            self._remove_superseded(connection)
            self.catch_up(connection)

    def remove(self, connection: sqlite3.Connection, records: Sequence[Doomed]) -> None:
        """Remove records, given in order. One statement removes a range without gaps."""
        self.catch_up(connection)
        ranges: list[tuple[int, int]] = []
        indexed: list[tuple[int, int, int]] = []
        for begin, end in _without_gaps([position for position, *_ in records]):
            first, last = records[begin][0], records[end - 1][0]
            ranges.append((first, last))
            numbers = dict.fromkeys([number for _, number, _ in records[begin:end]])
            indexed += [(number, first, last) for number in numbers]
        indexed.sort()
        connection.executemany(_DELETE, ranges)
        connection.executemany("DELETE FROM positions WHERE partition_id = ? AND position BETWEEN ? AND ?", indexed)
        counts: Counter[int] = Counter()
        checksums: Counter[int] = Counter()
        for _, number, crc in records:
            counts[number] += 1
            checksums[number] += crc
        connection.executemany(_TAKE_OUT, [(counts[each], checksums[each], each) for each in counts])

    def compacted(self, connection: sqlite3.Connection, alive: Mapping[int, int]) -> None:
        """Store how many records a compaction has left in each partition, by its id."""
        self.catch_up(connection)
        connection.executemany(_COMPACTED, [(records, number) for number, records in alive.items()])

    def catch_up(self, connection: sqlite3.Connection) -> int:
        """Index the tail of the log: the partition of each record, and the totals of each partition.

        Returns the last position that is indexed. Raises :class:`StoreProblem` when a record of the tail is missing.
        """
        self._flush(connection)
        if self.next_position - 1 > self._indexed:
            expected = self.next_position - 1 - self._indexed - self._tail_removed
            found = connection.execute(_INDEX, (self._indexed,)).rowcount
            if found != expected:
                # To count what is left would be to accept the loss. Appends fail, and the next start says the same.
                raise StoreProblem(f"after position {self._indexed}: expected {expected} records, found {found}")
            connection.execute(_COUNT, (self._indexed,))
            self._indexed = self.next_position - 1
            self._tail_checksums = 0
            self._forget_tail()
        self._has_changes = True
        return self._indexed

    def _remove_superseded(self, connection: sqlite3.Connection) -> None:
        """Remove the replaced records of the tail, unless a reader may still need them."""
        if not self._is_any_read():
            positions = sorted(self._superseded)
            ranges = [(positions[begin], positions[end - 1]) for begin, end in _without_gaps(positions)]
            connection.executemany(_DELETE, ranges)
            self._taken_out.update(self._superseded.values())
            self._tail_removed = len(positions)

    def _flush(self, connection: sqlite3.Connection) -> None:
        connection.executemany(_INSERT, self._rows)
        self._rows.clear()

    def before_commit(self, connection: sqlite3.Connection) -> Mapping[str, int]:
        """Write the records, and return the end of the log. After many records, update the index, too."""
        self._flush(connection)
        if self.next_position - 1 - self._indexed >= _CATCH_UP_RECORDS:
            self._remove_superseded(connection)
            self.catch_up(connection)
        if self._has_changes:
            self._changed = _partitions(connection)
        end = (self.next_position, self._indexed, self._tail_checksums)
        return {} if end == self._durable_end else dict(zip(_END, end, strict=True))

    def committed(self) -> None:
        """The transaction has committed."""
        if self._changed is not None:
            self.durable = self._changed
        if self._taken_out:
            self.removed.append(self._taken_out)
        self._forget_changes()
        self._durable_end = (self.next_position, self._indexed, self._tail_checksums)

    def rolled_back(self) -> None:
        """The transaction was rolled back."""
        for partition in self._added:
            del self.by_id[self.ids.pop(partition)]
        self._rows.clear()
        self._forget_tail()
        self._forget_changes()
        self.next_position, self._indexed, self._tail_checksums = self._durable_end

    def closing(self, connection: sqlite3.Connection) -> None:
        """The tail may stay: the next start catches up with it."""

    def _forget_tail(self) -> None:
        """Forget the replaced records of the tail. Compaction removes those that are left."""
        self._newest.clear()
        self._superseded.clear()
        self._tail_removed = 0

    def _forget_changes(self) -> None:
        self._changed = None
        self._has_changes = False
        self._added = []
        if self._taken_out:
            self._taken_out = Counter()


def _partitions(connection: sqlite3.Connection) -> dict[TopicPartition, PartitionStats]:
    query = "SELECT topic, partition, id, epoch, records, checksums, alive FROM partitions"
    rows = connection.execute(query)
    return {TopicPartition(topic, partition): PartitionStats(*stats) for topic, partition, *stats in rows}


def _without_gaps(positions: Sequence[int]) -> Iterator[tuple[int, int]]:
    """The begin and end index of each run of consecutive positions."""
    begin = 0
    for end in range(1, len(positions) + 1):
        if end == len(positions) or positions[end] > positions[end - 1] + 1:
            yield begin, end
            begin = end
