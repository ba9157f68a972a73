"""Requests about the cluster: who coordinates what, which requests are understood, which topics there are.

Kafka: KafkaApis.
"""

from __future__ import annotations

import re
from typing import Final

from rejoin.coordinator.core.groups.group_shards import GroupShards
from rejoin.coordinator.core.inputs import Broker, Context, Token
from rejoin.coordinator.core.runtime.admission import Admission
from rejoin.coordinator.core.runtime.authorizer import Resource
from rejoin.coordinator.core.runtime.shards import ClusterMetadata
from rejoin.coordinator.core.step_context import StepContext
from rejoin.coordinator.core.topics.requests import TopicRequests
from rejoin.coordinator.core.topics.topics import Topic, Topics
from rejoin.protocol.brokers.offer import ADVERTISED_FROM, offered
from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.message import Request
from rejoin.protocol.messages.cluster.api_versions import ApiVersion, ApiVersionsRequest, ApiVersionsResponse
from rejoin.protocol.messages.cluster.find_coordinator import (
    Coordinator,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
    no_coordinator,
)
from rejoin.protocol.messages.cluster.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from rejoin.protocol.messages.topics.create_topics import CreateTopicsRequest
from rejoin.protocol.records.consumer_offsets import OFFSETS_TOPIC, OFFSETS_TOPIC_ID, offsets_partition
from rejoin.protocol.unvalidated import unvalidated

KEY_TYPES: Final = {0: Resource.GROUP, 1: Resource.TRANSACTIONAL_ID}
FIRST_BATCHED_LOOKUP: Final = 4
FIRST_METADATA_WITH_EMPTY_MEANING_NONE: Final = 1
CLUSTER_ID: Final = "rejoin-emulated-kafka0"
FIRST_API_VERSIONS_WITH_SOFTWARE: Final = 3
NO_NODE: Final = -1
LEADER_EPOCH: Final = 0
NOT_ASKED: Final = -(2**31)

_SOFTWARE: Final = re.compile(r"[a-zA-Z0-9](?:[a-zA-Z0-9\-.]*[a-zA-Z0-9])?")
"""Kafka: ApiVersionsRequest.isValid."""


