"""The records of ``__transaction_state``: one for each transactional id, of which the newest counts.

They are stored in Kafka's binary form (``wire/state_topics/transaction_state.py``), as record batches.
Kafka: TransactionLogKey, TransactionLogValue.
"""

from __future__ import annotations

from typing import Annotated, Final

from rejoin.protocol.message import Struct
from rejoin.protocol.types import In, Int8, Int16, Int32, Int64, PartitionIndex, ProducerId, TopicName, TransactionalId

TRANSACTION_STATE_TOPIC: Final = "__transaction_state"

TRANSACTION_STATE_TOPIC_ID: Final = "dHJhbnNhY3Rpb25fc3RhdA"
"""Constant over nodes and runs. Kafka's is random."""


class TransactionLogKey(Struct):
    """Which transactional id."""

    transactional_id: TransactionalId


class TransactionLogPartitions(Struct):
    """Partitions of one topic that are part of a transaction."""

    topic: TopicName
    partition_ids: tuple[PartitionIndex, ...]


class TransactionLogValue(Struct):
    """The state of a transactional id. Version 1 is flexible, and has more fields."""

    producer_id: ProducerId
    previous_producer_id: Annotated[ProducerId, In(1, tag=0)] = -1
    next_producer_id: Annotated[ProducerId, In(1, tag=1)] = -1
    producer_epoch: Int16
    transaction_timeout_ms: Int32
    transaction_status: Int8
    transaction_partitions: tuple[TransactionLogPartitions, ...] | None
    transaction_last_update_timestamp_ms: Int64
    transaction_start_timestamp_ms: Int64
    client_transaction_version: Annotated[Int16, In(1, tag=2)] = 0
