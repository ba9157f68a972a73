"""Events of transactions in the log of a data partition, emitted once their records are stored.

While the log grows behind an open transaction, the last stable offset is sampled now and then.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from rejoin.coordinator.core.inputs import Millis
from rejoin.coordinator.core.partitions.log import PartitionLog
from rejoin.coordinator.core.partitions.producer_state import ProducerStateManager
from rejoin.coordinator.core.runtime.appends import AppendCompletion
from rejoin.coordinator.core.step_context import StepContext
from rejoin.journal.events.transactions import (
    LastStableOffsetHeld,
    ProducerFenced,
    TransactionMarkerWritten,
    TransactionOpened,
)
from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.types import TopicIdPartition
from rejoin.protocol.unvalidated import unvalidated
from rejoin.protocol.wire.record_batch import BatchHeader
from rejoin.protocol.wire.records import ControlRecordType, EndTransactionMarker

SAMPLE_EVERY_MS: Final = 10_000


class TransactionEvents:
    """Emits the events of one partition, of its log as it is read since the last election."""

    __slots__ = ("_ctx", "_log", "_opened_at", "_partition", "_producers", "_sampled_at")

    def __init__(
        self, ctx: StepContext, partition: TopicIdPartition, log: PartitionLog, producers: ProducerStateManager
    ) -> None:
        self._ctx = ctx
        self._partition = partition
        self._log = log
        self._producers = producers
        self._opened_at: dict[int, Millis] = {}
        """When transactions began, by their first offsets; those of before the election are not here."""
        self._sampled_at: Millis = ctx.now

    def opening(self, header: BatchHeader) -> AppendCompletion:
        """The completion of the append of a transaction's first batch."""
        return _Opened(self, header)

    def ending(self, header: BatchHeader, marker: EndTransactionMarker, first_offset: int | None) -> AppendCompletion:
        """The completion of the append of a marker, which ends what began at an offset, if a transaction was open."""
        return _MarkerWritten(self, header, marker, first_offset)

    def opened(self, header: BatchHeader) -> None:
        """The first batch of a transaction is stored."""
        now, log = self._ctx.now, self._log
        self._sampled_at = self._opened_at[header.base_offset] = now
        self._ctx.emit(
            unvalidated(
                TransactionOpened,
                topic=self._partition.topic,
                partition=self._partition.partition,
                producer_id=header.producer_id,
                producer_epoch=header.producer_epoch,
                first_offset=header.base_offset,
                last_stable_offset=log.last_stable_offset,
                high_watermark=log.high_watermark,
                end_offset=log.end_offset,
            )
        )

    def marker_written(self, header: BatchHeader, marker: EndTransactionMarker, first_offset: int | None) -> None:
        """A marker is stored."""
        log = self._log
        if first_offset is not None:
            self._opened_at.pop(first_offset, None)
        self._sampled_at = self._ctx.now
        self._ctx.emit(
            unvalidated(
                TransactionMarkerWritten,
                topic=self._partition.topic,
                partition=self._partition.partition,
                producer_id=header.producer_id,
                producer_epoch=header.producer_epoch,
                first_offset=first_offset,
                last_stable_offset=log.last_stable_offset,
                high_watermark=log.high_watermark,
                end_offset=log.end_offset,
                committed=marker.control_type is ControlRecordType.COMMIT,
                coordinator_epoch=marker.coordinator_epoch,
            )
        )

    def grown(self) -> None:
        """More records are stored while a transaction is open."""
        now, log = self._ctx.now, self._log
        if now - self._sampled_at < SAMPLE_EVERY_MS or log.last_stable_offset == log.high_watermark:
            return
        first_offset, producer_id = next(iter(self._producers.ongoing.items()))
        opened_at = self._opened_at.setdefault(first_offset, now)
        self._sampled_at = now
        self._ctx.emit(
            LastStableOffsetHeld(
                topic=self._partition.topic,
                partition=self._partition.partition,
                producer_id=producer_id,
                producer_epoch=self._producers.entries[producer_id].epoch,
                first_offset=first_offset,
                last_stable_offset=log.last_stable_offset,
                high_watermark=log.high_watermark,
                end_offset=log.end_offset,
                held_ms=now - opened_at,
            )
        )

    def fenced(self, header: BatchHeader, transactional_id: str | None = None) -> None:
        """A batch was refused, as its epoch is below that of its producer; with its id if before the log was asked."""
        self._ctx.emit(
            ProducerFenced(
                transactional_id=transactional_id,
                producer_id=header.producer_id,
                producer_epoch=header.producer_epoch,
                current_epoch=self._producers.entries[header.producer_id].epoch,
                api="Produce",
                error=ErrorCode.INVALID_PRODUCER_EPOCH.name,
                topic=self._partition.topic,
                partition=self._partition.partition,
            )
        )


@dataclass(slots=True)
class _Opened(AppendCompletion):
    """The first batch of a transaction being written."""

    events: TransactionEvents
    header: BatchHeader

    def ended(self, error: ErrorCode) -> None:
        if error is ErrorCode.NONE:
            self.events.opened(self.header)


@dataclass(slots=True)
class _MarkerWritten(AppendCompletion):
    """A marker being written."""

    events: TransactionEvents
    header: BatchHeader
    marker: EndTransactionMarker
    first_offset: int | None

    def ended(self, error: ErrorCode) -> None:
        if error is ErrorCode.NONE:
            self.events.marker_written(self.header, self.marker, self.first_offset)
