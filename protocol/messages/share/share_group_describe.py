"""ShareGroupDescribe (key 77): epochs, members and assignments of share groups (KIP-932)."""

from typing import ClassVar

from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.message import Request, Response, Struct
from rejoin.protocol.types import ZERO_UUID, GroupId, Int32, MemberId, PartitionIndex, TopicId, TopicName


class ShareGroupDescribeRequest(Request):
    """Describe share groups by id."""

    group_ids: tuple[GroupId, ...]
    include_authorized_operations: bool

    def error_response(self, version: int, error: ErrorCode) -> Response:
        groups = (DescribedShareGroup(group_id=group_id, error_code=error) for group_id in self.group_ids)
        return ShareGroupDescribeResponse(groups=tuple(groups))


class DescribedShareTopic(Struct):
    """Partitions of one topic."""

    topic_id: TopicId = ZERO_UUID
    topic_name: TopicName = ""
    partitions: tuple[PartitionIndex, ...] = ()


class DescribedShareAssignment(Struct):
    """A member's assignment."""

    topic_partitions: tuple[DescribedShareTopic, ...] = ()


class DescribedShareGroupMember(Struct):
    """A member."""

    member_id: MemberId = ""
    rack_id: str | None = None
    member_epoch: Int32 = 0
    client_id: str = ""
    client_host: str = ""
    subscribed_topic_names: tuple[TopicName, ...] = ()
    assignment: DescribedShareAssignment = DescribedShareAssignment()


class DescribedShareGroup(Struct):
    """A group; one that does not exist, or is of another type, has an error."""

    IS_REPEATED: ClassVar[bool] = True

    error_code: ErrorCode = ErrorCode.NONE
    error_message: str | None = None
    group_id: GroupId = ""
    group_state: str = ""
    group_epoch: Int32 = 0
    assignment_epoch: Int32 = 0
    assignor_name: str = ""
    members: tuple[DescribedShareGroupMember, ...] = ()
    authorized_operations: Int32 = -2147483648


class ShareGroupDescribeResponse(Response):
    """A description for each group asked for."""

    throttle_time_ms: Int32 = 0
    groups: tuple[DescribedShareGroup, ...] = ()
