"""The interface of task assignors. A task is a partition number of a subtopology."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping
from types import MappingProxyType
from typing import Any, ClassVar, Final, NamedTuple, TypeAlias

TasksBySubtopology: TypeAlias = Mapping[str, Collection[int]]
"""Tasks by the id of their subtopology."""

_NOTHING: Final[Mapping[str, Any]] = MappingProxyType({})


class SubtopologyTasks(NamedTuple):
    """A subtopology as an assignor sees it."""

    tasks: int
    is_stateful: bool = False
    """It has changelog topics, and so may have standbys."""


class TaskMember(NamedTuple):
    """A member as an assignor sees it, with the tasks that it has now, which need not be those of its target."""

    process_id: str
    active: TasksBySubtopology = _NOTHING
    standby: TasksBySubtopology = _NOTHING
    offsets: Mapping[str, Mapping[int, int]] = _NOTHING
    """By subtopology, by task: the sum of the offsets up to which the member has restored the task's state."""


class AssignedTasks(NamedTuple):
    """The tasks that a member should have, in ascending order."""

    active: Mapping[str, tuple[int, ...]]
    standby: Mapping[str, tuple[int, ...]]


class TaskAssignor(ABC):
    """Computes target assignments. It keeps nothing between two of them: the same question has the same answer.

    Kafka: TaskAssignor.
    """

    name: ClassVar[str]
    """The name that settings use."""

    @abstractmethod
    def assign(
        self, members: Mapping[str, TaskMember], subtopologies: Mapping[str, SubtopologyTasks], standby_replicas: int
    ) -> dict[str, AssignedTasks]:
        """The new target of each member, in the order of the members, which is that of the group.

        ``standby_replicas`` is how many standbys each task of a stateful subtopology should have.
        """
