"""What a log keeps: records that are not too old and not too many, and the last of each key.

Differs: Kafka deletes and compacts whole segments, and leaves the newest alone. Here each batch but the last counts as
one. A tombstone goes when it is old enough by its own time, and not by that of the first cleaning that saw it.

Kafka: UnifiedLog.deleteOldSegments, Cleaner.
"""

from __future__ import annotations

from collections.abc import Iterator

from rejoin.coordinator.core.inputs import Millis
from rejoin.coordinator.core.partitions.log import LogBatch, PartitionLog
from rejoin.coordinator.core.partitions.topic_config import UNLIMITED, TopicConfig
from rejoin.protocol.records.batches import BatchEntry, CompactionEntry
from rejoin.protocol.wire.compression import compress
from rejoin.protocol.wire.errors import RecordsError
from rejoin.protocol.wire.record_batch import sealed
from rejoin.protocol.wire.records import DefaultRecord, read_batch, write_records


def retained_from(log: PartitionLog, config: TopicConfig, now: Millis) -> int:
    """Where a log begins when all is deleted that its topic keeps no longer."""
    start, size = log.log_start_offset, log.size
    if not config.deletes:
        return start
    for batch in log.batches:
        if batch.last_offset >= log.high_watermark:
            break
        is_old = config.retention_ms != UNLIMITED and 0 <= batch.max_timestamp < now - config.retention_ms
        is_too_much = config.retention_bytes != UNLIMITED and size - len(batch.data) >= config.retention_bytes
        if not is_old and not is_too_much:
            break
        start = batch.last_offset + 1
        size -= len(batch.data)
    return start


def compaction(log: PartitionLog, config: TopicConfig, now: Millis) -> CompactionEntry | None:
    """What stands for all batches but the last when they are compacted, or none where nothing would change."""
    # Kafka: LogCleanerManager.cleanableOffsets. What an open transaction has may be dropped, and replaces nothing yet.
    last_stored = [batch for batch in log.batches if batch.last_offset < log.last_stable_offset]
    dirty = [batch for batch in last_stored[:-1] if batch.max_timestamp <= now - config.min_compaction_lag_ms]
    if not dirty:
        return None
    aborted = _aborted(log)
    newest = _newest_by_key(last_stored, aborted)
    kept: list[BatchEntry] = []
    has_changed = False
    for batch in dirty:
        data = _compacted(batch, newest, config, now, is_aborted=batch.base_offset in aborted)
        has_changed = has_changed or data != batch.data
        if data is not None:
            kept.append(BatchEntry(batch.base_offset, data))
    return CompactionEntry(dirty[-1].last_offset + 1, tuple(kept)) if has_changed else None


def _aborted(log: PartitionLog) -> set[int]:
    """The first offsets of the batches whose transactions were aborted. Kafka: CleanedTransactionMetadata."""
    ends: dict[int, list[tuple[int, int]]] = {}
    for aborted in log.aborted:
        ends.setdefault(aborted.producer_id, []).append((aborted.first_offset, aborted.last_offset))
    if not ends:
        return set()
    found = set()
    for batch in log.batches:
        header = batch.header
        if header.is_transactional and not header.is_control:
            within = ends.get(header.producer_id, ())
            if any(first <= batch.base_offset < last for first, last in within):
                found.add(batch.base_offset)
    return found


def _newest_by_key(batches: list[LogBatch], aborted: set[int]) -> dict[bytes, int]:
    """The offset of the last record of each key, but for those of aborted transactions."""
    return {
        record.key: batch.base_offset + record.offset_delta
        for batch in batches
        if batch.base_offset not in aborted
        for record in _records(batch)
        if record.key is not None
    }


def _records(batch: LogBatch) -> Iterator[DefaultRecord]:
    """The records of a batch; none of one whose records mean nothing, or cannot be read."""
    if not batch.header.is_control:
        try:
            yield from read_batch(batch.data)
        except RecordsError:
            return


def _compacted(
    batch: LogBatch, newest: dict[bytes, int], config: TopicConfig, now: Millis, *, is_aborted: bool
) -> bytes | None:
    """A batch with the records that still count; none where it has none. Its offsets stay."""
    header = batch.header
    records = list(_records(batch))
    if not records:
        return batch.data
    drops_tombstones = batch.max_timestamp + config.delete_retention_ms <= now
    counting = [
        record
        for record in records
        if not is_aborted
        and record.key is not None
        and newest[record.key] == batch.base_offset + record.offset_delta
        and not (record.value is None and drops_tombstones)
    ]
    if len(counting) == len(records):
        return batch.data
    if not counting and not header.has_producer_id:
        return None
    # Kafka: of a producer an empty batch is kept, so that its sequence is known.
    newest_at = batch.max_timestamp
    if counting and not header.has_log_append_time:
        newest_at = max(header.base_timestamp + record.timestamp_delta for record in counting)
    changed = header.with_fields(records_count=len(counting), max_timestamp=newest_at)
    return sealed(changed, bytes(compress(header.codec, write_records(counting))) if counting else b"")
