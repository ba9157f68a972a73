"""Admission: what must hold before a request reaches a shard, as one table.

The checks come in Kafka's order: the operation is allowed, the coordinator has started, the request is valid, its key
is led here, and the shard is loaded. Requests about several groups or topics are checked for each of them.

Kafka: KafkaApis, GroupCoordinatorService.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from rejoin.coordinator.config import Settings
from rejoin.coordinator.core.inputs import Context
from rejoin.coordinator.core.runtime.authorizer import CLUSTER_NAME, Authorizer, Operation, Resource
from rejoin.coordinator.core.runtime.shard import M, ShardState
from rejoin.coordinator.core.runtime.shards import ClusterMetadata, Shards
from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.message import Request
from rejoin.protocol.messages.cluster.api_versions import ApiVersionsRequest
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
from rejoin.protocol.messages.records.list_offsets import ListOffsetsRequest
from rejoin.protocol.messages.topics.create_partitions import CreatePartitionsRequest
from rejoin.protocol.messages.topics.create_topics import CreateTopicsRequest
from rejoin.protocol.messages.topics.delete_topics import DeleteTopicsRequest
from rejoin.protocol.messages.transactions.txn_offset_commit import TxnOffsetCommitRequest
from rejoin.protocol.messages.transactions.write_txn_markers import WriteTxnMarkersRequest

FIRST_TXN_COMMIT_WITH_LOADING: Final = 2
FIRST_SYNC_WITH_PROTOCOL: Final = 5

UNAUTHORIZED: Final = {
    Resource.CLUSTER: ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
    Resource.GROUP: ErrorCode.GROUP_AUTHORIZATION_FAILED,
    Resource.TOPIC: ErrorCode.TOPIC_AUTHORIZATION_FAILED,
    Resource.TRANSACTIONAL_ID: ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
}
"""The error for a resource on which the operation is denied."""

Check: TypeAlias = Callable[[Any, Context, Settings], ErrorCode]


def _names_protocol(request: SyncGroupRequest, context: Context, _: Settings) -> ErrorCode:
    """Kafka: KafkaApis.handleSyncGroupRequest looks at this before anything else."""
    if context.api_version >= FIRST_SYNC_WITH_PROTOCOL and None in (request.protocol_type, request.protocol_name):
        return ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    return ErrorCode.NONE


def _session_timeout_in_bounds(request: JoinGroupRequest, _: Context, settings: Settings) -> ErrorCode:
    shortest, longest = settings.group_min_session_timeout_ms, settings.group_max_session_timeout_ms
    return ErrorCode.NONE if shortest <= request.session_timeout_ms <= longest else ErrorCode.INVALID_SESSION_TIMEOUT


def _loading(_: Request, __: Context, ___: Settings) -> ErrorCode:
    return ErrorCode.COORDINATOR_LOAD_IN_PROGRESS


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
class Rule:
    """How the requests of one API are admitted.

    The first four are the operations that must be allowed on each group, topic, transactional id or the cluster that a
    request is about. ``malformed`` is checked before all else. ``needs_key``: the key must not be empty.
    """

    group: Operation | None = None
    topic: Operation | None = None
    transactional_id: Operation | None = None
    cluster: Operation | None = None
    malformed: Check | None = None
    needs_key: bool = False
    valid: Check | None = None
    while_loading: Check = _loading

    def operation(self, resource: Resource) -> Operation | None:
        """What must be allowed on a resource of this kind."""
        match resource:
            case Resource.GROUP:
                return self.group
            case Resource.TOPIC:
                return self.topic
            case Resource.TRANSACTIONAL_ID:
                return self.transactional_id
            case Resource.CLUSTER:
                return self.cluster


_READ, _WRITE, _DESCRIBE, _DELETE = Operation.READ, Operation.WRITE, Operation.DESCRIBE, Operation.DELETE

RULES: Final[dict[type[Request], Rule]] = {
    JoinGroupRequest: Rule(group=_READ, needs_key=True, valid=_session_timeout_in_bounds),
    SyncGroupRequest: Rule(group=_READ, malformed=_names_protocol, needs_key=True, while_loading=_sync_while_loading),
    HeartbeatRequest: Rule(group=_READ, needs_key=True, while_loading=_heartbeat_while_loading),
    LeaveGroupRequest: Rule(group=_READ, needs_key=True),
    DescribeGroupsRequest: Rule(group=_DESCRIBE),
    DeleteGroupsRequest: Rule(group=_DELETE),
    ListGroupsRequest: Rule(group=_DESCRIBE, cluster=_DESCRIBE),
    OffsetCommitRequest: Rule(group=_READ, topic=_READ),
    TxnOffsetCommitRequest: Rule(
        transactional_id=_WRITE, group=_READ, topic=_READ, needs_key=True, while_loading=_txn_commit_while_loading
    ),
    OffsetFetchRequest: Rule(group=_DESCRIBE, topic=_DESCRIBE),
    OffsetDeleteRequest: Rule(group=_DELETE, topic=_READ, needs_key=True),
    WriteTxnMarkersRequest: Rule(cluster=Operation.CLUSTER_ACTION),
    FindCoordinatorRequest: Rule(group=_DESCRIBE, transactional_id=_DESCRIBE),
    ApiVersionsRequest: Rule(),
    MetadataRequest: Rule(topic=_DESCRIBE),
    ListOffsetsRequest: Rule(topic=_DESCRIBE),
    CreateTopicsRequest: Rule(cluster=Operation.CREATE, topic=Operation.CREATE),
    CreatePartitionsRequest: Rule(topic=Operation.ALTER),
    DeleteTopicsRequest: Rule(topic=_DELETE),
}
"""One rule for each API."""


class Admission:
    """Applies the rules: to a whole request, or to one of the groups or topics that it is about."""

    def __init__(self, settings: Settings, cluster: ClusterMetadata, authorizer: Authorizer) -> None:
        self._settings = settings
        self._cluster = cluster
        self._authorizer = authorizer

    def admit(self, shards: Shards[M], request: Request, context: Context, key: str) -> M | ErrorCode:
        """The state machine to ask about a group, or why none can be asked."""
        rule = RULES[type(request)]
        if rule.malformed is not None:
            error = rule.malformed(request, context, self._settings)
            if error is not ErrorCode.NONE:
                return error
        if not self._authorizer.allows_everything:
            error = self.authorize(request, context, Resource.GROUP, key)
            if error is not ErrorCode.NONE:
                return error
        return self._route(rule, shards, request, context, key)

    def route(self, shards: Shards[M], request: Request, context: Context, key: str) -> M | ErrorCode:
        """The same for a request that is known to be allowed."""
        return self._route(RULES[type(request)], shards, request, context, key)

    def _route(self, rule: Rule, shards: Shards[M], request: Request, context: Context, key: str) -> M | ErrorCode:
        if not self._cluster.brokers:
            return ErrorCode.COORDINATOR_NOT_AVAILABLE
        if rule.needs_key and not key:
            return ErrorCode.INVALID_GROUP_ID
        if rule.valid is not None:
            error = rule.valid(request, context, self._settings)
            if error is not ErrorCode.NONE:
                return error
        shard = shards.shard_of(key)
        if shard is None:
            return ErrorCode.NOT_COORDINATOR
        if shard.state is ShardState.LOADING:
            return rule.while_loading(request, context, self._settings)
        return shard.machine

    def authorize(self, request: Request, context: Context, resource: Resource, name: str) -> ErrorCode:
        """NONE, or the error of a resource on which this API's operation is denied."""
        return ErrorCode.NONE if self.allows(type(request), context, resource, name) else UNAUTHORIZED[resource]

    def allows(self, api: type[Request], context: Context, resource: Resource, name: str = CLUSTER_NAME) -> bool:
        """Whether this API's operation on a resource is allowed."""
        operation = RULES[api].operation(resource)
        assert operation is not None, f"{api.__name__} asks for nothing on a {resource}"
        return self._authorizer.allows(context.principal, operation, resource, name)

    def authorized_operations(self, context: Context, resource: Resource, name: str = CLUSTER_NAME) -> int:
        """What the client may do on a resource, as Kafka's bit field."""
        return self._authorizer.authorized_operations(context.principal, resource, name)
