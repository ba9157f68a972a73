"""What the writer of a data directory knows of each partition: as it is durable, and as it will be."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

from coordinator.offsets_log.codec import Entry, checksum

_COMPACT_FROM: Final = 1_000
_WRITE_ROWS: Final = 10_000
_INDEX_RECORDS: Final = 4_000

_INSERT: Final = (
    "INSERT INTO log (position, partition, epoch, producer_id, checksum, key, value) VALUES (?, ?, ?, ?, ?, ?, ?)"
)
_INDEX: Final = (
    "INSERT INTO positions SELECT partition, position FROM log WHERE position > ? ORDER BY partition, position"
)
_KEEP: Final = (
    "INSERT INTO partitions (partition, epoch, records, checksums, alive) VALUES (?, ?, ?, ?, ?) "
    "ON CONFLICT (partition) DO UPDATE SET epoch = excluded.epoch, records = excluded.records, "
    "checksums = excluded.checksums, alive = excluded.alive"
)

_Written: TypeAlias = tuple[int, int, int, int, int, str | None, str | None]
"""Position, partition, epoch, producer id, checksum, key, value."""


@dataclass(slots=True)
class PartitionBooks:
    """A partition as the table ``partitions`` has it."""

    epoch: int = -1
    records: int = 0
    checksums: int = 0
    alive: int = 0

    @property
    def is_due(self) -> bool:
        """Whether it is time to compact it: it has twice the records that were left the last time."""
        return self.records >= _COMPACT_FROM and self.records >= 2 * self.alive

    @property
    def is_half_due(self) -> bool:
        """Whether half of that has come together since."""
        return 2 * (self.records - self.alive) >= max(_COMPACT_FROM - self.alive, self.alive)


class Books:
    """Takes part in every transaction of the database."""

    def __init__(self) -> None:
        self.durable: dict[int, PartitionBooks] = {}
        self.next_position = 1
        self._open: dict[int, PartitionBooks] = {}
        self._rows: list[_Written] = []
        self._indexed = 0
        self._durable_ends = (1, 0)

    def opened(self, connection: sqlite3.Connection) -> None:
        """As the database has it."""
        self._durable_ends = connection.execute("SELECT next_position, indexed FROM store").fetchone()
        self.next_position, self._indexed = self._durable_ends
        query = "SELECT partition, epoch, records, checksums, alive FROM partitions"
        self.durable = {partition: PartitionBooks(*rest) for partition, *rest in connection.execute(query)}

    def change(self, partition: int) -> PartitionBooks:
        """A partition, to be changed by the transaction under way."""
        found = self._open.get(partition)
        if found is None:
            kept = self.durable.get(partition) or PartitionBooks()
            found = PartitionBooks(kept.epoch, kept.records, kept.checksums, kept.alive)
            self._open[partition] = found
        return found

    def write(
        self, connection: sqlite3.Connection, partition: int, epoch: int, newest: int, entries: Sequence[Entry]
    ) -> None:
        """Put entries of an epoch at the end of a partition, whose newest epoch is known as well.

        The rows of all partitions go in together: one by one they would cost twice as much.
        """
        books = self._open.get(partition) or self.change(partition)
        books.epoch = max(books.epoch, newest)
        rows, position = self._rows, self.next_position
        for entry in entries:
            crc = checksum(partition, position, entry)
            books.checksums += crc
            rows.append((position, partition, epoch, entry[0], crc, entry[1], entry[2]))
            position += 1
        books.records += len(entries)
        self.next_position = position
        if len(rows) >= _WRITE_ROWS:
            self._flush(connection)

    def remove(self, connection: sqlite3.Connection, records: Sequence[tuple[int, int, int]]) -> None:
        """Take records out: position, partition and checksum of each, in order.

        Whatever lies without a gap goes in one statement.
        """
        ranges: list[tuple[int, int]] = []
        indexed: list[tuple[int, int, int]] = []
        begin = 0
        for end in range(1, len(records) + 1):
            if end == len(records) or records[end][0] > records[end - 1][0] + 1:
                first, last = records[begin][0], records[end - 1][0]
                ranges.append((first, last))
                if first <= self._indexed:
                    partitions = dict.fromkeys([partition for _, partition, _ in records[begin:end]])
                    indexed += [(partition, first, last) for partition in partitions]
                begin = end
        connection.executemany("DELETE FROM log WHERE position BETWEEN ? AND ?", ranges)
        indexed.sort()
        connection.executemany("DELETE FROM positions WHERE partition = ? AND position BETWEEN ? AND ?", indexed)
        for _, partition, crc in records:
            books = self.change(partition)
            books.records -= 1
            books.checksums -= crc

    def index(self, connection: sqlite3.Connection) -> None:
        """Write down to which partition each of the newest records belongs."""
        self._flush(connection)
        connection.execute(_INDEX, (self._indexed,))
        self._indexed = self.next_position - 1

    def _flush(self, connection: sqlite3.Connection) -> None:
        connection.executemany(_INSERT, self._rows)
        self._rows.clear()

    def before_commit(self, connection: sqlite3.Connection) -> None:
        """Write down what has changed, and now and then where the records of each partition are."""
        self._flush(connection)
        changed = [(number, p.epoch, p.records, p.checksums, p.alive) for number, p in self._open.items()]
        connection.executemany(_KEEP, changed)
        if self.next_position - self._indexed > _INDEX_RECORDS:
            self.index(connection)
        ends = (self.next_position, self._indexed)
        if ends != self._durable_ends:
            connection.execute("UPDATE store SET next_position = ?, indexed = ?", ends)

    def committed(self) -> None:
        """What was changed is durable."""
        self.durable.update(self._open)
        self._open.clear()
        self._durable_ends = (self.next_position, self._indexed)

    def rolled_back(self) -> None:
        """Nothing was changed."""
        self._rows.clear()
        self._open.clear()
        self.next_position, self._indexed = self._durable_ends
