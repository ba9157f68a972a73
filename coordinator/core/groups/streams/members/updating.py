"""Steps that each heartbeat of a member goes through: topology, group epoch, target, reconciliation.

Kafka: GroupMetadataManager.streamsGroupHeartbeat. Where a later step fails, records are dropped; what earlier steps did
to the memory of the group and to timers stays.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial

from rejoin.coordinator.core.effects import DeferredEvents
from rejoin.coordinator.core.groups.group import Group
from rejoin.coordinator.core.groups.modern.changes import RecordChanges
from rejoin.coordinator.core.groups.modern.epochs import JOIN_EPOCH, REFRESH_MS, RefreshDeadline
from rejoin.coordinator.core.groups.modern.group import UnknownStateError
from rejoin.coordinator.core.groups.modern.member_order import Known
from rejoin.coordinator.core.groups.modern.metadata import TopicsMetadata, metadata_hash
from rejoin.coordinator.core.groups.modern.session_timers import RebalanceTimers
from rejoin.coordinator.core.groups.streams.group_settings import StreamsSettings
from rejoin.coordinator.core.groups.streams.members.finding import Before, needs_target
from rejoin.coordinator.core.groups.streams.members.reconciliation import TaskGoal, reconcile
from rejoin.coordinator.core.groups.streams.members.target import Delay, StreamsTargets
from rejoin.coordinator.core.groups.streams.model.group import NO_TOPOLOGY_EPOCH, StreamsGroup
from rejoin.coordinator.core.groups.streams.model.member import StreamsMember, StreamsMemberMetadata
from rejoin.coordinator.core.groups.streams.model.memory import GroupMemory, TaskOffsets
from rejoin.coordinator.core.groups.streams.model.records import current_record, epoch_record, metadata_record
from rejoin.coordinator.core.groups.streams.model.state import StreamsGroupState, StreamsMemberState
from rejoin.coordinator.core.groups.streams.model.tasks import NO_TASKS, OwnedTasks
from rejoin.coordinator.core.groups.streams.topology.configuring import configure
from rejoin.coordinator.core.step_context import StepContext
from rejoin.journal.events.base import Event
from rejoin.journal.events.coordinator import Cause, CauseClass
from rejoin.journal.events.streams_groups import StreamsTaskOffsetsReported, StreamsTopologyConfigured
from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.messages.streams.streams_group_heartbeat import StreamsGroupHeartbeatRequest, StreamsTopology
from rejoin.protocol.records.groups.streams_groups import StreamsGroupTopologyRecord, StreamsGroupTopologyValue
from rejoin.protocol.streams.tasks import TaskOffset


@dataclass(slots=True)
class MemberUpdate:
    """A request of one member, as far as the group goes on because of it."""

    request: StreamsGroupHeartbeatRequest
    before: Before
    metadata: StreamsMemberMetadata
    owned: OwnedTasks | None
    known: Known
    memory: GroupMemory
    """Of the group; where the request makes it, one that is thrown away."""
    is_new_group: bool
    state: StreamsGroupState
    """Of the group before the request."""
    is_stale: bool = False
    """Whether the member has an older topology than the group."""
    delay: Delay | None = None


class StreamsUpdates:
    """Brings groups forward with the heartbeats of their members."""

    def __init__(
        self,
        ctx: StepContext,
        groups: dict[str, Group],
        topics: TopicsMetadata,
        targets: StreamsTargets,
        timers: RebalanceTimers,
        settings: StreamsSettings,
    ) -> None:
        self._ctx = ctx
        self._groups = groups
        self._topics = topics
        self._targets = targets
        self._timers = timers
        self._settings = settings

    def apply(self, group: StreamsGroup, update: MemberUpdate, changes: RecordChanges) -> StreamsMember | ErrorCode:
        """The member after its request, or why it is refused. The group may come to be by it."""
        request, before, after = update.request, update.before, update.metadata
        group_id, member_id = group.group_id, request.member_id
        if before.is_new or before.metadata != after:
            changes.write(metadata_record(group_id, member_id, after))
        made = self._groups[group_id]
        assert isinstance(made, StreamsGroup), "the record of the member makes its group"
        group = made
        is_static = request.instance_id is not None
        recompute = before.is_new or needs_target(before.metadata, after, is_static=is_static)
        if recompute:
            why: CauseClass = "join-new" if before.is_new else "rejoin-metadata"
            changes.cause = Cause(cause=why, member_id=member_id, group_instance_id=after.instance_id)
        had_topology = group.topology is not None
        error = _update_topology(group, request.topology, changes)
        if error is not ErrorCode.NONE:
            return error
        topology = group.topology
        update.is_stale = had_topology and topology is not None and after.topology_epoch < topology.epoch
        new_hash = self._configure(group, update, changes, is_new_topology=not had_topology)
        if isinstance(new_hash, ErrorCode):
            return new_hash
        error = _take_offsets(update.memory, request)
        if error is not ErrorCode.NONE:
            return error
        if request.task_offsets or request.task_end_offsets:
            self._ctx.emit_deferred(
                DeferredEvents(group_id, {StreamsTaskOffsetsReported: 1}, partial(_offsets_reported, request))
            )
        keeps_target = self._update_epoch(group, update, changes, new_hash, recompute=recompute)
        if request.member_epoch == JOIN_EPOCH and update.state is StreamsGroupState.EMPTY:
            self._targets.start_initial_delay(group)
        update.delay = self._targets.update(group, update.memory, changes, update.known, keeps_target=keeps_target)
        return self._reconcile(group, update, changes)

    def _configure(
        self, group: StreamsGroup, update: MemberUpdate, changes: RecordChanges, *, is_new_topology: bool
    ) -> int | ErrorCode | None:
        """Configure the topology if need be, and check the tasks that the member names.

        Returns the hash of the topics that it needs, or none where they were not looked at.
        """
        memory, topology = update.memory, group.topology
        new_hash = None
        if is_new_topology or memory.configured is None or group.refresh.is_due(group.epoch, self._ctx.now):
            new_hash = metadata_hash(group.required_topics(), self._topics)
        is_changed = new_hash is not None and new_hash != group.metadata_hash
        if topology is not None and (is_new_topology or memory.configured is None or is_changed):
            configured = configure(topology, self._topics)
            if isinstance(configured, ErrorCode):
                return configured
            memory.configured = configured
            changes.events.append(
                StreamsTopologyConfigured(
                    group_id=group.group_id,
                    member_id=update.request.member_id,
                    topology_epoch=topology.epoch,
                    status=None if configured.status is None else configured.status.name,
                    reason=configured.detail or None,
                )
            )
        configured_now = memory.configured
        if configured_now is not None and configured_now.is_ready and configured_now.tasks is not None:
            tasks = configured_now.tasks
            for kind in update.owned or ():
                for subtopology, partitions in kind.items():
                    count = tasks.get(subtopology)
                    if count is None or any(not 0 <= each < count for each in partitions):
                        return ErrorCode.INVALID_REQUEST
        return new_hash

    def _update_epoch(
        self,
        group: StreamsGroup,
        update: MemberUpdate,
        changes: RecordChanges,
        new_hash: int | None,
        *,
        recompute: bool,
    ) -> bool:
        """A new group epoch, if one is needed; returns whether the target stays all the same."""
        configured, topology = update.memory.configured, group.topology
        is_ready = configured is not None and configured.is_ready and topology is not None
        validated = topology.epoch if is_ready and topology is not None else NO_TOPOLOGY_EPOCH
        configs = self._settings.assignment_configs(group.group_id)
        bump = (
            recompute
            or group.needs_epoch
            or (new_hash is not None and new_hash != group.metadata_hash)
            or validated != group.validated_topology_epoch
            or configs != group.assignment_configs
        )
        if changes.cause is None and not group.needs_epoch and validated == group.validated_topology_epoch:
            has_new_topics = new_hash is not None and new_hash != group.metadata_hash
            if not has_new_topics and configs != group.assignment_configs:
                changes.cause = Cause(cause="settings-changed")
        keeps_target = False
        if not bump and update.state is StreamsGroupState.STABLE:
            current = update.before.current
            bump = keeps_target = group.target_of(update.request.member_id) != current.assigned.without_epochs()
        if bump:
            changes.write(epoch_record(group, group.next_epoch, new_hash, validated, configs))
            changes.make((), group.repaired)
            if not update.is_new_group:
                # Kafka: a group that is new is made by its records, and what was kept beside them is lost.
                group.refresh = RefreshDeadline(self._ctx.now + REFRESH_MS, group.epoch)
        return keeps_target

    def _reconcile(
        self, group: StreamsGroup, update: MemberUpdate, changes: RecordChanges
    ) -> StreamsMember | ErrorCode:
        member = group.members[update.request.member_id]
        before, epoch = update.before.current, group.assignment_epoch
        current = before
        if update.before.is_new or not before.is_reconciled_to(epoch):
            target = NO_TASKS
            if update.delay is not Delay.INITIAL:
                target = self._targets.refined(group, update.memory, member.member_id)
            goal = TaskGoal(epoch, target, member.metadata.process_id, group.holders)
            try:
                current = reconcile(before, goal, update.owned)
            except UnknownStateError:
                return ErrorCode.FENCED_MEMBER_EPOCH
        if current != before or update.before.is_new:
            changes.write(current_record(group.group_id, member.member_id, current))
            if current.state is StreamsMemberState.UNREVOKED_TASKS:
                self._timers.start_rebalance(group, member)
            else:
                self._timers.cancel_rebalance(group, member)
        return member


def _update_topology(group: StreamsGroup, given: StreamsTopology | None, changes: RecordChanges) -> ErrorCode:
    """Take over the topology of a group's first member; that of another must be the same, or older."""
    if given is None:
        return ErrorCode.NONE
    by_id = {each.subtopology_id: each for each in given.subtopologies}
    if given.epoch < 0 or len(by_id) < len(given.subtopologies):
        # Kafka: no topology can be made of it, which is not caught.
        return ErrorCode.UNKNOWN_SERVER_ERROR
    known = group.topology
    if known is None:
        value = StreamsGroupTopologyValue(epoch=given.epoch, subtopologies=given.subtopologies)
        changes.write(StreamsGroupTopologyRecord.of(group.group_id, value))
        return ErrorCode.NONE
    is_same = known.epoch == given.epoch and by_id == {each.subtopology_id: each for each in known.subtopologies}
    # Kafka: 4.4 has no updates of topologies, so that a newer one is refused, too.
    return ErrorCode.NONE if is_same or known.epoch > given.epoch else ErrorCode.INVALID_REQUEST


