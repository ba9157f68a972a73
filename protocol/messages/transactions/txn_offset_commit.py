"""TxnOffsetCommit (key 28): commit offsets as a part of a transaction; they count once its marker is written.

v3 adds generation, member id and instance id, which are then checked as in OffsetCommit (KIP-447). From v5 on the
commit makes the group's offsets partition part of the transaction (KIP-890). v6 names topics by their ids.
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
    Int16,
    Int32,
    Int64,
    KafkaUuid,
    MemberId,
    PartitionIndex,
    ProducerId,
    TopicId,
    TopicName,
    TopicPartition,
    TransactionalId,
)


class TxnOffsetCommitRequestPartition(Struct):
    """The next offset to read from one partition."""

    partition_index: PartitionIndex
    committed_offset: Int64
    committed_leader_epoch: Annotated[Int32, In(2)] = -1
    committed_metadata: str | None


class TxnOffsetCommitRequestTopic(Struct):
    """Partitions of one topic."""

    name: Annotated[TopicName, In(0, 5, needed=True)] = ""
    topic_id: Annotated[TopicId, In(6, needed=True)] = ZERO_UUID
    partitions: tuple[TxnOffsetCommitRequestPartition, ...]


class TxnOffsetCommitRequest(Request):
    """Commit offsets with the transaction of this producer."""

    transactional_id: TransactionalId
    group_id: GroupId
    producer_id: ProducerId
    producer_epoch: Int16
    generation_id_or_member_epoch: Annotated[Int32, In(3)] = -1
    member_id: Annotated[MemberId, In(3)] = ""
    group_instance_id: Annotated[GroupInstanceId | None, In(3)] = None
    topics: tuple[TxnOffsetCommitRequestTopic, ...]

    def error_response(self, version: int, error: ErrorCode) -> Response:
        return self.response({}, error)

    def response(self, errors: Mapping[TopicPartition, ErrorCode], others: ErrorCode) -> TxnOffsetCommitResponse:
        """A result for each partition asked for: ``others`` where ``errors`` has none."""
        return response_by_id(RESULTS, self.topics, errors, others)


class TxnOffsetCommitResponsePartition(Struct):
    """The result for one partition."""

    partition_index: PartitionIndex = 0
    error_code: ErrorCode = ErrorCode.NONE


class TxnOffsetCommitResponseTopic(Struct):
    """Partitions of one topic."""

    name: Annotated[TopicName, In(0, 5)] = ""
    topic_id: Annotated[KafkaUuid, In(6)] = ZERO_UUID
    partitions: tuple[TxnOffsetCommitResponsePartition, ...] = ()


class TxnOffsetCommitResponse(Response):
    """A result for each partition."""

    throttle_time_ms: Int32 = 0
    topics: tuple[TxnOffsetCommitResponseTopic, ...] = ()


RESULTS: Final = ResultTypes(TxnOffsetCommitResponse, TxnOffsetCommitResponseTopic, TxnOffsetCommitResponsePartition)
