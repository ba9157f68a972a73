"""AlterPartitionReassignments (key 45), ListPartitionReassignments (46): other replicas for partitions (KIP-455).

AlterPartitionReassignments v1 adds ``allowReplicationFactorChange`` (KIP-860).
"""

from typing import Annotated

from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.message import Request, Response, Struct
from rejoin.protocol.types import BrokerId, In, Int32, PartitionIndex, TopicName


class ReassignablePartition(Struct):
    """Replicas that a partition shall have, the preferred leader first; null cancels a reassignment."""

    partition_index: PartitionIndex
    replicas: tuple[BrokerId, ...] | None


class ReassignableTopic(Struct):
    """Partitions of one topic."""

    name: TopicName
    partitions: tuple[ReassignablePartition, ...]


class AlterPartitionReassignmentsRequest(Request):
    """Begin or cancel reassignments."""

    timeout_ms: Int32 = 60_000
    allow_replication_factor_change: Annotated[bool, In(1)] = True
    topics: tuple[ReassignableTopic, ...]

    def error_response(self, version: int, error: ErrorCode, message: str | None = None) -> Response:
        responses = tuple(
            ReassignableTopicResponse(
                name=topic.name,
                partitions=tuple(
                    ReassignablePartitionResponse(
                        partition_index=each.partition_index, error_code=error, error_message=message
                    )
                    for each in topic.partitions
                ),
            )
            for topic in self.topics
        )
        return AlterPartitionReassignmentsResponse(error_code=error, error_message=message, responses=responses)


class ReassignablePartitionResponse(Struct):
    """The outcome for one partition."""

    IS_REPEATED = True

    partition_index: PartitionIndex
    error_code: ErrorCode = ErrorCode.NONE
    error_message: str | None = None


class ReassignableTopicResponse(Struct):
    """Outcomes for partitions of one topic."""

    IS_REPEATED = True

    name: TopicName
    partitions: tuple[ReassignablePartitionResponse, ...]


class AlterPartitionReassignmentsResponse(Response):
    """Outcomes by topic."""

    throttle_time_ms: Int32 = 0
    allow_replication_factor_change: Annotated[bool, In(1)] = True
    error_code: ErrorCode = ErrorCode.NONE
    error_message: str | None = None
    responses: tuple[ReassignableTopicResponse, ...] = ()


class ListPartitionReassignmentsTopics(Struct):
    """Partitions of one topic."""

    name: TopicName
    partition_indexes: tuple[PartitionIndex, ...]


class ListPartitionReassignmentsRequest(Request):
    """List reassignments that go on; null stands for all partitions."""

    timeout_ms: Int32 = 60_000
    topics: tuple[ListPartitionReassignmentsTopics, ...] | None = None

    def error_response(self, version: int, error: ErrorCode, message: str | None = None) -> Response:
        topics = tuple(
            OngoingTopicReassignment(
                name=topic.name,
                partitions=tuple(
                    OngoingPartitionReassignment(partition_index=each) for each in topic.partition_indexes
                ),
            )
            for topic in self.topics or ()
        )
        return ListPartitionReassignmentsResponse(error_code=error, error_message=message, topics=topics)


class OngoingPartitionReassignment(Struct):
    """One partition: its replicas, and those of them that come or go."""

    IS_REPEATED = True

    partition_index: PartitionIndex
    replicas: tuple[BrokerId, ...] = ()
    adding_replicas: tuple[BrokerId, ...] = ()
    removing_replicas: tuple[BrokerId, ...] = ()


class OngoingTopicReassignment(Struct):
    """Partitions of one topic."""

    IS_REPEATED = True

    name: TopicName
    partitions: tuple[OngoingPartitionReassignment, ...]


class ListPartitionReassignmentsResponse(Response):
    """Reassignments by topic."""

    throttle_time_ms: Int32 = 0
    error_code: ErrorCode = ErrorCode.NONE
    error_message: str | None = None
    topics: tuple[OngoingTopicReassignment, ...] = ()
