"""Requests about settings: DescribeConfigs, AlterConfigs and IncrementalAlterConfigs.

Settings of topics, groups and subscriptions can be changed, and those of nodes that Kafka changes while they run.

Kafka: ConfigHelper, ConfigAdminManager, ConfigurationControlManager.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from enum import IntEnum
from typing import Final, Generic, TypeAlias, TypeVar

from rejoin.coordinator.core.cluster.loggers import BrokerLoggers
from rejoin.coordinator.core.inputs import Context, Token, TopicsRecords
from rejoin.coordinator.core.runtime.admission import Admission
from rejoin.coordinator.core.runtime.shards import ClusterMetadata
from rejoin.coordinator.core.security.resources import Resource
from rejoin.coordinator.core.step_context import StepContext
from rejoin.coordinator.core.telemetry.subscriptions import check_subscription, of_subscription
from rejoin.coordinator.core.topics.brokers.changes import BrokerChanges, Changes, definition_of
from rejoin.coordinator.core.topics.brokers.dynamic_configs import ALL_BROKERS
from rejoin.coordinator.core.topics.changes import TopicChange, TopicChanges
from rejoin.coordinator.core.topics.config_entries import (
    ConfigEntry,
    describable_configs,
    described,
)
from rejoin.coordinator.core.topics.configs import (
    OFFSETS_TOPIC_CONFIGS,
    RATE_CONFIG,
    TOPIC_CONFIGS,
    ConfigDef,
    ConfigError,
    ConfigType,
    check,
    config_records,
)
from rejoin.coordinator.core.topics.group_configs import check_group, group_definitions, of_group
from rejoin.coordinator.core.topics.names import TWICE, TopicError, check_name
from rejoin.coordinator.core.topics.node_configs import of_all_nodes, of_node
from rejoin.coordinator.core.topics.requests import NOT_STORED
from rejoin.coordinator.core.topics.topics import Topics
from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.message import Request
from rejoin.protocol.messages.cluster.alter_configs import (
    AlterConfigsRequest,
    AlterConfigsResource,
    AlterConfigsResourceResponse,
    AlterConfigsResponse,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResource,
    IncrementalAlterConfigsResponse,
    IncrementallyAlterableConfig,
)
from rejoin.protocol.messages.cluster.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
    DescribeConfigsResult,
)
from rejoin.protocol.records.consumer_offsets import OFFSETS_TOPIC
from rejoin.protocol.records.topics import (
    BROKER_RESOURCE,
    CLIENT_METRICS_RESOURCE,
    GROUP_RESOURCE,
    TOPIC_RESOURCE,
    AnyTopicsRecord,
    ConfigResource,
)

Entries: TypeAlias = tuple[ConfigEntry, ...]
AlteredResource: TypeAlias = AlterConfigsResource | IncrementalAlterConfigsResource
R = TypeVar("R", AlterConfigsResource, IncrementalAlterConfigsResource)


class ResourceType(IntEnum):
    """Kinds of resources with settings. Kafka: ConfigResource.Type."""

    TOPIC = TOPIC_RESOURCE
    BROKER = BROKER_RESOURCE
    BROKER_LOGGER = 8
    CLIENT_METRICS = CLIENT_METRICS_RESOURCE
    GROUP = GROUP_RESOURCE


class AlterOperation(IntEnum):
    """Operations of IncrementalAlterConfigs on a setting. Kafka: AlterConfigOp.OpType."""

    SET = 0
    DELETE = 1
    APPEND = 2
    SUBTRACT = 3


_DENIED: Final = {
    Resource.TOPIC: ErrorCode.TOPIC_AUTHORIZATION_FAILED,
    Resource.GROUP: ErrorCode.GROUP_AUTHORIZATION_FAILED,
    Resource.CLUSTER: ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
}
_KINDS: Final[dict[int, ConfigResource]] = {
    BROKER_RESOURCE: BROKER_RESOURCE,
    GROUP_RESOURCE: GROUP_RESOURCE,
    CLIENT_METRICS_RESOURCE: CLIENT_METRICS_RESOURCE,
}
_OPERATIONS: Final = frozenset(AlterOperation)
NO_SETTINGS: Final = "only topics (2), nodes (4), client metrics (16) and groups (32) have settings here"


_MOST_DIGITS: Final = 10
MOST_DESCRIBED: Final = 4_000
"""The resources of one DescribeConfigs: each is answered with dozens of settings, a node with hundreds."""
# Differs: Kafka bounds the bytes of a request alone.
TOO_MANY_RESOURCES: Final = f"a request may describe at most {MOST_DESCRIBED:,} resources; ask in several"


class _Descriptions:
    """The settings that one DescribeConfigs shows. It may name thousands of topics, or one often: each is made once."""

    def __init__(self, with_synonyms: bool) -> None:
        self._with_synonyms = with_synonyms
        self._entries: dict[tuple[int, str], Entries] = {}
        self._shown: dict[tuple[int, tuple[str, ...] | None], tuple[DescribeConfigsResourceResult, ...]] = {}

    def entries(self, resource: DescribeConfigsResource, find: Callable[[], Entries]) -> Entries:
        """The settings of a resource. Raises what ``find`` raises."""
        name = resource.resource_name
        if resource.resource_type == ResourceType.BROKER and (node_id := _node_id(name)) is not None:
            name = str(node_id)
        key = (resource.resource_type, name)
        found = self._entries.get(key)
        if found is None:
            found = self._entries[key] = find()
        return found

    def of(self, entries: Entries, wanted: tuple[str, ...] | None) -> tuple[DescribeConfigsResourceResult, ...]:
        """The requested entries among those from :meth:`entries`."""
        key = (id(entries), wanted)
        shown = self._shown.get(key)
        if shown is None:
            shown = self._shown[key] = describable_configs(entries, wanted, self._with_synonyms)
        return shown


class ConfigRequests:
    """Describes and changes settings."""

    def __init__(
        self,
        ctx: StepContext,
        cluster: ClusterMetadata,
        topics: Topics,
        changes: TopicChanges,
        admission: Admission,
    ) -> None:
        self.ctx = ctx
        self._cluster = cluster
        self.topics = topics
        self._changes = changes
        self._admission = admission
        self._group_definitions = group_definitions(ctx.settings)
        self._loggers = BrokerLoggers(ctx.settings.broker_id)
        self._brokers = BrokerChanges(topics.broker_configs)

    # --- describing

    def describe_configs(self, token: Token, request: DescribeConfigsRequest, context: Context) -> None:
        if len(request.resources) > MOST_DESCRIBED:
            refused = request.error_response(context.api_version, ErrorCode.POLICY_VIOLATION, TOO_MANY_RESOURCES)
            self.ctx.reply(token, refused)
            return
        descriptions = _Descriptions(request.include_synonyms)
        results = tuple(self._describe(resource, descriptions, context) for resource in request.resources)
        self.ctx.reply(token, DescribeConfigsResponse(results=results))

    def _describe(
        self, resource: DescribeConfigsResource, descriptions: _Descriptions, context: Context
    ) -> DescribeConfigsResult:
        try:
            entries = descriptions.entries(resource, lambda: self._entries(resource, context))
        except TopicError as problem:
            return DescribeConfigsResult(
                error_code=problem.error,
                error_message=problem.message,
                resource_type=resource.resource_type,
                resource_name=resource.resource_name,
            )
        return DescribeConfigsResult(
            resource_type=resource.resource_type,
            resource_name=resource.resource_name,
            configs=descriptions.of(entries, resource.configuration_keys),
        )

    def _entries(self, resource: DescribeConfigsResource, context: Context) -> Entries:
        name = resource.resource_name
        match resource.resource_type:
            case ResourceType.TOPIC:
                self._authorize(DescribeConfigsRequest, context, Resource.TOPIC, name)
                check_name(name)
                return self._entries_of_topic(name)
            case ResourceType.BROKER:
                self._authorize(DescribeConfigsRequest, context, Resource.CLUSTER)
                if name == ALL_BROKERS:
                    return of_all_nodes(self.topics.broker_configs)
                self.check_node(name)
                return of_node(self.topics.broker_configs, self._cluster.broker(self.ctx.settings.broker_id))
            case ResourceType.BROKER_LOGGER:
                self._authorize(DescribeConfigsRequest, context, Resource.CLUSTER)
                self.check_node(name)
                return self._loggers.entries()
            case ResourceType.CLIENT_METRICS:
                self._authorize(DescribeConfigsRequest, context, Resource.CLUSTER)
                _check_given(name, "subscription to client metrics")
                return of_subscription(self.topics.client_metrics_configs.get(name, {}))
            case ResourceType.GROUP:
                self._authorize(DescribeConfigsRequest, context, Resource.GROUP, name)
                _check_given(name, "group")
                return of_group(self.topics.broker_configs, self.topics.group_configs.get(name, {}))
        raise _unsupported(resource.resource_type)

    def _entries_of_topic(self, name: str) -> Entries:
        if name == OFFSETS_TOPIC:
            return described(OFFSETS_TOPIC_CONFIGS, None, self.topics.defaults)
        topic = self.topics.by_name.get(name)
        if topic is None:
            raise TopicError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "")
        return described(topic.configs, topic.records_per_second, self.topics.defaults)

    def check_node(self, name: str) -> None:
        """Raise :class:`TopicError` unless a resource's name is this node's id."""
        node_id = self.ctx.settings.broker_id
        if _node_id(name) != node_id:
            raise TopicError(ErrorCode.INVALID_REQUEST, f"node {name[:60]!r}: ask that node; this one is {node_id}")

    def _authorize(self, api: type[Request], context: Context, resource: Resource, name: str | None = None) -> None:
        names = () if name is None else (name,)
        if not self._admission.allows(api, context, resource, *names):
            raise TopicError(_DENIED[resource], f"{context.principal} may not do this with {name or 'the cluster'!r}")

    # --- changing

    def alter_configs(self, token: Token, request: AlterConfigsRequest, context: Context) -> None:
        def decide(resource: AlterConfigsResource) -> Changes:
            self.check_alterable(AlterConfigsRequest, resource, context)
            return self._replacement(resource)

        def respond(results: tuple[AlterConfigsResourceResponse, ...]) -> None:
            self.ctx.reply(token, AlterConfigsResponse(responses=results))

        self._changes.make(_ConfigChange(self, request.resources, request.validate_only, decide, respond))

    def incremental_alter_configs(
        self, token: Token, request: IncrementalAlterConfigsRequest, context: Context
    ) -> None:
        def decide(resource: IncrementalAlterConfigsResource) -> Changes:
            self.check_alterable(IncrementalAlterConfigsRequest, resource, context)
            if resource.resource_type == ResourceType.BROKER_LOGGER:
                only = request.validate_only
                self._loggers.alter(resource.resource_name, resource.configs, validate_only=only)
                return {}
            return self._alteration(resource)

        def respond(results: tuple[AlterConfigsResourceResponse, ...]) -> None:
            self.ctx.reply(token, IncrementalAlterConfigsResponse(responses=results))

        self._changes.make(_ConfigChange(self, request.resources, request.validate_only, decide, respond))

    def check_alterable(self, api: type[Request], resource: AlteredResource, context: Context) -> None:
        """Raise :class:`TopicError` for a resource without alterable settings."""
        name = resource.resource_name
        if len({config.name for config in resource.configs}) < len(resource.configs):
            raise TopicError(ErrorCode.INVALID_REQUEST, "a setting stands in the request more than once")
        missing = [config.name for config in resource.configs if config.value is None and not _is_deletion(config)]
        if missing:
            raise TopicError(ErrorCode.INVALID_REQUEST, f"no value for {', '.join(missing)[:200]}")
        match resource.resource_type:
            case ResourceType.TOPIC:
                self._authorize(api, context, Resource.TOPIC, name)
            case ResourceType.BROKER:
                self._authorize(api, context, Resource.CLUSTER)
                if name != ALL_BROKERS:
                    self.check_node(name)
            case ResourceType.CLIENT_METRICS:
                _check_given(name, "subscription to client metrics")
                self._authorize(api, context, Resource.CLUSTER)
            case ResourceType.GROUP:
                _check_given(name, "group")
                self._authorize(api, context, Resource.GROUP, name)
            case ResourceType.BROKER_LOGGER if api is IncrementalAlterConfigsRequest:
                self._authorize(api, context, Resource.CLUSTER)
            case _:
                raise _unsupported(resource.resource_type)

    def _replacement(self, resource: AlterConfigsResource) -> Changes:
        current = self._current(resource)
        given: Changes = {config.name: config.value for config in resource.configs}
        changes: Changes = {name: None for name in current if name not in given}
        return self._checked(resource, changes | given, replaces=True)

    def _alteration(self, resource: IncrementalAlterConfigsResource) -> Changes:
        # Only settings of topics and of brokers are lists, whose new value depends on the old one.
        current, of_broker = self._current(resource), resource.resource_type == ResourceType.BROKER
        if of_broker and not all(config.config_operation in _OPERATIONS for config in resource.configs):
            raise TopicError(ErrorCode.INVALID_REQUEST, "an operation is unknown; expected 0, 1, 2 or 3")
        find = definition_of if of_broker else TOPIC_CONFIGS.get
        changes = {
            config.name: _altered(config, current.get(config.name), find(config.name)) for config in resource.configs
        }
        return self._checked(resource, changes)

    def _current(self, resource: AlteredResource) -> Mapping[str, str]:
        name = resource.resource_name
        if resource.resource_type == ResourceType.GROUP:
            return self.topics.group_configs.get(name, {})
        if resource.resource_type == ResourceType.CLIENT_METRICS:
            return self.topics.client_metrics_configs.get(name, {})
        if resource.resource_type == ResourceType.BROKER:
            return self.topics.broker_configs.of(name)
        topic = self.topics.by_name.get(name)
        return {} if topic is None else topic.configs

    def _checked(self, resource: AlteredResource, changes: Changes, *, replaces: bool = False) -> Changes:
        """The changes that have an effect.

        Kafka: ControllerConfigurationValidator looks at names and values, ConfigurationControlManager whether there is
        such a topic, after what it looks for in each change.
        """
        if resource.resource_type == ResourceType.BROKER:
            checked = self._brokers.checked(resource.resource_name, changes, replaces=replaces)
            # Differs: Kafka keeps what a broker is given whose id is written in another way, as 01; it has no effect.
            return checked if resource.resource_name in {ALL_BROKERS, self.topics.broker_configs.own} else {}
        current = self._current(resource)
        wanted = {name: value for name, value in {**current, **changes}.items() if value is not None}
        if resource.resource_type == ResourceType.GROUP:
            check_group(wanted, self._group_definitions)
        elif resource.resource_type == ResourceType.CLIENT_METRICS:
            self._check_subscription(resource.resource_name, wanted)
        else:
            self._check_topic(resource.resource_name, wanted)
        return {name: value for name, value in changes.items() if current.get(name) != value}

    def _check_subscription(self, name: str, wanted: Mapping[str, str]) -> None:
        check_subscription(wanted)
        known, most = self.topics.client_metrics_configs, self.ctx.settings.emulator_max_client_metrics
        if wanted and name not in known and len(known) >= most:
            # Differs: Kafka has no such bound.
            raise TopicError(ErrorCode.POLICY_VIOLATION, f"there are {most:,} subscriptions; delete some first")

    def _check_topic(self, name: str, wanted: Mapping[str, str]) -> None:
        _check_given(name, "topic")
        check_name(name)
        if RATE_CONFIG in wanted:
            raise TopicError(ErrorCode.INVALID_CONFIG, f"{RATE_CONFIG} is what a topic is created with")
        check(wanted)
        if name not in self.topics.by_name:
            # Differs: the settings of __consumer_offsets cannot be changed.
            raise TopicError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"there is no topic {name!r}")


def _node_id(name: str) -> int | None:
    """The id of a node in decimal digits, as Java reads them; none for any other text."""
    digits = name.removeprefix("+")
    significant = digits.lstrip("0")
    return int(significant or "0") if digits.isdecimal() and len(significant) <= _MOST_DIGITS else None


def _check_given(name: str, of: str) -> None:
    if not name:
        raise TopicError(ErrorCode.INVALID_REQUEST, f"the name of the {of} is empty")


def _is_deletion(config: object) -> bool:
    return isinstance(config, IncrementallyAlterableConfig) and config.config_operation == AlterOperation.DELETE


def _altered(config: IncrementallyAlterableConfig, current: str | None, definition: ConfigDef | None) -> str | None:
    """The new value of a setting."""
    if config.config_operation not in _OPERATIONS:
        # Kafka: it fails itself here.
        message = f"{config.name[:200]}: operation {config.config_operation}; expected 0, 1, 2 or 3"
        raise TopicError(ErrorCode.UNKNOWN_SERVER_ERROR, message)
    if config.config_operation == AlterOperation.DELETE:
        return None
    if config.config_operation == AlterOperation.SET:
        return config.value
    if definition is None or definition.type is not ConfigType.LIST:
        raise ConfigError(f"{config.name[:200]} is not a list, to which one can add")
    parts = _parts(definition.default if current is None else current)
    for part in _split(config.value or ""):
        if config.config_operation == AlterOperation.APPEND and part not in parts:
            parts.append(part)
        elif config.config_operation == AlterOperation.SUBTRACT and part in parts:
            parts.remove(part)
    return ",".join(parts)


def _parts(text: str) -> list[str]:
    # Kafka: ConfigurationControlManager.getParts leaves blanks around a part as they are.
    return [part for part in text.split(",") if part]


def _split(text: str) -> list[str]:
    """The parts to add or to take away, as Java's ``String.split`` gives them: empty ones count but at the end."""
    parts = text.split(",")
    while text and parts and not parts[-1]:
        parts.pop()
    return parts


