"""Metadata: the nodes, the topics and who leads their partitions. Kafka: KafkaApis.handleTopicMetadataRequest."""

from __future__ import annotations

from typing import Final

from rejoin.coordinator.core.cluster.leaders import NO_NODE, Leaders
from rejoin.coordinator.core.inputs import Broker, Context, Token
from rejoin.coordinator.core.runtime.admission import Admission
from rejoin.coordinator.core.runtime.shards import CLUSTER_ID, ClusterMetadata
from rejoin.coordinator.core.security.resources import Resource
from rejoin.coordinator.core.step_context import StepContext
from rejoin.coordinator.core.topics.requests import TopicRequests
from rejoin.coordinator.core.topics.table import INTERNAL_TOPICS
from rejoin.coordinator.core.topics.topics import Topics
from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.message import Request
from rejoin.protocol.messages.cluster.metadata import (
    MetadataRequest,
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from rejoin.protocol.records.consumer_offsets import OFFSETS_TOPIC
from rejoin.protocol.types import ZERO_UUID

FIRST_WITH_EMPTY_MEANING_NONE: Final = 1
FIRST_BY_ID: Final = 12
NOT_ASKED: Final = -(2**31)


class MetadataRequests:
    """Answers Metadata, and makes topics that are asked for."""

    def __init__(
        self,
        ctx: StepContext,
        cluster: ClusterMetadata,
        topics: Topics,
        leaders: Leaders,
        topic_requests: TopicRequests,
        admission: Admission,
    ) -> None:
        self._ctx = ctx
        self._cluster = cluster
        self._topics = topics
        self._leaders = leaders
        self._topic_requests = topic_requests
        self._admission = admission

    def metadata(self, token: Token, request: MetadataRequest, context: Context) -> None:
        brokers = self._cluster.brokers
        everything = request.topics is None or (
            context.api_version < FIRST_WITH_EMPTY_MEANING_NONE and not request.topics
        )
        if context.api_version < FIRST_BY_ID and any(
            topic.name is None or topic.topic_id != ZERO_UUID for topic in request.topics or ()
        ):
            # Kafka: versions 10 and 11 have ids, which must not be asked for. The whole request is refused.
            self._ctx.reply(token, request.error_response(context.api_version, ErrorCode.INVALID_REQUEST))
            return
        with_operations = request.include_topic_authorized_operations
        if everything:
            # Kafka: topics that one may not see are left out here; asked for by name they are an error.
            topics = [
                self._show(name, context, with_operations)
                for name in self._topics.listed()
                if self._allows(MetadataRequest, context, name)
            ]
        else:
            creates = request.allow_auto_topic_creation and self._ctx.settings.auto_create_topics_enable
            created: list[str] | None = [] if creates else None
            asked = request.topics or ()
            ids = dict.fromkeys(topic.topic_id for topic in asked if topic.topic_id != ZERO_UUID)
            # Kafka: with one id, names are not looked at. The Java client sends empty ones beside ids.
            topics = [self._find_by_id(topic_id, context, with_operations) for topic_id in ids] or [
                self._find_by_name(name, context, created, with_operations)
                for name in dict.fromkeys(topic.name for topic in asked)
            ]
            self._topic_requests.create_automatically(created or ())
        operations = NOT_ASKED
        if request.include_cluster_authorized_operations:
            operations = self._admission.cluster_operations(context)
        self._ctx.reply(
            token,
            MetadataResponse(
                brokers=tuple(_show_broker(broker, context) for broker in brokers),
                cluster_id=CLUSTER_ID,
                controller_id=min((broker.node_id for broker in brokers), default=NO_NODE),
                topics=tuple(topics),
                cluster_authorized_operations=operations,
            ),
        )

    def _find_by_id(self, topic_id: str, context: Context, with_operations: bool) -> MetadataResponseTopic:
        name = self._topics.named(topic_id)
        if name is None:
            return MetadataResponseTopic(name=None, topic_id=topic_id, error_code=ErrorCode.UNKNOWN_TOPIC_ID)
        if not self._allows(MetadataRequest, context, name):
            error = ErrorCode.TOPIC_AUTHORIZATION_FAILED
            return MetadataResponseTopic(name=None, topic_id=topic_id, error_code=error)
        return self._show(name, context, with_operations)

    def _find_by_name(
        self, name: str | None, context: Context, created: list[str] | None, with_operations: bool
    ) -> MetadataResponseTopic:
        """One topic. A name that no topic has is added to those that are ``created``, if any are."""
        if name is None:
            return MetadataResponseTopic(name=None, error_code=ErrorCode.UNKNOWN_TOPIC_ID)
        if not self._allows(MetadataRequest, context, name):
            return MetadataResponseTopic(name=name, error_code=ErrorCode.TOPIC_AUTHORIZATION_FAILED)
        if name in self._topics:
            if name == OFFSETS_TOPIC and created is not None:
                self._topic_requests.use_offsets_topic()
            return self._show(name, context, with_operations)
        # Kafka: a name that no topic may have is said to be that, even if none would be made.
        error = self._topics.check_automatic(name)
        if error is ErrorCode.NONE:
            error = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            if created is not None:
                if not self._topic_requests.may_create(name, context):
                    return MetadataResponseTopic(name=name, error_code=ErrorCode.TOPIC_AUTHORIZATION_FAILED)
                created.append(name)
                error = self._topic_requests.error_of_created
        operations = self._operations(name, context, with_operations)
        return MetadataResponseTopic(name=name, error_code=error, topic_authorized_operations=operations)

    def _operations(self, name: str, context: Context, is_asked: bool) -> int:
        """Operations that the client may do on a topic, whether it exists or not."""
        return self._admission.authorized_operations(context, Resource.TOPIC, name) if is_asked else NOT_ASKED

    def _show(self, name: str, context: Context, with_operations: bool) -> MetadataResponseTopic:
        operations = self._operations(name, context, with_operations)
        partitions = tuple(
            MetadataResponsePartition(
                error_code=leader.error,
                partition_index=index,
                leader_id=leader.node_id,
                leader_epoch=leader.leader_epoch,
                replica_nodes=leader.replicas,
                isr_nodes=leader.isr,
                offline_replicas=leader.offline_replicas,
            )
            for index, leader in enumerate(self._leaders.of(name))
        )
        return MetadataResponseTopic(
            name=name,
            topic_id=self._topics.id_of(name),
            is_internal=name in INTERNAL_TOPICS,
            partitions=partitions,
            topic_authorized_operations=operations,
        )

    def _allows(self, api: type[Request], context: Context, topic: str) -> bool:
        return self._admission.allows(api, context, Resource.TOPIC, topic)


def _show_broker(broker: Broker, context: Context) -> MetadataResponseBroker:
    _, host, port = broker.endpoint(context)
    return MetadataResponseBroker(node_id=broker.node_id, host=host, port=port, rack=broker.rack)
