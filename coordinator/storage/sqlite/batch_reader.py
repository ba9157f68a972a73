"""Batches of a data directory, read and checked: one partition for a node, or all for ``rejoin log verify``."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

from rejoin.coordinator.storage.codec import Unreadable
from rejoin.coordinator.storage.data_batches import check_count, named, read_batch
from rejoin.coordinator.storage.sqlite.check import LogDefect, damage_of, is_damage
from rejoin.protocol.records.batches import DataEntry, LogStartEntry
from rejoin.protocol.types import TopicIdPartition, TopicPartition

PIECE_BATCHES: Final = 32
"""Batches that are read at a time: each may have a mebibyte."""

ID: Final = "SELECT id FROM data_partitions WHERE topic_id = ? AND partition = ?"
_STATE: Final = """
SELECT log_start, batches + (SELECT count(*) FROM batch_tail WHERE partition_id = id) FROM data_partitions WHERE id = ?
"""
_READ: Final = """
SELECT base_offset, CAST(data AS BLOB) FROM batches WHERE partition_id = ?1 AND base_offset > ?2
UNION ALL
SELECT base_offset, CAST(data AS BLOB) FROM batch_tail WHERE partition_id = ?1 AND base_offset > ?2
ORDER BY base_offset LIMIT ?3
"""

_TABLES: Final = "SELECT name FROM sqlite_schema WHERE name IN ('data_partitions', 'batch_tail')"
_EMPTY_TAIL: Final = "CREATE TEMP TABLE IF NOT EXISTS batch_tail (partition_id, base_offset, data)"
_PARTITIONS: Final = "SELECT topic_id, partition FROM data_partitions ORDER BY topic_id, partition"
_COUNTS: Final = """
SELECT coalesce(sum(batches), 0), count(*) FROM (
    SELECT batches + (SELECT count(*) FROM batch_tail WHERE partition_id = id) AS batches FROM data_partitions
) WHERE batches > 0
"""
_UNKNOWN: Final = """
SELECT partition_id, count(*) FROM (SELECT partition_id FROM batches UNION ALL SELECT partition_id FROM batch_tail)
WHERE partition_id NOT IN (SELECT id FROM data_partitions) GROUP BY partition_id
"""


class SqliteBatchReader:
    """The log of one partition, read piece by piece in the transactions of the caller."""

    def __init__(self, partition: TopicIdPartition) -> None:
        self.partition = partition
        self._last = -1
        """The offset of the last batch."""
        self._batches = 0

    def next_piece(self, connection: sqlite3.Connection) -> tuple[tuple[DataEntry, ...], bool]:
        """Entries, and whether they are the last. Raises :class:`Unreadable` where batches are damaged or missing."""
        with damage_of(named(self.partition)):
            return self._next_piece(connection)

    def _next_piece(self, connection: sqlite3.Connection) -> tuple[tuple[DataEntry, ...], bool]:
        partition = self.partition
        row = connection.execute(ID, (partition.topic_id, partition.partition)).fetchone()
        if row is None:
            return (), True
        (number,) = row
        entries: list[DataEntry] = []
        for base_offset, data in connection.execute(_READ, (number, self._last, PIECE_BATCHES)):
            entries.append(read_batch(partition, base_offset, data))
            self._last = base_offset
        self._batches += len(entries)
        end = len(entries) < PIECE_BATCHES
        if end:
            log_start, batches = connection.execute(_STATE, (number,)).fetchone() or (None, None)
            if not isinstance(log_start, int) or not isinstance(batches, int):
                raise Unreadable(f"{named(partition)}: its row of data_partitions is not the one that was written")
            check_count(partition, self._batches, batches)
            entries += [LogStartEntry(log_start)] if log_start else []
        return tuple(entries), end


def has_data(connection: sqlite3.Connection) -> bool:
    """Whether there are tables of data partitions. Without a tail, as in an older version, they get an empty one."""
    found = {name for (name,) in connection.execute(_TABLES)}
    if "data_partitions" in found and "batch_tail" not in found:
        connection.execute(_EMPTY_TAIL)  # of this connection alone, which need not have the right to write
    return "data_partitions" in found


def batch_counts(connection: sqlite3.Connection) -> tuple[int, int]:
    """How many batches there are, and how many partitions have any, as the partitions count them."""
    batches, partitions = connection.execute(_COUNTS).fetchone() if has_data(connection) else (0, 0)
    return batches, partitions


def batch_findings(connection: sqlite3.Connection, topics: Mapping[str, str]) -> Iterator[LogDefect]:
    """Each partition that a node could not read, with its first problem; and batches that no node would read.

    ``topics`` has names by topic id.
    """
    if not has_data(connection):
        return
    partitions, unknown = _rows(connection, _PARTITIONS), _rows(connection, _UNKNOWN)
    for topic_id, index in partitions.found:
        # The topic id names a topic that is gone. Its logs go with the next start.
        reader = SqliteBatchReader(TopicIdPartition(topic_id, index, topics.get(topic_id, topic_id)))
        try:
            end = False
            while not end:
                _, end = reader.next_piece(connection)
        except Unreadable as damage:
            yield LogDefect(TopicPartition(reader.partition.topic, index), str(damage))
    if partitions.damage:
        yield LogDefect(None, f"the table data_partitions: SQLite cannot read its pages: {partitions.damage}")
    if unknown.damage:
        yield LogDefect(None, f"the table batches: SQLite cannot read its pages: {unknown.damage}")
    for number, count in unknown.found:
        yield LogDefect(None, f"the table batches: expected ids of data_partitions, found id {number} ({count} times)")


class _Rows(NamedTuple):
    """The rows of a query up to the first that cannot be read, and why that one cannot."""

    found: list[tuple[Any, ...]]
    damage: str = ""


def _rows(connection: sqlite3.Connection, query: str) -> _Rows:
    found: list[tuple[Any, ...]] = []
    try:
        found.extend(connection.execute(query))
    except sqlite3.Error as problem:
        if not is_damage(problem):
            raise
        return _Rows(found, str(problem))
    return _Rows(found)
