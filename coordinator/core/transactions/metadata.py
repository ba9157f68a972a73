"""Metadata of one transactional id, and its changes.

A change has two steps. It is prepared, which sets ``pending_state``; when its record is stored, it is completed. In
between, other requests are answered CONCURRENT_TRANSACTIONS.

Kafka: TransactionMetadata, TransactionState, TxnTransitMetadata.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import IntEnum
from functools import lru_cache
from typing import Final, NamedTuple, TypeAlias

from rejoin.coordinator.core.inputs import Millis
from rejoin.journal.events.transactions import EndedBy
from rejoin.protocol.records.transaction_state import TransactionLogPartitions, TransactionLogValue
from rejoin.protocol.types import TopicPartition
from rejoin.protocol.unvalidated import unvalidated
from rejoin.protocol.wire.record_batch import NO_PRODUCER_EPOCH, NO_PRODUCER_ID

MAX_EPOCH: Final = 2**15 - 1
EXHAUSTED_EPOCH: Final = MAX_EPOCH - 1
"""The highest epoch that a producer ever has: the one above it is kept for fencing."""
FIRST_WITH_EPOCH_BUMPS: Final = 2
"""The first transaction version in which each end raises the epoch (KIP-890)."""
NOT_STARTED: Final = -1

TxnPartitions: TypeAlias = dict[TopicPartition, None]
"""The partitions of a transaction, in the order in which they were added."""


class TransactionState(IntEnum):
    """How far a transaction is. The value is that of the records, ``title`` the name that clients see."""

    EMPTY = 0
    ONGOING = 1
    PREPARE_COMMIT = 2
    PREPARE_ABORT = 3
    COMPLETE_COMMIT = 4
    COMPLETE_ABORT = 5
    DEAD = 6
    PREPARE_EPOCH_FENCE = 7

    @property
    def title(self) -> str:
        return "".join(word.capitalize() for word in self.name.split("_"))


STATES: Final = {state.title: state for state in TransactionState}
"""Every state by the name that clients see."""

IS_DECIDED: Final = frozenset({TransactionState.PREPARE_COMMIT, TransactionState.PREPARE_ABORT})
"""States in which the end is decided, and markers are missing."""

IS_COMPLETE: Final = frozenset({TransactionState.COMPLETE_COMMIT, TransactionState.COMPLETE_ABORT})
"""States in which every marker of the last transaction is written."""

IS_IDLE: Final = frozenset({TransactionState.EMPTY, TransactionState.COMPLETE_COMMIT, TransactionState.COMPLETE_ABORT})
"""States in which no transaction is open."""


def _log_partitions(partitions: tuple[TopicPartition, ...]) -> tuple[TransactionLogPartitions, ...]:
    """The partitions of a transaction as its record has them."""
    topics: dict[str, list[int]] = {}
    for topic, partition in partitions:
        topics.setdefault(topic, []).append(partition)
    return tuple(
        [
            unvalidated(TransactionLogPartitions, topic=topic, partition_ids=tuple(indexes))
            for topic, indexes in topics.items()
        ]
    )


_FEW_PARTITIONS: Final = 8
_kept_log_partitions: Final = lru_cache(maxsize=1_024)(_log_partitions)
"""Cached sets of few partitions: a producer's next transaction mostly has those of the last one."""


class TxnTransit(NamedTuple):
    """The metadata after a change is stored."""

    state: TransactionState
    producer_id: int
    producer_epoch: int
    last_producer_epoch: int
    previous_producer_id: int
    next_producer_id: int
    timeout_ms: int
    partitions: tuple[TopicPartition, ...]
    started_at: Millis
    updated_at: Millis
    client_version: int

    def record(self) -> TransactionLogValue:
        """The record of it."""
        of_log = _kept_log_partitions if len(self.partitions) <= _FEW_PARTITIONS else _log_partitions
        return unvalidated(
            TransactionLogValue,
            producer_id=self.producer_id,
            previous_producer_id=self.previous_producer_id,
            next_producer_id=self.next_producer_id,
            producer_epoch=self.producer_epoch,
            transaction_timeout_ms=self.timeout_ms,
            transaction_status=self.state,
            transaction_partitions=None if self.state is TransactionState.EMPTY else of_log(self.partitions),
            transaction_last_update_timestamp_ms=self.updated_at,
            transaction_start_timestamp_ms=self.started_at,
            client_transaction_version=self.client_version,
        )


