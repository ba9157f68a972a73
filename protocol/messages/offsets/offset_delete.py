"""OffsetDelete (key 47): forget committed offsets of topics that a group does not read any more (KIP-496)."""

from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.types import Int32, Request, Response, Struct


class OffsetDeleteRequestPartition(Struct):
    """A partition whose offset shall be forgotten."""

    partition_index: Int32


class OffsetDeleteRequestTopic(Struct):
    """Partitions of one topic."""

    name: str
    partitions: tuple[OffsetDeleteRequestPartition, ...]


class OffsetDeleteRequest(Request):
    """Delete committed offsets of a group."""

    group_id: str
    topics: tuple[OffsetDeleteRequestTopic, ...]


class OffsetDeleteResponsePartition(Struct):
    """The result for one partition."""

    partition_index: Int32 = 0
    error_code: ErrorCode = ErrorCode.NONE


class OffsetDeleteResponseTopic(Struct):
    """Partitions of one topic."""

    name: str = ""
    partitions: tuple[OffsetDeleteResponsePartition, ...] = ()


class OffsetDeleteResponse(Response):
    """A top-level error of the group, or a result for each partition."""

    error_code: ErrorCode = ErrorCode.NONE
    throttle_time_ms: Int32 = 0
    topics: tuple[OffsetDeleteResponseTopic, ...] = ()
