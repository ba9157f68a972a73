"""ListOffsets (key 2): the first (-2) or next (-1) offset of partitions, or the one at a time."""

from typing import Annotated

from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.message import Request, Response, Struct
from rejoin.protocol.types import BrokerId, In, Int8, Int32, Int64, PartitionIndex, TopicName


class ListOffsetsPartition(Struct):
    """A partition, and the time asked for: ms since 1970, -1 for the end, -2 for the beginning."""

    partition_index: PartitionIndex
    current_leader_epoch: Annotated[Int32, In(4)] = -1
    timestamp: Int64
    max_num_offsets: Annotated[Int32, In(0, 0)] = 1


class ListOffsetsTopic(Struct):
    """Partitions of one topic."""

    name: TopicName
    partitions: tuple[ListOffsetsPartition, ...]


class ListOffsetsRequest(Request):
    """Look up offsets by time."""

    replica_id: BrokerId
    isolation_level: Annotated[Int8, In(2, needed=True)] = 0
    topics: tuple[ListOffsetsTopic, ...]
    timeout_ms: Annotated[Int32, In(10, needed=True)] = 0

    def error_response(self, version: int, error: ErrorCode) -> Response:
        return ListOffsetsResponse(
            topics=tuple(
                ListOffsetsTopicResponse(
                    name=topic.name,
                    partitions=tuple(
                        ListOffsetsPartitionResponse(partition_index=partition.partition_index, error_code=error)
                        for partition in topic.partitions
                    ),
                )
                for topic in self.topics
            )
        )


class ListOffsetsPartitionResponse(Struct):
    """The offset found; -1 when there is none."""

    partition_index: PartitionIndex = 0
    error_code: ErrorCode = ErrorCode.NONE
    old_style_offsets: Annotated[tuple[Int64, ...], In(0, 0)] = ()
    timestamp: Annotated[Int64, In(1)] = -1
    offset: Annotated[Int64, In(1)] = -1
    leader_epoch: Annotated[Int32, In(4)] = -1


class ListOffsetsTopicResponse(Struct):
    """Partitions of one topic."""

    name: TopicName = ""
    partitions: tuple[ListOffsetsPartitionResponse, ...] = ()


class ListOffsetsResponse(Response):
    """A result for each partition."""

    throttle_time_ms: Annotated[Int32, In(2)] = 0
    topics: tuple[ListOffsetsTopicResponse, ...] = ()
