"""The tables of a data directory, and how older ones become newer ones. The version is SQLite's ``user_version``."""

from __future__ import annotations

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

STEPS: Final[tuple[str, ...]] = (_FIRST, _TOPICS)
"""What makes the tables of version ``n`` out of those of version ``n - 1``, for each ``n`` from 1 on."""
