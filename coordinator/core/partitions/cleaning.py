"""Retention and compaction of a log: drops records by age and size, or keeps the last record of each key.

Of a transaction the marker stays while any of its records does, and then for as long as a tombstone: both go in the
first cleaning after ``delete.retention.ms``, counted from the first one that could have dropped them (KIP-534). Of a
producer the last batch stays, if need be without records, so that its sequence is known.

Differs: Kafka deletes and compacts whole segments, and leaves the newest alone. Here each batch but the last counts as
one. How far a log was compacted is not stored: after an election all of it is dirty.

Kafka: UnifiedLog.deleteOldSegments, LogCleanerManager, Cleaner.cleanInto, CleanedTransactionMetadata,
MemoryRecords.filterTo.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from rejoin.coordinator.core.inputs import Millis
from rejoin.coordinator.core.partitions.log import AbortedTxn, LogBatch, PartitionLog
from rejoin.coordinator.core.partitions.producer_state import ProducerStateEntry
from rejoin.coordinator.core.partitions.topic_config import NEVER, UNLIMITED, TopicConfig
from rejoin.protocol.records.batches import BatchEntry, CompactionEntry
from rejoin.protocol.types import BatchBytes
from rejoin.protocol.wire.compression import compress
from rejoin.protocol.wire.errors import RecordsError
from rejoin.protocol.wire.record_batch import (
    CODEC_MASK,
    DELETE_HORIZON_BIT,
    NO_TIMESTAMP,
    BatchHeader,
    sealed,
)
from rejoin.protocol.wire.records import (
    ControlRecordType,
    DefaultRecord,
    EndTransactionMarker,
    read_batch,
    write_records,
)

# --- deletion


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


# --- when to compact


def _cleanable(log: PartitionLog, config: TopicConfig, now: Millis) -> range:
    """The numbers of the dirty batches before the first that is too young."""
    dirty, lag_ms = log.dirty, config.min_compaction_lag_ms
    if lag_ms <= 0:
        return dirty
    end = next((each for each in dirty if log.batches[each].max_timestamp > now - lag_ms), dirty.stop)
    return range(dirty.start, end)


def is_worth_compacting(log: PartitionLog, config: TopicConfig, now: Millis) -> bool:
    """Whether enough of a log is dirty, or some of it has been so for too long."""
    # Kafka: LogCleanerManager.grabFilthiestCompactedLog.
    cleanable = _cleanable(log, config, now)
    if not cleanable:
        return False
    begin, first, end = (log.batches[each].position for each in (0, cleanable.start, cleanable.stop))
    if end - first > config.min_cleanable_dirty_ratio * (end - begin):
        return True
    oldest = _oldest_dirty(log, config)
    return oldest is not None and oldest < now - config.max_compaction_lag_ms


def _oldest_dirty(log: PartitionLog, config: TopicConfig) -> Millis | None:
    """The timestamp that ``max.compaction.lag.ms`` counts from, if the topic has that."""
    # Kafka: LogCleanerManager.maxCompactionDelay.
    if config.max_compaction_lag_ms == NEVER:
        return None
    times = (log.batches[each].max_timestamp for each in range(log.dirty.start, len(log.batches) - 1))
    return min((at for at in times if at > 0), default=None)


def next_look(log: PartitionLog, config: TopicConfig, now: Millis) -> Millis | None:
    """When a compacted log that was just looked at may lose something though nothing is appended, or none."""
    found: list[Millis] = []
    cleanable = _cleanable(log, config, now)
    if cleanable.stop < log.dirty.stop:
        found.append(log.batches[cleanable.stop].max_timestamp + config.min_compaction_lag_ms)
    oldest = _oldest_dirty(log, config) if cleanable else None
    if oldest is not None:
        found.append(oldest + config.max_compaction_lag_ms + 1)
    if config.deletes and config.retention_ms != UNLIMITED and log.batches:
        first = log.batches[0]
        if first.max_timestamp >= 0 and first.last_offset < log.high_watermark:
            found.append(first.max_timestamp + config.retention_ms + 1)
    return min(found, default=None)


# --- compaction


class Compaction(NamedTuple):
    """The batches that stand for all below an offset, and the aborted transactions that are left there."""

    entry: CompactionEntry
    aborted: list[AbortedTxn]
    has_changed: bool


def compaction(
    log: PartitionLog, producers: Mapping[int, ProducerStateEntry], config: TopicConfig, now: Millis
) -> Compaction | None:
    """The log without what does not count any more, or none where nothing has come since it was compacted."""
    cleanable = _cleanable(log, config, now)
    if not cleanable:
        return None
    cleaned = log.batches[: cleanable.stop]
    transactions = _Transactions(log)
    found = [_Cleaned(batch, batch.header, transactions.may_discard(batch)) for batch in cleaned]
    newest = _newest_by_key(found)
    kept = []
    for each in found:
        is_last = each is found[-1] or _is_last_of_producer(each, producers)
        data = each.compacted(newest, config.delete_retention_ms, now, is_last=is_last)
        if data is not None:
            kept.append(BatchEntry(each.batch.base_offset, data))
    end_offset = cleaned[-1].last_offset + 1
    has_changed = len(kept) < len(cleaned) or any(
        entry.data is not batch.data and entry.data != bytes(batch.data)
        for entry, batch in zip(kept, cleaned, strict=True)
    )
    if has_changed:
        # What is left of many batches would keep the memory that it shares with them.
        kept = [BatchEntry(entry.base_offset, bytes(entry.data)) for entry in kept]
    later = [each for each in log.aborted if each.last_offset >= end_offset]
    return Compaction(CompactionEntry(end_offset, tuple(kept)), [*transactions.left, *later], has_changed)


def _records(batch: LogBatch) -> list[DefaultRecord] | None:
    """The records of a batch, or none where they cannot be read."""
    try:
        return list(read_batch(batch.data))
    except RecordsError:
        return None


@dataclass(slots=True)
class _OngoingAbort:
    """An aborted transaction whose marker is still to come, and whether any batch of it is left."""

    aborted: AbortedTxn
    has_batches: bool = False


class _Transactions:
    """The transactions of a log while it is read from its beginning. Kafka: CleanedTransactionMetadata."""

    def __init__(self, log: PartitionLog) -> None:
        self._waiting = sorted(log.aborted, key=lambda aborted: aborted.first_offset, reverse=True)
        self._aborted: dict[int, _OngoingAbort] = {}
        self._committed: set[int] = set()
        self.left: list[AbortedTxn] = []
        """Aborted transactions of which there still was a batch."""

    def may_discard(self, batch: LogBatch) -> bool:
        """Whether the records of a batch are aborted, or a marker has nothing left that it could end."""
        header = batch.header
        while self._waiting and self._waiting[-1].first_offset <= batch.last_offset:
            aborted = self._waiting.pop()
            self._aborted[aborted.producer_id] = _OngoingAbort(aborted)
        if header.is_control:
            return self._ends_nothing(batch, header.producer_id)
        if not header.is_transactional:
            return False
        ongoing = self._aborted.get(header.producer_id)
        if ongoing is None:
            self._committed.add(header.producer_id)
            return False
        ongoing.has_batches = True
        return True

    def _ends_nothing(self, batch: LogBatch, producer_id: int) -> bool:
        records = _records(batch)
        marker = EndTransactionMarker.of(records[0]) if records else None
        if not records:
            return True
        if marker is None:
            return False
        if marker.control_type is ControlRecordType.ABORT:
            ongoing = self._aborted.pop(producer_id, None)
            if ongoing is None or not ongoing.has_batches:
                return True
            self.left.append(ongoing.aborted)
            return False
        ends = producer_id in self._committed
        self._committed.discard(producer_id)
        return not ends


@dataclass(slots=True)
class _Cleaned:
    """A batch that is looked at."""

    batch: LogBatch
    header: BatchHeader
    may_discard: bool

    def compacted(
        self, newest: Mapping[bytes, int], retention_ms: Millis, now: Millis, *, is_last: bool
    ) -> BatchBytes | None:
        """The batch with the records that still count; none where it goes. Its offsets stay."""
        header, records = self.header, _records(self.batch)
        if records is None:
            return self.batch.data
        horizon = header.delete_horizon
        is_over = horizon is not None and horizon <= now
        if header.is_control:
            kept = [] if self.may_discard and is_over else records
        elif self.may_discard:
            kept = []
        else:
            base_offset = self.batch.base_offset
            kept = [
                record
                for record in records
                if record.key is not None
                and newest.get(record.key, -1) <= base_offset + record.offset_delta
                and not (record.value is None and is_over)
            ]
        if not kept:
            return self._emptied() if is_last else None
        may_go_later = self.may_discard if header.is_control else any(record.value is None for record in kept)
        if may_go_later and horizon is None:
            return _with_records(header, kept, now + retention_ms, has_horizon=True)
        if len(kept) == len(records):
            return self.batch.data
        first = header.base_timestamp + kept[0].timestamp_delta
        base = first if horizon is None and not header.has_log_append_time else header.base_timestamp
        return _with_records(header, kept, base, has_horizon=horizon is not None)

    def _emptied(self) -> bytes:
        """The header alone. Kafka: DefaultRecordBatch.writeEmptyHeader."""
        header = self.header
        attributes = header.attributes & ~(CODEC_MASK | DELETE_HORIZON_BIT)
        return sealed(header.with_fields(attributes=attributes, base_timestamp=NO_TIMESTAMP, records_count=0), b"")


def _newest_by_key(found: list[_Cleaned]) -> dict[bytes, int]:
    """The offset of the last record of each key, but for those of aborted transactions."""
    return {
        record.key: each.batch.base_offset + record.offset_delta
        for each in found
        if not each.header.is_control and not each.may_discard
        for record in _records(each.batch) or ()
        if record.key is not None
    }


def _is_last_of_producer(each: _Cleaned, producers: Mapping[int, ProducerStateEntry]) -> bool:
    """Whether all that is known of an active producer comes from this batch. Kafka: isBatchLastRecordOfProducer."""
    header = each.header
    entry = producers.get(header.producer_id) if header.has_producer_id else None
    if entry is None:
        return False
    if entry.batches:
        return entry.batches[-1].last_offset == header.last_offset
    return header.is_control and header.producer_epoch == entry.epoch


def _with_records(header: BatchHeader, records: list[DefaultRecord], base: Millis, *, has_horizon: bool) -> bytes:
    """A batch with some of its records, whose timestamps count from another one."""
    times = [header.base_timestamp + record.timestamp_delta for record in records]
    moved = [record._replace(timestamp_delta=at - base) for record, at in zip(records, times, strict=True)]
    changed = header.with_fields(
        attributes=header.attributes | (DELETE_HORIZON_BIT if has_horizon else 0),
        base_timestamp=base,
        max_timestamp=header.max_timestamp if header.has_log_append_time else max(times),
        records_count=len(records),
    )
    return sealed(changed, bytes(compress(header.codec, write_records(moved))))
