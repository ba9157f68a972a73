"""Writes the marker of a transaction to a partition that this node leads: of records, or of pending offsets.

Kafka: KafkaApis.handleWriteTxnMarkersRequest.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, NamedTuple, TypeAlias

from rejoin.coordinator.core.groups.group_shards import GroupShards
from rejoin.coordinator.core.partitions.partitions import Partitions
from rejoin.coordinator.core.runtime.appends import AppendCompletion, response_error_of_write
from rejoin.coordinator.core.runtime.shard import ShardState
from rejoin.coordinator.core.step_context import StepContext
from rejoin.coordinator.core.topics.topics import Topics
from rejoin.journal.events.transactions import TransactionMarkerWritten
from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.records.consumer_offsets import OFFSETS_TOPIC, offsets_partition
from rejoin.protocol.records.keyed import TransactionMarker
from rejoin.protocol.types import TopicPartition
from rejoin.protocol.unvalidated import unvalidated
from rejoin.protocol.wire.records import ControlRecordType, EndTransactionMarker

NO_LOG: Final = ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT
"""The error of a partition that can take no marker, now or later. A coordinator sends no other to it."""

OnMarker: TypeAlias = Callable[[ErrorCode], None]
"""Called when the marker is written to one partition, or why it is not."""


class TxnMarker(NamedTuple):
    """The end of a transaction, for any of its partitions."""

    producer_id: int
    producer_epoch: int
    commits: bool
    coordinator_epoch: int
    transaction_version: int


class MarkerWriter:
    """Writes markers to the partitions of this node."""

    def __init__(self, ctx: StepContext, groups: GroupShards, topics: Topics, partitions: Partitions) -> None:
        self._ctx = ctx
        self._groups = groups
        self._topics = topics
        self._partitions = partitions

    def write(self, partition: TopicPartition, marker: TxnMarker, on_end: OnMarker) -> None:
        """Write a marker to a partition."""
        if partition.topic == OFFSETS_TOPIC:
            self._end_offsets(partition.partition, marker, on_end)
        else:
            self._end_records(partition, marker, on_end)

    def _end_records(self, partition: TopicPartition, marker: TxnMarker, on_end: OnMarker) -> None:
        """End the transaction in a data partition."""
        identity = self._partitions.identify(*partition)
        if identity is None:
            # A synthetic log has no transactions, and its topic just agrees.
            known = self._topics.has_partition(*partition)
            on_end(ErrorCode.NONE if known else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
            return
        if self._partitions.is_damaged(identity):
            # Differs: Kafka elects no leader for such a partition; its coordinator then counts the marker as written.
            on_end(NO_LOG)
            return
        led = self._partitions.get(identity)
        if led is None:
            on_end(ErrorCode.NOT_LEADER_OR_FOLLOWER)
            return
        producer_id, producer_epoch, commits, coordinator_epoch, version = marker
        error = led.producers.check_marker(producer_id, producer_epoch, coordinator_epoch, version)
        if error is not ErrorCode.NONE:
            on_end(error)
            return
        kind = ControlRecordType.COMMIT if commits else ControlRecordType.ABORT
        led.append_marker(producer_id, producer_epoch, EndTransactionMarker(kind, coordinator_epoch))
        led.when_stored(led.log.end_offset, _RecordsEnded(on_end))

    def _end_offsets(self, index: int, marker: TxnMarker, on_end: OnMarker) -> None:
        """End the transaction in an offsets partition: its pending offsets count, or are dropped."""
        if index not in range(self._ctx.settings.offsets_topic_num_partitions):
            on_end(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
            return
        shard = self._groups.by_partition.get(offsets_partition(index))
        if shard is None or shard.state is ShardState.LOADING:
            on_end(ErrorCode.NOT_LEADER_OR_FOLLOWER)
            return
        producers = shard.machine.producers
        producer_id, producer_epoch, commits, coordinator_epoch, version = marker
        error = producers.check_marker(producer_id, producer_epoch, coordinator_epoch, version)
        if error is not ErrorCode.NONE:
            on_end(error)
            return
        producers.end(producer_id, producer_epoch, coordinator_epoch)
        record = TransactionMarker(producer_id=producer_id, producer_epoch=producer_epoch, committed=commits)
        end_transaction = shard.machine.end_transaction
        shard.append((record,), _OffsetsEnded(self._ctx, index, coordinator_epoch, record, end_transaction, on_end))


@dataclass(slots=True)
class _RecordsEnded(AppendCompletion):
    """A marker being written to a data partition."""

    on_end: OnMarker

    def ended(self, error: ErrorCode) -> None:
        self.on_end(error)


@dataclass(slots=True)
class _OffsetsEnded(AppendCompletion):
    """A marker being written to an offsets partition."""

    ctx: StepContext
    partition: int
    coordinator_epoch: int
    record: TransactionMarker
    on_durable: Callable[[TransactionMarker], None]
    on_end: OnMarker

    def ended(self, error: ErrorCode) -> None:
        self.ended_late(error)
        found = response_error_of_write(error)
        self.on_end(_MARKER_ERRORS.get(found, found))

    def ended_late(self, error: ErrorCode) -> None:
        if error is ErrorCode.NONE:
            self.ctx.emit(
                unvalidated(
                    TransactionMarkerWritten,
                    topic=OFFSETS_TOPIC,
                    partition=self.partition,
                    producer_id=self.record.producer_id,
                    producer_epoch=self.record.producer_epoch,
                    first_offset=None,
                    last_stable_offset=None,
                    high_watermark=None,
                    end_offset=None,
                    committed=self.record.committed,
                    coordinator_epoch=self.coordinator_epoch,
                )
            )
            self.on_durable(self.record)


_MARKER_ERRORS: Final = {
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS: ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.COORDINATOR_NOT_AVAILABLE: ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.NOT_COORDINATOR: ErrorCode.NOT_LEADER_OR_FOLLOWER,
}
"""Errors of a group's coordinator, each with the error after which a transaction coordinator retries the marker."""
