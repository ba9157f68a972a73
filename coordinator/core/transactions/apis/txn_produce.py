"""Produce within transactions: a partition is part of the transaction before its first batch, or becomes so by it.

While a transaction ends, a batch of the next one waits a little for that (from Produce 12 on).

Kafka: ReplicaManager.handleProduceAppend, AddPartitionsToTxnManager.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Final

from rejoin.coordinator.core.inputs import Millis
from rejoin.coordinator.core.partitions.produce.production import Guards, TxnBatch
from rejoin.coordinator.core.partitions.produce.validation import ProduceError
from rejoin.coordinator.core.runtime.timers import TimerKey
from rejoin.coordinator.core.step_context import StepContext
from rejoin.coordinator.core.transactions.coordinator import Verified
from rejoin.coordinator.core.transactions.producers import TxnProducer
from rejoin.coordinator.core.transactions.timers import TransactionTimer
from rejoin.coordinator.core.transactions.verification import TransactionVerification, checks_here
from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.types import TopicPartition

FIRST_PRODUCE_WITH_ABORTABLE: Final = 11
FIRST_PRODUCE_THAT_ADDS: Final = 12

RETRIABLE: Final = frozenset(
    {
        ErrorCode.NETWORK_EXCEPTION,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NOT_COORDINATOR,
    }
)
"""Errors of the coordinator that old producers may take for fatal: they get one that all of them retry."""


@dataclass(slots=True)
class _Attempt:
    """The batches of one request that have to be verified, and until when it may be tried again."""

    transactional_id: str
    producer: TxnProducer
    version: int
    wanted: dict[TopicPartition, TxnBatch]
    retry_until: Millis
    on_guards: Callable[[Guards], None]
    found: Guards

    @property
    def adds(self) -> bool:
        return self.version >= FIRST_PRODUCE_THAT_ADDS


class TxnProduce:
    """Verifies the batches of producers with their transaction coordinators."""

    def __init__(self, ctx: StepContext, verification: TransactionVerification) -> None:
        self._ctx = ctx
        self._verification = verification
        self._waiting: dict[TimerKey, _Attempt] = {}
        self._timers: dict[str, list[TimerKey]] = {}
        """The timers of what waits for the end of a transaction, by its transactional id."""
        self._number = 0
        self._checks_here = checks_here(ctx.settings.emulator_as_kafka)

    def verify(
        self, transactional_id: str, version: int, batches: list[TxnBatch], on_guards: Callable[[Guards], None]
    ) -> None:
        """Call back with what each batch may be appended with. All are of one producer."""
        settings = self._ctx.settings
        adds = version >= FIRST_PRODUCE_THAT_ADDS
        verifies = adds or settings.transaction_partition_verification_enable
        found: Guards = {}
        wanted: dict[TopicPartition, TxnBatch] = {}
        for batch in batches:
            name, header, producers, events = batch
            found[name] = None
            if not verifies or producers.is_ongoing(header.producer_id, header.producer_epoch):
                continue
            if self._checks_here and producers.is_fenced(header.producer_id, header.producer_epoch):
                # Kafka: UnifiedLog.maybeStartTransactionVerification. The coordinator is not asked.
                if events is not None:
                    events.fenced(header, transactional_id)
                found[name] = ProduceError(ErrorCode.INVALID_PRODUCER_EPOCH, by_log=False)
            else:
                wanted[name] = batch
        if not wanted:
            on_guards(found)
            return
        header = batches[0].header
        producer = TxnProducer(header.producer_id, header.producer_epoch)
        retry_until = self._ctx.now + settings.add_partitions_to_txn_retry_backoff_max_ms
        self._ask(_Attempt(transactional_id, producer, version, wanted, retry_until, on_guards, found))

    def timer_fired(self, key: TimerKey) -> None:
        """Ask again."""
        attempt = self._waiting.pop(key, None)
        if attempt is not None:
            timers = self._timers[attempt.transactional_id]
            timers.remove(key)
            if not timers:
                del self._timers[attempt.transactional_id]
            self._ask(attempt)

    def transaction_completed(self, transactional_id: str) -> None:
        """Ask again at once what waits for the end of a transaction that is coordinated here."""
        # Differs: in Kafka it waits for the rest of its add.partitions.to.txn.retry.backoff.ms.
        for key in self._timers.pop(transactional_id, ()):
            self._ctx.deadlines.cancel(key)
            self._ask(self._waiting.pop(key))

    def _ask(self, attempt: _Attempt) -> None:
        for name, batch in attempt.wanted.items():
            # Kafka: ReplicaManager.handleProduceAppend. Each attempt has its own guard: a marker ends those before it.
            begins_anew = attempt.adds and self._checks_here
            attempt.found[name] = batch.producers.verification(batch.header, begins_anew, self._ctx.now)
        self._verification.ask(
            attempt.transactional_id,
            attempt.producer,
            attempt.wanted,
            adds=attempt.adds,
            on_verified=partial(self._verified, attempt),
        )

    def _verified(self, attempt: _Attempt, verified: Verified) -> None:
        ends = ErrorCode.CONCURRENT_TRANSACTIONS in verified.values()
        if ends and attempt.adds and self._ctx.now < attempt.retry_until:
            self._number += 1
            key = TimerKey(TransactionTimer.VERIFICATION, TopicPartition("", -1), name=f"{self._number:012}")
            self._waiting[key] = attempt
            self._timers.setdefault(attempt.transactional_id, []).append(key)
            backoff_ms = self._ctx.settings.add_partitions_to_txn_retry_backoff_ms
            self._ctx.deadlines.set(key, self._ctx.now + backoff_ms)
            return
        for partition, error in verified.items():
            if error is not ErrorCode.NONE:
                attempt.found[partition] = _refusal(error, attempt.version)
        attempt.on_guards(attempt.found)


def _refusal(error: ErrorCode, version: int) -> ProduceError:
    """Why a batch is not appended, as the version of its request can say it."""
    if error is ErrorCode.TRANSACTION_ABORTABLE and version < FIRST_PRODUCE_WITH_ABORTABLE:
        error = ErrorCode.INVALID_TXN_STATE
    elif error is ErrorCode.PRODUCER_FENCED:
        error = ErrorCode.INVALID_PRODUCER_EPOCH
    is_ending = error is ErrorCode.CONCURRENT_TRANSACTIONS and version < FIRST_PRODUCE_THAT_ADDS
    message = None
    if error in RETRIABLE or is_ending:
        message = f"Unable to verify the partition has been added to the transaction. Underlying error: {error.name}"
        error = ErrorCode.NOT_ENOUGH_REPLICAS
    elif error is ErrorCode.INVALID_TXN_STATE:
        message = "Partition was not added to the transaction"
    return ProduceError(error, by_log=False, message=message)
