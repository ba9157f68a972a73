"""DeleteTopics (key 20): remove topics, and with them the offsets committed for them. v6 adds deletion by topic id."""

from typing import Annotated

from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.message import Request, Response, Struct
from rejoin.protocol.types import ZERO_UUID, In, Int32, KafkaUuid, TopicId, TopicName


class DeleteTopicState(Struct):
    """A topic, by name or by id."""

    name: TopicName | None = None
    topic_id: TopicId


class DeleteTopicsRequest(Request):
    """Delete topics."""

    topics: Annotated[tuple[DeleteTopicState, ...], In(6, needed=True)] = ()
    topic_names: Annotated[tuple[TopicName, ...], In(0, 5, needed=True)] = ()
    timeout_ms: Int32

    def error_response(self, version: int, error: ErrorCode) -> Response:
        if version >= 6:
            results = [
                DeletableTopicResult(name=topic.name, topic_id=topic.topic_id, error_code=error)
                for topic in self.topics
            ]
        else:
            results = [DeletableTopicResult(name=name, error_code=error) for name in self.topic_names]
        return DeleteTopicsResponse(responses=tuple(results))


class DeletableTopicResult(Struct):
    """The result for one topic."""

    name: Annotated[TopicName | None, In(0, nullable=6)] = ""
    topic_id: Annotated[KafkaUuid, In(6)] = ZERO_UUID
    error_code: ErrorCode = ErrorCode.NONE
    error_message: Annotated[str | None, In(5)] = None


class DeleteTopicsResponse(Response):
    """A result for each topic."""

    throttle_time_ms: Annotated[Int32, In(1)] = 0
    responses: tuple[DeletableTopicResult, ...] = ()
