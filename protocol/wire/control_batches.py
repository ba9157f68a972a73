"""The batch that ends a transaction in one partition. Kafka: MemoryRecords.withEndTransactionMarker."""

from __future__ import annotations

from functools import lru_cache

from rejoin.protocol.wire.record_batch import (
    CONTROL_BIT,
    MAGIC,
    NO_SEQUENCE,
    TRANSACTIONAL_BIT,
    BatchHeader,
    parse_header,
    sealed,
    stamped,
)
from rejoin.protocol.wire.records import EndTransactionMarker, write_records


def marker_batch(
    producer_id: int,
    producer_epoch: int,
    marker: EndTransactionMarker,
    base_offset: int,
    leader_epoch: int,
    timestamp: int,
) -> tuple[bytes, BatchHeader]:
    """The control batch with a marker, and its header."""
    batch, header = _marker_batch(producer_id, producer_epoch, marker, timestamp)
    return stamped(batch, header, base_offset, leader_epoch)


@lru_cache(maxsize=16)
def _marker_batch(
    producer_id: int, producer_epoch: int, marker: EndTransactionMarker, timestamp: int
) -> tuple[bytes, BatchHeader]:
    """The same without an offset: a transaction has one marker, for all of its partitions."""
    header = BatchHeader(
        base_offset=0,
        batch_length=0,
        partition_leader_epoch=-1,
        magic=MAGIC,
        crc=0,
        attributes=TRANSACTIONAL_BIT | CONTROL_BIT,
        last_offset_delta=0,
        base_timestamp=timestamp,
        max_timestamp=timestamp,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        base_sequence=NO_SEQUENCE,
        records_count=1,
    )
    batch = sealed(header, write_records([marker.as_record()]))
    return batch, parse_header(batch)