def _take_offsets(memory: GroupMemory, request: StreamsGroupHeartbeatRequest) -> ErrorCode:
    """Remember how far the state of a member's tasks is, each of the two lists by itself."""
    for given, known in ((request.task_offsets, memory.offsets), (request.task_end_offsets, memory.end_offsets)):
        if given is None:
            continue
        offsets = _by_task(given)
        if offsets is None:
            return ErrorCode.INVALID_REQUEST
        known[request.member_id] = offsets
    return ErrorCode.NONE


def _offsets_reported(request: StreamsGroupHeartbeatRequest) -> list[Event]:
    given, ends = request.task_offsets, request.task_end_offsets
    return [
        StreamsTaskOffsetsReported(
            group_id=request.group_id,
            member_id=request.member_id,
            task_offsets=None if given is None else _in_order(given),
            task_end_offsets=None if ends is None else _in_order(ends),
        )
    ]


def _in_order(given: Iterable[TaskOffset]) -> dict[str, dict[int, int]]:
    found: dict[str, dict[int, int]] = {}
    for each in sorted(given, key=lambda each: (each.subtopology_id, each.partition)):
        found.setdefault(each.subtopology_id, {})[each.partition] = each.offset
    return found


def _by_task(given: Iterable[TaskOffset]) -> TaskOffsets | None:
    """Offsets by task; none where one is named twice."""
    found: dict[str, dict[int, int]] = {}
    for each in given:
        of_subtopology = found.setdefault(each.subtopology_id, {})
        if each.partition in of_subtopology:
            return None
        of_subtopology[each.partition] = each.offset
    return found
