"""Events of members of streams groups (KIP-1071): threads of an application, with tasks in place of partitions.

Tasks are partition numbers by the id of their subtopology.
"""

from __future__ import annotations

from rejoin.journal.events.base import Long
from rejoin.journal.events.client import MemberEvent
from rejoin.journal.events.streams_groups import TasksBySubtopology


class StreamsTargetReceived(MemberEvent):
    """The coordinator named other tasks than before, or the group became ready, or ceased to be."""

    active: TasksBySubtopology
    standby: TasksBySubtopology
    warmup: TasksBySubtopology
    is_group_ready: bool


class StreamsTasksAssigned(MemberEvent):
    """The thread has taken over its target: all tasks that it has now."""

    active: TasksBySubtopology
    standby: TasksBySubtopology
    warmup: TasksBySubtopology


class StreamsTasksGivenUp(MemberEvent):
    """The thread has given up tasks: revoked by the coordinator, or lost with its membership."""

    reason: str
    active: TasksBySubtopology
    standby: TasksBySubtopology


class StreamsStatusReceived(MemberEvent):
    """The conditions of the group are others than before; none where all is well."""

    statuses: list[str]


class StreamsTaskRestored(MemberEvent):
    """An active task begins to process: its state is complete. ``state_from`` says where most of the state was.

    It is ``standby``, ``disk``, ``changelog``, or ``none`` for a task without state.
    """

    subtopology_id: str
    partition: int
    state_from: str
    restored_records: Long
    restore_ms: Long
