"""Tasks of an application, and those that a member has of each kind."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple

from rejoin.protocol.streams.tasks import TaskIds, TaskOffset


class TaskId(NamedTuple):
    """A task: one partition number of a subtopology. Its text is Kafka's, such as ``1_0``."""

    subtopology: str
    partition: int

    def __str__(self) -> str:
        return f"{self.subtopology}_{self.partition}"


class StreamsTasks(NamedTuple):
    """The tasks of one member, ascending in each kind."""

    active: tuple[TaskId, ...] = ()
    standby: tuple[TaskId, ...] = ()
    warmup: tuple[TaskId, ...] = ()

    def __bool__(self) -> bool:
        return any(self)

    def running(self) -> StreamsTasks:
        """Tasks as a thread runs them: one that is active is nothing else, and a warm-up task is a standby task."""
        # Kafka: TaskManager.handleAssignment. A heartbeat names each task once.
        active = set(self.active)
        standby = set(self.standby) - active
        warmup = set(self.warmup) - active - standby
        return StreamsTasks(self.active, tuple(sorted(standby)), tuple(sorted(warmup)))


NO_TASKS: Final = StreamsTasks()


def tasks_of(ids: Iterable[TaskIds]) -> tuple[TaskId, ...]:
    """The tasks that a message names, ascending."""
    return tuple(sorted(TaskId(each.subtopology_id, index) for each in ids for index in each.partitions))


def ids_of(tasks: Iterable[TaskId]) -> tuple[TaskIds, ...]:
    """Tasks as a message names them."""
    return tuple(
        TaskIds(subtopology_id=subtopology, partitions=tuple(partitions))
        for subtopology, partitions in by_subtopology(tasks).items()
    )


def by_subtopology(tasks: Iterable[TaskId]) -> dict[str, list[int]]:
    """Tasks as events show them: partition numbers by subtopology."""
    shown: dict[str, list[int]] = {}
    for subtopology, partition in sorted(tasks):
        shown.setdefault(subtopology, []).append(partition)
    return shown


def offsets_of(offsets: Iterable[tuple[TaskId, int]]) -> tuple[TaskOffset, ...]:
    """Offsets of tasks as a message has them, ascending."""
    return tuple(
        TaskOffset(subtopology_id=subtopology, partition=partition, offset=offset)
        for (subtopology, partition), offset in sorted(offsets)
    )
