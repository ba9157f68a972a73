"""Which records of a log compaction keeps. Kafka: LogCleaner, with its rules for transactions.

The same rule in two languages: Python for a log in memory, SQL for a log in a database. Compaction removes

- a record that a newer record of the same key replaces. The newer record is plain, or its transaction has committed. A
  record counts from its own position on, not from that of the commit;
- a record of an aborted transaction, and one that the same open transaction has written over;
- a tombstone, once all older records of its key are gone;
- the marker of a transaction, once all records of that transaction are gone.

Records of an open transaction are kept until a later tombstone removes them, even if the transaction commits
afterwards. Removal goes from the oldest record on, so that an old value never comes back.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from rejoin.protocol.records.keyed import Record, TransactionMarker

_DOOMED_PLAIN: Final = """
SELECT position FROM (
    SELECT position, value IS NULL AS is_tombstone, max(position) OVER (PARTITION BY key) AS newest
    FROM log WHERE {of}
) AS each WHERE position < newest OR is_tombstone ORDER BY position
"""

_DOOMED_PLAIN_SQLITE: Final = """
SELECT position, partition_id, checksum FROM {log} WHERE partition_id IN ({ids}) AND (
    value IS NULL
    OR position NOT IN (SELECT max(position) FROM {log} WHERE partition_id IN ({ids}) GROUP BY partition_id, key)
) ORDER BY position
"""

_DOOMED: Final = """
WITH ends AS (
    SELECT position, producer_id, key, value,
        min(CASE WHEN key IS NULL THEN position END) OVER (
            PARTITION BY producer_id ORDER BY position ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING
        ) AS ended_at
    FROM {log} WHERE {of} AND producer_id >= 0
), fates AS (
    SELECT e.position, e.producer_id, e.key, e.value, e.ended_at,
        CASE WHEN e.ended_at IS NULL THEN 'open' WHEN m.value LIKE '%"committed":true%' THEN 'counts' ELSE 'aborted' END
            AS fate
    FROM ends e LEFT JOIN log m ON {of} AND m.position = e.ended_at
    WHERE e.key IS NOT NULL
    UNION ALL
    SELECT position, producer_id, key, value, NULL, 'counts' FROM {log}
    WHERE {of} AND producer_id < 0
), ranked AS (
    SELECT position, ended_at, fate, value,
        max(CASE WHEN fate = 'counts' THEN position END) OVER (PARTITION BY key) AS newest,
        max(CASE WHEN fate = 'counts' AND producer_id < 0 AND value IS NULL THEN position END)
            OVER (PARTITION BY key) AS tombstone,
        max(position) OVER (PARTITION BY key, producer_id, fate) AS newest_of_producer
    FROM fates
), doomed AS (
    SELECT position, ended_at,
        CASE fate
            WHEN 'aborted' THEN true
            WHEN 'open' THEN position < newest_of_producer OR position < coalesce(tombstone, -1)
            ELSE position < newest OR value IS NULL
        END AS is_doomed
    FROM ranked
)
SELECT {columns} FROM log WHERE position IN (
    SELECT position FROM doomed WHERE is_doomed
    UNION ALL
    SELECT position FROM ends e WHERE key IS NULL AND NOT EXISTS (
        SELECT 1 FROM doomed d WHERE d.ended_at = e.position AND NOT d.is_doomed
    )
) AND {of} ORDER BY position
"""


def has_transactions_query(of: str) -> str:
    """SQL: does the log of a partition still have records of a transaction?"""
    return f"SELECT EXISTS (SELECT 1 FROM log WHERE {of} AND producer_id >= 0)"


def listed(numbers: Sequence[int]) -> str:
    """Numbers in the form of an SQL ``IN`` list."""
    return ", ".join(str(int(each)) for each in numbers)


def doomed_query(of: str) -> str:
    """SQL for PostgreSQL: the positions to remove from a partition without transactions, oldest first.

    ``of`` is the condition that selects the partition.
    """
    return _DOOMED_PLAIN.format(of=of)


def doomed_query_sqlite(ids: Sequence[int], log: str = "log") -> str:
    """The statement for SQLite, with the partition and the checksum of each record.

    In SQLite all partitions share one sequence of positions, so one query can cover several of them. This form is the
    faster one in SQLite; PostgreSQL may run it as a nested loop. ``log`` is the table, or a view with an index on
    partitions.
    """
    return _DOOMED_PLAIN_SQLITE.format(ids=listed(ids), log=log)


def doomed_with_transactions_query(of: str, columns: str, log: str = "log") -> str:
    """The statement for a partition with transactions. ``columns`` are the columns to select."""
    return _DOOMED.format(of=of, columns=columns, log=log)


def doomed(records: Sequence[Record]) -> set[int]:
    """The indexes of the records to remove."""
    ended_at: dict[int, int] = {}
    markers: dict[int, int] = {}
    for index in reversed(range(len(records))):
        record = records[index]
        if isinstance(record, TransactionMarker):
            markers[record.producer_id] = index
        elif record.producer_id in markers:
            ended_at[index] = markers[record.producer_id]
    gone: set[int] = set()
    # The hash of a key takes longest, so each record gets the number of its key once.
    first_of_key: dict[object, int] = {}
    keys: list[int] = []
    newest: dict[int, int] = {}
    tombstones: dict[int, int] = {}
    newest_open: dict[tuple[int, int], int] = {}
    for index, record in enumerate(records):
        if isinstance(record, TransactionMarker):
            keys.append(index)
            continue
        key = first_of_key.setdefault(record.key, index)
        keys.append(key)
        if record.producer_id >= 0:
            end = ended_at.get(index)
            if end is None:
                newest_open[key, record.producer_id] = index
                continue
            if not _committed(records[end]):
                gone.add(index)
                continue
        elif record.value is None:
            tombstones[key] = index
        newest[key] = index
    for index, record in enumerate(records):
        if isinstance(record, TransactionMarker) or index in gone:
            continue
        key = keys[index]
        if record.producer_id >= 0 and index not in ended_at:
            late = newest_open[key, record.producer_id] > index
            if late or tombstones.get(key, -1) > index:
                gone.add(index)
        elif newest[key] > index or record.value is None:
            gone.add(index)
    needed = {end for index, end in ended_at.items() if index not in gone}
    gone.update(
        index for index, record in enumerate(records) if isinstance(record, TransactionMarker) and index not in needed
    )
    return gone


def compacted(records: Sequence[Record]) -> list[Record]:
    """The records to keep, in log order."""
    gone = doomed(records)
    return [record for index, record in enumerate(records) if index not in gone]


def _committed(record: Record) -> bool:
    return isinstance(record, TransactionMarker) and record.committed
