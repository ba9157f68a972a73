"""The transactional ids of one partition of ``__transaction_state``, which is a data partition that is led here.

Every change is stored before it counts. Kafka: TransactionCoordinator, TransactionStateManager.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from typing import Final, Protocol, TypeAlias

from rejoin.coordinator.core.inputs import Millis
from rejoin.coordinator.core.partitions.partition import Partition
from rejoin.coordinator.core.runtime.appends import AppendCompletion
from rejoin.coordinator.core.step_context import StepContext
from rejoin.coordinator.core.transactions.cleanup import TransactionCleanup
from rejoin.coordinator.core.transactions.ending import End, end_of, end_with_epoch_bump
from rejoin.coordinator.core.transactions.events import events_of
from rejoin.coordinator.core.transactions.log import (
    read_transactions,
    transaction_batch,
)
from rejoin.coordinator.core.transactions.metadata import (
    FIRST_WITH_EPOCH_BUMPS,
    IS_COMPLETE,
    IS_DECIDED,
    TransactionMetadata,
    TransactionState,
    TxnTransit,
)
from rejoin.coordinator.core.transactions.producer_ids import ProducerIds
from rejoin.coordinator.core.transactions.producers import (
    NO_PRODUCER,
    WRITE_ERRORS,
    OnError,
    OnProducer,
    TxnProducer,
    initialisation_error,
    producer_error,
    unanswered,
)
from rejoin.journal.events.transactions import (
    EndedBy,
    ProducerFenced,
    TransactionalIdExpired,
    TransactionsLoaded,
)
from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.records.transaction_state import TransactionLogValue
from rejoin.protocol.types import TopicPartition
from rejoin.protocol.wire.record_batch import NO_PRODUCER_EPOCH, NO_PRODUCER_ID

FENCE_MARKER_DELAY_MS: Final = 20
"""How long an abort that no producer asked for is seen as decided, before its markers are written."""


OnComplete: TypeAlias = Callable[[str], None]
"""Called with a transactional id whose transaction is complete, so that the next one can begin."""


class MarkerSender(Protocol):
    """Writer of markers to the partitions of transactions."""

    def send(self, shard: TransactionsShard, metadata: TransactionMetadata, delay_ms: Millis) -> None:
        """Write the markers of a transaction; ``shard.markers_written`` is called at the end."""

    def drop(self, shard: TransactionsShard) -> None:
        """The shard is gone."""


class TransactionsShard:
    """Some transactional ids, in one leader epoch, which is Kafka's coordinator epoch."""

    def __init__(
        self,
        ctx: StepContext,
        partition: Partition,
        ids: ProducerIds,
        markers: MarkerSender,
        on_complete: OnComplete,
    ) -> None:
        self._ctx = ctx
        self._on_complete = on_complete
        self._partition = partition
        self._ids = ids
        self._markers = markers
        self.is_led = True
        self.owner = partition.partition
        self.coordinator_epoch = partition.epoch
        self.transactions: dict[str, TransactionMetadata] = {}
        self.cleanup = TransactionCleanup(ctx, self, partition, ids)

    # --- loading and resigning

    def load(self) -> None:
        """Read the log, and write the markers of decided transactions again."""
        for batch in self._partition.log.batches:
            for transactional_id, value in read_transactions(batch.data):
                self.transactions.pop(transactional_id, None)
                if value is not None:
                    self.transactions[transactional_id] = TransactionMetadata.loaded(transactional_id, value)
        for metadata in list(self.transactions.values()):
            if metadata.state in IS_DECIDED:
                metadata.prepare_complete(self._ctx.now)
                self._markers.send(self, metadata, 0)
        if self.transactions:
            _, partition, topic = self.owner
            count, epoch = len(self.transactions), self.coordinator_epoch
            self._ctx.emit(
                TransactionsLoaded(topic=topic, partition=partition, coordinator_epoch=epoch, transactional_ids=count)
            )
        self.cleanup.watch_timeouts()
        self.cleanup.watch_expiry()

    def resigned(self) -> None:
        """The partition is led elsewhere, or will be read again; what was being written has failed by now."""
        self.is_led = False
        self._ctx.deadlines.cancel_owner(self.owner)
        self._markers.drop(self)

    # --- InitProducerId

    def needs_producer_id(self, transactional_id: str) -> bool:
        """Whether the next change of a transactional id may take a new producer id."""
        metadata = self.transactions.get(transactional_id)
        return metadata is None or metadata.is_epoch_exhausted

    def initialise(
        self, transactional_id: str, timeout_ms: int, expected: TxnProducer | None, on_end: OnProducer
    ) -> None:
        """A producer begins, or with what it has ``expected`` goes on after an error (KIP-360)."""
        metadata = self.transactions.get(transactional_id)
        if metadata is None:
            producer_id = self._ids.take()
            metadata = TransactionMetadata(transactional_id, producer_id, timeout_ms, self._ctx.now)
            self.transactions[transactional_id] = metadata
            self.cleanup.watch_expiry()
        error = initialisation_error(metadata, expected)
        if error is not ErrorCode.NONE:
            self._check_fenced(error, metadata, expected, "InitProducerId")
            on_end(error, NO_PRODUCER)
        elif metadata.state is TransactionState.ONGOING:
            # Kafka: the producer has to retry, and gets an epoch above that of the abort.
            self.abort(metadata, "fencing", partial(_aborted_first, on_end))
        else:
            transit = self._initialisation(metadata, timeout_ms, expected)
            if transit is None:
                self._check_fenced(ErrorCode.PRODUCER_FENCED, metadata, expected, "InitProducerId")
                on_end(ErrorCode.PRODUCER_FENCED, NO_PRODUCER)
            else:
                given = TxnProducer(transit.producer_id, transit.producer_epoch)
                self._write(metadata, transit, partial(_end_with, on_end, given))

    def _initialisation(
        self, metadata: TransactionMetadata, timeout_ms: int, expected: TxnProducer | None
    ) -> TxnTransit | None:
        """The producer's new epoch, or none where it is fenced."""
        epoch, now = metadata.producer_epoch, self._ctx.now
        if metadata.is_epoch_exhausted and (expected is None or expected.epoch == epoch):
            last_epoch = NO_PRODUCER_EPOCH if expected is None else epoch
            return metadata.prepare_rotation(self._ids.take(), last_epoch, timeout_ms, now)
        if expected is None:
            return metadata.prepare_increment(epoch + 1, NO_PRODUCER_EPOCH, timeout_ms, now)
        if epoch in (NO_PRODUCER_EPOCH, expected.epoch):
            return metadata.prepare_increment(epoch + 1, epoch, timeout_ms, now)
        if expected.epoch == metadata.last_producer_epoch:
            # Kafka: the answer to an equal request was lost.
            return metadata.prepare_increment(epoch, expected.epoch, timeout_ms, now)
        return None

    # --- partitions

    def add_partitions(
        self,
        transactional_id: str,
        producer: TxnProducer,
        partitions: Iterable[TopicPartition],
        on_end: OnError,
        *,
        by_broker: bool = False,
    ) -> None:
        """Make partitions part of the transaction, which begins if it has not; by a client, or the leader of one."""
        metadata = self.transactions.get(transactional_id)
        wanted = list(partitions)
        if metadata is None:
            on_end(ErrorCode.INVALID_PRODUCER_ID_MAPPING)
        elif metadata.pending_state is not None:
            on_end(ErrorCode.CONCURRENT_TRANSACTIONS)
        elif (error := producer_error(metadata, producer)) is not ErrorCode.NONE:
            self._check_fenced(error, metadata, producer, "AddPartitionsToTxn")
            on_end(error)
        elif metadata.state is TransactionState.ONGOING and all(each in metadata.partitions for each in wanted):
            on_end(ErrorCode.NONE)
        elif by_broker and self._ctx.features.transaction_version == 0:
            # Kafka: the record of version 0 cannot say it. There the transactional id is stuck from then on.
            on_end(ErrorCode.UNSUPPORTED_VERSION)
        else:
            # Kafka: TransactionVersion.transactionVersionForAddPartitionsToTxn
            version = FIRST_WITH_EPOCH_BUMPS if by_broker else 0
            self._write(metadata, metadata.prepare_add(wanted, version, self._ctx.now), on_end)

    def verify_partitions(
        self, transactional_id: str, producer: TxnProducer, partitions: Iterable[TopicPartition]
    ) -> dict[TopicPartition, ErrorCode]:
        """Whether partitions are part of the transaction."""
        metadata = self.transactions.get(transactional_id)
        error = ErrorCode.INVALID_PRODUCER_ID_MAPPING if metadata is None else producer_error(metadata, producer)
        if metadata is None or error is not ErrorCode.NONE:
            if metadata is not None:
                self._check_fenced(error, metadata, producer, "AddPartitionsToTxn")
            return dict.fromkeys(partitions, error)
        return {
            each: ErrorCode.NONE if each in metadata.partitions else ErrorCode.TRANSACTION_ABORTABLE
            for each in partitions
        }

    # --- ends

    def end(
        self, transactional_id: str, producer: TxnProducer, *, commits: bool, version: int, on_end: OnProducer
    ) -> None:
        """Commit or abort, as a client asks for it in a version of transactions."""
        metadata = self.transactions.get(transactional_id)
        if metadata is None:
            on_end(ErrorCode.INVALID_PRODUCER_ID_MAPPING, NO_PRODUCER)
            return
        rule = end_with_epoch_bump if version >= FIRST_WITH_EPOCH_BUMPS else end_of
        found = rule(metadata, producer.producer_id, producer.epoch, commits)
        if isinstance(found, ErrorCode):
            self._check_fenced(found, metadata, producer, "EndTxn")
            on_end(found, NO_PRODUCER)
        elif found is End.REPEATED:
            on_end(ErrorCode.NONE, TxnProducer(metadata.producer_id, metadata.producer_epoch))
        else:
            metadata.ended_by = "client"
            self._decide(metadata, commits, version, 0, on_end)

    def abort(self, metadata: TransactionMetadata, ended_by: EndedBy, on_end: OnProducer) -> None:
        """Abort an open transaction that its producer has not ended; the producer is fenced by that."""
        bumps = self._ctx.features.transaction_version >= FIRST_WITH_EPOCH_BUMPS
        version = FIRST_WITH_EPOCH_BUMPS if bumps else 0
        metadata.ended_by = ended_by
        if not bumps:
            metadata.fence()
        self._decide(metadata, False, version, FENCE_MARKER_DELAY_MS, on_end)

    def _decide(
        self, metadata: TransactionMetadata, commits: bool, version: int, delay_ms: Millis, on_end: OnProducer
    ) -> None:
        overflows = version >= FIRST_WITH_EPOCH_BUMPS and metadata.is_epoch_exhausted
        next_id = self._ids.take() if overflows else NO_PRODUCER_ID
        transit = metadata.prepare_end(commits=commits, version=version, next_producer_id=next_id, now=self._ctx.now)
        delay_ms = max(delay_ms, self._ctx.settings.emulator_transaction_marker_delay_ms)
        self._write(metadata, transit, partial(self._decided, metadata, delay_ms, on_end))

    def _decided(self, metadata: TransactionMetadata, delay_ms: Millis, on_end: OnProducer, error: ErrorCode) -> None:
        """The end is on record: answer, and see to the markers."""
        if error is not ErrorCode.NONE:
            # Kafka: hasFailedEpochFence. Here a log that fails is read again, and the fence is forgotten.
            on_end(error, NO_PRODUCER)
            return
        overflows = metadata.next_producer_id != NO_PRODUCER_ID
        given = TxnProducer(metadata.next_producer_id, 0)
        if not overflows:
            given = TxnProducer(metadata.producer_id, metadata.producer_epoch)
        metadata.prepare_complete(self._ctx.now)
        on_end(ErrorCode.NONE, given)
        self._markers.send(self, metadata, delay_ms)

    def markers_written(self, metadata: TransactionMetadata) -> None:
        """Every partition has its marker."""
        metadata.pending_state = None
        self._write(metadata, metadata.prepare_complete(self._ctx.now), unanswered)

    # --- writing

    def _write(self, metadata: TransactionMetadata, transit: TxnTransit, on_end: OnError) -> None:
        self._append(metadata.transactional_id, transit.record(), _TransitStored(self, metadata, transit, on_end))

    def _append(self, transactional_id: str, value: TransactionLogValue, completion: AppendCompletion) -> None:
        partition = self._partition
        version = 1 if self._ctx.features.transaction_version else 0
        end = partition.log.end_offset
        partition.append(*transaction_batch(transactional_id, value, version, end, partition.epoch, self._ctx.now))
        partition.when_stored(partition.log.end_offset, completion)

    def stored(self, metadata: TransactionMetadata, transit: TxnTransit) -> None:
        """The record of a change is durable."""
        for event in events_of(metadata, transit):
            self._ctx.emit(event)
        metadata.complete(transit)
        if transit.state is TransactionState.ONGOING:
            self.cleanup.set_abort_timer()
        elif transit.state in IS_COMPLETE:
            self._on_complete(metadata.transactional_id)

    def forgotten(self, metadata: TransactionMetadata) -> None:
        """The tombstone of a transactional id is durable."""
        self.transactions.pop(metadata.transactional_id, None)
        self._ctx.emit(
            TransactionalIdExpired(
                transactional_id=metadata.transactional_id,
                producer_id=metadata.producer_id,
                producer_epoch=metadata.producer_epoch,
            )
        )

    def _check_fenced(
        self, error: ErrorCode, metadata: TransactionMetadata, producer: TxnProducer | None, api: str
    ) -> None:
        """Emit that a request was refused because of its epoch, if it was."""
        if error is ErrorCode.PRODUCER_FENCED and producer is not None:
            self._ctx.emit(
                ProducerFenced(
                    transactional_id=metadata.transactional_id,
                    producer_id=producer.producer_id,
                    producer_epoch=producer.epoch,
                    current_epoch=metadata.producer_epoch,
                    api=api,
                    error=error.name,
                    topic=None,
                    partition=None,
                )
            )


@dataclass(slots=True)
class _TransitStored(AppendCompletion):
    """A change of a transactional id being written."""

    shard: TransactionsShard
    metadata: TransactionMetadata
    transit: TxnTransit
    on_end: OnError

    def ended(self, error: ErrorCode) -> None:
        if error is ErrorCode.NONE:
            self.shard.stored(self.metadata, self.transit)
        else:
            self.metadata.pending_state = None
        self.on_end(WRITE_ERRORS.get(error, error))


def _aborted_first(on_end: OnProducer, error: ErrorCode, _: TxnProducer) -> None:
    on_end(ErrorCode.CONCURRENT_TRANSACTIONS if error is ErrorCode.NONE else error, NO_PRODUCER)


def _end_with(on_end: OnProducer, given: TxnProducer, error: ErrorCode) -> None:
    on_end(error, given if error is ErrorCode.NONE else NO_PRODUCER)
