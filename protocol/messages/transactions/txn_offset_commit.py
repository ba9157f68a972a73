"""TxnOffsetCommit (key 28): commit offsets as a part of a transaction; they count once its marker is written.

v3 adds generation, member id and instance id, which are then checked as in OffsetCommit (KIP-447).
"""

from typing import Annotated

from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.types import In, Int16, Int32, Int64, Request, Response, Struct


class TxnOffsetCommitRequestPartition(Struct):
    """The next offset to read from one partition."""

    partition_index: Int32
    committed_offset: Int64
    committed_leader_epoch: Annotated[Int32, In(2)] = -1
    committed_metadata: str | None


class TxnOffsetCommitRequestTopic(Struct):
    """Partitions of one topic."""

    name: str
    partitions: tuple[TxnOffsetCommitRequestPartition, ...]


class TxnOffsetCommitRequest(Request):
    """Commit offsets with the transaction of this producer."""

    transactional_id: str
    group_id: str
    producer_id: Int64
    producer_epoch: Int16
    generation_id: Annotated[Int32, In(3)] = -1
    member_id: Annotated[str, In(3)] = ""
    group_instance_id: Annotated[str | None, In(3)] = None
    topics: tuple[TxnOffsetCommitRequestTopic, ...]


class TxnOffsetCommitResponsePartition(Struct):
    """The result for one partition."""

    partition_index: Int32 = 0
    error_code: ErrorCode = ErrorCode.NONE


class TxnOffsetCommitResponseTopic(Struct):
    """Partitions of one topic."""

    name: str = ""
    partitions: tuple[TxnOffsetCommitResponsePartition, ...] = ()


class TxnOffsetCommitResponse(Response):
    """A result for each partition."""

    throttle_time_ms: Int32 = 0
    topics: tuple[TxnOffsetCommitResponseTopic, ...] = ()
