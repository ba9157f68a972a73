"""The tasks of one thread: which run, which are being restored, which stand by.

A thread restores one task at a time, active ones first, each in the time of its records. A standby task that has caught
up follows its changelog without delay. An active task whose state is complete runs at once.

Kafka: TaskManager and DefaultStateUpdater, which reads several changelogs in turn.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from math import ceil
from typing import Literal, TypeAlias

from rejoin.client.core.group.streams.tasks import TaskId
from rejoin.simulation.actors.streams.application import Application
from rejoin.simulation.actors.streams.state_directory import StateDirectory
from rejoin.simulation.kernel import Millis

StateFrom: TypeAlias = Literal["standby", "disk", "changelog", "none"]


@dataclass(slots=True)
class TaskRun:
    """One task of a thread. It runs, or stands by without lag, once it is ``complete``."""

    task: TaskId
    is_active: bool
    since: Millis
    state_from: StateFrom = "none"
    restored: int = 0
    complete: bool = False


@dataclass(slots=True)
class _Restoration:
    """The task that is being restored now, and how many updates it lacked at that time."""

    run: TaskRun
    began_at: Millis
    left: int


class TaskManager:
    """Tasks of one thread. ``wake`` is called with the instant at which to call :meth:`elapsed` again."""

    def __init__(
        self,
        application: Application,
        directory: StateDirectory,
        wake: Callable[[Millis], None],
        on_running: Callable[[TaskRun], None],
    ) -> None:
        self._application = application
        self._directory = directory
        self._wake = wake
        self._on_running = on_running
        self.tasks: dict[TaskId, TaskRun] = {}
        self._restoration: _Restoration | None = None

    # -- which there are

    def active(self) -> list[TaskId]:
        return sorted(task for task, run in self.tasks.items() if run.is_active)

    def standby(self) -> list[TaskId]:
        return sorted(task for task, run in self.tasks.items() if not run.is_active)

    def running(self) -> list[TaskId]:
        """Active tasks whose state is complete."""
        return sorted(task for task, run in self.tasks.items() if run.is_active and run.complete)

    def is_running(self, task: TaskId) -> bool:
        run = self.tasks.get(task)
        return run is not None and run.is_active and run.complete

    def take(self, active: Collection[TaskId], standby: Collection[TaskId], now: Millis) -> None:
        """Have exactly these tasks. A task that changes its kind keeps its state."""
        wanted = set(active) | set(standby)
        self.close([task for task in self.tasks if task not in wanted], now)
        for task in sorted(active):
            self._have(task, now, is_active=True)
        for task in sorted(set(standby) - set(active)):
            self._have(task, now, is_active=False)
        self._go_on(now)

    def _have(self, task: TaskId, now: Millis, *, is_active: bool) -> None:
        before = self.tasks.get(task)
        if before is not None and before.is_active == is_active:
            return
        self._directory.open(task, now)
        run = self.tasks[task] = TaskRun(task, is_active, now)
        if not self._application.is_stateful(task):
            return
        if before is not None and before.complete:
            # What the thread had as standby is complete, and runs at once; what it ran stands by without lag.
            self._directory.positions[task] = self._application.end(task)
        if before is not None and is_active:
            run.state_from = "standby"
        else:
            run.state_from = "disk" if self._directory.position(task) else "changelog"

    def close(self, tasks: Collection[TaskId], now: Millis, *, is_clean: bool = True) -> None:
        """Close tasks; unclean ones lose what no checkpoint has."""
        self._settle(now)
        for task in tasks:
            run = self.tasks.pop(task, None)
            if run is None:
                continue
            if run.complete:
                self._directory.positions[task] = self._application.end(task)
            wipes = run.is_active and self._application.code.exactly_once
            self._directory.close(task, now, is_clean=is_clean, wipes=wipes)

    def crash(self) -> None:
        """The process has died."""
        self.tasks.clear()
        self._restoration = None

    # -- state

    def checkpoint(self) -> None:
        """Positions as they are now outlive a crash of the process."""
        is_kept = self._application.code.exactly_once
        kept = [run for run in self.tasks.values() if not (is_kept and run.is_active)]
        for run in kept:
            if run.complete and self._application.is_stateful(run.task):
                self._directory.positions[run.task] = self._application.end(run.task)
        self._directory.checkpoint([run.task for run in kept])

    def offsets(self) -> tuple[dict[TaskId, int], dict[TaskId, int]]:
        """Sums of the changelog offsets of tasks that run or are on disk, and of the ends of their changelogs."""
        reached, ends = {}, {}
        on_disk = self._directory.positions
        for task in sorted({*self.tasks, *on_disk}):
            logs = self._application.changelogs_of(task)
            if not logs:
                continue
            run = self.tasks.get(task)
            end = self._application.end(task)
            reached[task] = logs * (end if run is not None and run.complete else on_disk.get(task, 0))
            ends[task] = logs * end
        return reached, ends

    # -- restoring

    def elapsed(self, now: Millis) -> None:
        """Take note of what is restored by now."""
        self._settle(now)
        self._go_on(now)

    def _settle(self, now: Millis) -> None:
        """Count what the restoration in progress has read."""
        restoration = self._restoration
        if restoration is None:
            return
        self._restoration = None
        run = restoration.run
        cost = self._application.code.part(run.task.subtopology).restore_ms
        done = min(restoration.left, int((now - restoration.began_at) / cost)) if cost else restoration.left
        run.restored += done
        self._directory.positions[run.task] = self._application.end(run.task) - (restoration.left - done)
        if done == restoration.left:
            self._completed(run)

    def _go_on(self, now: Millis) -> None:
        """Begin with the next task that lacks state; those that lack none are complete."""
        incomplete = sorted(
            (run for run in self.tasks.values() if not run.complete), key=lambda run: (not run.is_active, run.task)
        )
        for run in incomplete:
            left = self._missing(run.task)
            if not left:
                self._completed(run)
            elif self._restoration is None:
                self._restoration = _Restoration(run, now, left)
                cost = self._application.code.part(run.task.subtopology).restore_ms
                self._wake(now + max(1, ceil(left * cost)))

    def _missing(self, task: TaskId) -> int:
        if not self._application.is_stateful(task):
            return 0
        return self._application.missing(task, self._directory.position(task))

    def _completed(self, run: TaskRun) -> None:
        run.complete = True
        if run.is_active:
            self._on_running(run)
