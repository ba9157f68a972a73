"""OffsetDelete (key 47): forget committed offsets of topics that a group does not read any more (KIP-496)."""

from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.message import Request, Response, Struct
from rejoin.protocol.types import GroupId, Int32, PartitionIndex, TopicName


class OffsetDeleteRequestPartition(Struct):
    """A partition whose offset shall be forgotten."""

    partition_index: PartitionIndex


class OffsetDeleteRequestTopic(Struct):
    """Partitions of one topic."""

    name: TopicName
    partitions: tuple[OffsetDeleteRequestPartition, ...]


class OffsetDeleteRequest(Request):
    """Delete committed offsets of a group."""

    group_id: GroupId
    topics: tuple[OffsetDeleteRequestTopic, ...]

    def error_response(self, version: int, error: ErrorCode) -> Response:
        return OffsetDeleteResponse(error_code=error)


class OffsetDeleteResponsePartition(Struct):
    """The result for one partition."""

    partition_index: PartitionIndex = 0
    error_code: ErrorCode = ErrorCode.NONE


class OffsetDeleteResponseTopic(Struct):
    """Partitions of one topic."""

    name: TopicName = ""
    partitions: tuple[OffsetDeleteResponsePartition, ...] = ()


class OffsetDeleteResponse(Response):
    """A top-level error of the group, or a result for each partition."""

    error_code: ErrorCode = ErrorCode.NONE
    throttle_time_ms: Int32 = 0
    topics: tuple[OffsetDeleteResponseTopic, ...] = ()
