"""The batches of synthetic logs, made when they are read.

A record is a function of topic, partition and offset, with the time at which the log has reached that offset. Batches
have fixed borders, so each read of an offset gets the same bytes; only the last batch of a log still grows.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from rejoin.coordinator.core.inputs import Millis
from rejoin.coordinator.core.partitions.log import UNKNOWN_EPOCH, UNKNOWN_OFFSET, AbortedTxn, EpochEntry
from rejoin.coordinator.core.topics.synthetic_log import SyntheticLog
from rejoin.coordinator.core.topics.table import Topic
from rejoin.protocol.records.batch_run import BatchRun, run_of
from rejoin.protocol.records.synthetic import synthetic_record
from rejoin.protocol.types import BatchBytes
from rejoin.protocol.wire.record_batch import (
    MAGIC,
    NO_PRODUCER_EPOCH,
    NO_PRODUCER_ID,
    NO_SEQUENCE,
    BatchHeader,
    sealed,
)
from rejoin.protocol.wire.records import DefaultRecord, write_records

BATCH_RECORDS: Final = 100
EPOCH: Final = 0
"""The leader epoch of all records. A log that is a function of time is never truncated."""

CACHE_BYTES: Final = 8 << 20
READ_BYTES: Final = CACHE_BYTES // 2
"""A Fetch gets no more of a partition at once, whatever it asks for: these bytes are made for it."""


class _BatchKey(NamedTuple):
    topic_id: str
    partition: int
    base_offset: int
    end_offset: int
    started_at: Millis
    synthetic_base: int


class BatchCache:
    """Batches that were made, up to so many bytes; those that were made first go first."""

    def __init__(self, limit: int = CACHE_BYTES) -> None:
        self._limit = limit
        self._batches: dict[_BatchKey, bytes] = {}
        self._size = 0

    def __deepcopy__(self, _: dict[int, Any]) -> BatchCache:
        return BatchCache(self._limit)

    def batch(self, topic: Topic, partition: int, base_offset: int, end_offset: int) -> bytes:
        """The batch of the records between two offsets."""
        log = topic.partitions[partition]
        key = _BatchKey(topic.topic_id, partition, base_offset, end_offset, log.started_at, log.base_offset)
        batch = self._batches.get(key)
        if batch is None:
            batch = self._batches[key] = _batch(topic.name, partition, log, topic.rate, base_offset, end_offset)
            self._size += len(batch)
            while self._size > self._limit:
                self._size -= len(self._batches.pop(next(iter(self._batches))))
        return batch


def _batch(topic: str, partition: int, log: SyntheticLog, rate: float, base_offset: int, end_offset: int) -> bytes:
    first = log.timestamp_of(base_offset, rate)
    records = [
        DefaultRecord(
            offset - base_offset, log.timestamp_of(offset, rate) - first, *synthetic_record(topic, partition, offset)
        )
        for offset in range(base_offset, end_offset)
    ]
    header = BatchHeader(
        base_offset=base_offset,
        batch_length=0,
        partition_leader_epoch=EPOCH,
        magic=MAGIC,
        crc=0,
        attributes=0,
        last_offset_delta=len(records) - 1,
        base_timestamp=first,
        max_timestamp=first + records[-1].timestamp_delta,
        producer_id=NO_PRODUCER_ID,
        producer_epoch=NO_PRODUCER_EPOCH,
        base_sequence=NO_SEQUENCE,
        records_count=len(records),
    )
    return sealed(header, write_records(records))


class SyntheticBatches:
    """A synthetic log as it is at one instant, to be read like a real one."""

    epochs: Final = (EpochEntry(EPOCH, 0),)

    def __init__(self, topic: Topic, partition: int, now: Millis, cache: BatchCache) -> None:
        self._topic = topic
        self._partition = partition
        self._now = now
        self._cache = cache
        self.log_start_offset = 0
        self.end_offset = self.high_watermark = self.last_stable_offset = topic.end_offset(partition, now)

    def read(self, offset: int, max_bytes: int, limit: int, *, at_least_one: bool) -> BatchBytes | BatchRun:
        """The bytes from the batch of an offset on, as of a real log. Batches at the limit end there."""
        found: list[bytes] = []
        left, size = min(max_bytes, READ_BYTES), 0
        base_offset = offset - offset % BATCH_RECORDS
        while base_offset < limit and offset < limit:
            batch = self._cache.batch(
                self._topic, self._partition, base_offset, min(base_offset + BATCH_RECORDS, limit)
            )
            if not found and len(batch) > left:
                return batch if at_least_one else b""
            found.append(batch[:left] if len(batch) > left else batch)
            left -= len(batch)
            size += len(found[-1])
            if left <= 0:
                break
            base_offset += BATCH_RECORDS
        return run_of(found, size)

    def aborted_between(self, offset: int, size: int) -> list[AbortedTxn]:
        """None: nothing here belongs to a transaction."""
        return []

    def bytes_between(self, offset: int, limit: int, at_most: int) -> int:
        """How many bytes there are from an offset on, counted no further than a bound."""
        found = 0
        while offset < limit and found < at_most:
            found += len(self.read(offset, 0, limit, at_least_one=True))
            offset += BATCH_RECORDS - offset % BATCH_RECORDS
        return min(found, at_most)

    def end_offset_for(self, epoch: int) -> tuple[int, int]:
        """The largest leader epoch up to one that is asked for, and where it ended."""
        return (EPOCH, self.end_offset) if epoch == EPOCH else (UNKNOWN_EPOCH, UNKNOWN_OFFSET)

    def newest_record(self) -> tuple[int, Millis] | None:
        """Offset and time of the last record."""
        offset = self.end_offset - 1
        log = self._topic.partitions[self._partition]
        return (offset, log.timestamp_of(offset, self._topic.rate)) if self.end_offset else None

    def first_record_since(self, timestamp: Millis) -> tuple[int, Millis] | None:
        """Offset and time of the first record that is not older than a time."""
        return self._topic.partitions[self._partition].first_record_since(timestamp, self._now, self._topic.rate)
