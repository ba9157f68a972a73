"""The tables of a data directory, and how older ones become newer ones. The version is SQLite's ``user_version``."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from typing import Final

_FIRST: Final = """
-- One row: which store this is, the number of the newest batch, where the next record goes, and whether it is in use
-- or was closed in order.
CREATE TABLE store (
    id INTEGER PRIMARY KEY CHECK (id = 1),
    name TEXT NOT NULL,
    batch INTEGER NOT NULL,
    next_position INTEGER NOT NULL,
    in_use INTEGER NOT NULL
);

-- The newest epoch of a partition; how many records it has and the sum of their checksums, by which lost ones are
-- noticed; how many were left by the last compaction.
CREATE TABLE partitions (
    partition INTEGER PRIMARY KEY,
    epoch INTEGER NOT NULL,
    records INTEGER NOT NULL,
    checksums INTEGER NOT NULL,
    alive INTEGER NOT NULL
);

-- A record is the JSON of its key and that of its value. No value: a tombstone. No key: the end of a transaction,
-- whose JSON is the value. Positions count through all partitions, so that whatever is appended goes to the end.
CREATE TABLE log (
    position INTEGER PRIMARY KEY,
    partition INTEGER NOT NULL,
    epoch INTEGER NOT NULL,
    producer_id INTEGER NOT NULL,
    checksum INTEGER NOT NULL,
    key TEXT,
    value TEXT
);
CREATE INDEX log_by_partition ON log (partition);
"""

_TOPICS: Final = """
CREATE TABLE topics_log (
    version INTEGER PRIMARY KEY,
    record TEXT NOT NULL
);
"""

_POSITIONS: Final = """
-- The positions of each partition, up to store.indexed. An index of SQLite's own would have a page to change for each
-- partition that a transaction appends to; entries for thousands of records at once change hardly more pages.
CREATE TABLE positions (
    partition INTEGER NOT NULL,
    position INTEGER NOT NULL,
    PRIMARY KEY (partition, position)
) WITHOUT ROWID;
INSERT INTO positions SELECT partition, position FROM log ORDER BY partition, position;
ALTER TABLE store ADD COLUMN indexed INTEGER NOT NULL DEFAULT 0;
UPDATE store SET indexed = next_position - 1;
DROP INDEX log_by_partition;

-- The log, for queries of one partition: by positions as far as they go, and what came after.
CREATE VIEW partition_log AS
SELECT p.partition, p.position, l.epoch, l.producer_id, l.checksum, l.key, l.value
FROM positions p CROSS JOIN log l ON l.position = p.position AND l.partition = p.partition
UNION ALL
SELECT partition, position, epoch, producer_id, checksum, key, value
FROM log WHERE position > (SELECT indexed FROM store);
"""

_TAIL: Final = """
-- From here on the table partitions, too, has what there is up to store.indexed, and its records and checksums count no
-- others. Those that came after lie without a gap up to store.next_position; tail_checksums is the sum of theirs.
INSERT INTO positions
    SELECT partition, position FROM log WHERE position > (SELECT indexed FROM store) ORDER BY partition, position;
UPDATE store SET indexed = next_position - 1;
ALTER TABLE store ADD COLUMN tail_checksums INTEGER NOT NULL DEFAULT 0;
"""

_TOPIC_PARTITIONS: Final = """
-- Logs are those of topic partitions. Each has an id, by which the other tables know it. Those that were there before
-- are the offsets topic's, whose partitions have their numbers as ids: so a record can be saved without this table.
INSERT OR IGNORE INTO partitions (partition, epoch, records, checksums, alive)
    SELECT partition, max(epoch), 0, 0, 0 FROM log WHERE position > (SELECT indexed FROM store) GROUP BY partition;
DROP VIEW partition_log;
ALTER TABLE partitions RENAME COLUMN partition TO id;
ALTER TABLE partitions ADD COLUMN topic TEXT NOT NULL DEFAULT '__consumer_offsets';
ALTER TABLE partitions ADD COLUMN partition INTEGER NOT NULL DEFAULT -1;
UPDATE partitions SET partition = id;
ALTER TABLE log RENAME COLUMN partition TO partition_id;
ALTER TABLE positions RENAME COLUMN partition TO partition_id;
CREATE VIEW partition_log AS
SELECT p.partition_id, p.position, l.epoch, l.producer_id, l.checksum, l.key, l.value
FROM positions p CROSS JOIN log l ON l.position = p.position AND l.partition_id = p.partition_id
UNION ALL
SELECT partition_id, position, epoch, producer_id, checksum, key, value
FROM log WHERE position > (SELECT indexed FROM store);
"""

_DATA: Final = """
-- The logs of data partitions, by the id of their topic: where each begins, and how many batches it has. A batch is
-- kept as its bytes, which have a checksum of their own.
CREATE TABLE data_partitions (
    id INTEGER PRIMARY KEY,
    topic_id TEXT NOT NULL,
    partition INTEGER NOT NULL,
    log_start INTEGER NOT NULL,
    batches INTEGER NOT NULL,
    UNIQUE (topic_id, partition)
);
CREATE TABLE batches (
    partition_id INTEGER NOT NULL,
    base_offset INTEGER NOT NULL,
    next_offset INTEGER NOT NULL,
    data BLOB NOT NULL,
    PRIMARY KEY (partition_id, base_offset)
);
"""

_BATCH_TAIL: Final = """
-- Batches that are not yet in the table batches, nor counted in data_partitions, in the order they came; how many.
CREATE TABLE batch_tail (
    position INTEGER PRIMARY KEY,
    partition_id INTEGER NOT NULL,
    base_offset INTEGER NOT NULL,
    next_offset INTEGER NOT NULL,
    data BLOB NOT NULL
);
ALTER TABLE store ADD COLUMN tail_batches INTEGER NOT NULL DEFAULT 0;
"""

STEPS: Final[tuple[str, ...]] = (_FIRST, _TOPICS, _POSITIONS, _TAIL, _TOPIC_PARTITIONS, _DATA, _BATCH_TAIL)
"""Migrations: each makes the tables of version ``n`` from those of version ``n - 1``, from 1 on."""


def set_columns(connection: sqlite3.Connection, columns: Mapping[str, int]) -> None:
    """Set columns of the table store."""
    if columns:
        names = " = ?, ".join(columns)
        connection.execute(f"UPDATE store SET {names} = ?", tuple(columns.values()))
