"""The assignor ``sticky``: a task stays where it is, else where its state is, else it goes where the load is least.

Nothing is taken from a member that has less than its quota, and no process gets a task twice.
Kafka: StickyTaskAssignor.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Collection, Mapping
from functools import partial
from typing import ClassVar, Final, TypeAlias

from rejoin.coordinator.core.groups.streams.assignors import first
from rejoin.coordinator.core.groups.streams.assignors.base import (
    AssignedTasks,
    SubtopologyTasks,
    TaskAssignor,
    TaskMember,
)
from rejoin.coordinator.core.groups.streams.assignors.quotas import Quota
from rejoin.protocol.java import computed_order, hash_map_order, string_hash, utf16_sorted
from rejoin.protocol.java_queue import JavaPriorityQueue

Task: TypeAlias = int
"""The place of the subtopology among all ids in order, shifted by ``_PARTITION_BITS``, and the partition.

A number, since ten thousand tuples keep Python's garbage collector busy.
"""

_PARTITION_BITS: Final = 32
_PARTITION: Final = (1 << _PARTITION_BITS) - 1


class StickyTaskAssignor(TaskAssignor):
    """Kafka's only assignor of tasks."""

    name: ClassVar[str] = "sticky"

    def assign(
        self, members: Mapping[str, TaskMember], subtopologies: Mapping[str, SubtopologyTasks], standby_replicas: int
    ) -> dict[str, AssignedTasks]:
        assignment = _Assignment(members, subtopologies, standby_replicas)
        if assignment.is_first:
            assignment.give_first_tasks(standby_replicas)
        else:
            assignment.give_active_tasks()
            if standby_replicas > 0:
                assignment.give_standby_tasks(standby_replicas)
        return assignment.result()


class _Process:
    """A process as it is filled."""

    __slots__ = ("count", "members", "queue", "tasks")

    def __init__(self) -> None:
        self.members: list[_Member] = []
        self.count = 0
        self.tasks: set[Task] = set()
        self.queue: JavaPriorityQueue[int, _Member] | None = None
        """Members by their tasks; none where one got a task not from the queue, which has to be made anew."""

    @property
    def load(self) -> float:
        """Tasks per member."""
        return self.count / len(self.members)

    def members_by_count(self) -> JavaPriorityQueue[int, _Member]:
        """The members, with the fewest tasks first."""
        if self.queue is None:
            self.queue = JavaPriorityQueue((member.count, member) for member in self.members)
        return self.queue


class _Member:
    """A member as it is filled."""

    __slots__ = ("active", "count", "process", "standby")

    def __init__(self, process: _Process) -> None:
        self.process = process
        self.count = 0
        self.active: list[Task] = []
        self.standby: list[Task] = []


