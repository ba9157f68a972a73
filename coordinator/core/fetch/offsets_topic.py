"""``__consumer_offsets`` as a log that consumers can read, in Kafka's binary format.

Nothing is kept of a partition until a consumer first reads it: its log is then made of the groups and offsets that are
there, the latest last, so that it ends where the partition ends. From then on every append is added as a batch, and
what newer records replace is removed when the log has doubled.

Offsets are counted from what the log had when this node began to lead the partition. So a partition that is led anew
may end earlier than before; consumers see it by its leader epoch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import groupby
from typing import Final

from rejoin.coordinator.core.groups.group import TimedRecord
from rejoin.coordinator.core.groups.group_shards import GroupShards
from rejoin.coordinator.core.groups.shard import GroupsShard
from rejoin.coordinator.core.inputs import Millis
from rejoin.coordinator.core.partitions.cleaning import compaction
from rejoin.coordinator.core.partitions.log import AbortedTxn, PartitionLog
from rejoin.coordinator.core.partitions.topic_config import TopicConfig
from rejoin.coordinator.core.runtime.shard import Shard, ShardState
from rejoin.coordinator.core.step_context import StepContext
from rejoin.protocol.records.consumer_offsets import offset_record, offsets_partition
from rejoin.protocol.records.keyed import KeyedRecord, Record, TransactionMarker
from rejoin.protocol.types import TopicPartition
from rejoin.protocol.wire.keyed_records import key_bytes, value_bytes
from rejoin.protocol.wire.record_batch import (
    CONTROL_BIT,
    MAGIC,
    NO_PRODUCER_EPOCH,
    NO_PRODUCER_ID,
    NO_SEQUENCE,
    TRANSACTIONAL_BIT,
    BatchHeader,
    parse_header,
    sealed,
)
from rejoin.protocol.wire.records import (
    ControlRecordType,
    DefaultRecord,
    EndTransactionMarker,
    write_records,
)

SNAPSHOT_BATCH: Final = 100
LEAST_TO_COMPACT: Final = 1 << 18
COMPACTED: Final = TopicConfig(cleanup_policy=("compact",))


@dataclass(slots=True)
class _OffsetsLog:
    """The log of one partition in one leader epoch."""

    epoch: int
    log: PartitionLog = field(default_factory=PartitionLog)
    open: dict[int, int] = field(default_factory=dict)
    """The first offset of each open transaction, by producer id."""
    compact_at: int = LEAST_TO_COMPACT

    def append(self, records: tuple[Record, ...], now: Millis) -> None:
        """Add the records of one append: a batch for each producer, and one for each marker."""
        for (producer_id, is_marker), alike in groupby(records, _producer):
            if is_marker:
                for marker in alike:
                    assert isinstance(marker, TransactionMarker)
                    self._end_transaction(marker, now)
            else:
                self._add([(now, record) for record in alike if isinstance(record, KeyedRecord)], producer_id)
        self._readable()
        if self.log.size >= self.compact_at:
            self._compact(now)

    def snapshot(self, records: list[TimedRecord], end_offset: int) -> None:
        """Begin with records that are there, so that the log ends where the partition does."""
        self.log.end_offset = max(0, end_offset - len(records))
        for start in range(0, len(records), SNAPSHOT_BATCH):
            for (producer_id, _), alike in groupby(records[start : start + SNAPSHOT_BATCH], lambda e: _producer(e[1])):
                self._add(list(alike), producer_id)
        self._readable()

    def _readable(self) -> None:
        self.log.stored_up_to(self.log.end_offset)
        self.log.first_unstable_offset = min(self.open.values(), default=None)

    def _add(self, records: list[TimedRecord], producer_id: int) -> None:
        first = records[0][0]
        wanted = [
            DefaultRecord(index, timestamp - first, key_bytes(record), value_bytes(record))
            for index, (timestamp, record) in enumerate(records)
        ]
        if producer_id >= 0:
            self.open.setdefault(producer_id, self.log.end_offset)
        self._write(wanted, first, TRANSACTIONAL_BIT if producer_id >= 0 else 0, producer_id, 0)

    def _end_transaction(self, marker: TransactionMarker, now: Millis) -> None:
        first = self.open.pop(marker.producer_id, None)
        if first is not None and not marker.committed:
            end = self.log.end_offset
            self.log.aborted.append(
                AbortedTxn(marker.producer_id, first, end, min(self.open.values(), default=end + 1))
            )
        kind = ControlRecordType.COMMIT if marker.committed else ControlRecordType.ABORT
        record = EndTransactionMarker(kind, 0).as_record()
        self._write([record], now, TRANSACTIONAL_BIT | CONTROL_BIT, marker.producer_id, marker.producer_epoch)

    def _write(
        self, records: list[DefaultRecord], first: Millis, attributes: int, producer_id: int, producer_epoch: int
    ) -> None:
        is_transactional = bool(attributes)
        header = BatchHeader(
            base_offset=self.log.end_offset,
            batch_length=0,
            partition_leader_epoch=self.epoch,
            magic=MAGIC,
            crc=0,
            attributes=attributes,
            last_offset_delta=len(records) - 1,
            base_timestamp=first,
            max_timestamp=first + max(record.timestamp_delta for record in records),
            producer_id=producer_id if is_transactional else NO_PRODUCER_ID,
            producer_epoch=producer_epoch if is_transactional else NO_PRODUCER_EPOCH,
            base_sequence=NO_SEQUENCE,
            records_count=len(records),
        )
        data = sealed(header, write_records(records))
        self.log.append(data, parse_header(data))

    def _compact(self, now: Millis) -> None:
        """Remove what newer records of the same keys replace, and old tombstones."""
        compacted = compaction(self.log, {}, COMPACTED, now)
        if compacted is not None:
            self.log.compacted(compacted.entry.end_offset, compacted.aborted)
            self.log.replace(compacted.entry.end_offset, compacted.entry.batches)
        self.compact_at = max(LEAST_TO_COMPACT, 2 * self.log.size)


def _producer(record: Record) -> tuple[int, bool]:
    return record.producer_id, isinstance(record, TransactionMarker)


class OffsetsTopic:
    """The partitions of ``__consumer_offsets`` that this node leads, as logs."""

    def __init__(self, ctx: StepContext, groups: GroupShards) -> None:
        self._ctx = ctx
        self._groups = groups
        self._logs: dict[TopicPartition, _OffsetsLog] = {}
        self.on_progress: Callable[[TopicPartition], None] | None = None
        """Called when a partition that was read changes for its readers."""

    def log(self, index: int) -> tuple[int, PartitionLog] | None:
        """Leader epoch and log of a partition, or none where this node does not lead it, or has not loaded it yet."""
        partition = offsets_partition(index)
        shard = self._groups.by_partition.get(partition)
        if shard is None or shard.state is ShardState.LOADING:
            return None
        found = self._logs.get(partition)
        if found is None:
            found = self._logs[partition] = self._begin(shard)
        return found.epoch, found.log

    def _begin(self, shard: Shard[GroupsShard]) -> _OffsetsLog:
        begun = _OffsetsLog(shard.epoch)
        records = sorted(_records(shard.machine), key=lambda each: each[0])
        begun.log.start_epoch(shard.epoch, 0)
        begun.snapshot(records, shard.end_offset)
        return begun

    def on_stored(self, partition: TopicPartition, records: tuple[Record, ...]) -> None:
        """Records are durable."""
        found = self._logs.get(partition)
        if found is not None and records:
            found.append(records, self._ctx.now)
            self._moved(partition)

    def on_resigned(self, partition: TopicPartition) -> None:
        """The partition is led elsewhere, or will be read again."""
        if self._logs.pop(partition, None) is not None:
            self._moved(partition)

    def _moved(self, partition: TopicPartition) -> None:
        if self.on_progress is not None:
            self.on_progress(partition)


def _records(machine: GroupsShard) -> Iterator[TimedRecord]:
    """The records of the groups and offsets of a shard, each with its time."""
    yield from machine.group_records()
    for group_id, offsets in machine.offsets.items():
        for partition, stored in offsets.stored.items():
            yield stored.commit_timestamp, offset_record(group_id, *partition, stored)
        for producer_id, pending in offsets.pending.items():
            for partition, held in pending.items():
                yield held.value.commit_timestamp, offset_record(group_id, *partition, held.value, producer_id)
