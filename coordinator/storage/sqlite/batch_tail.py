"""The batches that were appended last, in the order they came, and how they get to their partitions.

The table ``batches`` is ordered by partition and offset: a transaction that appends to twelve partitions changes twelve
pages of it, and as many counts. So small batches are appended to ``batch_tail``, one after the other, and moved many at
a time, before anything else looks at them. A large batch has pages of its own and goes to its partition at once.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from typing import Final

from rejoin.coordinator.storage.base import StoreProblem
from rejoin.protocol.records.batches import BatchEntry
from rejoin.protocol.types import BatchBytes

MOVED_BATCHES: Final = 1_000
_LARGE_BYTES: Final = 16 * 2**10

_INSERT: Final = "INSERT INTO batches (partition_id, base_offset, next_offset, data) VALUES (?, ?, ?, ?)"
_APPEND: Final = "INSERT INTO batch_tail (partition_id, base_offset, next_offset, data) VALUES (?, ?, ?, ?)"
_MOVE: Final = """
INSERT INTO batches (partition_id, base_offset, next_offset, data)
SELECT partition_id, base_offset, next_offset, data FROM batch_tail ORDER BY partition_id, base_offset
"""
_COUNTS: Final = "SELECT count(*), partition_id FROM batch_tail GROUP BY partition_id"
_COUNT: Final = "UPDATE data_partitions SET batches = batches + ? WHERE id = ?"


class BatchTail:
    """Appends batches. Takes part in every transaction of the database, on the writer's thread."""

    def __init__(self) -> None:
        self._rows: list[tuple[int, int, int, BatchBytes]] = []
        """Batches that the table does not have yet."""
        self._appended = 0
        self._durable = 0

    def opened(self, connection: sqlite3.Connection) -> None:
        """Move the batches that a killed process left behind. Raises :class:`StoreProblem` if some are missing."""
        (self._durable,) = connection.execute("SELECT tail_batches FROM store").fetchone()
        self._appended = self._durable
        connection.execute("BEGIN IMMEDIATE")
        self.move(connection)
        connection.execute("UPDATE store SET tail_batches = 0")
        connection.execute("COMMIT")
        self.committed()

    def append(self, connection: sqlite3.Connection, number: int, batch: BatchEntry) -> None:
        """Append a batch to the partition with this id."""
        row = (number, batch.base_offset, batch.next_offset, batch.data)
        if len(batch.data) < _LARGE_BYTES:
            self._rows.append(row)
        else:
            connection.execute(_INSERT, row)
            connection.execute(_COUNT, (1, number))

    def move(self, connection: sqlite3.Connection) -> None:
        """Put all batches where they belong. To be called before the table ``batches`` is used.

        Raises :class:`StoreProblem` if some of them are missing.
        """
        self._flush(connection)
        if self._appended:
            moved = connection.execute(_MOVE).rowcount
            if moved != self._appended:
                # To count what is left would be to accept the loss. Appends fail, and the next start says the same.
                raise StoreProblem(f"the table batch_tail: expected {self._appended} batches, found {moved}")
            connection.executemany(_COUNT, connection.execute(_COUNTS).fetchall())
            connection.execute("DELETE FROM batch_tail")
            self._appended = 0

    def _flush(self, connection: sqlite3.Connection) -> None:
        if self._rows:
            connection.executemany(_APPEND, self._rows)
            self._appended += len(self._rows)
            self._rows.clear()

    def before_commit(self, connection: sqlite3.Connection) -> Mapping[str, int]:
        """Append the batches of the transaction. After many of them, move all."""
        self._flush(connection)
        if self._appended >= MOVED_BATCHES:
            self.move(connection)
        return {} if self._appended == self._durable else {"tail_batches": self._appended}

    def committed(self) -> None:
        """The transaction has committed."""
        self._durable = self._appended

    def rolled_back(self) -> None:
        """The transaction was rolled back."""
        self._rows.clear()
        self._appended = self._durable

    def closing(self, connection: sqlite3.Connection) -> None:
        """Leave no tail behind."""
        self.move(connection)
        connection.execute("UPDATE store SET tail_batches = 0")
