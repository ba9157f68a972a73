"""The state of tasks on the disk of one instance.

A thread that closes a task cleanly writes a checkpoint. After a crash state is good up to the last checkpoint; with
exactly-once that of active tasks is deleted (Kafka: StateManagerUtil.registerStateStores, wipeStateStores).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

from rejoin.client.core.group.streams.tasks import TaskId
from rejoin.simulation.kernel import Millis

CLEANUP_DELAY_MS: Final[Millis] = 600_000
"""``state.cleanup.delay.ms``: how long state of a task that the instance does not have stays on disk."""


@dataclass(slots=True)
class StateDirectory:
    """Positions in the changelogs, in updates, by task."""

    positions: dict[TaskId, int] = field(default_factory=dict)
    """How far the state is, of tasks that run and of those that were closed."""
    checkpoints: dict[TaskId, int] = field(default_factory=dict)
    """How far it is if the process dies now."""
    closed_at: dict[TaskId, Millis] = field(default_factory=dict)

    def position(self, task: TaskId) -> int:
        return self.positions.get(task, 0)

    def open(self, task: TaskId, now: Millis) -> None:
        """A thread uses the state of a task from now on, if it is still there."""
        self._clean_up(now)
        self.closed_at.pop(task, None)

    def checkpoint(self, tasks: Iterable[TaskId]) -> None:
        for task in tasks:
            if task in self.positions:
                self.checkpoints[task] = self.positions[task]

    def close(self, task: TaskId, now: Millis, *, is_clean: bool, wipes: bool) -> None:
        """A thread has closed a task. ``wipes``: state that is not closed cleanly is deleted."""
        if is_clean:
            self.checkpoint([task])
        else:
            self._fall_back(task, wipes=wipes)
        self.closed_at[task] = now

    def crash(self, active: Iterable[TaskId], *, wipes: bool) -> None:
        """The process has died. ``wipes``: the state of active tasks is deleted."""
        actives = set(active)
        for task in list(self.positions):
            self._fall_back(task, wipes=wipes and task in actives)

    def _fall_back(self, task: TaskId, *, wipes: bool) -> None:
        position = None if wipes else self.checkpoints.get(task)
        if position is None:
            self.positions.pop(task, None)
            self.checkpoints.pop(task, None)
        else:
            self.positions[task] = position

    def clear(self) -> None:
        self.positions.clear()
        self.checkpoints.clear()
        self.closed_at.clear()

    def _clean_up(self, now: Millis) -> None:
        for task in [task for task, at in self.closed_at.items() if at + CLEANUP_DELAY_MS <= now]:
            del self.closed_at[task]
            self.positions.pop(task, None)
            self.checkpoints.pop(task, None)