def _unsupported(resource_type: int) -> TopicError:
    return TopicError(ErrorCode.INVALID_REQUEST, f"resource type {resource_type}: {NO_SETTINGS}")


class _ConfigChange(TopicChange, Generic[R]):
    """Settings that a request wants changed; it is answered when all of it is stored."""

    def __init__(
        self,
        made_by: ConfigRequests,
        resources: tuple[R, ...],
        validate_only: bool,
        decide: Callable[[R], Changes],
        respond: Callable[[tuple[AlterConfigsResourceResponse, ...]], None],
    ) -> None:
        self._requests = made_by
        self._resources: tuple[R, ...] = resources
        self._validate_only = validate_only
        self._decide: Callable[[R], Changes] = decide
        self._respond = respond
        self._results: list[AlterConfigsResourceResponse] = []

    def decide(self) -> TopicsRecords:
        times = Counter((resource.resource_type, resource.resource_name) for resource in self._resources)
        records: list[AnyTopicsRecord] = []
        self._results = []
        for resource in self._resources:
            error, message = ErrorCode.NONE, None
            try:
                if times[resource.resource_type, resource.resource_name] > 1:
                    raise TopicError(ErrorCode.INVALID_REQUEST, TWICE)
                changes = self._decide(resource)
                kind = _KINDS.get(resource.resource_type, TOPIC_RESOURCE)
                records += config_records(resource.resource_name, changes, kind)
            except TopicError as problem:
                error, message = problem.error, problem.message
            except ConfigError as problem:
                error, message = ErrorCode.INVALID_CONFIG, str(problem)
            self._results.append(_result(resource, error, message))
        return () if self._validate_only else tuple(records)

    def ended(self, error: ErrorCode) -> None:
        results = self._results
        if error is not ErrorCode.NONE:
            failed = {"error_code": error, "error_message": NOT_STORED}
            results = [
                each.model_copy(update=failed) if each.error_code is ErrorCode.NONE else each for each in results
            ]
        self._respond(tuple(results))


def _result(resource: AlteredResource, error: ErrorCode, message: str | None) -> AlterConfigsResourceResponse:
    return AlterConfigsResourceResponse(
        error_code=error,
        error_message=message,
        resource_type=resource.resource_type,
        resource_name=resource.resource_name,
    )
