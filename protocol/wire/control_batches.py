"""The batch that ends a transaction in one partition. Kafka: MemoryRecords.withEndTransactionMarker."""

from __future__ import annotations

from functools import lru_cache
from typing import Final

from rejoin.protocol.wire.record_batch import CONTROL_BIT, TRANSACTIONAL_BIT, BatchHeader, batch_of_one
from rejoin.protocol.wire.records import EndTransactionMarker, write_records

_ATTRIBUTES: Final = TRANSACTIONAL_BIT | CONTROL_BIT


def marker_batch(
    producer_id: int,
    producer_epoch: int,
    marker: EndTransactionMarker,
    base_offset: int,
    leader_epoch: int,
    timestamp: int,
) -> tuple[bytes, BatchHeader]:
    """The control batch with a marker, and its header."""
    record = _control_record(marker)
    return batch_of_one(base_offset, leader_epoch, timestamp, record, _ATTRIBUTES, producer_id, producer_epoch)


@lru_cache(maxsize=16)
def _control_record(marker: EndTransactionMarker) -> bytes:
    """The record of a marker, which is the same for every producer."""
    return write_records([marker.as_record()])
