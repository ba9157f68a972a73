"""The objects of one node that coordinate transactions and take part in them, made when they are first needed."""

from __future__ import annotations

from collections.abc import Callable

from rejoin.coordinator.core.groups.group_shards import GroupShards
from rejoin.coordinator.core.offsets.requests import OffsetRequests
from rejoin.coordinator.core.partitions.partitions import Partitions
from rejoin.coordinator.core.peers import PeerRequests
from rejoin.coordinator.core.runtime.admission import Admission
from rejoin.coordinator.core.runtime.shards import ClusterMetadata
from rejoin.coordinator.core.runtime.timers import TimerKey
from rejoin.coordinator.core.step_context import StepContext
from rejoin.coordinator.core.topics.changes import TopicChanges
from rejoin.coordinator.core.topics.placement import Placement
from rejoin.coordinator.core.topics.topics import Topics
from rejoin.coordinator.core.transactions.apis.descriptions import TransactionDescriptions
from rejoin.coordinator.core.transactions.apis.initialisation import InitProducerIdRequests
from rejoin.coordinator.core.transactions.apis.requests import TransactionRequests
from rejoin.coordinator.core.transactions.apis.txn_offset_commits import TxnOffsetCommits
from rejoin.coordinator.core.transactions.apis.txn_produce import TxnProduce
from rejoin.coordinator.core.transactions.apis.write_markers import WriteTxnMarkersRequests
from rejoin.coordinator.core.transactions.coordinator import TransactionCoordinator
from rejoin.coordinator.core.transactions.marker_writer import MarkerWriter
from rejoin.coordinator.core.transactions.markers import TransactionMarkers
from rejoin.coordinator.core.transactions.producer_ids import ProducerIds
from rejoin.coordinator.core.transactions.timers import TransactionTimer
from rejoin.coordinator.core.transactions.verification import TransactionVerification
from rejoin.protocol.messages.transactions.add_partitions_to_txn import AddPartitionsToTxnRequest


class Transactions:
    """Everything about transactions."""

    def __init__(
        self,
        ctx: StepContext,
        admission: Admission,
        cluster: ClusterMetadata,
        groups: GroupShards,
        topics: Topics,
        partitions: Partitions,
        changes: TopicChanges,
        peers: PeerRequests,
        offsets: OffsetRequests,
        placement: Callable[[], Placement],
    ) -> None:
        ids = ProducerIds(topics, changes, ctx.settings.broker_id)
        writer = MarkerWriter(ctx, groups, topics, partitions)
        markers = TransactionMarkers(ctx, cluster, partitions, peers, writer)
        self.coordinator = TransactionCoordinator(ctx, cluster, topics, changes, partitions, ids, markers, placement)
        self.initialisation = InitProducerIdRequests(ctx, self.coordinator, ids, admission)
        self.requests = TransactionRequests(ctx, self.coordinator, ids, groups, topics, admission)
        self.descriptions = TransactionDescriptions(ctx, cluster, self.coordinator, admission)
        self.marker_requests = WriteTxnMarkersRequests(ctx, writer, admission)
        verification = TransactionVerification(self.coordinator, peers)
        self.offset_commits = TxnOffsetCommits(ctx, groups, topics, offsets, verification, admission)
        self.produce = TxnProduce(ctx, verification)
        self.coordinator.on_complete = self.produce.transaction_completed
        peers.serve(AddPartitionsToTxnRequest, self.requests.add_for_brokers)

    def fire(self, key: TimerKey) -> None:
        """A timer is due."""
        if key.kind is TransactionTimer.VERIFICATION:
            self.produce.timer_fired(key)
        else:
            self.coordinator.fire(key)
