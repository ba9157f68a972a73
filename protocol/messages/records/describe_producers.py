"""DescribeProducers (key 61): the producers whose state a partition keeps (KIP-664)."""

from typing import ClassVar

from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.message import Request, Response, Struct
from rejoin.protocol.types import Int32, Int64, PartitionIndex, ProducerId, TopicName


class DescribeProducersTopic(Struct):
    """Partitions of one topic."""

    name: TopicName
    partition_indexes: tuple[PartitionIndex, ...]


class DescribeProducersRequest(Request):
    """Describe the producers of partitions."""

    topics: tuple[DescribeProducersTopic, ...]

    def error_response(self, version: int, error: ErrorCode) -> Response:
        return DescribeProducersResponse(
            topics=tuple(
                DescribeProducersTopicResponse(
                    name=topic.name,
                    partitions=tuple(
                        DescribeProducersPartitionResponse(partition_index=index, error_code=error)
                        for index in topic.partition_indexes
                    ),
                )
                for topic in self.topics
            )
        )


class ProducerState(Struct):
    """A producer; unknown fields are -1."""

    producer_id: ProducerId = 0
    producer_epoch: Int32 = 0
    last_sequence: Int32 = -1
    last_timestamp: Int64 = -1
    coordinator_epoch: Int32 = 0
    current_txn_start_offset: Int64 = -1


class DescribeProducersPartitionResponse(Struct):
    """The producers of one partition."""

    IS_REPEATED: ClassVar[bool] = True

    partition_index: PartitionIndex = 0
    error_code: ErrorCode = ErrorCode.NONE
    error_message: str | None = None
    active_producers: tuple[ProducerState, ...] = ()


class DescribeProducersTopicResponse(Struct):
    """Partitions of one topic."""

    name: TopicName = ""
    partitions: tuple[DescribeProducersPartitionResponse, ...] = ()


class DescribeProducersResponse(Response):
    """A result for each partition."""

    throttle_time_ms: Int32 = 0
    topics: tuple[DescribeProducersTopicResponse, ...] = ()
