"""ConsumerGroupHeartbeat (key 68): join a consumer group, stay in it, take over assignments, leave (KIP-848).

v1 adds subscription by a regular expression, and the client makes its member id itself (KIP-1082).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Final

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
        return refused(error)


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


REASONS: Final[Mapping[ErrorCode, str]] = {
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS: "The coordinator still reads the group's log; send the heartbeat again.",
    ErrorCode.NOT_COORDINATOR: "Another broker coordinates this group; look for it with FindCoordinator.",
    ErrorCode.UNKNOWN_MEMBER_ID: "The group has no such member; join again with epoch 0.",
    ErrorCode.INVALID_REQUEST: "A field is missing or has a value that this memberEpoch does not allow.",
    ErrorCode.GROUP_ID_NOT_FOUND: "There is no such consumer group; join with epoch 0.",
    ErrorCode.GROUP_MAX_SIZE_REACHED: "The group has as many members as group.consumer.max.size allows.",
    ErrorCode.FENCED_INSTANCE_ID: "Another member has this instanceId by now.",
    ErrorCode.FENCED_MEMBER_EPOCH: "The member has another epoch; give up all partitions and join again with epoch 0.",
    ErrorCode.UNRELEASED_INSTANCE_ID: "A member with this instanceId is still in the group, and has not left.",
    ErrorCode.UNSUPPORTED_ASSIGNOR: "The serverAssignor is none of group.consumer.assignors.",
    ErrorCode.INVALID_REGULAR_EXPRESSION: "The subscribedTopicRegex cannot be read as RE2 syntax.",
}
"""Messages beside errors of a group."""


def refused(error: ErrorCode) -> ConsumerGroupHeartbeatResponse:
    """The answer to a heartbeat that is refused."""
    return ConsumerGroupHeartbeatResponse(error_code=error, error_message=REASONS.get(error))
