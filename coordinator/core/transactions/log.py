"""The transaction log: a batch of one record for each change of a transactional id. Kafka: TransactionLog."""

from __future__ import annotations

from collections.abc import Iterator

from rejoin.coordinator.core.inputs import Millis
from rejoin.protocol.records.transaction_state import TransactionLogValue
from rejoin.protocol.wire.record_batch import BatchHeader, batch_of_one
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
) -> tuple[bytes, BatchHeader]:
    """The batch with the record of a transactional id, and its header; without a value its tombstone."""
    written = None if value is None else value_bytes(value, version)
    return batch_of_one(base_offset, leader_epoch, now, encode_record(0, 0, key_bytes(transactional_id), written))


def read_transactions(batch: bytes) -> Iterator[tuple[str, TransactionLogValue | None]]:
    """The transactional ids of a batch, each with its record, or with none for a tombstone."""
    for record in read_batch(batch):
        transactional_id = None if record.key is None else read_key(record.key)
        if transactional_id is not None:
            yield transactional_id, None if record.value is None else read_value(record.value)
