"""The coordinator's side of the table of APIs: one entry each, with its handler and its rule of admission."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from rejoin.coordinator.config import Settings
from rejoin.coordinator.core.cluster.features import GROUP_VERSION, SHARE_VERSION, STREAMS_VERSION
from rejoin.coordinator.core.groups.consumer.admission import check_consumer_heartbeat, consumer_protocol_is_off
from rejoin.coordinator.core.groups.share.admission import check_share_heartbeat
from rejoin.coordinator.core.groups.streams.admission import check_streams_heartbeat, streams_protocol_is_off
from rejoin.coordinator.core.inputs import Context, Token
from rejoin.coordinator.core.request_handlers import RequestHandlers
from rejoin.coordinator.core.runtime.admission import Rule
from rejoin.coordinator.core.security.resources import Operation
from rejoin.protocol import registry as api
from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.message import Request

if TYPE_CHECKING:
    from rejoin.protocol.messages.groups.heartbeat import HeartbeatRequest
    from rejoin.protocol.messages.groups.join_group import JoinGroupRequest
    from rejoin.protocol.messages.groups.sync_group import SyncGroupRequest
    from rejoin.protocol.messages.transactions.txn_offset_commit import TxnOffsetCommitRequest

Handler: TypeAlias = Callable[[Token, Any, Context], None]

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
    """Handler and rule of admission of one API; the handler is one of the node's own."""

    handler: Callable[[RequestHandlers], Handler]
    rule: Rule


_READ, _WRITE, _DESCRIBE, _DELETE = Operation.READ, Operation.WRITE, Operation.DESCRIBE, Operation.DELETE

_BY_BROKERS: Final = Rule(cluster=Operation.CLUSTER_ACTION)
"""Requests between brokers, which administrators may send, too."""

_CHANGES_CLUSTER: Final = Rule(cluster=Operation.ALTER)

