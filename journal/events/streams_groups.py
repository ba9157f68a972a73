"""Events of streams groups (KIP-1071) that other groups do not have: topologies, and tasks in place of partitions.

A streams group also has the events of groups with epochs: members join and are removed, and the epoch is bumped.
``generation`` is the group's epoch. Tasks are partition numbers by the id of their subtopology.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

from pydantic import Field

from rejoin.journal.events.client import Offsets
from rejoin.journal.events.coordinator import GroupEvent

TasksBySubtopology: TypeAlias = dict[str, list[int]]
"""Tasks, in ascending order."""


Refusal: TypeAlias = Literal[
    "other-topology", "invalid-topology", "unknown-task", "endpoints", "other-type", "turned-off", "size"
]
"""Why a member of a streams group is refused, with Kafka's error beside it.

other-topology: its topology is not the group's. invalid-topology: the topology cannot run on any topics. unknown-task:
the member names a task that the topology does not have. endpoints: the partitions behind the members' endpoints are not
known while topics are missing. other-type: a group of this name speaks another protocol. turned-off: the cluster serves
no streams groups. size: ``group.streams.max.size``.
"""


class StreamsGroupEvent(GroupEvent):
    """An event that only streams groups have."""


class StreamsTopologyInitialized(StreamsGroupEvent):
    """The group has its topology, from its first member: the ids of the subtopologies."""

    topology_epoch: int
    subtopologies: list[str]


class StreamsTargetComputed(StreamsGroupEvent):
    """An assignor ran. The targets are tasks of each member whose target differs from before."""

    generation: int
    assignor: str
    member_count: int
    active_targets: dict[str, TasksBySubtopology]
    standby_targets: dict[str, TasksBySubtopology]


class StreamsMemberAssigned(StreamsGroupEvent):
    """A member has other tasks, or tasks to revoke, or another state than before."""

    member_id: str
    group_instance_id: str | None
    process_id: str
    member_epoch: int
    member_state: str
    active: TasksBySubtopology
    standby: TasksBySubtopology
    revoking_active: TasksBySubtopology
    revoking_standby: TasksBySubtopology
    warmup: TasksBySubtopology = Field(default_factory=dict)
    previous_member_epoch: int | None = None


class StreamsMemberDescribed(StreamsGroupEvent):
    """A member describes itself as it joins, and whenever that changes: ``changed_fields`` are those that differ."""

    member_id: str
    group_instance_id: str | None
    client_id: str
    client_host: str
    process_id: str
    rack_id: str | None
    topology_epoch: int
    rebalance_timeout_ms: int
    user_endpoint: str | None
    client_tags: list[str]
    changed_fields: list[str]


class StreamsTopologyConfigured(StreamsGroupEvent):
    """The topology was compared with the topics of the cluster, through a member's heartbeat.

    Without ``status`` it can run. Otherwise the group is NotReady, ``reason`` has the topics, and no member has tasks.
    """

    member_id: str
    topology_epoch: int
    status: str | None
    reason: str | None


class StreamsInternalTopicsCreated(StreamsGroupEvent):
    """Repartition and changelog topics were created for a group; or not, with Kafka's error and the reason in words."""

    topics: list[str]
    error: str | None
    reason: str | None


class StreamsShutdownRequested(StreamsGroupEvent):
    """A member asks all members to end. The broker asks each of them with its next heartbeat."""

    member_id: str
    group_instance_id: str | None


class StreamsHeartbeatRefused(StreamsGroupEvent):
    """A member was refused with an error that ends a Java application."""

    member_id: str
    group_instance_id: str | None
    client_id: str
    client_host: str
    error: str
    reason: Refusal


class StreamsTaskOffsetsReported(StreamsGroupEvent):
    """A member reports how far the state of its tasks is restored: sums of changelog offsets by subtopology and task.

    Standbys and active tasks alike. Without ``end_offsets`` their ends are those that were reported before.
    """

    member_id: str
    task_offsets: Offsets | None
    task_end_offsets: Offsets | None
