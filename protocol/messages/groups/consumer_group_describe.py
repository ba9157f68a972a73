"""ConsumerGroupDescribe (key 69): epochs, members and assignments of consumer groups (KIP-848).

v1 adds the type of each member: it may still use the classic protocol (KIP-1099).
"""

from typing import Annotated, ClassVar

from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.message import Request, Response, Struct
from rejoin.protocol.types import (
    ZERO_UUID,
    GroupId,
    GroupInstanceId,
    In,
    Int8,
    Int32,
    MemberId,
    PartitionIndex,
    TopicId,
    TopicName,
)


class ConsumerGroupDescribeRequest(Request):
    """Describe consumer groups by id."""

    group_ids: tuple[GroupId, ...]
    include_authorized_operations: bool

    def error_response(self, version: int, error: ErrorCode) -> Response:
        groups = (DescribedConsumerGroup(group_id=group_id, error_code=error) for group_id in self.group_ids)
        return ConsumerGroupDescribeResponse(groups=tuple(groups))


class DescribedTopicPartitions(Struct):
    """Partitions of one topic."""

    topic_id: TopicId = ZERO_UUID
    topic_name: TopicName = ""
    partitions: tuple[PartitionIndex, ...] = ()


class DescribedAssignment(Struct):
    """A member's current or target assignment."""

    topic_partitions: tuple[DescribedTopicPartitions, ...] = ()


class DescribedConsumerGroupMember(Struct):
    """A member. Types: 0 classic, 1 consumer, -1 unknown."""

    member_id: MemberId = ""
    instance_id: GroupInstanceId | None = None
    rack_id: str | None = None
    member_epoch: Int32 = 0
    client_id: str = ""
    client_host: str = ""
    subscribed_topic_names: tuple[TopicName, ...] = ()
    subscribed_topic_regex: str | None = None
    assignment: DescribedAssignment = DescribedAssignment()
    target_assignment: DescribedAssignment = DescribedAssignment()
    member_type: Annotated[Int8, In(1)] = -1


class DescribedConsumerGroup(Struct):
    """A group; one that does not exist, or is of another type, has an error."""

    IS_REPEATED: ClassVar[bool] = True

    error_code: ErrorCode = ErrorCode.NONE
    error_message: str | None = None
    group_id: GroupId = ""
    group_state: str = ""
    group_epoch: Int32 = 0
    assignment_epoch: Int32 = 0
    assignor_name: str = ""
    members: tuple[DescribedConsumerGroupMember, ...] = ()
    authorized_operations: Int32 = -2147483648


class ConsumerGroupDescribeResponse(Response):
    """A description for each group asked for."""

    throttle_time_ms: Int32 = 0
    groups: tuple[DescribedConsumerGroup, ...] = ()
