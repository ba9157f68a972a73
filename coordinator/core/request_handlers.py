"""The objects of one node that handle requests.

Most are made, and their modules loaded, with the first request for them: a node starts without what it may never need.
Those that keep something between requests, or that others ask, are made with the node.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from rejoin.coordinator.core.cluster.leaders import Leaders
from rejoin.coordinator.core.fetch.logs import ReadableLogs
from rejoin.coordinator.core.fetch.requests import FetchRequests
from rejoin.coordinator.core.groups.group_shards import GroupShards
from rejoin.coordinator.core.groups.requests import GroupRequests
from rejoin.coordinator.core.partitions.partitions import Partitions
from rejoin.coordinator.core.peers import PeerRequests
from rejoin.coordinator.core.quotas.client_rates import ClientRates
from rejoin.coordinator.core.runtime.admission import Admission
from rejoin.coordinator.core.runtime.delayed import DelayedTimer, Purgatory
from rejoin.coordinator.core.runtime.shards import ClusterMetadata
from rejoin.coordinator.core.step_context import StepContext
from rejoin.coordinator.core.topics.changes import TopicChanges
from rejoin.coordinator.core.topics.topics import Topics
from rejoin.protocol.records.consumer_offsets import offsets_partition

if TYPE_CHECKING:
    from rejoin.coordinator.core.cluster.descriptions import DescriptionRequests
    from rejoin.coordinator.core.cluster.feature_requests import FeatureRequests
    from rejoin.coordinator.core.cluster.metadata import MetadataRequests
    from rejoin.coordinator.core.cluster.quorum_requests import QuorumRequests
    from rejoin.coordinator.core.cluster.replica_requests import ReplicaRequests
    from rejoin.coordinator.core.cluster.requests import ClusterRequests
    from rejoin.coordinator.core.cluster.sasl import SaslRequests
    from rejoin.coordinator.core.groups.admin_requests import GroupAdminRequests
    from rejoin.coordinator.core.groups.consumer.descriptions import ConsumerGroupDescriptions
    from rejoin.coordinator.core.groups.share.descriptions import ShareGroupDescriptions
    from rejoin.coordinator.core.groups.share.requests import ShareGroupRequests
    from rejoin.coordinator.core.groups.streams.descriptions import StreamsGroupDescriptions
    from rejoin.coordinator.core.groups.streams.requests import StreamsGroupRequests
    from rejoin.coordinator.core.offsets.requests import OffsetRequests
    from rejoin.coordinator.core.partitions.delete_records import DeleteRecordsRequests
    from rejoin.coordinator.core.partitions.describe_producers import ProducerRequests
    from rejoin.coordinator.core.partitions.leader_epochs import LeaderEpochRequests
    from rejoin.coordinator.core.partitions.list_offsets import ListOffsetsRequests
    from rejoin.coordinator.core.partitions.produce.requests import ProduceRequests
    from rejoin.coordinator.core.partitions.producer_state import ProducerStateManager
    from rejoin.coordinator.core.quotas.requests import QuotaRequests
    from rejoin.coordinator.core.security.acl_requests import AclRequests
    from rejoin.coordinator.core.security.scram_requests import ScramRequests
    from rejoin.coordinator.core.security.token_requests import TokenRequests
    from rejoin.coordinator.core.share.share import Share
    from rejoin.coordinator.core.share_state.coordinator import ShareCoordinator
    from rejoin.coordinator.core.share_state.group_persister import GroupPersister
    from rejoin.coordinator.core.telemetry.config_resources import ConfigResourceRequests
    from rejoin.coordinator.core.telemetry.requests import TelemetryRequests
    from rejoin.coordinator.core.topics.config_requests import ConfigRequests
    from rejoin.coordinator.core.topics.placement import Placement
    from rejoin.coordinator.core.topics.requests import TopicRequests
    from rejoin.coordinator.core.transactions.apis.txn_produce import TxnProduce
    from rejoin.coordinator.core.transactions.coordinator import TransactionCoordinator
    from rejoin.coordinator.core.transactions.transactions import Transactions


@dataclass
class RequestHandlers:
    """The handlers of requests, and the state that they work on."""

    ctx: StepContext
    admission: Admission
    cluster_metadata: ClusterMetadata
    shards: GroupShards
    all_topics: Topics
    partitions: Partitions
    changes: TopicChanges
    leaders: Leaders
    logs: ReadableLogs
    groups: GroupRequests
    fetches: FetchRequests
    peers: PeerRequests
    rates: ClientRates

    @cached_property
    def offsets(self) -> OffsetRequests:
        from rejoin.coordinator.core.offsets.requests import OffsetRequests

        return OffsetRequests(self.ctx, self.shards, self.all_topics, self.admission)

    @cached_property
    def group_admin(self) -> GroupAdminRequests:
        from rejoin.coordinator.core.groups.admin_requests import GroupAdminRequests

        return GroupAdminRequests(self.ctx, self.shards, self.admission)

    @cached_property
    def consumer_descriptions(self) -> ConsumerGroupDescriptions:
        from rejoin.coordinator.core.groups.consumer.descriptions import ConsumerGroupDescriptions

        return ConsumerGroupDescriptions(self.ctx, self.shards, self.all_topics, self.admission)

    @cached_property
    def share_groups(self) -> ShareGroupRequests:
        from rejoin.coordinator.core.groups.share.requests import ShareGroupRequests

        return ShareGroupRequests(self.ctx, self.shards, self.all_topics, self.admission)

    @cached_property
    def share_descriptions(self) -> ShareGroupDescriptions:
        from rejoin.coordinator.core.groups.share.descriptions import ShareGroupDescriptions

        return ShareGroupDescriptions(self.ctx, self.shards, self.all_topics, self.admission)

    @cached_property
    def streams_groups(self) -> StreamsGroupRequests:
        from rejoin.coordinator.core.groups.streams.internal_topics import InternalTopics
        from rejoin.coordinator.core.groups.streams.requests import StreamsGroupRequests

        internal_topics = InternalTopics(self.ctx, self.topics)
        return StreamsGroupRequests(self.ctx, self.shards, self.admission, self.all_topics.may_be_used, internal_topics)

    @cached_property
    def streams_descriptions(self) -> StreamsGroupDescriptions:
        from rejoin.coordinator.core.groups.streams.descriptions import StreamsGroupDescriptions

        return StreamsGroupDescriptions(self.ctx, self.shards, self.all_topics, self.admission)

    # --- topics and the cluster

    @cached_property
    def topics(self) -> TopicRequests:
        from rejoin.coordinator.core.topics.requests import TopicRequests

        return TopicRequests(self.ctx, self.cluster_metadata, self.all_topics, self.changes, self.admission, self.rates)

    @cached_property
    def configs(self) -> ConfigRequests:
        from rejoin.coordinator.core.topics.config_requests import ConfigRequests

        return ConfigRequests(self.ctx, self.cluster_metadata, self.all_topics, self.changes, self.admission)

    @cached_property
    def cluster(self) -> ClusterRequests:
        from rejoin.coordinator.core.cluster.requests import ClusterRequests

        return ClusterRequests(
            self.ctx,
            self.shards,
            self.changes,
            self.admission,
            self._transaction_coordinator,
            self._share_coordinator,
        )

    @cached_property
    def features(self) -> FeatureRequests:
        from rejoin.coordinator.core.cluster.feature_requests import FeatureRequests

        return FeatureRequests(self.ctx, self.changes, self.admission)

    @cached_property
    def acls(self) -> AclRequests:
        from rejoin.coordinator.core.security.acl_requests import AclRequests

        return AclRequests(self.ctx, self.changes, self.admission)

    @cached_property
    def scram(self) -> ScramRequests:
        from rejoin.coordinator.core.security.scram_requests import ScramRequests

        return ScramRequests(self.ctx, self.changes, self.admission)

    @cached_property
    def tokens(self) -> TokenRequests:
        from rejoin.coordinator.core.security.token_requests import TokenRequests

        return TokenRequests(self.ctx, self.changes)

    @cached_property
    def quotas(self) -> QuotaRequests:
        from rejoin.coordinator.core.quotas.requests import QuotaRequests

        return QuotaRequests(self.ctx, self.changes, self.admission)

    @cached_property
    def sasl(self) -> SaslRequests:
        from rejoin.coordinator.core.cluster.sasl import SaslRequests

        return SaslRequests(self.ctx)

    @cached_property
    def metadata(self) -> MetadataRequests:
        from rejoin.coordinator.core.cluster.metadata import MetadataRequests

        return MetadataRequests(
            self.ctx, self.cluster_metadata, self.all_topics, self.leaders, self.topics, self.admission
        )

    @cached_property
    def descriptions(self) -> DescriptionRequests:
        from rejoin.coordinator.core.cluster.descriptions import DescriptionRequests

        return DescriptionRequests(
            self.ctx, self.cluster_metadata, self.all_topics, self.partitions, self.leaders, self.admission
        )

    @cached_property
    def replicas(self) -> ReplicaRequests:
        from rejoin.coordinator.core.cluster.replica_requests import ReplicaRequests

        return ReplicaRequests(
            self.ctx, self.cluster_metadata, self.all_topics, self.leaders, self.admission, self.peers
        )

    @cached_property
    def quorum(self) -> QuorumRequests:
        from rejoin.coordinator.core.cluster.quorum_requests import QuorumRequests

        return QuorumRequests(self.ctx, self.cluster_metadata, self.changes, self.admission, self.peers)

    # --- transactions

    @cached_property
    def transactions(self) -> Transactions:
        from rejoin.coordinator.core.transactions.transactions import Transactions

        return Transactions(
            self.ctx,
            self.admission,
            self.cluster_metadata,
            self.shards,
            self.all_topics,
            self.partitions,
            self.changes,
            self.peers,
            self.offsets,
            self._placement,
        )

    # --- share groups

    @cached_property
    def share(self) -> Share:
        from rejoin.coordinator.core.share.share import Share

        return Share(
            self.ctx,
            self.admission,
            self.cluster_metadata,
            self.shards,
            self.all_topics,
            self.partitions,
            self.changes,
            self.logs,
            self.peers,
            self.produces.produce,
            self._placement,
        )

    @property
    def share_if_used(self) -> Share | None:
        """The objects for share groups, or none where nothing has needed them yet."""
        return self.__dict__.get("share")

    # --- parts that others ask for later; a copy of a node has bound methods of its own, but shares lambdas

    def group_persister(self) -> GroupPersister:
        """The persister that groups use."""
        return self.share.group_persister

    def _share_coordinator(self) -> ShareCoordinator:
        return self.share.coordinator

    def _transaction_coordinator(self) -> TransactionCoordinator:
        return self.transactions.coordinator

    def _transactional_produce(self) -> TxnProduce:
        return self.transactions.produce

    def _placement(self) -> Placement:
        return self.topics.placement

    # --- connections

    def disconnected(self, connection: str) -> None:
        """A connection is gone."""
        if (share := self.share_if_used) is not None:
            share.requests.disconnected(connection)
        if (telemetry := self.__dict__.get("telemetry")) is not None:
            telemetry.instances.disconnected(connection)

    @cached_property
    def config_resources(self) -> ConfigResourceRequests:
        from rejoin.coordinator.core.telemetry.config_resources import ConfigResourceRequests

        return ConfigResourceRequests(self.ctx, self.cluster_metadata, self.all_topics, self.admission)

    @cached_property
    def telemetry(self) -> TelemetryRequests:
        from rejoin.coordinator.core.telemetry.requests import TelemetryRequests

        return TelemetryRequests(self.ctx, self.all_topics)

    # --- data partitions

    @cached_property
    def produces(self) -> ProduceRequests:
        from rejoin.coordinator.core.partitions.produce.requests import ProduceRequests

        return ProduceRequests(
            self.ctx,
            self.partitions,
            self.all_topics,
            self.admission,
            self._transactional_produce,
            self._offsets_producers,
            self.rates,
        )

    def _offsets_producers(self, partition: int) -> ProducerStateManager | None:
        shard = self.shards.by_partition.get(offsets_partition(partition))
        return None if shard is None else shard.machine.producers.state

    @cached_property
    def delete_records(self) -> DeleteRecordsRequests:
        from rejoin.coordinator.core.partitions.delete_records import DeleteRecordsRequests

        return DeleteRecordsRequests(self.ctx, self.partitions, self.all_topics, self.admission)

    def purgatory(self, timer: DelayedTimer) -> Purgatory:
        """Where requests wait that this timer ends."""
        return self.produces.purgatory if timer is DelayedTimer.PRODUCE_TIMEOUT else self.delete_records.purgatory

    @cached_property
    def producers(self) -> ProducerRequests:
        from rejoin.coordinator.core.partitions.describe_producers import ProducerRequests

        return ProducerRequests(self.ctx, self.cluster_metadata, self.partitions, self.admission, self.peers.ask)

    @cached_property
    def list_offsets(self) -> ListOffsetsRequests:
        from rejoin.coordinator.core.partitions.list_offsets import ListOffsetsRequests

        return ListOffsetsRequests(self.ctx, self.all_topics, self.logs, self.admission)

    @cached_property
    def leader_epochs(self) -> LeaderEpochRequests:
        from rejoin.coordinator.core.partitions.leader_epochs import LeaderEpochRequests

        return LeaderEpochRequests(self.ctx, self.logs, self.admission)
