"""StreamsGroupDescribe (key 89): epochs, topologies, members and tasks of streams groups (KIP-1071).

v1 adds the description of the topology for people (KIP-1331) and the name of the assignor (KIP-1357).
"""

from __future__ import annotations

from typing import Annotated, ClassVar

from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.message import Request, Response, Struct
from rejoin.protocol.streams.tasks import TaskIds, TaskOffset
from rejoin.protocol.streams.topology import StreamsKeyValue, StreamsTopicInfo, UserEndpoint
from rejoin.protocol.streams.topology_description import TopologyDescription
from rejoin.protocol.types import GroupId, GroupInstanceId, In, Int8, Int32, MemberId, TopicName


class StreamsGroupDescribeRequest(Request):
    """Describe streams groups by id."""

    group_ids: tuple[GroupId, ...]
    include_authorized_operations: bool
    include_topology_description: Annotated[bool, In(1)] = False

    def error_response(self, version: int, error: ErrorCode) -> Response:
        groups = (DescribedStreamsGroup(group_id=group_id, error_code=error) for group_id in self.group_ids)
        return StreamsGroupDescribeResponse(groups=tuple(groups))


class DescribedSubtopology(Struct):
    """A subtopology, with the numbers of partitions that its internal topics have where that is known."""

    subtopology_id: str = ""
    source_topics: tuple[TopicName, ...] = ()
    repartition_sink_topics: tuple[TopicName, ...] = ()
    state_changelog_topics: tuple[StreamsTopicInfo, ...] = ()
    repartition_source_topics: tuple[StreamsTopicInfo, ...] = ()


class DescribedTopology(Struct):
    """The topology of a group."""

    epoch: Int32 = 0
    subtopologies: tuple[DescribedSubtopology, ...] | None = None


class DescribedTasks(Struct):
    """Tasks of a member by their kinds."""

    active_tasks: tuple[TaskIds, ...] = ()
    standby_tasks: tuple[TaskIds, ...] = ()
    warmup_tasks: tuple[TaskIds, ...] = ()


class DescribedStreamsGroupMember(Struct):
    """A member."""

    member_id: MemberId = ""
    member_epoch: Int32 = 0
    instance_id: GroupInstanceId | None = None
    rack_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    topology_epoch: Int32 = 0
    process_id: str = ""
    user_endpoint: UserEndpoint | None = None
    client_tags: tuple[StreamsKeyValue, ...] = ()
    task_offsets: tuple[TaskOffset, ...] = ()
    task_end_offsets: tuple[TaskOffset, ...] = ()
    assignment: DescribedTasks = DescribedTasks()
    target_assignment: DescribedTasks = DescribedTasks()
    is_classic: bool = False


class DescribedStreamsGroup(Struct):
    """A group; one that does not exist, or is of another type, has an error."""

    IS_REPEATED: ClassVar[bool] = True

    error_code: ErrorCode = ErrorCode.NONE
    error_message: str | None = None
    group_id: GroupId = ""
    group_state: str = ""
    group_epoch: Int32 = 0
    assignment_epoch: Int32 = 0
    topology: DescribedTopology | None = None
    members: tuple[DescribedStreamsGroupMember, ...] = ()
    authorized_operations: Int32 = -2147483648
    topology_description: Annotated[TopologyDescription | None, In(1)] = None
    topology_description_status: Annotated[Int8, In(1)] = 0
    assignor_name: Annotated[str | None, In(1)] = None


class StreamsGroupDescribeResponse(Response):
    """A description for each group asked for."""

    throttle_time_ms: Int32 = 0
    groups: tuple[DescribedStreamsGroup, ...] = ()
