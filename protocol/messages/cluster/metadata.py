"""Metadata (key 3): the nodes, the topics and their partitions. v4 adds automatic topic creation, v10 topic ids.

v13 adds an error for the whole answer (KIP-1102). Nothing here answers one.
"""

from typing import Annotated

from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.message import Request, Response, Struct
from rejoin.protocol.types import ZERO_UUID, BrokerId, In, Int32, KafkaUuid, TopicId, TopicName


class MetadataRequestTopic(Struct):
    """A topic, by name or by id."""

    topic_id: Annotated[TopicId, In(10, needed=True)] = ZERO_UUID
    name: Annotated[TopicName | None, In(0, nullable=10)]


class MetadataRequest(Request):
    """Describe topics; null means all of them (v0: an empty list does)."""

    topics: Annotated[tuple[MetadataRequestTopic, ...] | None, In(0, nullable=1)]
    allow_auto_topic_creation: Annotated[bool, In(4)] = True
    include_cluster_authorized_operations: Annotated[bool, In(8, 10, needed=True)] = False
    include_topic_authorized_operations: Annotated[bool, In(8, needed=True)] = False

    def error_response(self, version: int, error: ErrorCode) -> Response:
        topics = (
            MetadataResponseTopic(name=topic.name or "", topic_id=topic.topic_id, error_code=error)
            for topic in self.topics or ()
        )
        return MetadataResponse(topics=tuple(topics))


class MetadataResponseBroker(Struct):
    """A node."""

    node_id: BrokerId = 0
    host: str = ""
    port: Int32 = 0
    rack: Annotated[str | None, In(1)] = None


class MetadataResponsePartition(Struct):
    """A partition with its leader and replicas."""

    error_code: ErrorCode = ErrorCode.NONE
    partition_index: Int32 = 0
    leader_id: BrokerId = 0
    leader_epoch: Annotated[Int32, In(7)] = -1
    replica_nodes: tuple[BrokerId, ...] = ()
    isr_nodes: tuple[BrokerId, ...] = ()
    offline_replicas: Annotated[tuple[BrokerId, ...], In(5)] = ()


class MetadataResponseTopic(Struct):
    """A topic."""

    error_code: ErrorCode = ErrorCode.NONE
    name: Annotated[TopicName | None, In(0, nullable=12)] = ""
    topic_id: Annotated[KafkaUuid, In(10)] = ZERO_UUID
    is_internal: Annotated[bool, In(1)] = False
    partitions: tuple[MetadataResponsePartition, ...] = ()
    topic_authorized_operations: Annotated[Int32, In(8)] = -2147483648


class MetadataResponse(Response):
    """The cluster as this node knows it."""

    throttle_time_ms: Annotated[Int32, In(3)] = 0
    brokers: tuple[MetadataResponseBroker, ...] = ()
    cluster_id: Annotated[str | None, In(2)] = None
    controller_id: Annotated[BrokerId, In(1)] = -1
    topics: tuple[MetadataResponseTopic, ...] = ()
    cluster_authorized_operations: Annotated[Int32, In(8, 10)] = -2147483648
    error_code: Annotated[ErrorCode, In(13)] = ErrorCode.NONE
