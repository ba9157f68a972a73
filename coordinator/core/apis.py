"""The coordinator's side of the table of APIs: one entry each, with its handler and its rule of admission."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from rejoin.coordinator.config import Settings
from rejoin.coordinator.core.cluster.descriptions import DescriptionRequests
from rejoin.coordinator.core.cluster.metadata import MetadataRequests
from rejoin.coordinator.core.cluster.requests import ClusterRequests
from rejoin.coordinator.core.fetch.requests import FetchRequests
from rejoin.coordinator.core.groups.requests import GroupRequests
from rejoin.coordinator.core.inputs import Context, Token
from rejoin.coordinator.core.offsets.requests import OffsetRequests
from rejoin.coordinator.core.partitions.delete_records import DeleteRecordsRequests
from rejoin.coordinator.core.partitions.leader_epochs import LeaderEpochRequests
from rejoin.coordinator.core.partitions.list_offsets import ListOffsetsRequests
from rejoin.coordinator.core.partitions.produce import ProduceRequests
from rejoin.coordinator.core.partitions.producer_ids import ProducerIdRequests
from rejoin.coordinator.core.partitions.producers import ProducerRequests
from rejoin.coordinator.core.runtime.admission import Admission, Rule
from rejoin.coordinator.core.runtime.authorizer import Operation
from rejoin.coordinator.core.step_context import StepContext
from rejoin.coordinator.core.topics.config_requests import ConfigRequests
from rejoin.coordinator.core.topics.requests import TopicRequests
from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.message import Request
from rejoin.protocol.messages.cluster.alter_configs import AlterConfigsRequest, IncrementalAlterConfigsRequest
from rejoin.protocol.messages.cluster.api_versions import ApiVersionsRequest
from rejoin.protocol.messages.cluster.describe_cluster import DescribeClusterRequest
from rejoin.protocol.messages.cluster.describe_configs import DescribeConfigsRequest
from rejoin.protocol.messages.cluster.describe_log_dirs import DescribeLogDirsRequest
from rejoin.protocol.messages.cluster.find_coordinator import FindCoordinatorRequest
from rejoin.protocol.messages.cluster.metadata import MetadataRequest
from rejoin.protocol.messages.groups.delete_groups import DeleteGroupsRequest
from rejoin.protocol.messages.groups.describe_groups import DescribeGroupsRequest
from rejoin.protocol.messages.groups.heartbeat import HeartbeatRequest
from rejoin.protocol.messages.groups.join_group import JoinGroupRequest
from rejoin.protocol.messages.groups.leave_group import LeaveGroupRequest
from rejoin.protocol.messages.groups.list_groups import ListGroupsRequest
from rejoin.protocol.messages.groups.sync_group import SyncGroupRequest
from rejoin.protocol.messages.offsets.offset_commit import OffsetCommitRequest
from rejoin.protocol.messages.offsets.offset_delete import OffsetDeleteRequest
from rejoin.protocol.messages.offsets.offset_fetch import OffsetFetchRequest
from rejoin.protocol.messages.records.delete_records import DeleteRecordsRequest
from rejoin.protocol.messages.records.describe_producers import DescribeProducersRequest
from rejoin.protocol.messages.records.fetch import FetchRequest
from rejoin.protocol.messages.records.list_offsets import ListOffsetsRequest
from rejoin.protocol.messages.records.offset_for_leader_epoch import OffsetForLeaderEpochRequest
from rejoin.protocol.messages.records.produce import ProduceRequest
from rejoin.protocol.messages.topics.create_partitions import CreatePartitionsRequest
from rejoin.protocol.messages.topics.create_topics import CreateTopicsRequest
from rejoin.protocol.messages.topics.delete_topics import DeleteTopicsRequest
from rejoin.protocol.messages.topics.describe_topic_partitions import DescribeTopicPartitionsRequest
from rejoin.protocol.messages.transactions.init_producer_id import InitProducerIdRequest
from rejoin.protocol.messages.transactions.txn_offset_commit import TxnOffsetCommitRequest
from rejoin.protocol.messages.transactions.write_txn_markers import WriteTxnMarkersRequest

Handler: TypeAlias = Callable[[Token, Any, Context], None]


@dataclass(frozen=True, slots=True)
class DataRequests:
    """The objects of one node that handle requests about data partitions."""

    produces: ProduceRequests
    producer_ids: ProducerIdRequests
    producers: ProducerRequests
    list_offsets: ListOffsetsRequests
    leader_epochs: LeaderEpochRequests
    delete_records: DeleteRecordsRequests


@dataclass(frozen=True, slots=True)
class AdminRequests:
    """The objects of one node that handle requests about the cluster and about settings."""

    cluster: ClusterRequests
    metadata: MetadataRequests
    descriptions: DescriptionRequests
    configs: ConfigRequests


@dataclass(frozen=True, slots=True)
class RequestHandlers:
    """The objects of one node that handle requests."""

    ctx: StepContext
    admission: Admission
    groups: GroupRequests
    offsets: OffsetRequests
    topics: TopicRequests
    admin: AdminRequests
    fetches: FetchRequests
    data: DataRequests


FIRST_TXN_COMMIT_WITH_LOADING: Final = 2
FIRST_SYNC_WITH_PROTOCOL: Final = 5


def _names_protocol(request: SyncGroupRequest, context: Context, _: Settings) -> ErrorCode:
    """Kafka: KafkaApis.handleSyncGroupRequest looks at this before anything else."""
    if context.api_version >= FIRST_SYNC_WITH_PROTOCOL and None in (request.protocol_type, request.protocol_name):
        return ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    return ErrorCode.NONE


def _session_timeout_in_bounds(request: JoinGroupRequest, _: Context, settings: Settings) -> ErrorCode:
    shortest, longest = settings.group_min_session_timeout_ms, settings.group_max_session_timeout_ms
    return ErrorCode.NONE if shortest <= request.session_timeout_ms <= longest else ErrorCode.INVALID_SESSION_TIMEOUT


def _heartbeat_while_loading(_: HeartbeatRequest, __: Context, ___: Settings) -> ErrorCode:
    # Kafka: while a shard loads, heartbeats are fine without a look at the group, so that no member panics.
    return ErrorCode.NONE


def _sync_while_loading(_: SyncGroupRequest, __: Context, settings: Settings) -> ErrorCode:
    # Differs: Kafka 4 sends COORDINATOR_LOAD_IN_PROGRESS, which its own consumer takes for fatal; 3.x sent this.
    if settings.emulator_sync_while_loading == "rebalance-in-progress":
        return ErrorCode.REBALANCE_IN_PROGRESS
    return ErrorCode.COORDINATOR_LOAD_IN_PROGRESS


def _txn_commit_while_loading(_: TxnOffsetCommitRequest, context: Context, __: Settings) -> ErrorCode:
    # Kafka: KafkaApis.handleTxnOffsetCommitRequest. Producers of that time crash on the true error.
    if context.api_version < FIRST_TXN_COMMIT_WITH_LOADING:
        return ErrorCode.COORDINATOR_NOT_AVAILABLE
    return ErrorCode.COORDINATOR_LOAD_IN_PROGRESS


@dataclass(frozen=True, slots=True)
class ServedApi:
    """How a node serves the requests of one API: the handler, taken from the node's own, and the rule of admission."""

    handler: Callable[[RequestHandlers], Handler]
    rule: Rule


