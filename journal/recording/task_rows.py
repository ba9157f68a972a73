"""Rows of streams groups (KIP-1071): the tasks of each thread, when they run, and what keeps the group from running."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from rejoin.journal.events.base import Event
from rejoin.journal.events.streams_groups import (
    StreamsInternalTopicsCreated,
    StreamsMemberAssigned,
    StreamsMemberDescribed,
    StreamsShutdownRequested,
    StreamsTopologyConfigured,
    TasksBySubtopology,
)
from rejoin.journal.events.streams_members import StreamsTaskRestored, StreamsTasksAssigned, StreamsTasksGivenUp

ROLES: Final = ("active", "standby", "warmup")
TASK_EVENTS: Final[tuple[type[Event], ...]] = (
    *(StreamsTasksAssigned, StreamsTasksGivenUp, StreamsTaskRestored, StreamsMemberAssigned, StreamsMemberDescribed),
    *(StreamsTopologyConfigured, StreamsInternalTopicsCreated, StreamsShutdownRequested),
)
"""The events that make these rows."""


class TaskRows:
    """The tasks of all threads, from the events of the threads or of their coordinator.

    ``add`` takes a kind of rows and the values of one:

    - ``tasks``: instant, group, thread, process, its active, standby and warm-up tasks as ``0_1``, and 1 where a row of
      ``restores`` says when an active task begins to run; where it is 0, that is not known
    - ``restores``: instant, group, thread, task, where most of its state was, restored records
    - ``readiness``: instant, group, what (``ready``, ``not ready``, ``topics``, ``no topics``, ``shutdown``), a text
    """

    def __init__(self, add: Callable[..., None]) -> None:
        self._add = add
        self._processes: dict[str, str] = {}
        """By thread."""
        self._tasks: dict[tuple[str, str], dict[str, dict[str, None]]] = {}
        """By group and thread, then by role."""
        self._own: set[str] = set()
        """Threads that write events of their own, which count alone."""

    def described(self, thread: str, process_id: str) -> None:
        """A thread belongs to this process."""
        self._processes[thread] = process_id

    def on_thread_event(self, event: Event, now: int) -> None:
        """Take in an event of a thread."""
        match event:
            case StreamsTasksAssigned():
                self._own.add(event.client_id)
                roles = {role: dict.fromkeys(_names(getattr(event, role))) for role in ROLES}
                self._has(event.group_id or "", event.client_id, roles, now)
            case StreamsTasksGivenUp():
                self._own.add(event.client_id)
                given = {*_names(event.active), *_names(event.standby)}
                before = self._tasks.get((event.group_id or "", event.client_id), {})
                roles = {role: {each: None for each in tasks if each not in given} for role, tasks in before.items()}
                self._has(event.group_id or "", event.client_id, roles, now)
            case StreamsTaskRestored():
                task = f"{event.subtopology_id}_{event.partition}"
                row = (event.group_id or "", event.client_id, task, event.state_from, event.restored_records)
                self._add("restores", now, *row)
            case _:
                pass

    def on_assigned(self, event: StreamsMemberAssigned, thread: str, now: int) -> None:
        """The coordinator gave a thread these tasks, or asks it to give some up, which it has until then."""
        self.described(thread, event.process_id)
        if thread not in self._own:
            active = [*_names(event.active), *_names(event.revoking_active)]
            standby = [*_names(event.standby), *_names(event.revoking_standby)]
            has = (dict.fromkeys(active), dict.fromkeys(standby), dict.fromkeys(_names(event.warmup)))
            self._has(event.group_id, thread, dict(zip(ROLES, has, strict=True)), now)

    def on_group_event(self, event: Event, now: int, shown: Callable[[str], str]) -> None:
        """Take in an event about the topology; ``shown`` has members by the names of their lanes."""
        match event:
            case StreamsTopologyConfigured() if event.status is None:
                self._add("readiness", now, event.group_id, "ready", "")
            case StreamsTopologyConfigured():
                self._add("readiness", now, event.group_id, "not ready", event.reason or event.status)
            case StreamsInternalTopicsCreated() if event.error is None:
                self._add("readiness", now, event.group_id, "topics", ", ".join(event.topics))
            case StreamsInternalTopicsCreated():
                text = f"{', '.join(event.topics)}: {event.reason or event.error}"
                self._add("readiness", now, event.group_id, "no topics", text)
            case StreamsShutdownRequested():
                text = f"shutdown requested by {shown(event.member_id)}"
                self._add("readiness", now, event.group_id, "shutdown", text)
            case _:
                pass

    def ended(self, thread: str, now: int) -> None:
        """A thread has no tasks any more, in any group."""
        for group_id, name in [each for each in self._tasks if each[1] == thread]:
            self._has(group_id, name, {}, now)

    def _has(self, group_id: str, thread: str, roles: dict[str, dict[str, None]], now: int) -> None:
        if roles == self._tasks.get((group_id, thread), {}):
            return
        self._tasks[group_id, thread] = roles
        tasks = [list(roles.get(role, ())) for role in ROLES]
        process = self._processes.get(thread, thread)
        self._add("tasks", now, group_id, thread, process, *tasks, int(thread in self._own))


def _names(tasks: Mapping[str, Any] | TasksBySubtopology) -> Iterator[str]:
    """Tasks as Kafka names them: subtopology and partition."""
    for subtopology, partitions in tasks.items():
        for partition in partitions:
            yield f"{subtopology}_{partition}"
