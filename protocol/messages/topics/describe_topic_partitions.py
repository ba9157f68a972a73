"""DescribeTopicPartitions (key 75): topics with their partitions, page by page (KIP-966)."""

from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.message import Request, Response, Struct
from rejoin.protocol.types import ZERO_UUID, BrokerId, Int32, KafkaUuid, PartitionIndex, TopicName


class TopicRequest(Struct):
    """A topic."""

    name: TopicName


class Cursor(Struct):
    """The partition that comes next."""

    topic_name: TopicName
    partition_index: PartitionIndex


class DescribeTopicPartitionsRequest(Request):
    """Describe topics; none means all of them."""

    topics: tuple[TopicRequest, ...]
    response_partition_limit: Int32 = 2000
    cursor: Cursor | None = None

    def error_response(self, version: int, error: ErrorCode) -> Response:
        topics = (DescribeTopicPartitionsResponseTopic(name=topic.name, error_code=error) for topic in self.topics)
        return DescribeTopicPartitionsResponse(topics=tuple(topics))


class DescribeTopicPartitionsResponsePartition(Struct):
    """A partition with its leader and replicas."""

    error_code: ErrorCode = ErrorCode.NONE
    partition_index: Int32 = 0
    leader_id: BrokerId = 0
    leader_epoch: Int32 = -1
    replica_nodes: tuple[BrokerId, ...] = ()
    isr_nodes: tuple[BrokerId, ...] = ()
    eligible_leader_replicas: tuple[BrokerId, ...] | None = None
    last_known_elr: tuple[BrokerId, ...] | None = None
    offline_replicas: tuple[BrokerId, ...] = ()


class DescribeTopicPartitionsResponseTopic(Struct):
    """A topic."""

    error_code: ErrorCode = ErrorCode.NONE
    name: TopicName | None = ""
    topic_id: KafkaUuid = ZERO_UUID
    is_internal: bool = False
    partitions: tuple[DescribeTopicPartitionsResponsePartition, ...] = ()
    topic_authorized_operations: Int32 = -2147483648


class DescribeTopicPartitionsResponse(Response):
    """A page of topics, and where the next one begins."""

    throttle_time_ms: Int32 = 0
    topics: tuple[DescribeTopicPartitionsResponseTopic, ...] = ()
    next_cursor: Cursor | None = None
