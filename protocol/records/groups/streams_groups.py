"""The records of streams groups (KIP-1071) in ``__consumer_offsets``: keys 17 and 19 to 23.

Source: Kafka's ``StreamsGroup...Key`` and ``StreamsGroup...Value`` of 4.4. Only a tagged default is left out.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar, TypeAlias

from rejoin.protocol.records.data import RecordData
from rejoin.protocol.records.groups.group_parts import AssignmentEpoch, GroupPart, MemberPart
from rejoin.protocol.streams.topology import StreamsKeyValue, Subtopology, UserEndpoint
from rejoin.protocol.types import GroupInstanceId, In, Int8, Int32, Int64, PartitionIndex

# --- groups


@dataclass(slots=True, kw_only=True)
class StreamsGroupMetadataValue(RecordData):
    """The group epoch, the hash of the topics that the topology needs, and what the epoch was made with.

    Topology epochs are -1 where there is none: of the topology whose topics are all there, of the description that is
    stored, and of the description that could not be stored.
    """

    epoch: Int32
    metadata_hash: Int64
    validated_topology_epoch: Annotated[Int32, In(0, tag=0)] = -1
    last_assignment_configs: Annotated[tuple[StreamsKeyValue, ...] | None, In(0, tag=1)] = None
    stored_description_topology_epoch: Annotated[Int32, In(0, tag=2)] = -1
    failed_description_topology_epoch: Annotated[Int32, In(0, tag=3)] = -1


@dataclass(slots=True)
class StreamsGroupMetadataRecord(GroupPart[StreamsGroupMetadataValue]):
    """A group, or its end."""

    key_version: ClassVar[int] = 17


@dataclass(slots=True)
class StreamsGroupTargetAssignmentMetadataRecord(GroupPart[AssignmentEpoch]):
    """The epoch of a group's target assignment, or its end."""

    key_version: ClassVar[int] = 20


@dataclass(slots=True, kw_only=True)
class StreamsGroupTopologyValue(RecordData):
    """A topology as the first member sent it."""

    epoch: Int32
    subtopologies: tuple[Subtopology, ...]


@dataclass(slots=True)
class StreamsGroupTopologyRecord(GroupPart[StreamsGroupTopologyValue]):
    """The topology of a group, or its end."""

    key_version: ClassVar[int] = 23


# --- members


@dataclass(slots=True, kw_only=True)
class StreamsGroupMemberMetadataValue(RecordData):
    """A member as it described itself."""

    instance_id: GroupInstanceId | None = None
    rack_id: str | None = None
    client_id: str
    client_host: str
    rebalance_timeout_ms: Int32
    topology_epoch: Int32
    process_id: str
    user_endpoint: UserEndpoint | None = None
    client_tags: tuple[StreamsKeyValue, ...]


@dataclass(slots=True)
class StreamsGroupMemberMetadataRecord(MemberPart[StreamsGroupMemberMetadataValue]):
    """A member's own description, or the end of the member."""

    key_version: ClassVar[int] = 19


@dataclass(slots=True, kw_only=True)
class StoredTaskIds(RecordData):
    """Tasks of one subtopology."""

    subtopology_id: str
    partitions: tuple[PartitionIndex, ...]


@dataclass(slots=True, kw_only=True)
class StreamsGroupTargetAssignmentMemberValue(RecordData):
    """A member's target assignment."""

    active_tasks: tuple[StoredTaskIds, ...]
    standby_tasks: tuple[StoredTaskIds, ...]
    warmup_tasks: tuple[StoredTaskIds, ...]


@dataclass(slots=True)
class StreamsGroupTargetAssignmentMemberRecord(MemberPart[StreamsGroupTargetAssignmentMemberValue]):
    """The target assignment of a member, or its end."""

    key_version: ClassVar[int] = 21


@dataclass(slots=True, kw_only=True)
class CurrentTaskIds(RecordData):
    """Active tasks of one subtopology, each with the assignment epoch at which the member got it."""

    subtopology_id: str
    partitions: tuple[PartitionIndex, ...]
    assignment_epochs: Annotated[tuple[Int32, ...] | None, In(0, tag=0)] = None


@dataclass(slots=True, kw_only=True)
class StreamsGroupCurrentMemberAssignmentValue(RecordData):
    """A member's tasks, and tasks to revoke. States: 1 stable, 2 unrevoked tasks, 3 unreleased tasks."""

    member_epoch: Int32
    previous_member_epoch: Int32
    state: Int8
    active_tasks: tuple[CurrentTaskIds, ...]
    standby_tasks: tuple[StoredTaskIds, ...]
    warmup_tasks: tuple[StoredTaskIds, ...]
    active_tasks_pending_revocation: tuple[CurrentTaskIds, ...]
    standby_tasks_pending_revocation: tuple[StoredTaskIds, ...]
    warmup_tasks_pending_revocation: tuple[StoredTaskIds, ...]


@dataclass(slots=True)
class StreamsGroupCurrentMemberAssignmentRecord(MemberPart[StreamsGroupCurrentMemberAssignmentValue]):
    """The current assignment of a member, or its end."""

    key_version: ClassVar[int] = 22


StreamsGroupRecord: TypeAlias = (
    StreamsGroupMetadataRecord
    | StreamsGroupMemberMetadataRecord
    | StreamsGroupTargetAssignmentMetadataRecord
    | StreamsGroupTargetAssignmentMemberRecord
    | StreamsGroupCurrentMemberAssignmentRecord
    | StreamsGroupTopologyRecord
)
"""A record of a streams group."""
