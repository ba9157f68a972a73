"""The transaction log: a batch of one record for each change of a transactional id, one of all that expire together.

Kafka: TransactionLog.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from rejoin.coordinator.core.inputs import Millis
from rejoin.protocol.records.transaction_state import TransactionLogValue
from rejoin.protocol.types import BatchBytes
from rejoin.protocol.wire.record_batch import (
    HEADER_SIZE,
    MAGIC,
    NO_PRODUCER_EPOCH,
    NO_PRODUCER_ID,
    NO_SEQUENCE,
    BatchHeader,
    batch_of_one,
    parse_header,
    sealed,
)
from rejoin.protocol.wire.record_encoder import encode_record
from rejoin.protocol.wire.records import read_batch
from rejoin.protocol.wire.state_topics.transaction_state import key_bytes, read_key, read_value, value_bytes


def transaction_batch(
    transactional_id: str,
    value: TransactionLogValue,
    version: int,
    base_offset: int,
    leader_epoch: int,
    now: Millis,
) -> tuple[bytes, BatchHeader]:
    """The batch with the record of a transactional id, and its header."""
    record = encode_record(0, 0, key_bytes(transactional_id), value_bytes(value, version))
    return batch_of_one(base_offset, leader_epoch, now, record)


def tombstone_batches(transactional_ids: Iterable[str], most_bytes: int) -> Iterator[tuple[list[str], bytes]]:
    """The records of tombstones, as many together as fit into a batch of so many bytes; with the ids that they are of.

    Kafka: TransactionStateManager.removeExpiredTransactionalIds.
    """
    ids: list[str] = []
    records: list[bytes] = []
    size = HEADER_SIZE
    for transactional_id in transactional_ids:
        record = encode_record(0, len(ids), key_bytes(transactional_id), None)
        if ids and size + len(record) > most_bytes:
            yield ids, b"".join(records)
            ids, records, size = [], [], HEADER_SIZE
            record = encode_record(0, 0, key_bytes(transactional_id), None)
        ids.append(transactional_id)
        records.append(record)
        size += len(record)
    if ids:
        yield ids, b"".join(records)


def batch_of_tombstones(
    count: int, records: bytes, base_offset: int, leader_epoch: int, now: Millis
) -> tuple[bytes, BatchHeader]:
    """The batch of so many tombstones, and its header."""
    no_producer = (NO_PRODUCER_ID, NO_PRODUCER_EPOCH, NO_SEQUENCE)
    header = BatchHeader(base_offset, 0, leader_epoch, MAGIC, 0, 0, count - 1, now, now, *no_producer, count)
    batch = sealed(header, records)
    return batch, parse_header(batch)


def read_transactions(batch: BatchBytes) -> Iterator[tuple[str, TransactionLogValue | None]]:
    """The transactional ids of a batch, each with its record, or with none for a tombstone."""
    for record in read_batch(batch):
        transactional_id = None if record.key is None else read_key(record.key)
        if transactional_id is not None:
            yield transactional_id, None if record.value is None else read_value(record.value)
