"""WriteTxnMarkers: the ends of transactions, in data partitions and in offsets partitions.

Kafka: KafkaApis.handleWriteTxnMarkersRequest.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

from rejoin.coordinator.core.groups.group_shards import GroupShards
from rejoin.coordinator.core.inputs import Context, Token
from rejoin.coordinator.core.partitions.partitions import Partitions
from rejoin.coordinator.core.runtime.admission import Admission
from rejoin.coordinator.core.runtime.appends import AppendCompletion, response_error_of_write
from rejoin.coordinator.core.runtime.authorizer import Resource
from rejoin.coordinator.core.runtime.shard import ShardState
from rejoin.coordinator.core.step_context import StepContext
from rejoin.coordinator.core.topics.topics import Topics
from rejoin.journal.events.transactions import TransactionMarkerWritten
from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.messages.transactions.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerPartitionResult,
    WritableTxnMarkerResult,
    WritableTxnMarkerTopicResult,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)
from rejoin.protocol.records.consumer_offsets import OFFSETS_TOPIC, offsets_partition
from rejoin.protocol.records.keyed import TransactionMarker
from rejoin.protocol.unvalidated import unvalidated
from rejoin.protocol.wire.records import ControlRecordType, EndTransactionMarker


class MarkerPartition(NamedTuple):
    """One partition of one marker, by the marker's position in its request."""

    marker: int
    topic: str
    partition: int


class WriteTxnMarkersRequests:
    """Writes markers."""

    def __init__(
        self, ctx: StepContext, groups: GroupShards, topics: Topics, partitions: Partitions, admission: Admission
    ) -> None:
        self._ctx = ctx
        self._groups = groups
        self._topics = topics
        self._partitions = partitions
        self._admission = admission

    def write_markers(self, token: Token, request: WriteTxnMarkersRequest, context: Context) -> None:
        if self._admission.allows(WriteTxnMarkersRequest, context, Resource.CLUSTER):
            self.write_for_broker(token, request)
        else:
            error = ErrorCode.CLUSTER_AUTHORIZATION_FAILED
            self._ctx.reply(token, request.error_response(context.api_version, error))

    def write_for_broker(self, token: Token, request: WriteTxnMarkersRequest) -> None:
        """Write markers that a transaction coordinator asks for."""
        wanted = marker_partitions(request)
        pending = _PendingMarkers(self._ctx, token, request, dict.fromkeys(wanted))
        for partition in wanted:
            marker = request.markers[partition.marker]
            if partition.topic == OFFSETS_TOPIC:
                self._end_offsets(partition, marker, pending)
            else:
                self._end_records(partition, marker, pending)
        if not wanted:
            pending.reply()

    def _end_records(self, partition: MarkerPartition, marker: WritableTxnMarker, pending: _PendingMarkers) -> None:
        """End the transaction in a data partition."""
        identity = self._partitions.identify(partition.topic, partition.partition)
        if identity is None:
            # A synthetic log has no transactions, and its topic just agrees.
            known = self._topics.has_partition(partition.topic, partition.partition)
            pending.done(partition, ErrorCode.NONE if known else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
            return
        led = self._partitions.get(identity)
        if led is None:
            pending.done(partition, ErrorCode.NOT_LEADER_OR_FOLLOWER)
            return
        producer_id, producer_epoch = marker.producer_id, marker.producer_epoch
        error = led.producers.check_marker(
            producer_id, producer_epoch, marker.coordinator_epoch, marker.transaction_version
        )
        if error is not ErrorCode.NONE:
            pending.done(partition, error)
            return
        kind = ControlRecordType.COMMIT if marker.transaction_result else ControlRecordType.ABORT
        led.append_marker(producer_id, producer_epoch, EndTransactionMarker(kind, marker.coordinator_epoch))
        led.when_stored(led.log.end_offset, _RecordsEnded(pending, partition))

    def _end_offsets(self, partition: MarkerPartition, marker: WritableTxnMarker, pending: _PendingMarkers) -> None:
        """End the transaction in an offsets partition: its pending offsets count, or are dropped."""
        if partition.partition not in range(self._ctx.settings.offsets_topic_num_partitions):
            pending.done(partition, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
            return
        shard = self._groups.by_partition.get(offsets_partition(partition.partition))
        if shard is None or shard.state is ShardState.LOADING:
            pending.done(partition, ErrorCode.NOT_LEADER_OR_FOLLOWER)
            return
        producers = shard.machine.producers
        error = producers.check_marker(
            marker.producer_id, marker.producer_epoch, marker.coordinator_epoch, marker.transaction_version
        )
        if error is not ErrorCode.NONE:
            pending.done(partition, error)
            return
        producers.end(marker.producer_id, marker.producer_epoch, marker.coordinator_epoch)
        completion = _OffsetsEnded(pending, partition, marker_record(marker), shard.machine.end_transaction)
        shard.append((completion.record,), completion)


def marker_record(marker: WritableTxnMarker) -> TransactionMarker:
    """The marker as the log of an offsets partition keeps it."""
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


@dataclass(slots=True)
class _RecordsEnded(AppendCompletion):
    """A marker being written to a data partition."""

    pending: _PendingMarkers
    partition: MarkerPartition

    def ended(self, error: ErrorCode) -> None:
        self.pending.done(self.partition, error)


@dataclass(slots=True)
class _OffsetsEnded(AppendCompletion):
    """A marker being written to an offsets partition."""

    pending: _PendingMarkers
    partition: MarkerPartition
    record: TransactionMarker
    on_durable: Callable[[TransactionMarker], None]

    def ended(self, error: ErrorCode) -> None:
        self.ended_late(error)
        found = response_error_of_write(error)
        self.pending.done(self.partition, _MARKER_ERRORS.get(found, found))

    def ended_late(self, error: ErrorCode) -> None:
        if error is ErrorCode.NONE:
            self.pending.ctx.emit(
                unvalidated(
                    TransactionMarkerWritten,
                    topic=OFFSETS_TOPIC,
                    partition=self.partition.partition,
                    producer_id=self.record.producer_id,
                    producer_epoch=self.record.producer_epoch,
                    first_offset=None,
                    last_stable_offset=None,
                    high_watermark=None,
                    end_offset=None,
                    committed=self.record.committed,
                    coordinator_epoch=self.pending.request.markers[self.partition.marker].coordinator_epoch,
                )
            )
            self.on_durable(self.record)


_MARKER_ERRORS = {
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS: ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.COORDINATOR_NOT_AVAILABLE: ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.NOT_COORDINATOR: ErrorCode.NOT_LEADER_OR_FOLLOWER,
}
"""What the coordinator of a group says, as a transaction coordinator knows it, which sends the marker again."""
