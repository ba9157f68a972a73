"""Sets of tasks: what a member should have, and what it has. A task is a partition number of a subtopology.

Both are replaced, never changed, and hold no subtopology without tasks. Kafka: TasksTuple, TasksTupleWithEpochs.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple, TypeAlias

TaskSets: TypeAlias = Mapping[str, frozenset[int]]
"""Tasks by subtopology."""

TaskEpochs: TypeAlias = Mapping[str, Mapping[int, int]]
"""By subtopology, by task: the assignment epoch at which the member got the task."""

Task: TypeAlias = tuple[str, int]
"""Subtopology and partition."""


class OwnedTasks(NamedTuple):
    """Tasks that a member reports as its own; it may name a subtopology without any."""

    active: TaskSets
    standby: TaskSets
    warmup: TaskSets


@dataclass(frozen=True, slots=True)
class Tasks:
    """Tasks of each kind."""

    active: TaskSets = field(default_factory=dict)
    standby: TaskSets = field(default_factory=dict)
    warmup: TaskSets = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class HeldTasks:
    """Tasks of each kind, the active ones with their assignment epochs."""

    active: TaskEpochs = field(default_factory=dict)
    standby: TaskSets = field(default_factory=dict)
    warmup: TaskSets = field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self.active or self.standby or self.warmup)

    def without_epochs(self) -> Tasks:
        """The tasks alone."""
        active = {each: frozenset(partitions) for each, partitions in self.active.items()}
        return Tasks(active, self.standby, self.warmup)

    def any_in(self, owned: OwnedTasks) -> bool:
        """Whether a member that owns these tasks has any of them, each kind by itself."""
        return (
            _overlap(self.active, owned.active)
            or _overlap(self.standby, owned.standby)
            or _overlap(self.warmup, owned.warmup)
        )

    def contains(self, owned: OwnedTasks) -> bool:
        """Whether a member with these tasks may own those. A subtopology of which it has none may not even be named."""
        return (
            _within(owned.active, self.active)
            and _within(owned.standby, self.standby)
            and _within(owned.warmup, self.warmup)
        )


NO_TASKS: Final = Tasks()
NOTHING_HELD: Final = HeldTasks()


def _overlap(ones: Mapping[str, Iterable[int]], others: TaskSets) -> bool:
    return any(not others[each].isdisjoint(tasks) for each, tasks in ones.items() if each in others)


def _within(owned: TaskSets, held: Mapping[str, Iterable[int]]) -> bool:
    return all(each in held and tasks.issubset(held[each]) for each, tasks in owned.items())


def each_task(tasks: Mapping[str, Iterable[int]]) -> Iterator[Task]:
    """Every task."""
    return ((subtopology, partition) for subtopology, partitions in tasks.items() for partition in partitions)


def task_sets(tasks: Iterable[Task]) -> dict[str, frozenset[int]]:
    """Tasks by subtopology."""
    found: dict[str, set[int]] = {}
    for subtopology, partition in tasks:
        found.setdefault(subtopology, set()).add(partition)
    return {subtopology: frozenset(partitions) for subtopology, partitions in found.items()}