class TransactionMetadata:
    """One transactional id. The log lacks ``last_producer_epoch`` and ``ended_by``: unknown after a failover."""

    __slots__ = (
        "client_version",
        "ended_by",
        "last_producer_epoch",
        "next_producer_id",
        "partitions",
        "pending_state",
        "previous_producer_id",
        "producer_epoch",
        "producer_id",
        "started_at",
        "state",
        "timeout_ms",
        "transactional_id",
        "updated_at",
    )

    def __init__(self, transactional_id: str, producer_id: int, timeout_ms: int, now: Millis) -> None:
        self.transactional_id = transactional_id
        self.producer_id = producer_id
        self.producer_epoch = NO_PRODUCER_EPOCH
        self.last_producer_epoch = NO_PRODUCER_EPOCH
        self.previous_producer_id = NO_PRODUCER_ID
        self.next_producer_id = NO_PRODUCER_ID
        self.timeout_ms = timeout_ms
        self.state = TransactionState.EMPTY
        self.pending_state: TransactionState | None = None
        self.partitions: TxnPartitions = {}
        self.started_at: Millis = NOT_STARTED
        self.updated_at = now
        self.client_version = 0
        """The transaction version in which partitions were last added, or the last end was decided."""
        self.ended_by: EndedBy | None = None

    @classmethod
    def loaded(cls, transactional_id: str, value: TransactionLogValue) -> TransactionMetadata:
        """The metadata in a record."""
        updated_at = value.transaction_last_update_timestamp_ms
        found = cls(transactional_id, value.producer_id, value.transaction_timeout_ms, updated_at)
        found.producer_epoch = value.producer_epoch
        found.previous_producer_id = value.previous_producer_id
        found.next_producer_id = value.next_producer_id
        found.state = TransactionState(value.transaction_status)
        found.started_at = value.transaction_start_timestamp_ms
        found.client_version = value.client_transaction_version
        for topic in value.transaction_partitions or ():
            found.partitions.update(dict.fromkeys(TopicPartition(topic.topic, each) for each in topic.partition_ids))
        return found

    @property
    def is_epoch_exhausted(self) -> bool:
        """Whether the producer id has no epoch left to give."""
        return self.producer_epoch >= EXHAUSTED_EPOCH

    # --- preparing changes

    def _prepare(self, transit: TxnTransit) -> TxnTransit:
        assert self.pending_state is None, "one change at a time"
        self.pending_state = transit.state
        return transit

    def _as_is(
        self,
        state: TransactionState,
        now: Millis,
        partitions: tuple[TopicPartition, ...] = (),
        started_at: Millis = NOT_STARTED,
        version: int | None = None,
    ) -> TxnTransit:
        """A change of the given fields. Its previous producer id is the current one (prepareTransitionTo)."""
        return TxnTransit(
            state,
            self.producer_id,
            self.producer_epoch,
            self.last_producer_epoch,
            self.producer_id,
            self.next_producer_id,
            self.timeout_ms,
            partitions,
            started_at,
            now,
            self.client_version if version is None else version,
        )

    def prepare_increment(self, epoch: int, last_epoch: int, timeout_ms: int, now: Millis) -> TxnTransit:
        """The producer begins anew with its id, in an epoch."""
        transit = self._as_is(TransactionState.EMPTY, now)._replace(
            producer_epoch=epoch,
            last_producer_epoch=last_epoch,
            timeout_ms=timeout_ms,
        )
        return self._prepare(transit)

    def prepare_rotation(self, producer_id: int, last_epoch: int, timeout_ms: int, now: Millis) -> TxnTransit:
        """The producer begins anew with another id, as its own has no epochs left."""
        transit = self._as_is(TransactionState.EMPTY, now)._replace(
            producer_id=producer_id,
            producer_epoch=0,
            last_producer_epoch=last_epoch,
            timeout_ms=timeout_ms,
        )
        return self._prepare(transit)

    def prepare_add(self, partitions: Iterable[TopicPartition], version: int, now: Millis) -> TxnTransit:
        """Partitions become part of the transaction of a client's version, which begins if it has not."""
        added = tuple({**self.partitions, **dict.fromkeys(partitions)})
        started_at = self.started_at if self.state is TransactionState.ONGOING else now
        return self._prepare(self._as_is(TransactionState.ONGOING, now, added, started_at, version))

    def prepare_end(self, *, commits: bool, version: int, next_producer_id: int, now: Millis) -> TxnTransit:
        """The end is decided. With ``version`` 2 it raises the epoch; the next producer id is for when none is left."""
        epoch, last_epoch = self.producer_epoch, self.last_producer_epoch
        if version >= FIRST_WITH_EPOCH_BUMPS:
            epoch, last_epoch = epoch + 1, epoch
        transit = TxnTransit(
            TransactionState.PREPARE_COMMIT if commits else TransactionState.PREPARE_ABORT,
            self.producer_id,
            epoch,
            last_epoch,
            self.producer_id,
            next_producer_id,
            self.timeout_ms,
            tuple(self.partitions),
            # Kafka: an abort may end a transaction that has not begun, and needs a start all the same.
            self.started_at if self.state is TransactionState.ONGOING else now,
            now,
            version,
        )
        return self._prepare(transit)

    def prepare_complete(self, now: Millis) -> TxnTransit:
        """All markers are written. A producer whose epochs are used up goes on with its next id."""
        commits = self.state is TransactionState.PREPARE_COMMIT
        state = TransactionState.COMPLETE_COMMIT if commits else TransactionState.COMPLETE_ABORT
        transit = self._as_is(state, now, started_at=self.started_at)
        if self.next_producer_id != NO_PRODUCER_ID:
            transit = transit._replace(
                producer_id=self.next_producer_id,
                producer_epoch=0,
                next_producer_id=NO_PRODUCER_ID,
            )
        return self._prepare(transit)

    def fence(self) -> None:
        """Raise the epoch in memory, so that nothing of the producer counts any more; a transaction is aborted next."""
        self.producer_epoch += 1
        self.last_producer_epoch = NO_PRODUCER_EPOCH

    # --- completing them

    def complete(self, transit: TxnTransit) -> None:
        """The record of a change is stored."""
        self.state = transit.state
        self.producer_id = transit.producer_id
        self.producer_epoch = transit.producer_epoch
        self.last_producer_epoch = transit.last_producer_epoch
        self.previous_producer_id = transit.previous_producer_id
        self.next_producer_id = transit.next_producer_id
        self.timeout_ms = transit.timeout_ms
        self.partitions = dict.fromkeys(transit.partitions)
        self.started_at = transit.started_at
        self.updated_at = transit.updated_at
        self.client_version = transit.client_version
        self.pending_state = None
