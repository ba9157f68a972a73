"""ListConfigResources: everything that has settings, by name. Kafka: KafkaApis.handleListConfigResources."""

from __future__ import annotations

from rejoin.coordinator.core.inputs import Context, Token
from rejoin.coordinator.core.runtime.admission import Admission
from rejoin.coordinator.core.runtime.shards import ClusterMetadata
from rejoin.coordinator.core.security.resources import Resource
from rejoin.coordinator.core.step_context import StepContext
from rejoin.coordinator.core.topics.config_requests import ResourceType
from rejoin.coordinator.core.topics.topics import Topics
from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.messages.cluster.list_config_resources import (
    ConfigResourceName,
    ListConfigResourcesRequest,
    ListConfigResourcesResponse,
)


class ConfigResourceRequests:
    """Lists resources."""

    def __init__(self, ctx: StepContext, cluster: ClusterMetadata, topics: Topics, admission: Admission) -> None:
        self._ctx = ctx
        self._cluster = cluster
        self._topics = topics
        self._admission = admission

    def list_config_resources(self, token: Token, request: ListConfigResourcesRequest, context: Context) -> None:
        version = context.api_version
        # Kafka: ListConfigResourcesRequest.supportedResourceTypes.
        known = tuple(ResourceType) if version else (ResourceType.CLIENT_METRICS,)
        if not self._admission.allows(ListConfigResourcesRequest, context, Resource.CLUSTER):
            self._ctx.reply(token, request.error_response(version, ErrorCode.CLUSTER_AUTHORIZATION_FAILED))
            return
        wanted = request.resource_types or known
        if not all(each in known for each in wanted):
            self._ctx.reply(token, request.error_response(version, ErrorCode.UNSUPPORTED_VERSION))
            return
        found = tuple(
            ConfigResourceName(resource_name=name, resource_type=kind)
            for kind in known
            if kind in wanted
            for name in self._names(kind)
        )
        self._ctx.reply(token, ListConfigResourcesResponse(config_resources=found))

    def _names(self, kind: ResourceType) -> list[str]:
        match kind:
            case ResourceType.TOPIC:
                return self._topics.listed()
            case ResourceType.BROKER | ResourceType.BROKER_LOGGER:
                return [str(broker.node_id) for broker in self._cluster.brokers]
            case ResourceType.CLIENT_METRICS:
                return list(self._topics.client_metrics_configs)
            case ResourceType.GROUP:
                return list(self._topics.group_configs)
