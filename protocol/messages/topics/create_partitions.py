"""CreatePartitions (key 37): grow topics (KIP-195). Consumers notice with their next metadata refresh."""

from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.types import Int32, Request, Response, Struct


class CreatePartitionsAssignment(Struct):
    """The nodes that hold one new partition."""

    broker_ids: tuple[Int32, ...]


class CreatePartitionsTopic(Struct):
    """A topic and the number of partitions it shall have."""

    name: str
    count: Int32
    assignments: tuple[CreatePartitionsAssignment, ...] | None


class CreatePartitionsRequest(Request):
    """Grow topics."""

    topics: tuple[CreatePartitionsTopic, ...]
    timeout_ms: Int32
    validate_only: bool


class CreatePartitionsTopicResult(Struct):
    """What became of one topic."""

    name: str = ""
    error_code: ErrorCode = ErrorCode.NONE
    error_message: str | None = None


class CreatePartitionsResponse(Response):
    """A result for each topic."""

    throttle_time_ms: Int32 = 0
    results: tuple[CreatePartitionsTopicResult, ...] = ()
