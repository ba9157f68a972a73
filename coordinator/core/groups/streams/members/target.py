"""The target assignment of a streams group, computed in a heartbeat or when the initial delay ends.

Kafka: GroupMetadataManager.maybeUpdateStreamsTargetAssignment, TargetAssignmentBuilder.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Final

from rejoin.coordinator.core.groups.modern.changes import RecordChanges
from rejoin.coordinator.core.groups.modern.epochs import is_target_due
from rejoin.coordinator.core.groups.modern.member_order import Known, assignor_order
from rejoin.coordinator.core.groups.streams.assignors.base import SubtopologyTasks, TaskAssignor, TaskMember
from rejoin.coordinator.core.groups.streams.assignors.sticky import StickyTaskAssignor
from rejoin.coordinator.core.groups.streams.group_settings import STANDBY_CONFIG, StreamsSettings
from rejoin.coordinator.core.groups.streams.model.group import StreamsGroup
from rejoin.coordinator.core.groups.streams.model.memory import GroupMemory
from rejoin.coordinator.core.groups.streams.model.records import target_epoch_record, target_record
from rejoin.coordinator.core.groups.streams.model.tasks import NO_TASKS, Tasks
from rejoin.coordinator.core.groups.timers import initial_rebalance_timer
from rejoin.coordinator.core.step_context import StepContext

ASSIGNORS: Final[Mapping[str, TaskAssignor]] = {StickyTaskAssignor.name: StickyTaskAssignor()}
"""The assignors of tasks, by name."""


class Delay(Enum):
    """Why a target that is due is not computed."""

    INITIAL = "the group waits for more members until its initial rebalance delay has passed"
    INTERVAL = "the assignment interval since the last target has not passed"


class StreamsTargets:
    """Computes the targets of one shard's groups."""

    def __init__(self, ctx: StepContext, settings: StreamsSettings) -> None:
        self._ctx = ctx
        self._settings = settings

    # --- the initial delay

    def start_initial_delay(self, group: StreamsGroup) -> None:
        """A member has joined a group without any: wait for more of them, unless it is waiting already."""
        delay_ms = self._settings.initial_delay_ms(group.group_id)
        key = initial_rebalance_timer(group.partition, group.group_id)
        if delay_ms > 0 and self._ctx.deadlines.at(key) is None:
            self._ctx.deadlines.set(key, self._ctx.now + delay_ms)

    def is_in_initial_delay(self, group: StreamsGroup) -> bool:
        return self._ctx.deadlines.at(initial_rebalance_timer(group.partition, group.group_id)) is not None

    def cancel_initial_delay(self, group: StreamsGroup) -> None:
        """The group is gone."""
        self._ctx.deadlines.cancel(initial_rebalance_timer(group.partition, group.group_id))

    # --- targets

    def update(
        self, group: StreamsGroup, memory: GroupMemory, changes: RecordChanges, known: Known, *, keeps_target: bool
    ) -> Delay | None:
        """Bring the target to the group's epoch, or say why it has to wait. ``keeps_target``: only its epoch is new."""
        if self.is_in_initial_delay(group):
            return Delay.INITIAL
        if group.assignment_epoch >= group.epoch:
            return None
        if keeps_target:
            changes.write(target_epoch_record(group.group_id, group.epoch, group.assignment_at))
            return None
        if not self.is_due(group):
            return Delay.INTERVAL
        self.compute(group, memory, changes, known)
        return None

    def is_due(self, group: StreamsGroup) -> bool:
        """Whether a new target is wanted, and may be computed now."""
        interval_ms = self._settings.assignment_interval_ms(group.group_id)
        return is_target_due(group.epoch, group.assignment_epoch, group.assignment_at, interval_ms, self._ctx.now)

    def compute(self, group: StreamsGroup, memory: GroupMemory, changes: RecordChanges, known: Known) -> None:
        """Compute the target for the group's epoch, and write what differs from the old one."""
        group_id, before = group.group_id, dict(group.targets)
        changes.assignor = self._settings.assignor(group_id)
        for member_id, target in self._assign(group, memory, known, changes.assignor).items():
            if before.get(member_id) != target:
                changes.write(target_record(group_id, member_id, target))
        changes.write(target_epoch_record(group_id, group.epoch, self._ctx.now))

    def _assign(self, group: StreamsGroup, memory: GroupMemory, known: Known, assignor: str) -> dict[str, Tasks]:
        ordered = assignor_order(group.members, known)
        configured = memory.configured
        if configured is None or not configured.is_ready or group.topology is None:
            return dict.fromkeys(ordered, NO_TASKS)
        assert configured.tasks is not None, "a topology that is ready has tasks"
        tasks = configured.tasks
        subtopologies = {
            each.subtopology_id: SubtopologyTasks(tasks[each.subtopology_id], bool(each.state_changelog_topics))
            for each in group.topology.subtopologies
        }
        members = {member_id: _assignable(group, memory, member_id) for member_id in ordered}
        replicas = int(group.assignment_configs.get(STANDBY_CONFIG, "0"))
        computed = (ASSIGNORS.get(assignor) or next(iter(ASSIGNORS.values()))).assign(members, subtopologies, replicas)
        return {
            member_id: Tasks(
                {each: frozenset(partitions) for each, partitions in given.active.items() if partitions},
                {each: frozenset(partitions) for each, partitions in given.standby.items() if partitions},
            )
            for member_id, given in computed.items()
        }

    def refined(self, group: StreamsGroup, memory: GroupMemory, member_id: str) -> Tasks:
        """The target that a member is led to.

        Kafka: between it and the stored target stands a refined one for warm-up tasks. 4.4 gives none, but remembers
        the targets of an epoch as its first heartbeat found them, whatever becomes of the members.
        """
        if not self._settings.keeps_refined_targets(group.group_id):
            return group.target_of(member_id)
        refined = memory.refined
        if refined.epoch != group.assignment_epoch:
            refined.epoch, refined.targets = group.assignment_epoch, dict(group.targets)
        return refined.targets.get(member_id, NO_TASKS)


def move_refined(memory: GroupMemory, owner_id: str, member_id: str) -> None:
    """A request has named another member's instance id. Kafka: its entry moves, also where the request is refused."""
    target = memory.refined.targets.pop(owner_id, None)
    if target is not None:
        memory.refined.targets[member_id] = target


def _assignable(group: StreamsGroup, memory: GroupMemory, member_id: str) -> TaskMember:
    member = group.members[member_id]
    assigned = member.current.assigned
    return TaskMember(member.metadata.process_id, assigned.active, assigned.standby, memory.offsets.get(member_id, {}))