SERVED: Final[dict[api.Api, ServedApi]] = {
    api.HEARTBEAT: ServedApi(
        lambda of: of.groups.heartbeat, Rule(group=_READ, needs_key=True, while_loading=_heartbeat_while_loading)
    ),
    api.JOIN_GROUP: ServedApi(
        lambda of: of.groups.join, Rule(group=_READ, needs_key=True, valid=_session_timeout_in_bounds)
    ),
    api.SYNC_GROUP: ServedApi(
        lambda of: of.groups.sync,
        Rule(group=_READ, malformed=_names_protocol, needs_key=True, while_loading=_sync_while_loading),
    ),
    api.LEAVE_GROUP: ServedApi(lambda of: of.groups.leave, Rule(group=_READ, needs_key=True)),
    api.LIST_GROUPS: ServedApi(lambda of: of.group_admin.list_groups, Rule(group=_DESCRIBE, cluster=_DESCRIBE)),
    api.DESCRIBE_GROUPS: ServedApi(lambda of: of.group_admin.describe_groups, Rule(group=_DESCRIBE)),
    api.DELETE_GROUPS: ServedApi(lambda of: of.group_admin.delete_groups, Rule(group=_DELETE)),
    api.OFFSET_COMMIT: ServedApi(lambda of: of.offsets.commit, Rule(group=_READ, topic=_READ)),
    api.TXN_OFFSET_COMMIT: ServedApi(
        lambda of: of.transactions.offset_commits.commit,
        Rule(
            transactional_id=_WRITE, group=_READ, topic=_READ, needs_key=True, while_loading=_txn_commit_while_loading
        ),
    ),
    api.CONSUMER_GROUP_HEARTBEAT: ServedApi(
        lambda of: of.groups.consumer_heartbeat,
        Rule(
            group=_READ,
            topic=_DESCRIBE,
            malformed=consumer_protocol_is_off,
            feature=GROUP_VERSION,
            valid=check_consumer_heartbeat,
        ),
    ),
    api.CONSUMER_GROUP_DESCRIBE: ServedApi(
        lambda of: of.consumer_descriptions.describe,
        Rule(
            group=_DESCRIBE,
            topic=_DESCRIBE,
            malformed=consumer_protocol_is_off,
            feature=GROUP_VERSION,
            needs_key=True,
        ),
    ),
    api.SHARE_GROUP_HEARTBEAT: ServedApi(
        lambda of: of.share_groups.heartbeat,
        Rule(group=_READ, topic=_DESCRIBE, feature=SHARE_VERSION, valid=check_share_heartbeat),
    ),
    api.SHARE_GROUP_DESCRIBE: ServedApi(
        lambda of: of.share_descriptions.describe,
        Rule(group=_DESCRIBE, topic=_DESCRIBE, feature=SHARE_VERSION, needs_key=True),
    ),
    api.ALTER_SHARE_GROUP_OFFSETS: ServedApi(
        lambda of: of.share_groups.alter_offsets,
        Rule(group=_READ, topic=_READ, feature=SHARE_VERSION, needs_key=True),
    ),
    api.DELETE_SHARE_GROUP_OFFSETS: ServedApi(
        lambda of: of.share_groups.delete_offsets,
        Rule(group=_DELETE, topic=_READ, feature=SHARE_VERSION, needs_key=True),
    ),
    api.STREAMS_GROUP_HEARTBEAT: ServedApi(
        lambda of: of.streams_groups.heartbeat,
        Rule(
            group=_READ,
            topic=_DESCRIBE,
            malformed=streams_protocol_is_off,
            feature=STREAMS_VERSION,
            valid=check_streams_heartbeat,
        ),
    ),
    api.STREAMS_GROUP_DESCRIBE: ServedApi(
        lambda of: of.streams_descriptions.describe,
        Rule(
            group=_DESCRIBE,
            topic=_DESCRIBE,
            malformed=streams_protocol_is_off,
            feature=STREAMS_VERSION,
            needs_key=True,
        ),
    ),
    api.STREAMS_GROUP_TOPOLOGY_DESCRIPTION_UPDATE: ServedApi(
        lambda of: of.streams_groups.update_description,
        Rule(group=_READ, malformed=streams_protocol_is_off, feature=STREAMS_VERSION),
    ),
    api.OFFSET_FETCH: ServedApi(lambda of: of.offsets.fetch, Rule(group=_DESCRIBE, topic=_DESCRIBE)),
    api.OFFSET_DELETE: ServedApi(lambda of: of.offsets.delete, Rule(group=_DELETE, topic=_READ, needs_key=True)),
    api.WRITE_TXN_MARKERS: ServedApi(
        lambda of: of.transactions.marker_requests.write_markers, Rule(cluster=Operation.CLUSTER_ACTION)
    ),
    api.FIND_COORDINATOR: ServedApi(
        lambda of: of.cluster.find_coordinator,
        Rule(group=_DESCRIBE, transactional_id=_DESCRIBE, cluster=Operation.CLUSTER_ACTION),
    ),
    api.SASL_HANDSHAKE: ServedApi(lambda of: of.sasl.handshake, Rule()),
    api.SASL_AUTHENTICATE: ServedApi(lambda of: of.sasl.authenticate, Rule()),
    api.API_VERSIONS: ServedApi(lambda of: of.cluster.api_versions, Rule()),
    api.METADATA: ServedApi(lambda of: of.metadata.metadata, Rule(topic=_DESCRIBE)),
    api.CREATE_TOPICS: ServedApi(
        lambda of: of.topics.create_topics, Rule(cluster=Operation.CREATE, topic=Operation.CREATE)
    ),
    api.CREATE_PARTITIONS: ServedApi(lambda of: of.topics.create_partitions, Rule(topic=Operation.ALTER)),
    api.DESCRIBE_CLUSTER: ServedApi(lambda of: of.descriptions.describe_cluster, Rule(cluster=_DESCRIBE)),
    api.UPDATE_FEATURES: ServedApi(lambda of: of.features.update_features, Rule(cluster=Operation.ALTER)),
    api.DESCRIBE_TOPIC_PARTITIONS: ServedApi(
        lambda of: of.descriptions.describe_topic_partitions, Rule(topic=_DESCRIBE)
    ),
    api.DESCRIBE_LOG_DIRS: ServedApi(lambda of: of.descriptions.describe_log_dirs, Rule(cluster=_DESCRIBE)),
    api.DESCRIBE_CONFIGS: ServedApi(
        lambda of: of.configs.describe_configs,
        Rule(topic=Operation.DESCRIBE_CONFIGS, group=Operation.DESCRIBE_CONFIGS, cluster=Operation.DESCRIBE_CONFIGS),
    ),
    api.ALTER_CONFIGS: ServedApi(
        lambda of: of.configs.alter_configs,
        Rule(topic=Operation.ALTER_CONFIGS, group=Operation.ALTER_CONFIGS, cluster=Operation.ALTER_CONFIGS),
    ),
    api.INCREMENTAL_ALTER_CONFIGS: ServedApi(
        lambda of: of.configs.incremental_alter_configs,
        Rule(topic=Operation.ALTER_CONFIGS, group=Operation.ALTER_CONFIGS, cluster=Operation.ALTER_CONFIGS),
    ),
    api.ELECT_LEADERS: ServedApi(lambda of: of.replicas.decide, _CHANGES_CLUSTER),
    api.ALTER_PARTITION_REASSIGNMENTS: ServedApi(lambda of: of.replicas.decide, _CHANGES_CLUSTER),
    api.LIST_PARTITION_REASSIGNMENTS: ServedApi(lambda of: of.replicas.decide, Rule(cluster=_DESCRIBE)),
    api.ALTER_REPLICA_LOG_DIRS: ServedApi(lambda of: of.replicas.alter_replica_log_dirs, _CHANGES_CLUSTER),
    api.DESCRIBE_QUORUM: ServedApi(lambda of: of.quorum.describe_quorum, Rule(cluster=_DESCRIBE)),
    api.UNREGISTER_BROKER: ServedApi(lambda of: of.quorum.unregister_broker, _CHANGES_CLUSTER),
    api.UNREGISTER_CONTROLLER: ServedApi(lambda of: of.quorum.unregister_controller, _CHANGES_CLUSTER),
    api.ADD_RAFT_VOTER: ServedApi(lambda of: of.quorum.add_raft_voter, _CHANGES_CLUSTER),
    api.REMOVE_RAFT_VOTER: ServedApi(lambda of: of.quorum.remove_raft_voter, _CHANGES_CLUSTER),
    api.DESCRIBE_ACLS: ServedApi(lambda of: of.acls.describe_acls, Rule(cluster=_DESCRIBE)),
    api.CREATE_ACLS: ServedApi(lambda of: of.acls.create_acls, Rule(cluster=Operation.ALTER)),
    api.DELETE_ACLS: ServedApi(lambda of: of.acls.delete_acls, Rule(cluster=Operation.ALTER)),
    api.DESCRIBE_USER_SCRAM_CREDENTIALS: ServedApi(lambda of: of.scram.describe_credentials, Rule(cluster=_DESCRIBE)),
    api.ALTER_USER_SCRAM_CREDENTIALS: ServedApi(lambda of: of.scram.alter_credentials, Rule(cluster=Operation.ALTER)),
    api.CREATE_DELEGATION_TOKEN: ServedApi(lambda of: of.tokens.create, Rule()),
    api.RENEW_DELEGATION_TOKEN: ServedApi(lambda of: of.tokens.renew, Rule()),
    api.EXPIRE_DELEGATION_TOKEN: ServedApi(lambda of: of.tokens.expire, Rule()),
    api.DESCRIBE_DELEGATION_TOKEN: ServedApi(lambda of: of.tokens.describe, Rule()),
    api.DESCRIBE_CLIENT_QUOTAS: ServedApi(lambda of: of.quotas.describe, Rule(cluster=Operation.DESCRIBE_CONFIGS)),
    api.ALTER_CLIENT_QUOTAS: ServedApi(lambda of: of.quotas.alter, Rule(cluster=Operation.ALTER_CONFIGS)),
    api.LIST_CONFIG_RESOURCES: ServedApi(
        lambda of: of.config_resources.list_config_resources, Rule(cluster=Operation.DESCRIBE_CONFIGS)
    ),
    api.GET_TELEMETRY_SUBSCRIPTIONS: ServedApi(lambda of: of.telemetry.get_subscriptions, Rule()),
    api.PUSH_TELEMETRY: ServedApi(lambda of: of.telemetry.push, Rule()),
    api.DELETE_TOPICS: ServedApi(lambda of: of.topics.delete_topics, Rule(topic=_DELETE)),
    api.FETCH: ServedApi(lambda of: of.fetches.fetch, Rule(topic=_READ)),
    api.PRODUCE: ServedApi(lambda of: of.produces.produce, Rule(topic=_WRITE, transactional_id=_WRITE)),
    api.DELETE_RECORDS: ServedApi(lambda of: of.delete_records.delete_records, Rule(topic=_DELETE)),
    api.OFFSET_FOR_LEADER_EPOCH: ServedApi(
        lambda of: of.leader_epochs.offset_for_leader_epoch,
        Rule(topic=_DESCRIBE, cluster=Operation.CLUSTER_ACTION),
    ),
    api.DESCRIBE_PRODUCERS: ServedApi(lambda of: of.producers.describe_producers, Rule(topic=_READ)),
    api.INIT_PRODUCER_ID: ServedApi(
        lambda of: of.transactions.initialisation.init_producer_id,
        Rule(cluster=Operation.IDEMPOTENT_WRITE, transactional_id=_WRITE),
    ),
    api.ADD_PARTITIONS_TO_TXN: ServedApi(
        lambda of: of.transactions.requests.add_partitions,
        Rule(transactional_id=_WRITE, topic=_WRITE, cluster=Operation.CLUSTER_ACTION),
    ),
    api.ADD_OFFSETS_TO_TXN: ServedApi(
        lambda of: of.transactions.requests.add_offsets, Rule(transactional_id=_WRITE, group=_READ)
    ),
    api.END_TXN: ServedApi(lambda of: of.transactions.requests.end_txn, Rule(transactional_id=_WRITE)),
    api.DESCRIBE_TRANSACTIONS: ServedApi(
        lambda of: of.transactions.descriptions.describe_transactions, Rule(transactional_id=_DESCRIBE, topic=_DESCRIBE)
    ),
    api.LIST_TRANSACTIONS: ServedApi(
        lambda of: of.transactions.descriptions.list_transactions, Rule(transactional_id=_DESCRIBE)
    ),
    api.SHARE_FETCH: ServedApi(lambda of: of.share.requests.fetch, Rule(group=_READ, topic=_READ)),
    api.SHARE_ACKNOWLEDGE: ServedApi(lambda of: of.share.requests.acknowledge, Rule(group=_READ, topic=_READ)),
    api.DESCRIBE_SHARE_GROUP_OFFSETS: ServedApi(
        lambda of: of.share.offsets.describe, Rule(group=_DESCRIBE, topic=_DESCRIBE, feature=SHARE_VERSION)
    ),
    api.INITIALIZE_SHARE_GROUP_STATE: ServedApi(lambda of: of.share.state_requests.handle, _BY_BROKERS),
    api.READ_SHARE_GROUP_STATE: ServedApi(lambda of: of.share.state_requests.handle, _BY_BROKERS),
    api.WRITE_SHARE_GROUP_STATE: ServedApi(lambda of: of.share.state_requests.handle, _BY_BROKERS),
    api.DELETE_SHARE_GROUP_STATE: ServedApi(lambda of: of.share.state_requests.handle, _BY_BROKERS),
    api.READ_SHARE_GROUP_STATE_SUMMARY: ServedApi(lambda of: of.share.state_requests.handle, _BY_BROKERS),
    api.LIST_OFFSETS: ServedApi(lambda of: of.list_offsets.list_offsets, Rule(topic=_DESCRIBE)),
}
"""Every API that a node serves."""


class RulesByRequest(dict[type[Request], Rule]):
    """The rule of admission of each request; an entry is made when it is first looked up."""

    def __missing__(self, request: type[Request]) -> Rule:
        rule = self[request] = SERVED[api.BY_REQUEST[request]].rule
        return rule


class HandlersByRequest(dict[type[Request], Handler]):
    """The handler of each request in one node; an entry is made with the first request of its kind."""

    def __init__(self, of: RequestHandlers) -> None:
        super().__init__()
        self._of = of

    def __missing__(self, request: type[Request]) -> Handler:
        handler = self[request] = SERVED[api.BY_REQUEST[request]].handler(self._of)
        return handler
