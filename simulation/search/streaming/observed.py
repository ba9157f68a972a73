"""Observations of a streams group: records in its log, responses, and what its threads run."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import TypeAlias

from rejoin.coordinator.core.effects import Append
from rejoin.coordinator.core.inputs import Received
from rejoin.coordinator.core.views import ConsumerGroupView, StreamsMemberView
from rejoin.journal.events.coordinator import GroupDeleted, GroupLoaded, MemberRemoved, TopicCreated
from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.messages.streams.streams_group_heartbeat import (
    StreamsGroupHeartbeatRequest,
    StreamsGroupHeartbeatResponse,
)
from rejoin.protocol.records.groups.streams_groups import (
    CurrentTaskIds,
    StoredTaskIds,
    StreamsGroupCurrentMemberAssignmentRecord,
    StreamsGroupCurrentMemberAssignmentValue,
    StreamsGroupMemberMetadataRecord,
    StreamsGroupMetadataRecord,
    StreamsGroupTargetAssignmentMemberRecord,
    StreamsGroupTargetAssignmentMemberValue,
    StreamsGroupTargetAssignmentMetadataRecord,
)
from rejoin.protocol.records.keyed import Record
from rejoin.protocol.streams.tasks import TaskIds
from rejoin.simulation.actors.node import NodeActor
from rejoin.simulation.kernel import Millis
from rejoin.simulation.network import Exchange
from rejoin.simulation.search.observations import Observations, ObservedStep
from rejoin.simulation.search.streaming.application import FreeApplication
from rejoin.simulation.search.streaming.running import RunningApplication
from rejoin.simulation.search.streaming.thread import Task, flat
from rejoin.simulation.simulation import Simulation

NONE = ErrorCode.NONE
ThreadOfNode: TypeAlias = tuple[str, int, str]
"""A node, its incarnation, and a member id."""


@dataclass(slots=True)
class LoggedStreamsGroup:
    """The group as the newest records of its log have it."""

    epoch: int = 1
    assignment_epoch: int = 1
    processes: dict[str, str] = field(default_factory=dict)
    """By member: its process id."""
    current: dict[str, StreamsGroupCurrentMemberAssignmentValue] = field(default_factory=dict)
    targets: dict[str, StreamsGroupTargetAssignmentMemberValue] = field(default_factory=dict)

    @property
    def members(self) -> set[str]:
        """Ids of all members."""
        return {*self.processes, *self.current}


class ObservedStreams:
    """The streams group of a run."""

    def __init__(self, simulation: Simulation, application: FreeApplication | RunningApplication) -> None:
        self.simulation = simulation
        self.application = application
        self.group_id = application.group_id
        self.logged: LoggedStreamsGroup | None = None
        self.stored_epochs: dict[str, set[int]] = {}
        """By member: every epoch of it that is in the log."""
        self.acknowledged = 0
        """The highest epoch that a member was answered."""
        self.verdicts: dict[Exchange, ErrorCode] = {}
        """Error that the specification demands for a request; none where it is valid."""
        self.beats: dict[ThreadOfNode, Millis] = {}
        """When a heartbeat came that was accepted."""
        self.signs: dict[ThreadOfNode, Millis] = {}
        """When any heartbeat came, or the group was loaded."""
        self.ghosts: set[str] = set()
        """Members whose end could not be stored when they left."""
        self.revoking: dict[tuple[str, int, str, int, frozenset[Task]], Millis] = {}
        """Since when a member has had to give up these tasks."""
        self.double_runs: list[str] = []
        """Active tasks that a thread took while another ran them."""
        simulation.disk.on_append.append(self._on_append)
        application.when_taken(self._taken)

    # --- the group in memory

    def view(self, node: NodeActor) -> ConsumerGroupView | None:
        """The group of a node that serves it."""
        shard = node.shard(self.group_id)
        if node.core is None or shard is None or not shard.is_active:
            return None
        view = node.core.describe_group(self.group_id)
        return view if isinstance(view, ConsumerGroupView) else None

    def leading(self) -> tuple[NodeActor, ConsumerGroupView] | None:
        """The node that leads the group in truth, and the group there."""
        node = self.simulation.cluster.leader_of(self.group_id)
        view = None if node is None else self.view(node)
        return None if node is None or view is None else (node, view)

    # --- what threads run

    def _taken(self, name: str, member_id: str, tasks: frozenset[Task]) -> None:
        leading = self.leading()
        if leading is None:
            return
        members = {each.member_id: each for each in members_of(leading[1])}
        mine = members.get(member_id)
        if mine is None or not tasks <= flat(mine.assignment or {}):
            return  # the response is of a coordinator that leads no more
        for other in self.application.threads:
            both = other.active & tasks
            if other.name == name or not both or not other.is_up or not other.is_honest:
                continue
            member = members.get(other.member_id)
            # A member that the group has given up learns of it with its next request.
            if member is not None and member.member_epoch > 0:
                self.double_runs.append(f"{sorted(both)} runs in {other.member_id} and in {member_id}")

    # --- the log

    def _on_append(self, append: Append) -> None:
        for record in append.records:
            if getattr(getattr(getattr(record, "key", None), "data", None), "group_id", None) == self.group_id:
                self._logged(record)

    def _logged(self, record: Record) -> None:
        group = self.logged = self.logged or LoggedStreamsGroup()
        match record:
            case StreamsGroupMetadataRecord(value=None):
                self.logged = None
            case StreamsGroupMetadataRecord(value=value) if value is not None:
                group.epoch = value.data.epoch
            case StreamsGroupTargetAssignmentMetadataRecord(value=value):
                group.assignment_epoch = -1 if value is None else value.data.assignment_epoch
            case StreamsGroupMemberMetadataRecord(key=key, value=value):
                group.processes.pop(key.data.member_id, None)
                if value is not None:
                    group.processes[key.data.member_id] = value.data.process_id
            case StreamsGroupTargetAssignmentMemberRecord(key=key, value=value):
                group.targets.pop(key.data.member_id, None)
                if value is not None:
                    group.targets[key.data.member_id] = value.data
            case StreamsGroupCurrentMemberAssignmentRecord(key=key, value=value):
                group.current.pop(key.data.member_id, None)
                if value is not None:
                    group.current[key.data.member_id] = value.data
                    self.stored_epochs.setdefault(key.data.member_id, set()).add(value.data.member_epoch)
            case _:
                pass

    # --- requests and answers

    def before(self, node: NodeActor, what: Received) -> None:
        """Observe a request before it changes anything."""
        exchange, request = what.token, what.request
        if not isinstance(exchange, Exchange) or not isinstance(request, StreamsGroupHeartbeatRequest):
            return
        view = self.view(node)
        if view is not None:
            self.signs[node.name, node.incarnation, request.member_id] = self.simulation.world.now
            self.verdicts[exchange] = _verdict(view, request)

    def after(self, step: ObservedStep, observed: Observations) -> None:
        """Observe a step that has passed the checks; the requests that it answers are still open."""
        who = (step.node.name, step.node.incarnation)
        for exchange, response in step.replies(StreamsGroupHeartbeatResponse):
            request = exchange.request
            if not isinstance(request, StreamsGroupHeartbeatRequest):
                continue
            if response.error_code is not NONE and request.member_epoch < 0:
                # Kafka: its timers are cancelled already, and nothing else removes it.
                self.ghosts.add(request.member_id)
            elif response.error_code is NONE and request.member_epoch >= 0:
                self.ghosts.discard(request.member_id)
                self.acknowledged = max(self.acknowledged, response.member_epoch)
                came_at = observed.open[exchange][2] if exchange in observed.open else step.now
                key = (*who, request.member_id)
                self.beats[key] = max(came_at, self.beats.get(key, 0))
        for effect in step.effects:
            match effect:
                case GroupDeleted(group_id=self.group_id):
                    self.acknowledged = 0
                case GroupLoaded(group_id=self.group_id):
                    for member_id in effect.members:
                        self.signs[*who, member_id] = step.now
                        self.beats.pop((*who, member_id), None)
                case MemberRemoved(group_id=self.group_id):
                    self.beats.pop((*who, effect.member_id), None)
                case TopicCreated():
                    self.application.topic_made(effect.topic, effect.partition_count)
                case _:
                    pass


def members_of(view: ConsumerGroupView) -> Iterator[StreamsMemberView]:
    """The members of a streams group."""
    return (each for each in view.members if isinstance(each, StreamsMemberView))


def tasks_of(ids: Iterable[StoredTaskIds | CurrentTaskIds | TaskIds]) -> frozenset[Task]:
    """Tasks of a record or a request, one by one."""
    return frozenset((each.subtopology_id, partition) for each in ids for partition in each.partitions)


# --- what the specification says


def _verdict(view: ConsumerGroupView, request: StreamsGroupHeartbeatRequest) -> ErrorCode:
    """Whether a member may speak with its epoch."""
    if request.member_epoch <= 0:
        return NONE
    members = {each.member_id: each for each in members_of(view)}
    if request.instance_id is not None:
        owners = [each for each in members.values() if each.group_instance_id == request.instance_id]
        if not owners:
            return ErrorCode.UNKNOWN_MEMBER_ID
        if owners[0].member_id != request.member_id:
            return ErrorCode.FENCED_INSTANCE_ID
    member = members.get(request.member_id)
    if member is None:
        return ErrorCode.UNKNOWN_MEMBER_ID
    if request.member_epoch == member.member_epoch or _repeats(member, request):
        return NONE
    return ErrorCode.FENCED_MEMBER_EPOCH


def _repeats(member: StreamsMemberView, request: StreamsGroupHeartbeatRequest) -> bool:
    """Whether a member has missed a response: it has the epoch before, and runs nothing that is not its own."""
    active, standby, warmup = request.active_tasks, request.standby_tasks, request.warmup_tasks
    if request.member_epoch != member.previous_member_epoch or active is None or standby is None or warmup is None:
        return False
    return tasks_of(active) <= flat(member.assignment or {}) and tasks_of(standby) <= flat(member.standby_tasks)
