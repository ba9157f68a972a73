"""Events of streams groups (KIP-1071) that other groups do not have: topologies, and tasks in place of partitions.

A streams group also has the events of groups with epochs: members join and are removed, and the epoch is bumped.
``generation`` is the group's epoch. Tasks are partition numbers by the id of their subtopology.
"""

from __future__ import annotations

from typing import TypeAlias

from rejoin.journal.events.coordinator import GroupEvent

TasksBySubtopology: TypeAlias = dict[str, list[int]]
"""Tasks, in ascending order."""


class StreamsTopologyInitialized(GroupEvent):
    """The group has its topology, from its first member: the ids of the subtopologies."""

    topology_epoch: int
    subtopologies: list[str]


class StreamsTargetComputed(GroupEvent):
    """An assignor ran. The targets are tasks of each member whose target differs from before."""

    generation: int
    assignor: str
    member_count: int
    active_targets: dict[str, TasksBySubtopology]
    standby_targets: dict[str, TasksBySubtopology]


class StreamsMemberAssigned(GroupEvent):
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