_READ, _WRITE, _DESCRIBE, _DELETE = Operation.READ, Operation.WRITE, Operation.DESCRIBE, Operation.DELETE

SERVED: Final[dict[type[Request], ServedApi]] = {
    HeartbeatRequest: ServedApi(
        lambda of: of.groups.heartbeat, Rule(group=_READ, needs_key=True, while_loading=_heartbeat_while_loading)
    ),
    JoinGroupRequest: ServedApi(
        lambda of: of.groups.join, Rule(group=_READ, needs_key=True, valid=_session_timeout_in_bounds)
    ),
    SyncGroupRequest: ServedApi(
        lambda of: of.groups.sync,
        Rule(group=_READ, malformed=_names_protocol, needs_key=True, while_loading=_sync_while_loading),
    ),
    LeaveGroupRequest: ServedApi(lambda of: of.groups.leave, Rule(group=_READ, needs_key=True)),
    ListGroupsRequest: ServedApi(lambda of: of.groups.list_groups, Rule(group=_DESCRIBE, cluster=_DESCRIBE)),
    DescribeGroupsRequest: ServedApi(lambda of: of.groups.describe_groups, Rule(group=_DESCRIBE)),
    DeleteGroupsRequest: ServedApi(lambda of: of.groups.delete_groups, Rule(group=_DELETE)),
    OffsetCommitRequest: ServedApi(lambda of: of.offsets.commit, Rule(group=_READ, topic=_READ)),
    TxnOffsetCommitRequest: ServedApi(
        lambda of: of.offsets.txn_commit,
        Rule(
            transactional_id=_WRITE, group=_READ, topic=_READ, needs_key=True, while_loading=_txn_commit_while_loading
        ),
    ),
    OffsetFetchRequest: ServedApi(lambda of: of.offsets.fetch, Rule(group=_DESCRIBE, topic=_DESCRIBE)),
    OffsetDeleteRequest: ServedApi(lambda of: of.offsets.delete, Rule(group=_DELETE, topic=_READ, needs_key=True)),
    WriteTxnMarkersRequest: ServedApi(lambda of: of.offsets.write_markers, Rule(cluster=Operation.CLUSTER_ACTION)),
    FindCoordinatorRequest: ServedApi(
        lambda of: of.admin.cluster.find_coordinator, Rule(group=_DESCRIBE, transactional_id=_DESCRIBE)
    ),
    ApiVersionsRequest: ServedApi(lambda of: of.admin.cluster.api_versions, Rule()),
    MetadataRequest: ServedApi(lambda of: of.admin.metadata.metadata, Rule(topic=_DESCRIBE)),
    CreateTopicsRequest: ServedApi(
        lambda of: of.topics.create_topics, Rule(cluster=Operation.CREATE, topic=Operation.CREATE)
    ),
    CreatePartitionsRequest: ServedApi(lambda of: of.topics.create_partitions, Rule(topic=Operation.ALTER)),
    DescribeClusterRequest: ServedApi(lambda of: of.admin.descriptions.describe_cluster, Rule(cluster=_DESCRIBE)),
    DescribeTopicPartitionsRequest: ServedApi(
        lambda of: of.admin.descriptions.describe_topic_partitions, Rule(topic=_DESCRIBE)
    ),
    DescribeLogDirsRequest: ServedApi(lambda of: of.admin.descriptions.describe_log_dirs, Rule(cluster=_DESCRIBE)),
    DescribeConfigsRequest: ServedApi(
        lambda of: of.admin.configs.describe_configs,
        Rule(topic=Operation.DESCRIBE_CONFIGS, cluster=Operation.DESCRIBE_CONFIGS),
    ),
    AlterConfigsRequest: ServedApi(
        lambda of: of.admin.configs.alter_configs, Rule(topic=Operation.ALTER_CONFIGS, cluster=Operation.ALTER_CONFIGS)
    ),
    IncrementalAlterConfigsRequest: ServedApi(
        lambda of: of.admin.configs.incremental_alter_configs,
        Rule(topic=Operation.ALTER_CONFIGS, cluster=Operation.ALTER_CONFIGS),
    ),
    DeleteTopicsRequest: ServedApi(lambda of: of.topics.delete_topics, Rule(topic=_DELETE)),
    FetchRequest: ServedApi(lambda of: of.fetches.fetch, Rule(topic=_READ)),
    ProduceRequest: ServedApi(lambda of: of.data.produces.produce, Rule(topic=_WRITE, transactional_id=_WRITE)),
    DeleteRecordsRequest: ServedApi(lambda of: of.data.delete_records.delete_records, Rule(topic=_DELETE)),
    OffsetForLeaderEpochRequest: ServedApi(
        lambda of: of.data.leader_epochs.offset_for_leader_epoch, Rule(topic=_DESCRIBE)
    ),
    DescribeProducersRequest: ServedApi(lambda of: of.data.producers.describe_producers, Rule(topic=_READ)),
    InitProducerIdRequest: ServedApi(
        lambda of: of.data.producer_ids.init_producer_id,
        Rule(cluster=Operation.IDEMPOTENT_WRITE, transactional_id=_WRITE),
    ),
    ListOffsetsRequest: ServedApi(lambda of: of.data.list_offsets.list_offsets, Rule(topic=_DESCRIBE)),
}
"""Every API that a node serves."""
