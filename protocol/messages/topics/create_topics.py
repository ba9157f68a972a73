"""CreateTopics (key 19): add topics.

v1 adds ``validateOnly``, v4 defaults of -1 (KIP-464), v5 the settings in the answer, v7 topic ids.
"""

from typing import Annotated

from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.message import Request, Response, Struct
from rejoin.protocol.types import ZERO_UUID, BrokerId, In, Int8, Int16, Int32, KafkaUuid, TopicName


class CreatableReplicaAssignment(Struct):
    """The nodes that hold one partition."""

    partition_index: Int32
    broker_ids: tuple[BrokerId, ...]


class CreatableTopicConfig(Struct):
    """A setting of the topic."""

    name: str
    value: str | None


class CreatableTopic(Struct):
    """A topic to add; -1 partitions or replicas mean the default."""

    name: TopicName
    num_partitions: Int32
    replication_factor: Int16
    assignments: tuple[CreatableReplicaAssignment, ...]
    configs: tuple[CreatableTopicConfig, ...]


class CreateTopicsRequest(Request):
    """Create topics."""

    topics: tuple[CreatableTopic, ...]
    timeout_ms: Int32 = 60000
    validate_only: Annotated[bool, In(1)] = False

    def error_response(self, version: int, error: ErrorCode) -> Response:
        results = (CreatableTopicResult(name=topic.name, error_code=error, error_message=None) for topic in self.topics)
        return CreateTopicsResponse(topics=tuple(results))


class CreatableTopicConfigs(Struct):
    """A setting of the topic as it was stored."""

    name: str = ""
    value: str | None = ""
    read_only: bool = False
    config_source: Int8 = -1
    is_sensitive: bool = False


class CreatableTopicResult(Struct):
    """The result for one topic."""

    name: TopicName = ""
    topic_id: Annotated[KafkaUuid, In(7)] = ZERO_UUID
    error_code: ErrorCode = ErrorCode.NONE
    error_message: Annotated[str | None, In(1)] = ""
    topic_config_error_code: Annotated[Int16, In(5, tag=0)] = 0
    num_partitions: Annotated[Int32, In(5)] = -1
    replication_factor: Annotated[Int16, In(5)] = -1
    configs: Annotated[tuple[CreatableTopicConfigs, ...] | None, In(5)] = ()


class CreateTopicsResponse(Response):
    """A result for each topic."""

    throttle_time_ms: Annotated[Int32, In(2)] = 0
    topics: tuple[CreatableTopicResult, ...] = ()
