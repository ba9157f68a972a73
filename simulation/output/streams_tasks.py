"""Counts what happens to the tasks of applications: without an owner, being restored, promoted from standby.

A task has an owner from the instant at which a thread takes it over, and is processed once its state is complete.
Counting begins with its first owner. Everything comes from the events of the threads.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from rejoin.journal.events.simulation import ConsumerCrashed, ConsumerFailed, ConsumerStopped
from rejoin.journal.events.streams_groups import StreamsTargetComputed
from rejoin.journal.events.streams_members import StreamsTaskRestored, StreamsTasksAssigned, StreamsTasksGivenUp
from rejoin.journal.timeline_lines import span
from rejoin.simulation.kernel import EventHandlers, Millis


class GroupTask(NamedTuple):
    """A task of one application."""

    group_id: str
    subtopology: str
    partition: int


@dataclass(slots=True)
class TaskRecord:
    """One task: the threads that have it as active, and how long it stood still."""

    owners: dict[str, bool] = field(default_factory=dict)
    """Threads that own it, and whether its state is complete there."""
    free_since: Millis | None = None
    still_since: Millis | None = None
    unowned_ms: Millis = 0
    standstill_ms: Millis = 0
    worst_ms: Millis = 0

    @property
    def is_processed(self) -> bool:
        return any(self.owners.values())


@dataclass(slots=True)
class StreamsSummary:
    """All tasks of one application. Lengths in ms."""

    targets: int = 0
    """Targets that the coordinator computed; with the classic protocol leaders assign, in rebalances."""
    tasks: int = 0
    unowned_ms: Millis = 0
    standstill_ms: Millis = 0
    """Without an owner or with one that restores state."""
    worst_ms: Millis = 0
    restored: int = 0
    """Changelog records that were read before a task ran."""
    restorations: int = 0
    restore_ms: Millis = 0
    promotions: int = 0
    """Tasks that ran on from a standby of the same instance."""
    overlaps: int = 0
    """Takeovers of a task that another thread still had."""

    @property
    def restoring_ms(self) -> Millis:
        """With an owner that restores state."""
        return self.standstill_ms - self.unowned_ms


class TaskAccounting:
    """The tasks of all applications."""

    def __init__(self) -> None:
        self.tasks: dict[GroupTask, TaskRecord] = {}
        self._groups: dict[str, StreamsSummary] = {}
        self._owned: dict[str, dict[GroupTask, None]] = {}
        self.handlers: EventHandlers = {
            StreamsTargetComputed: self._computed,
            StreamsTasksAssigned: self._assigned,
            StreamsTaskRestored: self._restored,
            StreamsTasksGivenUp: self._given_up,
            ConsumerCrashed: self._ended,
            ConsumerFailed: self._ended,
            ConsumerStopped: self._ended,
        }
        """Handlers by event class."""

    def _computed(self, event: StreamsTargetComputed, _: Millis) -> None:
        self._group(event.group_id).targets += 1

    def _assigned(self, event: StreamsTasksAssigned, now: Millis) -> None:
        tasks = dict.fromkeys(_named(event.group_id, event.active))
        for task in [each for each in self._owned.get(event.client_id, ()) if each not in tasks]:
            self._release(task, event.client_id, now)
        for task in tasks:
            self._take(task, event.client_id, now)

    def _restored(self, event: StreamsTaskRestored, now: Millis) -> None:
        task = GroupTask(event.group_id or "", event.subtopology_id, event.partition)
        self._take(task, event.client_id, now)
        record = self.tasks[task]
        record.owners[event.client_id] = True
        if record.still_since is not None:
            spent = now - record.still_since
            record.standstill_ms += spent
            record.worst_ms = max(record.worst_ms, spent)
            record.still_since = None
        group = self._group(task.group_id)
        group.promotions += event.state_from == "standby"
        if event.restored_records:
            group.restored += event.restored_records
            group.restorations += 1
            group.restore_ms += event.restore_ms

    def _given_up(self, event: StreamsTasksGivenUp, now: Millis) -> None:
        for task in _named(event.group_id, event.active):
            self._release(task, event.client_id, now)

    def _ended(self, event: ConsumerCrashed | ConsumerFailed | ConsumerStopped, now: Millis) -> None:
        for task in list(self._owned.get(event.client_id, ())):
            self._release(task, event.client_id, now)

    def _take(self, task: GroupTask, client_id: str, now: Millis) -> None:
        record = self.tasks.setdefault(task, TaskRecord())
        if client_id in record.owners:
            return
        self._group(task.group_id).overlaps += bool(record.owners)
        self._owned.setdefault(client_id, {})[task] = None
        record.owners[client_id] = False
        if record.free_since is not None:
            record.unowned_ms += now - record.free_since
            record.free_since = None
        elif not record.is_processed and record.still_since is None:
            record.still_since = now

    def _release(self, task: GroupTask, client_id: str, now: Millis) -> None:
        self._owned.get(client_id, {}).pop(task, None)
        record = self.tasks[task]
        if record.owners.pop(client_id, None) is None:
            return
        if not record.is_processed and record.still_since is None:
            record.still_since = now
        if not record.owners:
            record.free_since = now

    def _group(self, group_id: str) -> StreamsSummary:
        return self._groups.setdefault(group_id, StreamsSummary())

    def without_owner(self, group_id: str) -> list[GroupTask]:
        """Tasks that had an owner once and have none now."""
        return [task for task, each in self.tasks.items() if task.group_id == group_id and not each.owners]

    def summary_of(self, group_id: str, now: Millis) -> StreamsSummary:
        """The numbers of one application up to an instant."""
        group = self._group(group_id)
        found = StreamsSummary(
            targets=group.targets,
            restored=group.restored,
            restorations=group.restorations,
            restore_ms=group.restore_ms,
            promotions=group.promotions,
            overlaps=group.overlaps,
        )
        for task, record in self.tasks.items():
            if task.group_id != group_id:
                continue
            still = 0 if record.still_since is None else now - record.still_since
            found.tasks += 1
            found.unowned_ms += record.unowned_ms + (0 if record.free_since is None else now - record.free_since)
            found.standstill_ms += record.standstill_ms + still
            found.worst_ms = max(found.worst_ms, record.worst_ms, still)
        return found


def _named(group_id: str | None, tasks: Mapping[str, Iterable[int]]) -> list[GroupTask]:
    return [GroupTask(group_id or "", part, index) for part, indexes in tasks.items() for index in indexes]


STREAMS_ROWS: Final[tuple[tuple[str, Callable[[StreamsSummary], Any]], ...]] = (
    ("targets computed", lambda streams: streams.targets),
    ("tasks", lambda streams: streams.tasks),
    ("task-seconds unowned", lambda streams: f"{streams.unowned_ms / 1_000:.1f}"),
    ("task-seconds restoring", lambda streams: f"{streams.restoring_ms / 1_000:.1f}"),
    ("longest standstill", lambda streams: span(streams.worst_ms)),
    ("state restored, records", lambda streams: streams.restored),
    ("  restorations", lambda streams: streams.restorations),
    ("standby promotions", lambda streams: streams.promotions),
)
"""The lines of an application's summary: name and value."""
