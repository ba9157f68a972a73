"""The batch that ends a transaction in one partition. Kafka: MemoryRecords.withEndTransactionMarker."""

from __future__ import annotations

from rejoin.protocol.wire.record_batch import (
    CONTROL_BIT,
    MAGIC,
    NO_SEQUENCE,
    TRANSACTIONAL_BIT,
    BatchHeader,
    sealed,
)
from rejoin.protocol.wire.records import EndTransactionMarker, write_records


def marker_batch(
    producer_id: int,
    producer_epoch: int,
    marker: EndTransactionMarker,
    base_offset: int,
    leader_epoch: int,
    timestamp: int,
) -> bytes:
    """The control batch with a marker."""
    header = BatchHeader(
        base_offset=base_offset,
        batch_length=0,
        partition_leader_epoch=leader_epoch,
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
    return sealed(header, write_records([marker.as_record()]))
