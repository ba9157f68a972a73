"""DescribeShareGroupOffsets (key 90), AlterShareGroupOffsets (91), DeleteShareGroupOffsets (92): KIP-932.

v1 of DescribeShareGroupOffsets adds the lag (KIP-1226).
"""

from __future__ import annotations

from typing import Annotated, ClassVar

from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.message import Request, Response, Struct
from rejoin.protocol.types import ZERO_UUID, GroupId, In, Int32, Int64, KafkaUuid, PartitionIndex, TopicName

# --- describe


class DescribedOffsetsRequestTopic(Struct):
    """Partitions of one topic."""

    topic_name: TopicName
    partitions: tuple[PartitionIndex, ...]


class DescribedOffsetsRequestGroup(Struct):
    """A group, and partitions of it; null stands for all that are initialised."""

    group_id: GroupId
    topics: tuple[DescribedOffsetsRequestTopic, ...] | None


class DescribeShareGroupOffsetsRequest(Request):
    """Start offsets and lags of share-partitions."""

    groups: tuple[DescribedOffsetsRequestGroup, ...]

    def error_response(self, version: int, error: ErrorCode) -> Response:
        groups = (DescribedOffsetsGroup(group_id=each.group_id, error_code=error) for each in self.groups)
        return DescribeShareGroupOffsetsResponse(groups=tuple(groups))


class DescribedOffsetsPartition(Struct):
    """A share-partition as its coordinator has it; -1 for an offset or a lag that is not known."""

    partition_index: PartitionIndex = 0
    start_offset: Int64 = 0
    leader_epoch: Int32 = 0
    lag: Annotated[Int64, In(1)] = -1
    error_code: ErrorCode = ErrorCode.NONE
    error_message: str | None = None


class DescribedOffsetsTopic(Struct):
    """Partitions of one topic."""

    topic_name: TopicName = ""
    topic_id: KafkaUuid = ZERO_UUID
    partitions: tuple[DescribedOffsetsPartition, ...] = ()


class DescribedOffsetsGroup(Struct):
    """The share-partitions of one group."""

    IS_REPEATED: ClassVar[bool] = True

    group_id: GroupId = ""
    topics: tuple[DescribedOffsetsTopic, ...] = ()
    error_code: ErrorCode = ErrorCode.NONE
    error_message: str | None = None


class DescribeShareGroupOffsetsResponse(Response):
    """The offsets of each group asked for."""

    throttle_time_ms: Int32 = 0
    groups: tuple[DescribedOffsetsGroup, ...] = ()


# --- alter


class AlteredOffsetsRequestPartition(Struct):
    """A partition and the offset from which the group shall begin."""

    partition_index: PartitionIndex
    start_offset: Int64


class AlteredOffsetsRequestTopic(Struct):
    """Partitions of one topic."""

    topic_name: TopicName
    partitions: tuple[AlteredOffsetsRequestPartition, ...]


class AlterShareGroupOffsetsRequest(Request):
    """Begin elsewhere. The group must have no members."""

    group_id: GroupId
    topics: tuple[AlteredOffsetsRequestTopic, ...]

    def error_response(self, version: int, error: ErrorCode) -> Response:
        return AlterShareGroupOffsetsResponse(error_code=error)


class AlteredOffsetsPartition(Struct):
    """The result for one partition."""

    partition_index: PartitionIndex = 0
    error_code: ErrorCode = ErrorCode.NONE
    error_message: str | None = None


class AlteredOffsetsTopic(Struct):
    """Partitions of one topic."""

    topic_name: TopicName = ""
    topic_id: KafkaUuid = ZERO_UUID
    partitions: tuple[AlteredOffsetsPartition, ...] = ()


class AlterShareGroupOffsetsResponse(Response):
    """A result for each partition, or one error for all."""

    throttle_time_ms: Int32 = 0
    error_code: ErrorCode = ErrorCode.NONE
    error_message: str | None = None
    responses: tuple[AlteredOffsetsTopic, ...] = ()


# --- delete


class DeletedOffsetsRequestTopic(Struct):
    """A topic."""

    topic_name: TopicName


class DeleteShareGroupOffsetsRequest(Request):
    """Forget what a group without members keeps of some topics."""

    group_id: GroupId
    topics: tuple[DeletedOffsetsRequestTopic, ...]

    def error_response(self, version: int, error: ErrorCode) -> Response:
        return DeleteShareGroupOffsetsResponse(error_code=error)


class DeletedOffsetsTopic(Struct):
    """The result for one topic."""

    topic_name: TopicName = ""
    topic_id: KafkaUuid = ZERO_UUID
    error_code: ErrorCode = ErrorCode.NONE
    error_message: str | None = None


class DeleteShareGroupOffsetsResponse(Response):
    """A result for each topic, or one error for all."""

    throttle_time_ms: Int32 = 0
    error_code: ErrorCode = ErrorCode.NONE
    error_message: str | None = None
    responses: tuple[DeletedOffsetsTopic, ...] = ()
