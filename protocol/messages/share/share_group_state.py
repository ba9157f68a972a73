"""Requests about the state of share-partitions (keys 83 to 87), which leaders and group coordinators send (KIP-932).

v1 of WriteShareGroupState and ReadShareGroupStateSummary adds the number of records that are done with (KIP-1226).
"""

from __future__ import annotations

from typing import Annotated, Any

from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.message import Request, Response, Struct
from rejoin.protocol.types import ZERO_UUID, In, Int8, Int16, Int32, Int64, KafkaUuid, PartitionIndex, TopicId


class StateBatch(Struct):
    """Records in one state: 0 available, 2 acknowledged, 3 archiving, 4 archived. Both offsets are inclusive."""

    first_offset: Int64 = 0
    last_offset: Int64 = 0
    delivery_state: Int8 = 0
    delivery_count: Int16 = 0


class StatePartitionResult(Struct):
    """The result for one share-partition."""

    partition: PartitionIndex = 0
    error_code: ErrorCode = ErrorCode.NONE
    error_message: str | None = None


class StateResult(Struct):
    """Partitions of one topic."""

    topic_id: KafkaUuid = ZERO_UUID
    partitions: tuple[StatePartitionResult, ...] = ()


def _failed(topics: tuple[Any, ...], error: ErrorCode) -> tuple[StateResult, ...]:
    return tuple(
        StateResult(
            topic_id=topic.topic_id,
            partitions=tuple(
                StatePartitionResult(partition=each.partition, error_code=error) for each in topic.partitions
            ),
        )
        for topic in topics
    )


# --- initialise


class InitializedPartition(Struct):
    """A share-partition and where it begins; -1 lets its leader decide."""

    partition: PartitionIndex
    state_epoch: Int32
    start_offset: Int64


class InitializedTopic(Struct):
    """Partitions of one topic."""

    topic_id: TopicId
    partitions: tuple[InitializedPartition, ...]


class InitializeShareGroupStateRequest(Request):
    """Begin to keep the state of share-partitions, or begin anew."""

    group_id: str
    topics: tuple[InitializedTopic, ...]

    def error_response(self, version: int, error: ErrorCode) -> Response:
        return InitializeShareGroupStateResponse(results=_failed(self.topics, error))


class InitializeShareGroupStateResponse(Response):
    """A result for each share-partition."""

    results: tuple[StateResult, ...] = ()


# --- read


class ReadPartition(Struct):
    """A share-partition, and the epoch of the leader that asks."""

    partition: PartitionIndex
    leader_epoch: Int32


class ReadTopic(Struct):
    """Partitions of one topic."""

    topic_id: TopicId
    partitions: tuple[ReadPartition, ...]


class ReadShareGroupStateRequest(Request):
    """Read the state of share-partitions."""

    group_id: str
    topics: tuple[ReadTopic, ...]

    def error_response(self, version: int, error: ErrorCode) -> Response:
        return ReadShareGroupStateResponse(
            results=tuple(
                ReadStateResult(
                    topic_id=topic.topic_id,
                    partitions=tuple(
                        ReadPartitionResult(partition=each.partition, error_code=error) for each in topic.partitions
                    ),
                )
                for topic in self.topics
            )
        )


class ReadPartitionResult(Struct):
    """The state of one share-partition."""

    partition: PartitionIndex = 0
    error_code: ErrorCode = ErrorCode.NONE
    error_message: str | None = None
    state_epoch: Int32 = 0
    start_offset: Int64 = 0
    state_batches: tuple[StateBatch, ...] = ()


class ReadStateResult(Struct):
    """Partitions of one topic."""

    topic_id: KafkaUuid = ZERO_UUID
    partitions: tuple[ReadPartitionResult, ...] = ()


class ReadShareGroupStateResponse(Response):
    """The states."""

    results: tuple[ReadStateResult, ...] = ()


# --- write


class WrittenPartition(Struct):
    """A change of one share-partition by its leader."""

    partition: PartitionIndex
    state_epoch: Int32
    leader_epoch: Int32
    start_offset: Int64
    delivery_complete_count: Annotated[Int32, In(1)] = -1
    state_batches: tuple[StateBatch, ...]


class WrittenTopic(Struct):
    """Partitions of one topic."""

    topic_id: TopicId
    partitions: tuple[WrittenPartition, ...]


class WriteShareGroupStateRequest(Request):
    """Write changes of share-partitions."""

    group_id: str
    topics: tuple[WrittenTopic, ...]

    def error_response(self, version: int, error: ErrorCode) -> Response:
        return WriteShareGroupStateResponse(results=_failed(self.topics, error))


class WriteShareGroupStateResponse(Response):
    """A result for each share-partition."""

    results: tuple[StateResult, ...] = ()


# --- delete


class DeletedPartition(Struct):
    """A share-partition."""

    partition: PartitionIndex


class DeletedTopic(Struct):
    """Partitions of one topic."""

    topic_id: TopicId
    partitions: tuple[DeletedPartition, ...]


class DeleteShareGroupStateRequest(Request):
    """Forget share-partitions."""

    group_id: str
    topics: tuple[DeletedTopic, ...]

    def error_response(self, version: int, error: ErrorCode) -> Response:
        return DeleteShareGroupStateResponse(results=_failed(self.topics, error))


class DeleteShareGroupStateResponse(Response):
    """A result for each share-partition."""

    results: tuple[StateResult, ...] = ()


# --- summary


class ReadShareGroupStateSummaryRequest(Request):
    """Read how far share-partitions are."""

    group_id: str
    topics: tuple[ReadTopic, ...]

    def error_response(self, version: int, error: ErrorCode) -> Response:
        return ReadShareGroupStateSummaryResponse(
            results=tuple(
                SummaryResult(
                    topic_id=topic.topic_id,
                    partitions=tuple(
                        PartitionSummary(partition=each.partition, error_code=error) for each in topic.partitions
                    ),
                )
                for topic in self.topics
            )
        )


class PartitionSummary(Struct):
    """How far one share-partition is; -1 for what is not known."""

    partition: PartitionIndex = 0
    error_code: ErrorCode = ErrorCode.NONE
    error_message: str | None = None
    state_epoch: Int32 = 0
    leader_epoch: Int32 = 0
    start_offset: Int64 = 0
    delivery_complete_count: Annotated[Int32, In(1)] = -1


class SummaryResult(Struct):
    """Partitions of one topic."""

    topic_id: KafkaUuid = ZERO_UUID
    partitions: tuple[PartitionSummary, ...] = ()


class ReadShareGroupStateSummaryResponse(Response):
    """The summaries."""

    results: tuple[SummaryResult, ...] = ()