class ClusterRequests:
    """Answers requests that are not about one group."""

    def __init__(
        self,
        ctx: StepContext,
        cluster: ClusterMetadata,
        shards: GroupShards,
        topics: Topics,
        topic_requests: TopicRequests,
        admission: Admission,
    ) -> None:
        self._ctx = ctx
        self._cluster = cluster
        self._shards = shards
        self._topics = topics
        self._topic_requests = topic_requests
        self._admission = admission

    # --- coordinators

    def find_coordinator(self, token: Token, request: FindCoordinatorRequest, context: Context) -> None:
        if context.api_version >= FIRST_BATCHED_LOOKUP:
            found = tuple(self._find(key, request, context) for key in request.coordinator_keys)
            self._ctx.reply(token, FindCoordinatorResponse(coordinators=found))
            return
        one = self._find(request.key, request, context)
        self._ctx.reply(
            token,
            FindCoordinatorResponse(
                error_code=one.error_code,
                error_message=one.error_code.name,
                node_id=one.node_id,
                host=one.host,
                port=one.port,
            ),
        )

    def _find(self, key: str, request: FindCoordinatorRequest, context: Context) -> Coordinator:
        """The coordinator of one key. The key itself may be anything, even empty."""
        resource = KEY_TYPES.get(request.key_type)
        if resource is None:
            # Differs: there is no share coordinator here, so key type 2 is unknown in v6 as well.
            # Kafka: the one error that has a text in v4 and later as well.
            refused = no_coordinator(key, ErrorCode.INVALID_REQUEST)
            return refused.model_copy(update={"error_message": refused.error_code.name})
        broker = self._admission.locate(self._shards, request, context, resource, key)
        if isinstance(broker, ErrorCode):
            return no_coordinator(key, broker)
        endpoint = broker.endpoint(context.listener)
        return unvalidated(
            Coordinator,
            key=key,
            node_id=broker.node_id,
            host=endpoint.host,
            port=endpoint.port,
            error_code=ErrorCode.NONE,
            error_message="",
        )

    def api_versions(self, token: Token, request: ApiVersionsRequest, context: Context) -> None:
        if context.api_version >= FIRST_API_VERSIONS_WITH_SOFTWARE and not (
            _SOFTWARE.fullmatch(request.client_software_name) and _SOFTWARE.fullmatch(request.client_software_version)
        ):
            self._ctx.reply(token, request.error_response(context.api_version, ErrorCode.INVALID_REQUEST))
            return
        versions = offered(self._ctx.settings.emulator_as_kafka)
        keys = tuple(
            ApiVersion(api_key=key, min_version=ADVERTISED_FROM.get(key, first), max_version=last)
            for key, (first, last) in versions.items()
        )
        self._ctx.reply(token, ApiVersionsResponse(api_keys=keys))

    # --- metadata

    def metadata(self, token: Token, request: MetadataRequest, context: Context) -> None:
        brokers = self._cluster.brokers
        everything = request.topics is None or (
            context.api_version < FIRST_METADATA_WITH_EMPTY_MEANING_NONE and not request.topics
        )
        with_operations = request.include_topic_authorized_operations
        if everything:
            # Kafka: topics that one may not see are left out here; asked for by name they are an error.
            topics = [
                self._show(topic, context, with_operations)
                for name, topic in sorted(self._topics.by_name.items())
                if self._allows(MetadataRequest, context, name)
            ]
        else:
            creates = request.allow_auto_topic_creation and self._ctx.settings.auto_create_topics_enable
            topics = [self._find_topic(wanted, context, creates, with_operations) for wanted in request.topics or ()]
        operations = NOT_ASKED
        if request.include_cluster_authorized_operations:
            operations = self._admission.authorized_operations(context, Resource.CLUSTER)
        self._ctx.reply(
            token,
            MetadataResponse(
                brokers=tuple(_show_broker(broker, context.listener) for broker in brokers),
                cluster_id=CLUSTER_ID,
                controller_id=min((broker.node_id for broker in brokers), default=NO_NODE),
                topics=tuple(topics),
                cluster_authorized_operations=operations,
            ),
        )

    def _find_topic(
        self, wanted: MetadataRequestTopic, context: Context, creates: bool, with_operations: bool
    ) -> MetadataResponseTopic:
        name = wanted.name
        if name is None:
            name = self._topics.named(wanted.topic_id)
            if name is None or not self._allows(MetadataRequest, context, name):
                return MetadataResponseTopic(name=None, topic_id=wanted.topic_id, error_code=ErrorCode.UNKNOWN_TOPIC_ID)
        if not self._allows(MetadataRequest, context, name):
            return MetadataResponseTopic(name=name, error_code=ErrorCode.TOPIC_AUTHORIZATION_FAILED)
        topic = self._topics.by_name.get(name)
        if topic is not None:
            return self._show(topic, context, with_operations)
        if name == OFFSETS_TOPIC:
            return self._show_offsets_topic(context, with_operations)
        if creates and self._allows(CreateTopicsRequest, context, name):
            error = self._topic_requests.create_automatically(name)
        else:
            error = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        return MetadataResponseTopic(name=name, error_code=error)

    def _show(self, topic: Topic, context: Context, with_operations: bool) -> MetadataResponseTopic:
        nodes = [broker.node_id for broker in self._cluster.brokers]
        operations = NOT_ASKED
        if with_operations:
            operations = self._admission.authorized_operations(context, Resource.TOPIC, topic.name)
        partitions = []
        for index in range(len(topic.partitions)):
            leader = nodes[index % len(nodes)] if nodes else NO_NODE
            replicas = (leader,) if nodes else ()
            partitions.append(
                MetadataResponsePartition(
                    error_code=ErrorCode.NONE if nodes else ErrorCode.LEADER_NOT_AVAILABLE,
                    partition_index=index,
                    leader_id=leader,
                    leader_epoch=LEADER_EPOCH,
                    replica_nodes=replicas,
                    isr_nodes=replicas,
                )
            )
        return MetadataResponseTopic(
            name=topic.name,
            topic_id=topic.topic_id,
            partitions=tuple(partitions),
            topic_authorized_operations=operations,
        )

    def _show_offsets_topic(self, context: Context, with_operations: bool) -> MetadataResponseTopic:
        """``__consumer_offsets``, for those who read it. Differs: lists of all topics do not have it."""
        operations = NOT_ASKED
        if with_operations:
            operations = self._admission.authorized_operations(context, Resource.TOPIC, OFFSETS_TOPIC)
        partitions = []
        for index in range(self._topics.partition_count(OFFSETS_TOPIC)):
            partition = offsets_partition(index)
            leader = self._cluster.leader_of(partition)
            shard = self._shards.by_partition.get(partition)
            replicas = () if leader is None else (leader.node_id,)
            partitions.append(
                MetadataResponsePartition(
                    error_code=ErrorCode.LEADER_NOT_AVAILABLE if leader is None else ErrorCode.NONE,
                    partition_index=index,
                    leader_id=NO_NODE if leader is None else leader.node_id,
                    leader_epoch=-1 if shard is None else shard.epoch,
                    replica_nodes=replicas,
                    isr_nodes=replicas,
                )
            )
        return MetadataResponseTopic(
            name=OFFSETS_TOPIC,
            topic_id=OFFSETS_TOPIC_ID,
            is_internal=True,
            partitions=tuple(partitions),
            topic_authorized_operations=operations,
        )

    def _allows(self, api: type[Request], context: Context, topic: str) -> bool:
        return self._admission.allows(api, context, Resource.TOPIC, topic)


def _show_broker(broker: Broker, listener: str) -> MetadataResponseBroker:
    _, host, port = broker.endpoint(listener)
    return MetadataResponseBroker(node_id=broker.node_id, host=host, port=port, rack=broker.rack)
