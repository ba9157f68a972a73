"""The SQL of the logs in PostgreSQL; ``writer.py``, ``log.py`` and ``compaction.py`` say what each is for."""

from __future__ import annotations

from typing import Final

from rejoin.coordinator.storage.compaction import doomed_query, doomed_with_transactions_query, has_transactions_query

WANTED: Final = "(SELECT * FROM unnest({0}::text[], {1}::integer[]))"
"""Topic partitions, as an array of topics and an array of numbers."""

APPEND: Final = f"""
WITH session AS (
    UPDATE writers SET batch = $3, seen_at = now() WHERE writer = $1 AND session = $2 RETURNING batch
), held AS MATERIALIZED (
    SELECT topic, partition, epoch, node_id FROM leases WHERE (topic, partition) IN {WANTED.format("$4", "$5")}
    ORDER BY topic, partition FOR SHARE
), written AS (
    INSERT INTO log (topic, partition, position, epoch, producer_id, checksum, key, value)
    SELECT r.* FROM unnest(
        $7::text[], $8::integer[], $9::bigint[], $10::bigint[], $11::bigint[], $12::bigint[], $13::text[], $14::text[]
    ) AS r (topic, partition, position, epoch, producer_id, checksum, key, value)
    JOIN held ON held.topic = r.topic AND held.partition = r.partition AND held.epoch = r.epoch AND held.node_id = $6
    WHERE EXISTS (SELECT FROM session)
)
SELECT topic, partition, epoch, node_id FROM held
UNION ALL SELECT '', -1, count(*), NULL FROM session
"""
SESSION: Final = """
INSERT INTO writers AS w (writer, session, batch) VALUES ($1, $2, 0)
ON CONFLICT (writer) DO UPDATE SET session = greatest(w.session, excluded.session), seen_at = now()
RETURNING session, batch
"""
LEASES: Final = f"""
SELECT topic, partition, epoch, node_id FROM leases WHERE (topic, partition) IN {WANTED.format("$1", "$2")}
"""
ENDS: Final = """
SELECT w.topic, w.partition, l.position FROM unnest($1::text[], $2::integer[]) AS w (topic, partition)
CROSS JOIN LATERAL (
    SELECT position FROM log WHERE log.topic = w.topic AND log.partition = w.partition ORDER BY position DESC LIMIT 1
) AS l
"""
READ: Final = """
SELECT position, producer_id, checksum, key, value FROM log
WHERE topic = $1 AND partition = $2 AND position > $3 ORDER BY position LIMIT $4
"""
PARTITION: Final = "topic = $1 AND partition = $2"
HAS_TRANSACTIONS: Final = has_transactions_query(PARTITION)
DOOMED: Final = doomed_query(PARTITION)
DOOMED_WITH_TRANSACTIONS: Final = doomed_with_transactions_query(PARTITION, "position")
COUNT: Final = "SELECT count(*) FROM log WHERE topic = $1 AND partition = $2"
ALIVE: Final = "SELECT alive FROM compactions WHERE topic = $1 AND partition = $2"
REMOVE: Final = """
WITH held AS (
    SELECT partition FROM leases
    WHERE topic = $1 AND partition = $2 AND epoch = $3 AND node_id = $4 FOR SHARE
), removed AS (
    DELETE FROM log
    WHERE topic = $1 AND partition = $2 AND position = ANY($5::bigint[]) AND EXISTS (SELECT FROM held)
)
SELECT count(*) FROM held
"""
LEFT: Final = """
INSERT INTO compactions (topic, partition, alive) VALUES ($1, $2, $3)
ON CONFLICT (topic, partition) DO UPDATE SET alive = excluded.alive
"""
FORGET_WRITERS: Final = "DELETE FROM writers WHERE seen_at < now() - interval '7 days'"
