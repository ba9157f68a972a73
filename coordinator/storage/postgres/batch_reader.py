"""The batches of a log in PostgreSQL, as they are read: by a node, and by ``rejoin log verify``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from rejoin.coordinator.storage.data_batches import check_count, read_batch
from rejoin.coordinator.storage.postgres import statements
from rejoin.protocol.records.batches import DataEntry, LogStartEntry
from rejoin.protocol.types import TopicIdPartition

PIECE_BYTES: Final = 4 * 2**20
"""A piece has no more bytes, unless a single batch has."""
PIECE_BATCHES: Final = 1_000


class PostgresBatchReader:
    """The log of one partition, piece by piece: the query for the next one, and what its rows hold."""

    def __init__(self, partition: TopicIdPartition) -> None:
        self.partition = partition
        self._state: tuple[int, int] | None = None
        """Where the log begins and how many batches it has, as of the first piece."""
        self._last = -1
        """The offset of the last batch."""
        self._batches = 0

    def query(self) -> tuple[Any, ...]:
        """The statement for the next piece, and its arguments."""
        topic_id, index, _ = self.partition
        return statements.READ_DATA, topic_id, index, self._last, PIECE_BATCHES, PIECE_BYTES

    def is_overtaken(self, rows: Sequence[Any]) -> bool:
        """Whether another node has written to the log since the first piece: then the pieces make no whole."""
        state = _state(rows)
        if self._state is None:
            self._state = state
        return state != self._state

    def take(self, rows: Sequence[Any]) -> tuple[tuple[DataEntry, ...], bool]:
        """Entries, and whether they are the last. Raises :class:`Unreadable` where batches are damaged or missing."""
        log_start, batches = _state(rows)
        found: list[DataEntry] = [read_batch(self.partition, row[2], row[3]) for row in rows if row[2] is not None]
        self._batches += len(found)
        end = not found or rows[-1][4]
        if end:
            check_count(self.partition, self._batches, batches)
            found += [LogStartEntry(log_start)] if log_start else []
        else:
            self._last = rows[-1][2]
        return tuple(found), end


def _state(rows: Sequence[Any]) -> tuple[int, int]:
    """Where the log begins, and how many batches it has."""
    return rows[0][0] or 0, rows[0][1] or 0
