"""DeleteTopics (key 20): remove topics, and with them the offsets committed for them. v6 adds deletion by topic id."""

from typing import Annotated

from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.types import ZERO_UUID, In, Int32, KafkaUuid, Request, Response, Struct


class DeleteTopicState(Struct):
    """A topic, by name or by id."""

    name: str | None = None
    topic_id: KafkaUuid


class DeleteTopicsRequest(Request):
    """Delete topics."""

    topics: Annotated[tuple[DeleteTopicState, ...], In(6, needed=True)] = ()
    topic_names: Annotated[tuple[str, ...], In(0, 5, needed=True)] = ()
    timeout_ms: Int32


class DeletableTopicResult(Struct):
    """What became of one topic."""

    name: str | None = ""
    topic_id: Annotated[KafkaUuid, In(6)] = ZERO_UUID
    error_code: ErrorCode = ErrorCode.NONE
    error_message: Annotated[str | None, In(5)] = None


class DeleteTopicsResponse(Response):
    """A result for each topic."""

    throttle_time_ms: Annotated[Int32, In(1)] = 0
    responses: tuple[DeletableTopicResult, ...] = ()
