"""Producers of transactions: what they write with, and the errors of the ids and epochs that they come with."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple, TypeAlias

from rejoin.coordinator.core.transactions.metadata import (
    EXHAUSTED_EPOCH,
    IS_DECIDED,
    TransactionMetadata,
)
from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.wire.record_batch import NO_PRODUCER_EPOCH, NO_PRODUCER_ID

WRITE_ERRORS: Final = {
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_ENOUGH_REPLICAS: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.REQUEST_TIMED_OUT: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_LEADER_OR_FOLLOWER: ErrorCode.NOT_COORDINATOR,
    ErrorCode.KAFKA_STORAGE_ERROR: ErrorCode.NOT_COORDINATOR,
    ErrorCode.MESSAGE_TOO_LARGE: ErrorCode.UNKNOWN_SERVER_ERROR,
    ErrorCode.RECORD_LIST_TOO_LARGE: ErrorCode.UNKNOWN_SERVER_ERROR,
}
"""Errors for a producer when the log fails. Kafka: TransactionStateManager.appendTransactionToLog."""


class TxnProducer(NamedTuple):
    """Id and epoch with which a producer writes."""

    producer_id: int = NO_PRODUCER_ID
    epoch: int = NO_PRODUCER_EPOCH


NO_PRODUCER: Final = TxnProducer()


OnError: TypeAlias = Callable[[ErrorCode], None]
"""Called with the outcome of a change."""


OnProducer: TypeAlias = Callable[[ErrorCode, TxnProducer], None]
"""Called with the outcome of a change, and with what the producer goes on with."""


def initialisation_error(metadata: TransactionMetadata, expected: TxnProducer | None) -> ErrorCode:
    if metadata.pending_state is not None:
        return ErrorCode.CONCURRENT_TRANSACTIONS
    if expected is not None and not _is_own(metadata, expected):
        return ErrorCode.PRODUCER_FENCED
    return ErrorCode.CONCURRENT_TRANSACTIONS if metadata.state in IS_DECIDED else ErrorCode.NONE


def _is_own(metadata: TransactionMetadata, expected: TxnProducer) -> bool:
    """Whether a producer may have what it expects: the id is new, or its own, or the one that it had before."""
    if metadata.producer_epoch == NO_PRODUCER_EPOCH or expected.producer_id == metadata.producer_id:
        return True
    return expected.producer_id == metadata.previous_producer_id and expected.epoch >= EXHAUSTED_EPOCH


def producer_error(metadata: TransactionMetadata, producer: TxnProducer) -> ErrorCode:
    if metadata.producer_id != producer.producer_id:
        return ErrorCode.INVALID_PRODUCER_ID_MAPPING
    if metadata.producer_epoch != producer.epoch:
        return ErrorCode.PRODUCER_FENCED
    return ErrorCode.CONCURRENT_TRANSACTIONS if metadata.state in IS_DECIDED else ErrorCode.NONE


def unanswered(_: ErrorCode) -> None:
    """No client waits for this."""


def unanswered_with(_: ErrorCode, __: TxnProducer) -> None:
    """As :func:`unanswered`, with an id and an epoch."""
