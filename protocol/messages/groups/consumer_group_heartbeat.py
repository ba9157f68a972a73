"""ConsumerGroupHeartbeat (key 68): join a consumer group, stay in it, take over assignments, leave (KIP-848).

v1 adds subscription by a regular expression, and the client makes its member id itself (KIP-1082).
"""

from typing import Annotated

from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.message import Request, Response, Struct
from rejoin.protocol.types import GroupId, GroupInstanceId, In, Int32, MemberId, PartitionIndex, TopicId, TopicName


class OwnedTopicPartitions(Struct):
    """Partitions of one topic that the member owns."""

    topic_id: TopicId
    partitions: tuple[PartitionIndex, ...]


class ConsumerGroupHeartbeatRequest(Request):
    """A member's heartbeat. Epoch 0 joins, -1 leaves, -2 leaves for a moment; null fields are as they were before."""

    group_id: GroupId
    member_id: MemberId
    member_epoch: Int32
    instance_id: GroupInstanceId | None = None
    rack_id: str | None = None
    rebalance_timeout_ms: Int32 = -1
    subscribed_topic_names: tuple[TopicName, ...] | None = None
    subscribed_topic_regex: Annotated[str | None, In(1)] = None
    server_assignor: str | None = None
    topic_partitions: tuple[OwnedTopicPartitions, ...] | None = None

    def error_response(self, version: int, error: ErrorCode) -> Response:
        return ConsumerGroupHeartbeatResponse(error_code=error)


class AssignedTopicPartitions(Struct):
    """Partitions of one topic that the member may use."""

    topic_id: TopicId
    partitions: tuple[PartitionIndex, ...] = ()


class HeartbeatAssignment(Struct):
    """All that the member may use."""

    topic_partitions: tuple[AssignedTopicPartitions, ...] = ()


class ConsumerGroupHeartbeatResponse(Response):
    """The member's epoch, and its assignment where that is new; without one, it is as it was before."""

    throttle_time_ms: Int32 = 0
    error_code: ErrorCode = ErrorCode.NONE
    error_message: str | None = None
    member_id: MemberId | None = None
    member_epoch: Int32 = 0
    heartbeat_interval_ms: Int32 = 0
    assignment: HeartbeatAssignment | None = None