class _Assignment:
    """An assignment as it is made."""

    def __init__(
        self,
        members: Mapping[str, TaskMember],
        subtopologies: Mapping[str, SubtopologyTasks],
        standby_replicas: int,
    ) -> None:
        self._ids = utf16_sorted(subtopologies)
        self._subtopologies = [subtopologies[each] for each in self._ids]
        self._member_ids = list(members)
        self._members: dict[str, _Member] = {}
        self._processes = self._processes_of(members)
        stateful = sum(each.tasks for each in self._subtopologies if each.is_stateful)
        active = sum(each.tasks for each in self._subtopologies)
        self._active_quota = Quota(active, len(members))
        self._total_quota = Quota(active + standby_replicas * stateful, len(members))
        self._was_active: dict[Task, _Member] = {}
        self._candidates: dict[Task, list[_Member]] = {}
        self._remember(members)

    def _processes_of(self, members: Mapping[str, TaskMember]) -> list[_Process]:
        """Processes in the order of Kafka's map, each with its members in the order of another one."""
        lookups = [member.process_id for member in members.values()]
        ids_by_process: dict[str, list[str]] = {}
        for member_id, process_id in zip(members, lookups, strict=True):
            ids_by_process.setdefault(process_id, []).append(member_id)
        processes = {}
        # Kafka: the map of processes has room for as many keys as there are members.
        for process_id in computed_order(lookups, string_hash, 1 << (len(members) - 1).bit_length() if members else 1):
            process = processes[process_id] = _Process()
            for member_id in hash_map_order(ids_by_process[process_id]):
                member = self._members[member_id] = _Member(process)
                process.members.append(member)
        return list(processes.values())

    # --- what was before

    def _remember(self, members: Mapping[str, TaskMember]) -> None:
        """Find where tasks were active, and who has state of them: standbys first, each group by offset."""
        firsts = {subtopology_id: rank << _PARTITION_BITS for rank, subtopology_id in enumerate(self._ids)}
        was_active = self._was_active
        standbys: dict[Task, list[_Member]] = {}
        others: dict[Task, list[_Member]] = {}
        offsets_of: dict[_Member, dict[Task, int]] = {}
        for member_id, before in members.items():
            if not (before.active or before.standby or before.offsets):
                continue
            member = self._members[member_id]
            for each, partitions in before.active.items():
                if (first_task := firsts.get(each)) is not None:
                    for partition in partitions:
                        was_active[first_task + partition] = member
            offsets = {
                firsts[each] + partition: offset
                for each, of_tasks in before.offsets.items()
                if each in firsts
                for partition, offset in of_tasks.items()
            }
            if offsets:
                offsets_of[member] = offsets
            known = set(offsets)
            for each, partitions in before.standby.items():
                if (first_task := firsts.get(each)) is not None:
                    for partition in partitions:
                        task = first_task + partition
                        if task in standbys:
                            standbys[task].append(member)
                        else:
                            standbys[task] = [member]
                        known.discard(task)
            for task in offsets:
                if task in known:
                    others.setdefault(task, []).append(member)
        for group in (standbys, others):
            for task, candidates in group.items():
                if len(candidates) > 1:
                    candidates.sort(key=partial(_latest_first, offsets_of, task))
        for task, candidates in others.items():
            standbys.setdefault(task, []).extend(candidates)
        self._candidates = standbys

    # --- a group that had no tasks

    @property
    def is_first(self) -> bool:
        """True where no member had a task or state, so that loads alone decide."""
        return bool(self._processes) and not self._was_active and not self._candidates

    def give_first_tasks(self, replicas: int) -> None:
        """Give active tasks in ascending order, then standbys in descending order, as for tasks that are left over."""
        sizes = [len(process.members) for process in self._processes]
        tasks = self._by_subtopology(self._subtopologies)
        owners = first.active_turns(sizes, len(tasks))
        given: list[list[Task]] = [[] for _ in sizes]
        for task, owner in zip(tasks, owners, strict=True):
            given[owner].append(task)
        active = [len(each) for each in given]
        stateful = [each.is_stateful for each in self._subtopologies]
        copied = [each for each in zip(tasks, owners, strict=True) if stateful[each[0] >> _PARTITION_BITS]]
        if replicas > 0 and copied:
            copied.reverse()
            chosen = first.standby_turns(sizes, active, [owner for _, owner in copied], replicas)
            for (task, _), others in zip(copied, chosen, strict=True):
                for other in others:
                    given[other].append(task)
        longest: dict[int, int] = {}
        for size, mine in zip(sizes, given, strict=True):
            longest[size] = max(longest.get(size, 0), len(mine))
        steps = {size: first.steps(size, count) for size, count in longest.items()}
        for process, mine, count in zip(self._processes, given, active, strict=True):
            for member, own in zip(process.members, steps[len(process.members)], strict=True):
                first_standby, end = bisect_left(own, count), bisect_left(own, len(mine))
                member.active = [mine[step] for step in own[:first_standby]]
                member.standby = [mine[step] for step in own[first_standby:end]]

    # --- active tasks

    def give_active_tasks(self) -> None:
        """Give each task to one member. Queues of members are first made for the tasks that are left over."""
        tasks = self._by_partition(self._subtopologies)
        quota = self._active_quota
        left = []
        for task in tasks:
            member = self._was_active.get(task)
            if member is not None and member.count < quota.per_member:
                self._give_active(task, member)
            else:
                left.append(task)
        tasks, left = left, []
        for task in tasks:
            best = self._best(task)
            if best is not None and best.count < quota.per_member:
                self._give_active(task, best)
            else:
                left.append(task)
        if not self._processes:
            return
        left.sort()
        processes = JavaPriorityQueue((process.load, process) for process in self._processes)
        for task in left:
            process = processes.pop()
            members = process.members_by_count()
            member = members.pop()
            self._add(task, member)
            member.active.append(task)
            self._active_quota.filled(member.count)
            members.push(member.count, member)
            processes.push(process.load, process)

    def _give_active(self, task: Task, member: _Member) -> None:
        self._add(task, member)
        member.active.append(task)
        if member.count == self._active_quota.per_member:
            self._active_quota.filled(member.count)

    def _add(self, task: Task, member: _Member) -> None:
        member.count += 1
        process = member.process
        process.tasks.add(task)
        process.count += 1
        if member.count == self._total_quota.per_member:
            self._total_quota.filled(member.count)

    # --- standby tasks

    def give_standby_tasks(self, replicas: int) -> None:
        """Give so many standbys of each stateful task to other processes, as far as there are any."""
        stateful = [each if each.is_stateful else SubtopologyTasks(0) for each in self._subtopologies]
        missing: dict[Task, int] = {}
        for task in reversed(self._by_partition(stateful)):
            for number in range(replicas):
                member = self._sticky_standby(task)
                if member is None:
                    missing[task] = replicas - number
                    break
                self._add(task, member)
                member.standby.append(task)
                member.process.queue = None
        if not missing:
            return
        processes = JavaPriorityQueue((process.load, process) for process in self._processes)
        for task in sorted(missing, reverse=True):
            for _ in range(missing[task]):
                if not self._give_standby(task, processes):
                    break

    def _sticky_standby(self, task: Task) -> _Member | None:
        """The member that knows the task best, if it has room and its process has not got the task."""
        quota = self._total_quota
        member = self._was_active.get(task)
        if member is not None and task not in member.process.tasks and member.count < quota.per_member:
            return member
        best = self._best(task, is_standby=True)
        return best if best is not None and best.count < quota.per_member else None

    def _give_standby(self, task: Task, processes: JavaPriorityQueue[float, _Process]) -> bool:
        """Give a standby to the least loaded process without the task. Returns whether there was one."""
        aside: list[_Process] = []
        chosen = None
        while processes and chosen is None:
            process = processes.pop()
            if task in process.tasks:
                aside.append(process)
            else:
                chosen = process
        if chosen is not None:
            members = chosen.members_by_count()
            member = members.pop()
            self._add(task, member)
            member.standby.append(task)
            members.push(member.count, member)
            processes.push(chosen.load, chosen)
        for process in reversed(aside):
            processes.push(process.load, process)
        return chosen is not None

    # --- both

    def _best(self, task: Task, is_standby: bool = False) -> _Member | None:
        """The candidate for a task: the first, or a later one whose process and which itself have less."""
        best: _Member | None = None
        for member in self._candidates.get(task, ()):
            if is_standby and task in member.process.tasks:
                continue
            if best is None or (member.process.load < best.process.load and member.count < best.count):
                best = member
        return best

    @staticmethod
    def _by_partition(subtopologies: Collection[SubtopologyTasks]) -> list[Task]:
        """Tasks in the order of their partitions."""
        counts = [each.tasks for each in subtopologies]
        firsts = [(rank << _PARTITION_BITS, count) for rank, count in enumerate(counts)]
        return [
            first + partition
            for partition in range(max(counts, default=0))
            for first, count in firsts
            if partition < count
        ]

    @staticmethod
    def _by_subtopology(subtopologies: Collection[SubtopologyTasks]) -> list[Task]:
        """Tasks in ascending order."""
        return [
            (rank << _PARTITION_BITS) + partition
            for rank, each in enumerate(subtopologies)
            for partition in range(each.tasks)
        ]

    def result(self) -> dict[str, AssignedTasks]:
        """The tasks of each member."""
        found = ((member_id, self._members[member_id]) for member_id in self._member_ids)
        return {
            member_id: AssignedTasks(self._named(member.active), self._named(member.standby))
            for member_id, member in found
        }

    def _named(self, tasks: list[Task]) -> dict[str, tuple[int, ...]]:
        found: dict[str, list[int]] = {}
        partitions: list[int] = []
        last = -1
        for task in sorted(tasks):
            if last != (rank := task >> _PARTITION_BITS):
                partitions = found[self._ids[rank]] = []
                last = rank
            partitions.append(task & _PARTITION)
        return {subtopology_id: tuple(partitions) for subtopology_id, partitions in found.items()}


def _latest_first(offsets_of: Mapping[_Member, Mapping[Task, int]], task: Task, member: _Member) -> int:
    offsets = offsets_of.get(member)
    return 0 if offsets is None else -offsets.get(task, 0)
