"""The SQL of the logs in PostgreSQL; ``writer.py``, ``log.py`` and ``compaction.py`` say what each is for."""

from __future__ import annotations

from typing import Final

from rejoin.coordinator.storage.compaction import doomed_query, doomed_with_transactions_query, has_transactions_query

WANTED: Final = "(SELECT * FROM unnest({0}::text[], {1}::integer[]))"
"""Topic partitions, as an array of topics and an array of numbers."""

_APPEND: Final = f"""
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
)"""
_APPEND_DATA: Final = """, data AS (
    INSERT INTO batches (topic_id, partition, base_offset, next_offset, data)
    SELECT r.topic_id, r.partition, r.base_offset, r.next_offset, r.data FROM unnest(
        $15::text[], $16::integer[], $17::bigint[], $18::bigint[], $19::bytea[], $20::text[], $21::integer[],
        $22::bigint[]
    ) AS r (topic_id, partition, base_offset, next_offset, data, leased_topic, leased_partition, epoch)
    JOIN held ON held.topic = r.leased_topic AND held.partition = r.leased_partition AND held.epoch = r.epoch
        AND held.node_id = $6
    WHERE EXISTS (SELECT FROM session)
    RETURNING topic_id, partition
), counted AS (
    INSERT INTO data_logs AS l (topic_id, partition, batches)
    SELECT topic_id, partition, count(*) FROM data GROUP BY topic_id, partition ORDER BY topic_id, partition
    ON CONFLICT (topic_id, partition) DO UPDATE SET batches = l.batches + excluded.batches
)"""
_HELD: Final = """
SELECT topic, partition, epoch, node_id FROM held
UNION ALL SELECT '', -1, count(*), NULL FROM session
"""
APPEND: Final = _APPEND + _HELD
APPEND_WITH_DATA: Final = _APPEND + _APPEND_DATA + _HELD
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

# --- data partitions

START_AT: Final = """
WITH removed AS (
    DELETE FROM batches WHERE topic_id = $1 AND partition = $2 AND next_offset <= $3 RETURNING base_offset
)
INSERT INTO data_logs AS l (topic_id, partition, log_start, batches) VALUES ($1, $2, $3, 0)
ON CONFLICT (topic_id, partition) DO UPDATE
SET log_start = greatest(l.log_start, excluded.log_start), batches = l.batches - (SELECT count(*) FROM removed)
"""
REMOVE_BELOW: Final = """
WITH removed AS (
    DELETE FROM batches WHERE topic_id = $1 AND partition = $2 AND base_offset < $3 RETURNING base_offset
)
UPDATE data_logs SET batches = batches - (SELECT count(*) FROM removed) WHERE topic_id = $1 AND partition = $2
"""
REPLACE: Final = """
WITH data AS (
    INSERT INTO batches (topic_id, partition, base_offset, next_offset, data)
    SELECT $1, $2, r.* FROM unnest($3::bigint[], $4::bigint[], $5::bytea[]) AS r (base_offset, next_offset, data)
    RETURNING base_offset
)
UPDATE data_logs SET batches = batches + (SELECT count(*) FROM data) WHERE topic_id = $1 AND partition = $2
"""
# In one statement, so that the count is that of the moment in which the batches are read. The length of a value that is
# kept outside of its row is known without reading it.
READ_DATA: Final = """
SELECT log_start, batches, base_offset, data, is_last FROM (SELECT) AS one
LEFT JOIN (SELECT log_start, batches FROM data_logs WHERE topic_id = $1 AND partition = $2) AS log ON true
LEFT JOIN (
    SELECT base_offset, data, sum(size) OVER (ORDER BY base_offset) - size AS before,
        count(*) OVER () < $4 AND row_number() OVER (ORDER BY base_offset) = count(*) OVER () AS is_last
    FROM (
        SELECT base_offset, data, octet_length(data) AS size FROM batches
        WHERE topic_id = $1 AND partition = $2 AND base_offset > $3 ORDER BY base_offset LIMIT $4
    ) AS next
) AS piece ON before < $5
ORDER BY base_offset
"""
# A topic that the caller does not know may be newer than what it knows, and then the topics log has it.
GONE: Final = """
SELECT DISTINCT topic_id FROM data_logs
WHERE topic_id <> ALL ($1::text[]) AND (
    NOT EXISTS (SELECT FROM topics_log WHERE strpos(record::text, topic_id) > 0)
    OR EXISTS (
        SELECT FROM topics_log
        WHERE record @> jsonb_build_array(
            jsonb_build_object('type', 'REMOVE_TOPIC_RECORD', 'data', jsonb_build_object('topicId', topic_id))
        )
    )
)
"""
PARTITIONS_OF: Final = "SELECT partition FROM data_logs WHERE topic_id = $1"
DELETE_SOME: Final = """
WITH removed AS (
    DELETE FROM batches WHERE topic_id = $1 AND partition = $2 AND base_offset IN (
        SELECT base_offset FROM batches WHERE topic_id = $1 AND partition = $2 ORDER BY base_offset LIMIT $3
    )
    RETURNING base_offset
)
UPDATE data_logs SET batches = batches - (SELECT count(*) FROM removed) WHERE topic_id = $1 AND partition = $2
RETURNING batches
"""
DELETE_LOG: Final = "DELETE FROM data_logs WHERE topic_id = $1 AND partition = $2"
