"""The transaction log: a batch of one record for each change of a transactional id. Kafka: TransactionLog."""

from __future__ import annotations

from collections.abc import Iterator

from rejoin.coordinator.core.inputs import Millis
from rejoin.protocol.records.transaction_state import TransactionLogValue
from rejoin.protocol.wire.record_batch import (
    MAGIC,
    NO_PRODUCER_EPOCH,
    NO_PRODUCER_ID,
    NO_SEQUENCE,
    BatchHeader,
    sealed,
)
from rejoin.protocol.wire.record_encoder import encode_record
from rejoin.protocol.wire.records import read_batch
from rejoin.protocol.wire.transaction_state import key_bytes, read_key, read_value, value_bytes


def transaction_batch(
    transactional_id: str,
    value: TransactionLogValue | None,
    version: int,
    base_offset: int,
    leader_epoch: int,
    now: Millis,
) -> bytes:
    """The batch with the record of a transactional id; without a value its tombstone."""
    written = None if value is None else value_bytes(value, version)
    record = encode_record(0, 0, key_bytes(transactional_id), written)
    header = BatchHeader(
        base_offset=base_offset,
        batch_length=0,
        partition_leader_epoch=leader_epoch,
        magic=MAGIC,
        crc=0,
        attributes=0,
        last_offset_delta=0,
        base_timestamp=now,
        max_timestamp=now,
        producer_id=NO_PRODUCER_ID,
        producer_epoch=NO_PRODUCER_EPOCH,
        base_sequence=NO_SEQUENCE,
        records_count=1,
    )
    return sealed(header, record)


def read_transactions(batch: bytes) -> Iterator[tuple[str, TransactionLogValue | None]]:
    """The transactional ids of a batch, each with its record, or with none for a tombstone."""
    for record in read_batch(batch):
        transactional_id = None if record.key is None else read_key(record.key)
        if transactional_id is not None:
            yield transactional_id, None if record.value is None else read_value(record.value)
