"""ShareGroupHeartbeat (key 76): join a share group, stay in it, take over assignments, leave (KIP-932).

v1 is the first version of a release; v0 was that of the early access.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.message import Request, Response, Struct
from rejoin.protocol.types import GroupId, Int32, MemberId, PartitionIndex, TopicId, TopicName


class ShareGroupHeartbeatRequest(Request):
    """A member's heartbeat. Epoch 0 joins, -1 leaves; null fields are as they were before."""

    group_id: GroupId
    member_id: MemberId
    member_epoch: Int32
    rack_id: str | None = None
    subscribed_topic_names: tuple[TopicName, ...] | None = None

    def error_response(self, version: int, error: ErrorCode) -> Response:
        return refused(error)


class SharedTopicPartitions(Struct):
    """Partitions of one topic that the member reads, perhaps with others."""

    topic_id: TopicId
    partitions: tuple[PartitionIndex, ...] = ()


class ShareAssignment(Struct):
    """All that the member reads."""

    topic_partitions: tuple[SharedTopicPartitions, ...] = ()


class ShareGroupHeartbeatResponse(Response):
    """The member's epoch, and its assignment where that is new; without one, it is as it was before."""

    throttle_time_ms: Int32 = 0
    error_code: ErrorCode = ErrorCode.NONE
    error_message: str | None = None
    member_id: MemberId | None = None
    member_epoch: Int32 = 0
    heartbeat_interval_ms: Int32 = 0
    assignment: ShareAssignment | None = None


REASONS: Final[Mapping[ErrorCode, str]] = {
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS: "The coordinator still reads the group's log; send the heartbeat again.",
    ErrorCode.NOT_COORDINATOR: "Another broker coordinates this group; look for it with FindCoordinator.",
    ErrorCode.UNKNOWN_MEMBER_ID: "The group has no such member; join again with epoch 0.",
    ErrorCode.INVALID_REQUEST: "A field is missing or has a value that this memberEpoch does not allow.",
    ErrorCode.GROUP_ID_NOT_FOUND: "There is no such share group; join with epoch 0.",
    ErrorCode.GROUP_MAX_SIZE_REACHED: "The group has as many members as group.share.max.size allows.",
    ErrorCode.FENCED_MEMBER_EPOCH: "The member has another epoch; give up all partitions and join again with epoch 0.",
}
"""Messages beside errors of a group."""


def refused(error: ErrorCode) -> ShareGroupHeartbeatResponse:
    """The answer to a heartbeat that is refused."""
    return ShareGroupHeartbeatResponse(error_code=error, error_message=REASONS.get(error))
