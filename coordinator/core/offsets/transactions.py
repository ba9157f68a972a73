"""The ends of transactions: WriteTxnMarkers, and what a marker does to pending offsets.

Kafka: KafkaApis.handleWriteTxnMarkersRequest, OffsetMetadataManager.replayEndTransactionMarker.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

from rejoin.coordinator.core.inputs import Token
from rejoin.coordinator.core.offsets.store import OffsetStore, committed_offset
from rejoin.coordinator.core.runtime.appends import AppendCompletion, response_error_of_write
from rejoin.coordinator.core.step_context import StepContext
from rejoin.journal.events.coordinator import TransactionEnded
from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.messages.transactions.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerPartitionResult,
    WritableTxnMarkerResult,
    WritableTxnMarkerTopicResult,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)
from rejoin.protocol.records.keyed import TransactionMarker


class MarkerPartition(NamedTuple):
    """One partition of one marker, by the marker's place in its request."""

    marker: int
    topic: str
    partition: int


def end_transaction(ctx: StepContext, store: OffsetStore, marker: TransactionMarker) -> None:
    """Make a producer's offsets visible, or drop them, in every group of a shard."""
    for group_id, group_offsets in store.items():
        offsets = group_offsets.end_transaction(marker.producer_id, marker.committed)
        if offsets:
            ctx.emit(
                TransactionEnded(
                    group_id=group_id,
                    producer_id=marker.producer_id,
                    committed=marker.committed,
                    offsets=[committed_offset(partition, value) for partition, value in offsets.items()],
                )
            )


def marker_record(marker: WritableTxnMarker) -> TransactionMarker:
    """The marker as the log keeps it."""
    return TransactionMarker(
        producer_id=marker.producer_id, producer_epoch=marker.producer_epoch, committed=marker.transaction_result
    )


def marker_partitions(request: WriteTxnMarkersRequest) -> list[MarkerPartition]:
    """Every partition of every marker."""
    return list(
        dict.fromkeys(
            MarkerPartition(number, topic.name, partition)
            for number, marker in enumerate(request.markers)
            for topic in marker.topics
            for partition in topic.partition_indexes
        )
    )


@dataclass(slots=True)
class PendingMarkers:
    """A WriteTxnMarkers request, until the last marker is written."""

    ctx: StepContext
    token: Token
    request: WriteTxnMarkersRequest
    results: dict[MarkerPartition, ErrorCode | None]
    left: int = field(init=False)

    def __post_init__(self) -> None:
        self.left = len(self.results)

    def done(self, partition: MarkerPartition, error: ErrorCode) -> None:
        self.results[partition] = error
        self.left -= 1
        if not self.left:
            self.reply()

    def reply(self) -> None:
        markers = tuple(
            WritableTxnMarkerResult(
                producer_id=marker.producer_id,
                topics=tuple(
                    WritableTxnMarkerTopicResult(
                        name=topic.name,
                        partitions=tuple(
                            self._result(MarkerPartition(number, topic.name, index))
                            for index in topic.partition_indexes
                        ),
                    )
                    for topic in marker.topics
                ),
            )
            for number, marker in enumerate(self.request.markers)
        )
        self.ctx.reply(self.token, WriteTxnMarkersResponse(markers=markers))

    def _result(self, partition: MarkerPartition) -> WritableTxnMarkerPartitionResult:
        error = self.results[partition] or ErrorCode.NONE
        return WritableTxnMarkerPartitionResult(partition_index=partition.partition, error_code=error)


@dataclass(slots=True)
class MarkerCompletion(AppendCompletion):
    """One marker being written to one offsets partition."""

    pending: PendingMarkers
    partition: MarkerPartition
    on_durable: Callable[[TransactionMarker], None]

    def ended(self, error: ErrorCode) -> None:
        self.ended_late(error)
        self.pending.done(self.partition, response_error_of_write(error))

    def ended_late(self, error: ErrorCode) -> None:
        if error is ErrorCode.NONE:
            self.on_durable(marker_record(self.pending.request.markers[self.partition.marker]))
