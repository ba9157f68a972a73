"""OffsetCommit (key 8): remember how far a group has read.

v1 adds generation and member id, and a timestamp for each partition in v1 alone; v2 to v4 carry a retention time,
v6 adds the leader epoch, v7 the group instance id; v9 is the first that members of consumer groups may use (KIP-848),
and v10 names topics by their ids.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Final

from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.message import Request, Response, Struct
from rejoin.protocol.messages.partition_results import ResultTypes, response_by_id
from rejoin.protocol.types import (
    ZERO_UUID,
    GroupId,
    GroupInstanceId,
    In,
    Int32,
    Int64,
    MemberId,
    PartitionIndex,
    TopicId,
    TopicName,
    TopicPartition,
)


class OffsetCommitRequestPartition(Struct):
    """The next offset to read from one partition."""

    partition_index: PartitionIndex
    committed_offset: Int64
    committed_leader_epoch: Annotated[Int32, In(6)] = -1
    commit_timestamp: Annotated[Int64, In(1, 1)] = -1
    committed_metadata: str | None


class OffsetCommitRequestTopic(Struct):
    """Partitions of one topic."""

    name: Annotated[TopicName, In(0, 9, needed=True)] = ""
    topic_id: Annotated[TopicId, In(10, needed=True)] = ZERO_UUID
    partitions: tuple[OffsetCommitRequestPartition, ...]


class OffsetCommitRequest(Request):
    """Commit offsets. Generation -1 without a member is a commit from outside the group."""

    group_id: GroupId
    generation_id_or_member_epoch: Annotated[Int32, In(1)] = -1
    member_id: Annotated[MemberId, In(1, needed=True)] = ""
    group_instance_id: Annotated[GroupInstanceId | None, In(7)] = None
    retention_time_ms: Annotated[Int64, In(2, 4)] = -1
    topics: tuple[OffsetCommitRequestTopic, ...]

    def error_response(self, version: int, error: ErrorCode) -> Response:
        return self.response({}, error)

    def response(self, errors: Mapping[TopicPartition, ErrorCode], others: ErrorCode) -> OffsetCommitResponse:
        """A result for each partition asked for: ``others`` where ``errors`` has none."""
        return response_by_id(RESULTS, self.topics, errors, others)


class OffsetCommitResponsePartition(Struct):
    """The result for one partition."""

    partition_index: PartitionIndex = 0
    error_code: ErrorCode = ErrorCode.NONE


class OffsetCommitResponseTopic(Struct):
    """Partitions of one topic."""

    name: Annotated[TopicName, In(0, 9)] = ""
    topic_id: Annotated[TopicId, In(10)] = ZERO_UUID
    partitions: tuple[OffsetCommitResponsePartition, ...] = ()


class OffsetCommitResponse(Response):
    """A result for each partition; errors of the group stand on every one."""

    throttle_time_ms: Annotated[Int32, In(3)] = 0
    topics: tuple[OffsetCommitResponseTopic, ...] = ()


RESULTS: Final = ResultTypes(OffsetCommitResponse, OffsetCommitResponseTopic, OffsetCommitResponsePartition)
