"""Which processes hold which tasks, as assigned or pending. Kafka: StreamsGroup.currentActiveTaskToProcessId.

An active task has one holder. Standby and warm-up tasks have a set of them: where two members of one process hold the
same standby and one lets go, the process is out of the set.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from rejoin.coordinator.core.groups.streams.model.member import CurrentTasks
from rejoin.coordinator.core.groups.streams.model.tasks import Task, TaskSets, each_task


@dataclass(slots=True)
class TaskHolders:
    """The processes that hold tasks of a group."""

    active: dict[Task, str] = field(default_factory=dict)
    standby: dict[Task, set[str]] = field(default_factory=dict)
    warmup: dict[Task, set[str]] = field(default_factory=dict)

    def hold(self, process_id: str, current: CurrentTasks) -> None:
        """A member of a process has these tasks. One without a process id is not known yet, and holds none."""
        if not process_id:
            return
        for held in (current.assigned, current.pending):
            for task in each_task(held.active):
                self.active[task] = process_id
            _add(self.standby, held.standby, process_id)
            _add(self.warmup, held.warmup, process_id)

    def release(self, process_id: str, current: CurrentTasks) -> None:
        """A member of a process no longer has these tasks."""
        for held in (current.assigned, current.pending):
            for task in each_task(held.active):
                # Another process may hold it by now.
                if self.active.get(task) == process_id:
                    del self.active[task]
            _remove(self.standby, held.standby, process_id)
            _remove(self.warmup, held.warmup, process_id)


def _add(holders: dict[Task, set[str]], tasks: TaskSets, process_id: str) -> None:
    for task in each_task(tasks):
        holders.setdefault(task, set()).add(process_id)


def _remove(holders: dict[Task, set[str]], tasks: TaskSets, process_id: str) -> None:
    for task in each_task(tasks):
        found = holders.get(task)
        if found is not None:
            found.discard(process_id)
            if not found:
                del holders[task]
