"""DeleteRecords (key 21): forget the records before an offset (KIP-107)."""

from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.message import Request, Response, Struct
from rejoin.protocol.types import Int32, Int64, PartitionIndex, TopicName


class DeleteRecordsPartition(Struct):
    """A partition and its new first offset; -1 means the high watermark."""

    partition_index: PartitionIndex
    offset: Int64


class DeleteRecordsTopic(Struct):
    """Partitions of one topic."""

    name: TopicName
    partitions: tuple[DeleteRecordsPartition, ...]


class DeleteRecordsRequest(Request):
    """Delete records."""

    topics: tuple[DeleteRecordsTopic, ...]
    timeout_ms: Int32

    def error_response(self, version: int, error: ErrorCode) -> Response:
        return DeleteRecordsResponse(
            topics=tuple(
                DeleteRecordsTopicResult(
                    name=topic.name,
                    partitions=tuple(
                        DeleteRecordsPartitionResult(
                            partition_index=partition.partition_index, low_watermark=-1, error_code=error
                        )
                        for partition in topic.partitions
                    ),
                )
                for topic in self.topics
            )
        )


class DeleteRecordsPartitionResult(Struct):
    """The first offset that is left, or why nothing was deleted."""

    partition_index: PartitionIndex = 0
    low_watermark: Int64 = 0
    error_code: ErrorCode = ErrorCode.NONE


class DeleteRecordsTopicResult(Struct):
    """Partitions of one topic."""

    name: TopicName = ""
    partitions: tuple[DeleteRecordsPartitionResult, ...] = ()


class DeleteRecordsResponse(Response):
    """A result for each partition."""

    throttle_time_ms: Int32 = 0
    topics: tuple[DeleteRecordsTopicResult, ...] = ()
