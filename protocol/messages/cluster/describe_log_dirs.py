"""DescribeLogDirs (key 35): the size of each partition on a node's disks (KIP-113).

v3 adds an error for the whole answer, v4 the size of the disk (KIP-827), v5 cordoned directories (KIP-1066).
"""

from typing import Annotated

from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.message import Request, Response, Struct
from rejoin.protocol.types import In, Int32, Int64, PartitionIndex, TopicName


class DescribableLogDirTopic(Struct):
    """Partitions of one topic."""

    topic: TopicName
    partitions: tuple[PartitionIndex, ...]


class DescribeLogDirsRequest(Request):
    """Describe partitions; null means all of them."""

    topics: tuple[DescribableLogDirTopic, ...] | None

    def error_response(self, version: int, error: ErrorCode) -> Response:
        return DescribeLogDirsResponse(error_code=error)


class DescribeLogDirsPartition(Struct):
    """A partition's log in this directory."""

    partition_index: PartitionIndex = 0
    partition_size: Int64 = 0
    offset_lag: Int64 = 0
    is_future_key: bool = False


class DescribeLogDirsTopic(Struct):
    """Partitions of one topic."""

    name: TopicName = ""
    partitions: tuple[DescribeLogDirsPartition, ...] = ()


class DescribeLogDirsResult(Struct):
    """A directory."""

    error_code: ErrorCode = ErrorCode.NONE
    log_dir: str = ""
    topics: tuple[DescribeLogDirsTopic, ...] = ()
    total_bytes: Annotated[Int64, In(4)] = -1
    usable_bytes: Annotated[Int64, In(4)] = -1
    is_cordoned: Annotated[bool, In(5)] = False


class DescribeLogDirsResponse(Response):
    """A result for each directory."""

    throttle_time_ms: Int32 = 0
    error_code: Annotated[ErrorCode, In(3)] = ErrorCode.NONE
    results: tuple[DescribeLogDirsResult, ...] = ()
