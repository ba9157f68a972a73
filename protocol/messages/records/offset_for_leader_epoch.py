"""OffsetForLeaderEpoch (key 23): where a leader epoch ends in a partition's log (KIP-101, KIP-320).

v1 answers with the epoch that was found, v2 fences by the current epoch, v3 adds who asks.
"""

from typing import Annotated

from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.message import Request, Response, Struct
from rejoin.protocol.types import BrokerId, In, Int32, Int64, PartitionIndex, TopicName


class OffsetForLeaderPartition(Struct):
    """A partition and the epoch asked for."""

    partition: PartitionIndex
    current_leader_epoch: Annotated[Int32, In(2)] = -1
    leader_epoch: Int32


class OffsetForLeaderTopic(Struct):
    """Partitions of one topic."""

    topic: TopicName
    partitions: tuple[OffsetForLeaderPartition, ...]


class OffsetForLeaderEpochRequest(Request):
    """Look up the ends of epochs."""

    replica_id: Annotated[BrokerId, In(3)] = -2
    topics: tuple[OffsetForLeaderTopic, ...]

    def error_response(self, version: int, error: ErrorCode) -> Response:
        return OffsetForLeaderEpochResponse(
            topics=tuple(
                OffsetForLeaderTopicResult(
                    topic=topic.topic,
                    partitions=tuple(
                        LeaderEpochEndOffset(partition=partition.partition, error_code=error)
                        for partition in topic.partitions
                    ),
                )
                for topic in self.topics
            )
        )


class LeaderEpochEndOffset(Struct):
    """The newest epoch that is not above the one asked for, and the offset after its last record."""

    error_code: ErrorCode = ErrorCode.NONE
    partition: PartitionIndex = 0
    leader_epoch: Annotated[Int32, In(1)] = -1
    end_offset: Int64 = -1


class OffsetForLeaderTopicResult(Struct):
    """Partitions of one topic."""

    topic: TopicName = ""
    partitions: tuple[LeaderEpochEndOffset, ...] = ()


class OffsetForLeaderEpochResponse(Response):
    """A result for each partition."""

    throttle_time_ms: Annotated[Int32, In(2)] = 0
    topics: tuple[OffsetForLeaderTopicResult, ...] = ()
