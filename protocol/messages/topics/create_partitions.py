"""CreatePartitions (key 37): grow topics (KIP-195). Consumers notice with their next metadata refresh."""

from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.message import Request, Response, Struct
from rejoin.protocol.types import BrokerId, Int32, TopicName


class CreatePartitionsAssignment(Struct):
    """The nodes that hold one new partition."""

    broker_ids: tuple[BrokerId, ...]


class CreatePartitionsTopic(Struct):
    """A topic and the number of partitions it shall have."""

    name: TopicName
    count: Int32
    assignments: tuple[CreatePartitionsAssignment, ...] | None


class CreatePartitionsRequest(Request):
    """Grow topics."""

    topics: tuple[CreatePartitionsTopic, ...]
    timeout_ms: Int32
    validate_only: bool

    def error_response(self, version: int, error: ErrorCode) -> Response:
        results = (CreatePartitionsTopicResult(name=topic.name, error_code=error) for topic in self.topics)
        return CreatePartitionsResponse(results=tuple(results))


class CreatePartitionsTopicResult(Struct):
    """The result for one topic."""

    name: TopicName = ""
    error_code: ErrorCode = ErrorCode.NONE
    error_message: str | None = None


class CreatePartitionsResponse(Response):
    """A result for each topic."""

    throttle_time_ms: Int32 = 0
    results: tuple[CreatePartitionsTopicResult, ...] = ()
