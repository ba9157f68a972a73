"""The state of a streams group's member between two steps, beside the one it shares with consumer groups.

Source: Kafka's StreamsRebalanceData and StreamsMembershipManager.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from rejoin.client.core.group.consumer.state import ConsumerMembership
from rejoin.client.core.group.streams.tasks import NO_TASKS, StreamsTasks, TaskId
from rejoin.client.core.inputs import Millis
from rejoin.protocol.messages.streams.streams_group_heartbeat import (
    EndpointPartitions,
    StreamsGroupStatus,
    StreamsTopology,
)
from rejoin.protocol.streams.tasks import TaskOffset
from rejoin.protocol.streams.topology import UserEndpoint

NO_ENDPOINT_EPOCH: Final = -1
"""Endpoint information epoch of a member that has had no response yet."""


@dataclass(frozen=True, slots=True)
class StreamsApplication:
    """One instance of an application: what all of its threads send when they join."""

    process_id: str
    topology: StreamsTopology
    endpoint: UserEndpoint | None = None
    """``application.server``: the address at which the instance answers queries."""
    tags: Mapping[str, str] = field(default_factory=dict)
    """``client.tag.*``."""

    def topics_of(self, subtopology: str) -> tuple[str, ...] | None:
        """The topics that a subtopology reads; none where there is no such subtopology."""
        for each in self.topology.subtopologies:
            if each.subtopology_id == subtopology:
                return (*each.source_topics, *(info.name for info in each.repartition_source_topics))
        return None

    @property
    def source_topics(self) -> tuple[str, ...]:
        """The topics that the application reads, repartition topics included, ascending."""
        found = (topic for each in self.topology.subtopologies for topic in self.topics_of(each.subtopology_id) or ())
        return tuple(sorted(set(found)))


class LocalTasks(NamedTuple):
    """An assignment as this member counts them: it is new with each that differs from the one before."""

    epoch: int
    tasks: StreamsTasks
    is_group_ready: bool


NO_LOCAL_TASKS: Final = LocalTasks(-1, NO_TASKS, False)


class SentTasks(NamedTuple):
    """The tasks and offsets last sent; none: nothing since the last join, error or lost response."""

    tasks: StreamsTasks | None = None
    offsets: tuple[TaskOffset, ...] | None = None
    end_offsets: tuple[TaskOffset, ...] | None = None


NO_TASKS_SENT: Final = SentTasks()


@dataclass(slots=True)
class StreamsMembership(ConsumerMembership):
    """One thread of an application. Its id is made once, and kept for as long as the thread lives."""

    application: StreamsApplication = StreamsApplication("", StreamsTopology(epoch=0, subtopologies=()))
    tasks_target: LocalTasks = NO_LOCAL_TASKS
    tasks_current: LocalTasks = NO_LOCAL_TASKS
    """Tasks that the thread has taken over."""
    sent_tasks: SentTasks = NO_TASKS_SENT
    endpoint_epoch: int = NO_ENDPOINT_EPOCH
    endpoints: tuple[EndpointPartitions, ...] = ()
    """Where the state of each partition is found, as far as the coordinator has said."""
    statuses: tuple[StreamsGroupStatus, ...] = ()
    """Conditions of the group in the last response."""
    sources_missing_since: Millis | None = None
    """When source topics were first missing, while they are."""

    offsets: dict[TaskId, int] = field(default_factory=dict)
    """Sums of the changelog offsets that the state of tasks has reached, of those that run or are on disk."""
    end_offsets: dict[TaskId, int] = field(default_factory=dict)
    offsets_due_at: Millis = 0
    task_offset_interval_ms: Millis = 0
    acceptable_recovery_lag: int = -1
    wants_shutdown: bool = False
    """The thread asked for the end of the whole application."""

    @property
    def is_reconciled(self) -> bool:
        return self.tasks_current == self.tasks_target

    def forget_assignments(self) -> None:
        self.tasks_target = self.tasks_current = NO_LOCAL_TASKS

    def forget_sent(self) -> None:
        self.sent_tasks = NO_TASKS_SENT

    def tasks_given_up(self) -> StreamsTasks:
        return self.tasks_current.tasks

    @property
    def is_warmup_near(self) -> bool:
        """Whether a warm-up task has caught up, which the coordinator is to learn soon."""
        return any(
            self.end_offsets.get(task, 0) - self.offsets.get(task, 0) <= self.acceptable_recovery_lag
            for task in self.tasks_current.tasks.warmup
        )
