"""Ends of a transaction: the answer to EndTxn in each state, by transaction version.

Kafka: TransactionCoordinator.endTransactionWithTV1 and endTransaction.
"""

from __future__ import annotations

from enum import Enum
from typing import Final

from rejoin.coordinator.core.transactions.metadata import (
    EXHAUSTED_EPOCH,
    IS_DECIDED,
    TransactionMetadata,
    TransactionState,
)
from rejoin.protocol.errors import ErrorCode


class End(Enum):
    """The result of a requested end that is not an error."""

    DECIDE = "decide"
    """It is decided now."""
    REPEATED = "repeated"
    """It was decided before, and is complete."""


_S = TransactionState
_INVALID, _CONCURRENT, _FENCED = (
    ErrorCode.INVALID_TXN_STATE,
    ErrorCode.CONCURRENT_TRANSACTIONS,
    ErrorCode.PRODUCER_FENCED,
)

ENDS: Final[dict[tuple[TransactionState, bool], End | ErrorCode]] = {
    (_S.EMPTY, True): _INVALID,
    (_S.EMPTY, False): _INVALID,
    (_S.ONGOING, True): End.DECIDE,
    (_S.ONGOING, False): End.DECIDE,
    (_S.PREPARE_COMMIT, True): _CONCURRENT,
    (_S.PREPARE_COMMIT, False): _INVALID,
    (_S.PREPARE_ABORT, True): _INVALID,
    (_S.PREPARE_ABORT, False): _CONCURRENT,
    (_S.COMPLETE_COMMIT, True): End.REPEATED,
    (_S.COMPLETE_COMMIT, False): _INVALID,
    (_S.COMPLETE_ABORT, True): _INVALID,
    (_S.COMPLETE_ABORT, False): End.REPEATED,
}
"""By state, and whether it is a commit: with versions 0 and 1, and in version 2 for an end that is asked for again."""

FIRST_ENDS: Final[dict[tuple[TransactionState, bool], End | ErrorCode]] = {
    (_S.EMPTY, True): _INVALID,
    (_S.EMPTY, False): End.DECIDE,
    (_S.ONGOING, True): End.DECIDE,
    (_S.ONGOING, False): End.DECIDE,
    (_S.PREPARE_COMMIT, True): _FENCED,
    (_S.PREPARE_COMMIT, False): _FENCED,
    (_S.PREPARE_ABORT, True): _FENCED,
    (_S.PREPARE_ABORT, False): _FENCED,
    (_S.COMPLETE_COMMIT, True): _INVALID,
    (_S.COMPLETE_COMMIT, False): End.DECIDE,
    (_S.COMPLETE_ABORT, True): _INVALID,
    (_S.COMPLETE_ABORT, False): End.DECIDE,
}
"""Version 2's result of an end with the current epoch."""


def end_of(metadata: TransactionMetadata, producer_id: int, producer_epoch: int, commits: bool) -> End | ErrorCode:
    """The result of an EndTxn of transaction versions 0 and 1."""
    if metadata.producer_id != producer_id:
        return ErrorCode.INVALID_PRODUCER_ID_MAPPING
    if metadata.producer_epoch != producer_epoch:
        return ErrorCode.PRODUCER_FENCED
    if metadata.pending_state is not None:
        return ErrorCode.CONCURRENT_TRANSACTIONS
    return ENDS[metadata.state, commits]


def end_with_epoch_bump(
    metadata: TransactionMetadata, producer_id: int, producer_epoch: int, commits: bool
) -> End | ErrorCode:
    """The result of an EndTxn of transaction version 2. A repeated one has the epoch before the current one."""
    if metadata.pending_state is not None:
        return ErrorCode.CONCURRENT_TRANSACTIONS
    overflowed = (
        metadata.previous_producer_id == producer_id
        and producer_epoch == EXHAUSTED_EPOCH
        and metadata.producer_epoch == 0
    )
    if metadata.producer_id != producer_id and not overflowed:
        return ErrorCode.INVALID_PRODUCER_ID_MAPPING
    if metadata.producer_id == producer_id and metadata.producer_epoch == producer_epoch:
        return FIRST_ENDS[metadata.state, commits]
    # Kafka: also where the end before was of a version that does not raise the epoch.
    is_bumped = metadata.producer_epoch == producer_epoch + 1
    has_ended = metadata.state in IS_DECIDED or metadata.state in (_S.COMPLETE_COMMIT, _S.COMPLETE_ABORT)
    if has_ended and (is_bumped or overflowed):
        return ENDS[metadata.state, commits]
    return ErrorCode.PRODUCER_FENCED
