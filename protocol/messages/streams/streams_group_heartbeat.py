"""StreamsGroupHeartbeat (key 88): join a streams group, stay in it, take over tasks, leave (KIP-1071).

v1 adds to the response whether the member is to describe its topology, and the lag at which a task counts as restored.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum
from typing import Annotated, Final

from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.message import Request, Response, Struct
from rejoin.protocol.streams.tasks import TaskIds, TaskOffset
from rejoin.protocol.streams.topology import StreamsKeyValue, Subtopology, UserEndpoint
from rejoin.protocol.types import GroupId, GroupInstanceId, In, Int8, Int32, Int64, MemberId, PartitionIndex, TopicName


class StreamsTopology(Struct):
    """The topology that a member joins with."""

    epoch: Int32
    subtopologies: tuple[Subtopology, ...]


class StreamsGroupHeartbeatRequest(Request):
    """A member's heartbeat. Epoch 0 joins, -1 leaves, -2 leaves for a moment; null fields are as they were before.

    Timeouts are in ms. Tasks are those that the member has.
    """

    group_id: GroupId
    member_id: MemberId
    member_epoch: Int32
    endpoint_information_epoch: Int32
    instance_id: GroupInstanceId | None = None
    rack_id: str | None = None
    rebalance_timeout_ms: Int32 = -1
    topology: StreamsTopology | None = None
    active_tasks: tuple[TaskIds, ...] | None = None
    standby_tasks: tuple[TaskIds, ...] | None = None
    warmup_tasks: tuple[TaskIds, ...] | None = None
    process_id: str | None = None
    user_endpoint: UserEndpoint | None = None
    client_tags: tuple[StreamsKeyValue, ...] | None = None
    task_offsets: tuple[TaskOffset, ...] | None = None
    task_end_offsets: tuple[TaskOffset, ...] | None = None
    shutdown_application: bool = False

    def error_response(self, version: int, error: ErrorCode) -> Response:
        return refused(error)


class StreamsStatus(IntEnum):
    """A condition of the group that is no error, by its number on the wire."""

    STALE_TOPOLOGY = 0
    MISSING_SOURCE_TOPICS = 1
    INCORRECTLY_PARTITIONED_TOPICS = 2
    MISSING_INTERNAL_TOPICS = 3
    SHUTDOWN_APPLICATION = 4
    ASSIGNMENT_DELAYED = 5
    MISSING_CLIENT_TAGS = 6


class StreamsGroupStatus(Struct):
    """A status of the group, with what it is about in words."""

    status_code: Int8
    status_detail: str


class EndpointTopicPartitions(Struct):
    """Partitions of one topic."""

    topic: TopicName
    partitions: tuple[PartitionIndex, ...]


class EndpointPartitions(Struct):
    """The partitions whose state is found at an endpoint."""

    user_endpoint: UserEndpoint
    active_partitions: tuple[EndpointTopicPartitions, ...]
    standby_partitions: tuple[EndpointTopicPartitions, ...]


class StreamsGroupHeartbeatResponse(Response):
    """The member's epoch, and its tasks where they are new; without any list, they are as they were before."""

    throttle_time_ms: Int32 = 0
    error_code: ErrorCode = ErrorCode.NONE
    error_message: str | None = None
    member_id: MemberId = ""
    member_epoch: Int32 = 0
    heartbeat_interval_ms: Int32 = 0
    acceptable_recovery_lag_legacy: Annotated[Int32, In(0, 0)] = 0
    task_offset_interval_ms: Int32 = 0
    acceptable_recovery_lag: Annotated[Int64, In(1)] = -1
    status: tuple[StreamsGroupStatus, ...] | None = ()
    active_tasks: tuple[TaskIds, ...] | None = None
    standby_tasks: tuple[TaskIds, ...] | None = None
    warmup_tasks: tuple[TaskIds, ...] | None = None
    topology_description_required: Annotated[bool, In(1)] = False
    endpoint_information_epoch: Int32 = 0
    partitions_by_user_endpoint: tuple[EndpointPartitions, ...] | None = None


REASONS: Final[Mapping[ErrorCode, str]] = {
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS: "The coordinator still reads the group's log; send the heartbeat again.",
    ErrorCode.NOT_COORDINATOR: "Another broker coordinates this group; look for it with FindCoordinator.",
    ErrorCode.UNKNOWN_MEMBER_ID: "The group has no such member; join again with epoch 0.",
    ErrorCode.INVALID_REQUEST: "A field is missing or has a value that this memberEpoch does not allow.",
    ErrorCode.GROUP_ID_NOT_FOUND: "There is no such streams group; join with epoch 0.",
    ErrorCode.GROUP_MAX_SIZE_REACHED: "The group has as many members as group.streams.max.size allows.",
    ErrorCode.FENCED_MEMBER_EPOCH: "The member has another epoch; close all tasks and join again with epoch 0.",
    ErrorCode.UNRELEASED_INSTANCE_ID: "Another member has this instance id, and has not left.",
    ErrorCode.FENCED_INSTANCE_ID: "Another member has taken over this instance id.",
    ErrorCode.STREAMS_INVALID_TOPOLOGY: "A subtopology has no sources, a topic no number of partitions, "
    "or the topology more tasks than a group may have.",
}
"""Messages beside errors of a group."""


def refused(error: ErrorCode) -> StreamsGroupHeartbeatResponse:
    """The answer to a heartbeat that is refused."""
    return StreamsGroupHeartbeatResponse(error_code=error, error_message=REASONS.get(error))
