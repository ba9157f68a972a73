"""OffsetFetch (key 9): read committed offsets.

v2 allows null topics (all of the group) and adds a top-level error, v5 the leader epoch, v7 ``requireStable``
(KIP-447), v8 several groups in one request (KIP-709), v9 member id and epoch of a consumer group's member (KIP-848);
v10 names topics by their ids.
"""

from typing import Annotated, ClassVar

from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.message import Request, Response, Struct
from rejoin.protocol.types import ZERO_UUID, GroupId, In, Int32, Int64, MemberId, PartitionIndex, TopicId, TopicName


class OffsetFetchRequestTopic(Struct):
    """Partitions of one topic (up to v7)."""

    name: TopicName
    partition_indexes: tuple[PartitionIndex, ...]


class OffsetFetchRequestTopics(Struct):
    """Partitions of one topic (from v8)."""

    name: Annotated[TopicName, In(8, 9, needed=True)] = ""
    topic_id: Annotated[TopicId, In(10, needed=True)] = ZERO_UUID
    partition_indexes: tuple[PartitionIndex, ...]


class OffsetFetchRequestGroup(Struct):
    """A group's requested topics; null means all. Member id and epoch are ignored for classic groups."""

    group_id: GroupId
    member_id: Annotated[MemberId | None, In(9)] = None
    member_epoch: Annotated[Int32, In(9)] = -1
    topics: tuple[OffsetFetchRequestTopics, ...] | None


class OffsetFetchRequest(Request):
    """Fetch offsets of one group (up to v7) or of several."""

    group_id: Annotated[GroupId, In(0, 7, needed=True)] = ""
    topics: Annotated[tuple[OffsetFetchRequestTopic, ...] | None, In(0, 7, needed=True, nullable=2)] = ()
    groups: Annotated[tuple[OffsetFetchRequestGroup, ...], In(8, needed=True)] = ()
    require_stable: Annotated[bool, In(7)] = False

    def error_response(self, version: int, error: ErrorCode) -> Response:
        if version >= 8:
            groups = (OffsetFetchResponseGroup(group_id=group.group_id, error_code=error) for group in self.groups)
            return OffsetFetchResponse(groups=tuple(groups))
        if version >= 2:
            return OffsetFetchResponse(error_code=error)
        return OffsetFetchResponse(
            topics=tuple(
                OffsetFetchResponseTopic(
                    name=topic.name,
                    partitions=tuple(
                        OffsetFetchResponsePartition(partition_index=index, committed_offset=-1, error_code=error)
                        for index in topic.partition_indexes
                    ),
                )
                for topic in self.topics or ()
            )
        )


class OffsetFetchResponsePartition(Struct):
    """A committed offset (up to v7); -1 when there is none."""

    partition_index: PartitionIndex = 0
    committed_offset: Int64 = 0
    committed_leader_epoch: Annotated[Int32, In(5)] = -1
    metadata: str | None = ""
    error_code: ErrorCode = ErrorCode.NONE


class OffsetFetchResponseTopic(Struct):
    """Partitions of one topic (up to v7)."""

    name: TopicName = ""
    partitions: tuple[OffsetFetchResponsePartition, ...] = ()


class OffsetFetchResponsePartitions(Struct):
    """A committed offset (from v8); -1 when there is none."""

    partition_index: PartitionIndex = 0
    committed_offset: Int64 = 0
    committed_leader_epoch: Int32 = -1
    metadata: str | None = ""
    error_code: ErrorCode = ErrorCode.NONE


class OffsetFetchResponseTopics(Struct):
    """Partitions of one topic (from v8)."""

    name: Annotated[TopicName, In(8, 9)] = ""
    topic_id: Annotated[TopicId, In(10)] = ZERO_UUID
    partitions: tuple[OffsetFetchResponsePartitions, ...] = ()


class OffsetFetchResponseGroup(Struct):
    """The offsets of one group, or its error."""

    IS_REPEATED: ClassVar[bool] = True

    group_id: GroupId = ""
    topics: tuple[OffsetFetchResponseTopics, ...] = ()
    error_code: ErrorCode = ErrorCode.NONE


class OffsetFetchResponse(Response):
    """Offsets by topic (up to v7) or by group and topic."""

    throttle_time_ms: Annotated[Int32, In(3)] = 0
    topics: Annotated[tuple[OffsetFetchResponseTopic, ...], In(0, 7)] = ()
    error_code: Annotated[ErrorCode, In(2, 7)] = ErrorCode.NONE
    groups: Annotated[tuple[OffsetFetchResponseGroup, ...], In(8)] = ()
