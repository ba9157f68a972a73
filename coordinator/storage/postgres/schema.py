"""The tables of a cluster in PostgreSQL, and how older ones become newer ones.

All in one schema, the first of the connection's ``search_path``, so that several clusters can share a database. Each
step of :data:`STEPS` is carried out once, in order, in one transaction with those after it; the number of steps carried
out is the schema's version.

Who writes what: ``nodes`` and ``leases`` are the cluster's (an epoch goes up by one whenever a partition changes
hands), ``topics_log`` the topics', all others the logs'. The logs read ``leases`` for fencing, with row locks: a
transaction that changes several leases does so in the order of their topic partitions.
"""

from __future__ import annotations

from typing import Final

_FIRST: Final = """
CREATE TABLE nodes (
    node_id integer PRIMARY KEY,
    incarnation uuid NOT NULL,
    host text NOT NULL,
    port integer NOT NULL,
    rack text,
    draining boolean NOT NULL DEFAULT false,
    expires_at timestamptz NOT NULL
) WITH (fillfactor = 50);

CREATE TABLE leases (
    partition integer PRIMARY KEY,
    epoch bigint NOT NULL,
    node_id integer,
    incarnation uuid,
    expires_at timestamptz
) WITH (fillfactor = 50);

-- A record is the JSON of its key and that of its value. No value: a tombstone. No key: the end of a transaction,
-- whose JSON is the value.
CREATE TABLE log (
    partition integer NOT NULL,
    position bigint NOT NULL,
    epoch bigint NOT NULL,
    producer_id bigint NOT NULL DEFAULT -1,
    checksum bigint NOT NULL,
    key text,
    value text,
    PRIMARY KEY (partition, position)
) WITH (autovacuum_vacuum_scale_factor = 0.1);

-- How many records the last compaction of a partition left.
CREATE TABLE compactions (
    partition integer PRIMARY KEY,
    alive bigint NOT NULL
);

-- Each connection that appends: a newer session ends those before it, and the number of the newest batch says whether
-- one whose answer was lost had been written.
CREATE TABLE writers (
    writer uuid PRIMARY KEY,
    session bigint NOT NULL,
    batch bigint NOT NULL,
    seen_at timestamptz NOT NULL DEFAULT now()
) WITH (fillfactor = 50);
"""

_TOPICS: Final = """
CREATE TABLE topics_log (
    version bigint PRIMARY KEY,
    record jsonb NOT NULL
);
"""

_LOADS: Final = """
-- How long the leader of a partition needed to load it.
ALTER TABLE leases ADD COLUMN load_ms integer;
"""

_TOPIC_PARTITIONS: Final = """
-- Logs are those of topic partitions; all that there were before are the offsets topic's. The default is for nodes of
-- an older program, which go on beside newer ones until they are replaced, and name no topic.
ALTER TABLE leases ADD COLUMN topic text COLLATE "C" NOT NULL DEFAULT '__consumer_offsets';
ALTER TABLE leases DROP CONSTRAINT leases_pkey, ADD PRIMARY KEY (topic, partition);
ALTER TABLE log ADD COLUMN topic text COLLATE "C" NOT NULL DEFAULT '__consumer_offsets';
ALTER TABLE log DROP CONSTRAINT log_pkey, ADD PRIMARY KEY (topic, partition, position);
ALTER TABLE compactions ADD COLUMN topic text COLLATE "C" NOT NULL DEFAULT '__consumer_offsets';
ALTER TABLE compactions DROP CONSTRAINT compactions_pkey, ADD PRIMARY KEY (topic, partition);
"""

_LISTENERS: Final = """
-- Where a node can be reached by Kafka's own protocol, in the notation of advertised.listeners.
ALTER TABLE nodes ADD COLUMN listeners text NOT NULL DEFAULT '';
"""

_DATA: Final = """
-- The logs of data partitions, by the id of their topic: where each begins, and how many batches it has. A batch is
-- kept as its bytes, which have a checksum of their own and are compressed by those who produce them.
CREATE TABLE data_logs (
    topic_id text COLLATE "C" NOT NULL,
    partition integer NOT NULL,
    log_start bigint NOT NULL DEFAULT 0,
    batches bigint NOT NULL,
    PRIMARY KEY (topic_id, partition)
) WITH (fillfactor = 50);
CREATE TABLE batches (
    topic_id text COLLATE "C" NOT NULL,
    partition integer NOT NULL,
    base_offset bigint NOT NULL,
    next_offset bigint NOT NULL,
    data bytea NOT NULL,
    PRIMARY KEY (topic_id, partition, base_offset)
);
ALTER TABLE batches ALTER COLUMN data SET STORAGE EXTERNAL;
"""

STEPS: Final[tuple[str, ...]] = (_FIRST, _TOPICS, _LOADS, _TOPIC_PARTITIONS, _LISTENERS, _DATA)
"""Migrations: each makes the schema of version ``n`` from that of version ``n - 1``, from 1 on."""
