"""Reactions of a producer to each error of each request: one table per request, and the code runs on the tables.

Source: Kafka's Sender.completeBatch and canRetry, TransactionManager.canRetry and its handlers of requests.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum, auto
from typing import Final

from rejoin.protocol.errors import ErrorCode as E


class ProducerReaction(Enum):
    """One way to react. Which of them a request knows is in its table."""

    COMPLETE = auto()
    """The records are stored."""

    RETRY = auto()
    """Send the same again after a backoff, as long as retries and time are left; else fail."""

    REFRESH = auto()
    """As RETRY, and look the leaders up again."""

    SPLIT = auto()
    """Send the records in smaller batches; a single record fails."""

    CHECK_SEQUENCE = auto()
    """An earlier batch may be missing: retry. If this is the next one, start again with a new epoch."""

    CHECK_PRODUCER_ID = auto()
    """The broker has forgotten this producer: start again with a new epoch, and retry."""

    FAIL = auto()
    """The records have failed. With idempotence a new epoch closes the gap in their sequences; a transaction must be
    aborted."""

    FAIL_ALL = auto()
    """All records that wait have failed; later ones try again."""

    FIND_COORDINATOR = auto()
    """As RETRY, and look the coordinator up again."""

    ABORT = auto()
    """This transaction can only be aborted."""

    FATAL = auto()
    """This producer cannot go on."""


ON_PRODUCE: Final[Mapping[E, ProducerReaction]] = {
    E.NONE: ProducerReaction.COMPLETE,
    E.DUPLICATE_SEQUENCE_NUMBER: ProducerReaction.COMPLETE,
    E.CORRUPT_MESSAGE: ProducerReaction.RETRY,
    E.REQUEST_TIMED_OUT: ProducerReaction.RETRY,
    E.NOT_ENOUGH_REPLICAS: ProducerReaction.RETRY,
    E.NOT_ENOUGH_REPLICAS_AFTER_APPEND: ProducerReaction.RETRY,
    E.UNKNOWN_LEADER_EPOCH: ProducerReaction.RETRY,
    E.CONCURRENT_TRANSACTIONS: ProducerReaction.RETRY,
    # Kafka: InvalidMetadataException and its children.
    E.UNKNOWN_TOPIC_OR_PARTITION: ProducerReaction.REFRESH,
    E.UNKNOWN_TOPIC_ID: ProducerReaction.REFRESH,
    E.LEADER_NOT_AVAILABLE: ProducerReaction.REFRESH,
    E.NOT_LEADER_OR_FOLLOWER: ProducerReaction.REFRESH,
    E.NETWORK_EXCEPTION: ProducerReaction.REFRESH,
    E.KAFKA_STORAGE_ERROR: ProducerReaction.REFRESH,
    E.FENCED_LEADER_EPOCH: ProducerReaction.REFRESH,
    E.MESSAGE_TOO_LARGE: ProducerReaction.SPLIT,
    E.OUT_OF_ORDER_SEQUENCE_NUMBER: ProducerReaction.CHECK_SEQUENCE,
    E.UNKNOWN_PRODUCER_ID: ProducerReaction.CHECK_PRODUCER_ID,
    # Kafka: TransactionManager.maybeTransitionToErrorState.
    E.CLUSTER_AUTHORIZATION_FAILED: ProducerReaction.FATAL,
    E.TRANSACTIONAL_ID_AUTHORIZATION_FAILED: ProducerReaction.FATAL,
    E.PRODUCER_FENCED: ProducerReaction.FATAL,
    E.UNSUPPORTED_VERSION: ProducerReaction.FATAL,
}

ON_INIT_PRODUCER_ID: Final[Mapping[E, ProducerReaction]] = {
    E.NONE: ProducerReaction.COMPLETE,
    E.COORDINATOR_NOT_AVAILABLE: ProducerReaction.RETRY,
    E.COORDINATOR_LOAD_IN_PROGRESS: ProducerReaction.RETRY,
    E.NOT_COORDINATOR: ProducerReaction.RETRY,
    E.CONCURRENT_TRANSACTIONS: ProducerReaction.RETRY,
    E.NETWORK_EXCEPTION: ProducerReaction.RETRY,
    E.REQUEST_TIMED_OUT: ProducerReaction.RETRY,
    E.CLUSTER_AUTHORIZATION_FAILED: ProducerReaction.FAIL_ALL,
}

_ON_COORDINATOR: Final[Mapping[E, ProducerReaction]] = {
    # What every request about a transaction can be answered.
    E.NONE: ProducerReaction.COMPLETE,
    E.COORDINATOR_LOAD_IN_PROGRESS: ProducerReaction.RETRY,
    E.CONCURRENT_TRANSACTIONS: ProducerReaction.RETRY,
    E.COORDINATOR_NOT_AVAILABLE: ProducerReaction.FIND_COORDINATOR,
    E.NOT_COORDINATOR: ProducerReaction.FIND_COORDINATOR,
    E.NETWORK_EXCEPTION: ProducerReaction.FIND_COORDINATOR,
    E.REQUEST_TIMED_OUT: ProducerReaction.FIND_COORDINATOR,
    E.INVALID_PRODUCER_ID_MAPPING: ProducerReaction.ABORT,
    E.UNKNOWN_PRODUCER_ID: ProducerReaction.ABORT,
    E.TRANSACTION_ABORTABLE: ProducerReaction.ABORT,
    # PRODUCER_FENCED, INVALID_PRODUCER_EPOCH, INVALID_TXN_STATE and all others are fatal, but for retriable ones.
}

INIT_WITH_ID: Final = "InitProducerId with a transactional id"

ON_INIT_WITH_TRANSACTIONAL_ID: Final = {
    # Differs: Kafka lets a user abort and try again what had no transaction yet.
    error: what
    for error, what in _ON_COORDINATOR.items()
    if what is not ProducerReaction.ABORT
}

ON_ADD_PARTITIONS_TO_TXN: Final = {
    **_ON_COORDINATOR,
    E.UNKNOWN_TOPIC_OR_PARTITION: ProducerReaction.RETRY,
    E.TOPIC_AUTHORIZATION_FAILED: ProducerReaction.ABORT,
    E.OPERATION_NOT_ATTEMPTED: ProducerReaction.ABORT,
    E.PRODUCER_FENCED: ProducerReaction.FATAL,
    E.INVALID_PRODUCER_EPOCH: ProducerReaction.FATAL,
    E.TRANSACTIONAL_ID_AUTHORIZATION_FAILED: ProducerReaction.FATAL,
    E.INVALID_TXN_STATE: ProducerReaction.FATAL,
    # All others concern a partition: the transaction is aborted.
}

ON_ADD_OFFSETS_TO_TXN: Final = {**_ON_COORDINATOR, E.GROUP_AUTHORIZATION_FAILED: ProducerReaction.ABORT}

ON_TXN_OFFSET_COMMIT: Final = {
    **_ON_COORDINATOR,
    E.UNKNOWN_TOPIC_OR_PARTITION: ProducerReaction.RETRY,
    E.GROUP_AUTHORIZATION_FAILED: ProducerReaction.ABORT,
    # Kafka: TxnOffsetCommitHandler. Where the producer is not known, only this request cannot go on.
    E.INVALID_PRODUCER_ID_MAPPING: ProducerReaction.FATAL,
    E.UNKNOWN_PRODUCER_ID: ProducerReaction.FATAL,
    # The group has moved on (KIP-447).
    E.UNKNOWN_MEMBER_ID: ProducerReaction.ABORT,
    E.ILLEGAL_GENERATION: ProducerReaction.ABORT,
    E.FENCED_INSTANCE_ID: ProducerReaction.ABORT,
}

ON_FIND_COORDINATOR: Final[Mapping[E, ProducerReaction]] = {
    E.NONE: ProducerReaction.COMPLETE,
    E.COORDINATOR_LOAD_IN_PROGRESS: ProducerReaction.RETRY,
    E.COORDINATOR_NOT_AVAILABLE: ProducerReaction.RETRY,
    E.NETWORK_EXCEPTION: ProducerReaction.RETRY,
    E.REQUEST_TIMED_OUT: ProducerReaction.RETRY,
    E.GROUP_AUTHORIZATION_FAILED: ProducerReaction.ABORT,
    E.TRANSACTION_ABORTABLE: ProducerReaction.ABORT,
}

ON_API_VERSIONS: Final[Mapping[E, ProducerReaction]] = {
    E.NONE: ProducerReaction.COMPLETE,
    E.NETWORK_EXCEPTION: ProducerReaction.RETRY,
    E.REQUEST_TIMED_OUT: ProducerReaction.RETRY,
}

TABLES: Final[Mapping[str, Mapping[E, ProducerReaction]]] = {
    "Produce": ON_PRODUCE,
    "InitProducerId": ON_INIT_PRODUCER_ID,
    "ApiVersions": ON_API_VERSIONS,
    "FindCoordinator": ON_FIND_COORDINATOR,
    INIT_WITH_ID: ON_INIT_WITH_TRANSACTIONAL_ID,
    "AddPartitionsToTxn": ON_ADD_PARTITIONS_TO_TXN,
    "AddOffsetsToTxn": ON_ADD_OFFSETS_TO_TXN,
    "TxnOffsetCommit": ON_TXN_OFFSET_COMMIT,
    "EndTxn": _ON_COORDINATOR,
}

OTHERWISE: Final[Mapping[str, ProducerReaction]] = {
    # What is not in a request's table. For others retriable errors are tried again, and the rest is fatal.
    "Produce": ProducerReaction.FAIL,
    "AddPartitionsToTxn": ProducerReaction.ABORT,
}


def reaction(api: str, error: E) -> ProducerReaction:
    """The reaction to an error in this API's response; a lost connection is NETWORK_EXCEPTION."""
    found = TABLES[api].get(error)
    if found is not None:
        return found
    if error.retriable and api != "Produce":
        return ProducerReaction.RETRY
    return OTHERWISE.get(api, ProducerReaction.FATAL)
