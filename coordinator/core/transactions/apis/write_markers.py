"""WriteTxnMarkers: the ends of transactions, in data partitions and in offsets partitions.

Kafka: KafkaApis.handleWriteTxnMarkersRequest.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import NamedTuple

from rejoin.coordinator.core.inputs import Context, Token
from rejoin.coordinator.core.runtime.admission import Admission
from rejoin.coordinator.core.security.resources import Operation, Resource
from rejoin.coordinator.core.step_context import StepContext
from rejoin.coordinator.core.transactions.marker_writer import MarkerWriter, TxnMarker
from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.messages.transactions.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerPartitionResult,
    WritableTxnMarkerResult,
    WritableTxnMarkerTopicResult,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)
from rejoin.protocol.types import TopicPartition
from rejoin.protocol.unvalidated import unvalidated


class MarkerPartition(NamedTuple):
    """One partition of one marker, by the marker's position in its request."""

    marker: int
    topic: str
    partition: int


class WriteTxnMarkersRequests:
    """Writes the markers that other nodes and administrators ask for."""

    def __init__(self, ctx: StepContext, writer: MarkerWriter, admission: Admission) -> None:
        self._ctx = ctx
        self._writer = writer
        self._admission = admission

    def write_markers(self, token: Token, request: WriteTxnMarkersRequest, context: Context) -> None:
        # Kafka: a right of administrators is as good as that of brokers (KIP-664).
        may_alter = self._admission.has_acls and self._admission.allows_operation(
            Operation.ALTER, context, Resource.CLUSTER
        )
        if not (may_alter or self._admission.allows(WriteTxnMarkersRequest, context, Resource.CLUSTER)):
            error = ErrorCode.CLUSTER_AUTHORIZATION_FAILED
            self._ctx.reply(token, request.error_response(context.api_version, error))
            return
        wanted = marker_partitions(request)
        markers = [_marker(each) for each in request.markers]
        pending = _PendingMarkers(self._ctx, token, request, dict.fromkeys(wanted))
        for each in wanted:
            on_end = partial(pending.done, each)
            self._writer.write(TopicPartition(each.topic, each.partition), markers[each.marker], on_end)
        if not wanted:
            pending.reply()


def _marker(wanted: WritableTxnMarker) -> TxnMarker:
    return TxnMarker(
        wanted.producer_id,
        wanted.producer_epoch,
        wanted.transaction_result,
        wanted.coordinator_epoch,
        wanted.transaction_version,
    )


def marker_partitions(request: WriteTxnMarkersRequest) -> list[MarkerPartition]:
    """Every partition of every marker."""
    return list(
        dict.fromkeys(
            MarkerPartition(number, topic.name, index)
            for number, marker in enumerate(request.markers)
            for topic in marker.topics
            for index in topic.partition_indexes
        )
    )


@dataclass(slots=True)
class _PendingMarkers:
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
        # Kafka: WriteTxnMarkersResponse. Markers of one producer share a result, with each partition once.
        producers: dict[int, dict[str, dict[int, ErrorCode]]] = {}
        for partition, error in self.results.items():
            topics = producers.setdefault(self.request.markers[partition.marker].producer_id, {})
            topics.setdefault(partition.topic, {})[partition.partition] = error or ErrorCode.NONE
        markers = tuple([_result(producer_id, topics) for producer_id, topics in producers.items()])
        self.ctx.reply(self.token, unvalidated(WriteTxnMarkersResponse, markers=markers))


def _result(producer_id: int, topics: dict[str, dict[int, ErrorCode]]) -> WritableTxnMarkerResult:
    found = [
        unvalidated(
            WritableTxnMarkerTopicResult,
            name=topic,
            partitions=tuple(
                [
                    unvalidated(WritableTxnMarkerPartitionResult, partition_index=index, error_code=error)
                    for index, error in partitions.items()
                ]
            ),
        )
        for topic, partitions in topics.items()
    ]
    return unvalidated(WritableTxnMarkerResult, producer_id=producer_id, topics=tuple(found))
