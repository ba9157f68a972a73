"""Admission: what must hold before a request reaches a shard, as one rule for each API (``core/apis.py`` has them).

The checks come in Kafka's order: the operation is allowed, the coordinator has started, the request is valid, its key
is led here, and the shard is loaded. Requests about several groups or topics are checked for each of them.

Kafka: KafkaApis, GroupCoordinatorService.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from rejoin.coordinator.config import Settings
from rejoin.coordinator.core.inputs import Broker, Context
from rejoin.coordinator.core.runtime.shard import M, ShardState
from rejoin.coordinator.core.runtime.shards import ClusterMetadata, Shards
from rejoin.coordinator.core.security.resources import CLUSTER_NAME, Operation, Resource
from rejoin.coordinator.core.step_context import StepContext
from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.message import Request

UNAUTHORIZED: Final = {
    Resource.CLUSTER: ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
    Resource.GROUP: ErrorCode.GROUP_AUTHORIZATION_FAILED,
    Resource.TOPIC: ErrorCode.TOPIC_AUTHORIZATION_FAILED,
    Resource.TRANSACTIONAL_ID: ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
}
"""The error for a resource on which the operation is denied."""

BEFORE_TOPICS: Final = (ErrorCode.UNSUPPORTED_VERSION, ErrorCode.GROUP_AUTHORIZATION_FAILED)
"""Errors that refuse a heartbeat of a consumer or share group before its topics are looked at."""

_NONE: Final = ErrorCode.NONE
_LOADING: Final = ShardState.LOADING

Check: TypeAlias = Callable[[Any, Context, Settings], ErrorCode]


def _loading(_: Request, __: Context, ___: Settings) -> ErrorCode:
    return ErrorCode.COORDINATOR_LOAD_IN_PROGRESS


@dataclass(frozen=True, slots=True)
class Rule:
    """Rule by which requests of one API are admitted.

    The first four are the operations that must be allowed on each group, topic, transactional id or the cluster that a
    request is about. ``malformed`` is checked before all else, together with the ``feature`` that must have a level.
    ``needs_key``: the key must not be empty.
    """

    group: Operation | None = None
    topic: Operation | None = None
    transactional_id: Operation | None = None
    cluster: Operation | None = None
    malformed: Check | None = None
    feature: str | None = None
    needs_key: bool = False
    valid: Check | None = None
    while_loading: Check = _loading

    def operation(self, resource: Resource) -> Operation | None:
        """The operation that must be allowed on a resource of this kind."""
        match resource:
            case Resource.GROUP:
                return self.group
            case Resource.TOPIC:
                return self.topic
            case Resource.TRANSACTIONAL_ID:
                return self.transactional_id
            case Resource.CLUSTER:
                return self.cluster
        raise AssertionError(f"no rule of an API names an operation on a {resource}")


class Admission:
    """Applies the rules: to a whole request, or to one of the groups or topics that it is about."""

    def __init__(self, rules: Mapping[type[Request], Rule], ctx: StepContext, cluster: ClusterMetadata) -> None:
        self._rules = rules
        self._settings = ctx.settings
        self._features = ctx.features
        self._cluster = cluster
        self._authorizer = ctx.security.authorizer
        self.allows_everything = self._authorizer.allows_everything

    def admit(self, shards: Shards[M], request: Request, context: Context, key: str) -> M | ErrorCode:
        """The state machine to ask about a group, or why none can be asked."""
        rule = self._rules[type(request)]
        if rule.malformed is not None:
            error = rule.malformed(request, context, self._settings)
            if error is not _NONE:
                return error
        if rule.feature is not None and not self._features.level(rule.feature):
            return ErrorCode.UNSUPPORTED_VERSION
        if not self.allows_everything:
            assert rule.group is not None, f"{type(request).__name__} asks for nothing on a group"
            if not self._authorizer.allows(context, rule.group, Resource.GROUP, key):
                return ErrorCode.GROUP_AUTHORIZATION_FAILED
        return self._route(rule, shards, request, context, key)

    def route(self, shards: Shards[M], request: Request, context: Context, key: str) -> M | ErrorCode:
        """As ``admit``, for a request that is known to be allowed."""
        return self._route(self._rules[type(request)], shards, request, context, key)

    def _route(self, rule: Rule, shards: Shards[M], request: Request, context: Context, key: str) -> M | ErrorCode:
        if not self._cluster.brokers:
            return ErrorCode.COORDINATOR_NOT_AVAILABLE
        if rule.needs_key and not key:
            return ErrorCode.INVALID_GROUP_ID
        if rule.valid is not None:
            error = rule.valid(request, context, self._settings)
            if error is not _NONE:
                return error
        shard = shards.shard_of(key)
        if shard is None:
            return ErrorCode.NOT_COORDINATOR
        if shard.state is _LOADING:
            return rule.while_loading(request, context, self._settings)
        return shard.machine

    def admit_to_all(self, shards: Shards[M], request: Request, context: Context) -> list[M] | ErrorCode:
        """Every state machine of this node, or why they cannot be asked: one that still loads holds up all."""
        if not self._cluster.is_known:
            return ErrorCode.COORDINATOR_NOT_AVAILABLE
        if shards.is_loading:
            return self._rules[type(request)].while_loading(request, context, self._settings)
        return shards.active()

    def locate(
        self, shards: Shards[Any], request: Request, context: Context, resource: Resource, key: str
    ) -> Broker | ErrorCode:
        """The node that leads the partition of a key, or why there is none to name."""
        error = self.authorize(request, context, resource, key)
        if error is not ErrorCode.NONE:
            return error
        return self._cluster.leader_of(shards.partition_of(key)) or ErrorCode.COORDINATOR_NOT_AVAILABLE

    def authorize(self, request: Request, context: Context, resource: Resource, name: str) -> ErrorCode:
        """NONE, or the error of a resource on which this API's operation is denied."""
        if self._authorizer.allows_everything:
            return ErrorCode.NONE
        return ErrorCode.NONE if self.allows(type(request), context, resource, name) else UNAUTHORIZED[resource]

    def authorize_topics(self, request: Request, context: Context, names: Iterable[str]) -> ErrorCode:
        """NONE, or the error of the first of these topics on which this API's operation is denied."""
        for name in names:
            error = self.authorize(request, context, Resource.TOPIC, name)
            if error is not ErrorCode.NONE:
                return error
        return ErrorCode.NONE

    def allows(self, api: type[Request], context: Context, resource: Resource, name: str = CLUSTER_NAME) -> bool:
        """Whether this API's operation on a resource is allowed."""
        if self._authorizer.allows_everything:
            return True
        operation = self._rules[api].operation(resource)
        assert operation is not None, f"{api.__name__} asks for nothing on a {resource}"
        return self._authorizer.allows(context, operation, resource, name)

    def allows_some(self, operation: Operation, context: Context, resource: Resource) -> bool:
        """Whether an operation is allowed on at least one resource of a kind."""
        return self._authorizer.allows_some(context, operation, resource)

    def allows_operation(
        self, operation: Operation, context: Context, resource: Resource, name: str = CLUSTER_NAME
    ) -> bool:
        """Whether an operation is allowed that is not the one of this API's rule."""
        return self._authorizer.allows(context, operation, resource, name)

    @property
    def has_acls(self) -> bool:
        """Whether ACLs are enforced. Where there are only denials of the settings, one of them is enough to refuse."""
        return self._authorizer.has_acls

    def cluster_operations(self, context: Context) -> int:
        """Operations that the client may do on the cluster; none are shown to a client that may not describe it."""
        if not self.allows_operation(Operation.DESCRIBE, context, Resource.CLUSTER):
            return 0
        return self.authorized_operations(context, Resource.CLUSTER)

    def authorized_operations(self, context: Context, resource: Resource, name: str = CLUSTER_NAME) -> int:
        """Operations that the client may do on a resource, as Kafka's bit field."""
        return self._authorizer.authorized_operations(context, resource, name)
