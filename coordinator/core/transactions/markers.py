"""Markers: the end of a transaction on each of its partitions, written by their leaders.

They are sent again until every partition has its own, or until another coordinator has taken over.

Kafka: TransactionMarkerChannelManager, TransactionMarkerRequestCompletionHandler.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Final

from rejoin.coordinator.core.inputs import NO_LEADER, Broker, Millis
from rejoin.coordinator.core.partitions.partitions import Partitions
from rejoin.coordinator.core.peers import PeerRequests
from rejoin.coordinator.core.runtime.shards import ClusterMetadata
from rejoin.coordinator.core.runtime.timers import TimerKey
from rejoin.coordinator.core.step_context import StepContext
from rejoin.coordinator.core.transactions.marker_writer import NO_LOG, MarkerWriter, TxnMarker
from rejoin.coordinator.core.transactions.metadata import TransactionMetadata, TransactionState
from rejoin.coordinator.core.transactions.shard import TransactionsShard
from rejoin.coordinator.core.transactions.timers import TransactionTimer
from rejoin.protocol.brokers.offered_versions import offered
from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.message import Response
from rejoin.protocol.messages.transactions.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)
from rejoin.protocol.records.consumer_offsets import OFFSETS_TOPIC
from rejoin.protocol.registry import WRITE_TXN_MARKERS
from rejoin.protocol.types import TopicPartition
from rejoin.protocol.unvalidated import unvalidated

RETRY_MS: Final = 100
MARKERS_VERSION: Final = 2

WRITTEN: Final = frozenset({ErrorCode.NONE, NO_LOG, ErrorCode.UNSUPPORTED_VERSION})
"""With these a partition needs no other marker."""

FENCED: Final = frozenset({ErrorCode.INVALID_PRODUCER_EPOCH, ErrorCode.TRANSACTION_COORDINATOR_FENCED})
"""With these nothing more is sent: the transaction stays decided until another coordinator loads it."""


@dataclass(slots=True)
class _Ending:
    """A transaction whose markers are being written."""

    shard: TransactionsShard
    metadata: TransactionMetadata
    timer: TimerKey
    left: dict[TopicPartition, None]
    in_flight: int = 0
    is_fenced: bool = False

    def done(self, partition: TopicPartition) -> None:
        """A partition has its marker, and is shown as part of the transaction no more."""
        # Kafka: TransactionMarkerRequestCompletionHandler.onComplete.
        self.left.pop(partition, None)
        self.metadata.partitions.pop(partition, None)


class TransactionMarkers:
    """Writes the markers of the transactions that this node coordinates."""

    def __init__(
        self,
        ctx: StepContext,
        cluster: ClusterMetadata,
        partitions: Partitions,
        peers: PeerRequests,
        writer: MarkerWriter,
    ) -> None:
        self._ctx = ctx
        self._writer = writer
        self._cluster = cluster
        self._partitions = partitions
        self._peers = peers
        _, newest = offered(ctx.settings.emulator_as_kafka)[WRITE_TXN_MARKERS.key]
        self._version = min(MARKERS_VERSION, newest)
        self._waiting: dict[TimerKey, _Ending] = {}

    def send(self, shard: TransactionsShard, metadata: TransactionMetadata, delay_ms: Millis) -> None:
        """Write the markers of a transaction; ``shard.markers_written`` is called at the end."""
        timer = TimerKey(TransactionTimer.MARKERS, shard.owner, name=metadata.transactional_id)
        ending = _Ending(shard, metadata, timer, dict(metadata.partitions))
        if delay_ms and ending.left:
            self._wait(ending, delay_ms)
        else:
            self._send(ending)

    def drop(self, shard: TransactionsShard) -> None:
        """The shard is gone, with its timers."""
        for timer in [timer for timer, ending in self._waiting.items() if ending.shard is shard]:
            del self._waiting[timer]

    def timer_fired(self, timer: TimerKey) -> None:
        ending = self._waiting.pop(timer, None)
        if ending is not None:
            self._send(ending)

    def _wait(self, ending: _Ending, delay_ms: Millis) -> None:
        self._waiting[ending.timer] = ending
        self._ctx.deadlines.set(ending.timer, self._ctx.now + delay_ms)

    def _send(self, ending: _Ending) -> None:
        """Send the remaining markers, one request to each leader; this node writes its own at once."""
        by_node: dict[int, list[TopicPartition]] = {}
        for partition in list(ending.left):
            if not self._exists(partition):
                ending.done(partition)
            elif (leader := self._leader_of(partition)) is not None:
                by_node.setdefault(leader.node_id, []).append(partition)
        ending.in_flight = len(by_node)
        if not by_node:
            self._go_on(ending)
        for node_id, partitions in by_node.items():
            if self._peers.is_own(node_id):
                self._write_own(ending, partitions)
            else:
                request = _request(_marker(ending), partitions)
                self._peers.ask(node_id, request, self._version, partial(self._answered, ending))

    def _write_own(self, ending: _Ending, partitions: list[TopicPartition]) -> None:
        marker = _marker(ending)
        results: dict[TopicPartition, ErrorCode] = {}
        for partition in partitions:
            on_end = partial(self._written, ending, partition, results, len(partitions))
            self._writer.write(partition, marker, on_end)

    def _written(
        self,
        ending: _Ending,
        partition: TopicPartition,
        results: dict[TopicPartition, ErrorCode],
        wanted: int,
        error: ErrorCode,
    ) -> None:
        """One of this node's partitions has its marker, or not. They count together, as in one response."""
        results[partition] = error
        if len(results) == wanted:
            self._take_in(ending, results)

    def _exists(self, partition: TopicPartition) -> bool:
        # Kafka: the markers of a topic that is gone count as written. A synthetic log takes none.
        if partition.topic == OFFSETS_TOPIC:
            return True
        identity = self._partitions.identify(*partition)
        if identity is None:
            return False
        # Kafka: KRaftMetadataCache.getPartitionLeaderEndpoint. What is offline counts as gone, and hangs later.
        registration = self._cluster.registration(identity)
        return registration is None or registration.leader != NO_LEADER

    def _leader_of(self, partition: TopicPartition) -> Broker | None:
        if partition.topic == OFFSETS_TOPIC:
            return self._cluster.leader_of(partition)
        identity = self._partitions.identify(*partition)
        return None if identity is None else self._partitions.leader_of(identity)[0]

    def _answered(self, ending: _Ending, response: Response | None) -> None:
        results: dict[TopicPartition, ErrorCode] = {}
        if isinstance(response, WriteTxnMarkersResponse):
            for marker in response.markers:
                for topic in marker.topics:
                    for result in topic.partitions:
                        results[TopicPartition(topic.name, result.partition_index)] = result.error_code
        self._take_in(ending, results)

    def _take_in(self, ending: _Ending, results: dict[TopicPartition, ErrorCode]) -> None:
        """Take in the markers that one node has written; after the last one, complete the transaction."""
        ending.in_flight -= 1
        for partition, error in results.items():
            if error in WRITTEN:
                ending.done(partition)
            ending.is_fenced |= error in FENCED
        if not ending.in_flight:
            self._go_on(ending)

    def _go_on(self, ending: _Ending) -> None:
        if not ending.shard.is_led or ending.is_fenced:
            return
        if ending.left:
            self._wait(ending, RETRY_MS)
        else:
            ending.shard.markers_written(ending.metadata)


def _marker(ending: _Ending) -> TxnMarker:
    metadata = ending.metadata
    commits = metadata.state is TransactionState.PREPARE_COMMIT
    epoch, coordinator_epoch = metadata.producer_epoch, ending.shard.coordinator_epoch
    return TxnMarker(metadata.producer_id, epoch, commits, coordinator_epoch, metadata.client_version)


def _request(marker: TxnMarker, partitions: list[TopicPartition]) -> WriteTxnMarkersRequest:
    topics: dict[str, list[int]] = {}
    for topic, partition in partitions:
        topics.setdefault(topic, []).append(partition)
    wanted = unvalidated(
        WritableTxnMarker,
        producer_id=marker.producer_id,
        producer_epoch=marker.producer_epoch,
        transaction_result=marker.commits,
        topics=tuple(
            [
                unvalidated(WritableTxnMarkerTopic, name=topic, partition_indexes=tuple(indexes))
                for topic, indexes in topics.items()
            ]
        ),
        coordinator_epoch=marker.coordinator_epoch,
        transaction_version=marker.transaction_version,
    )
    return unvalidated(WriteTxnMarkersRequest, markers=(wanted,))
