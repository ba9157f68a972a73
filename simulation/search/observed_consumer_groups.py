"""Observations of consumer groups: records in their logs, responses, and the last request of each member."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeAlias

from rejoin.client.core.consumer import ConsumerCore
from rejoin.coordinator.core.effects import Append
from rejoin.coordinator.core.groups.consumer.model.state import ConsumerMemberState
from rejoin.coordinator.core.inputs import Received
from rejoin.coordinator.core.snapshots import ConsumerGroupSnapshot, ConsumerMemberSnapshot
from rejoin.journal.events.base import Event
from rejoin.journal.events.client import PartitionsAssigned
from rejoin.journal.events.consumer_groups import GroupConverted
from rejoin.journal.events.coordinator import GroupCreated, GroupDeleted, GroupLoaded, MemberRemoved
from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.messages.groups.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
from rejoin.protocol.messages.groups.leave_group import LeaveGroupRequest, LeaveGroupResponse
from rejoin.protocol.messages.offsets.offset_commit import OffsetCommitRequest, OffsetCommitResponse
from rejoin.protocol.records.groups.consumer_groups import (
    ConsumerGroupCurrentMemberAssignmentRecord,
    ConsumerGroupCurrentMemberAssignmentValue,
    ConsumerGroupMemberMetadataRecord,
    ConsumerGroupMetadataRecord,
    ConsumerGroupTargetAssignmentMemberRecord,
    ConsumerGroupTargetAssignmentMetadataRecord,
    CurrentTopicPartitions,
)
from rejoin.protocol.records.groups.group_parts import TopicPartitions
from rejoin.protocol.records.keyed import Record
from rejoin.protocol.types import TopicPartition
from rejoin.simulation.actors.node import NodeActor
from rejoin.simulation.kernel import Actor, Millis
from rejoin.simulation.network import Exchange
from rejoin.simulation.search.observations import Observations, ObservedStep
from rejoin.simulation.simulation import Simulation

NONE = ErrorCode.NONE
MemberOfNode: TypeAlias = tuple[str, int, str, str]
"""A node, its incarnation, a group and a member id."""

IdPartitions: TypeAlias = set[tuple[str, int]]
"""Partitions, each with its topic's id."""


@dataclass(slots=True)
class LoggedGroup:
    """A consumer group as the newest records of its log have it."""

    epoch: int = 1
    assignment_epoch: int = 1
    members: set[str] = field(default_factory=set)
    current: dict[str, ConsumerGroupCurrentMemberAssignmentValue] = field(default_factory=dict)
    targets: dict[str, IdPartitions] = field(default_factory=dict)


class ObservedConsumerGroups:
    """The consumer groups of a run."""

    def __init__(self, simulation: Simulation) -> None:
        self.simulation = simulation
        self.logged: dict[str, LoggedGroup] = {}
        self.stored_epochs: dict[tuple[str, str], set[int]] = {}
        """By group and member: every epoch of it that is in the log."""
        self.acknowledged: dict[str, int] = {}
        """By group: the highest epoch that a member was answered."""
        self.beats: dict[MemberOfNode, Millis] = {}
        """When a heartbeat came that was accepted."""
        self.signs: dict[MemberOfNode, Millis] = {}
        """When any heartbeat came, or the group was loaded."""
        self.revoking: dict[tuple[str, int, str, str, int, frozenset[tuple[str, int]]], Millis] = {}
        """Since when a member has had to give up these partitions."""
        self.commits: dict[tuple[str, TopicPartition], int] = {}
        """By group and partition: the last offset of which a commit was acknowledged."""
        self.verdicts: dict[Exchange, ErrorCode] = {}
        """Error that the specification demands for a request with a member's epoch; none where the request is valid."""
        self.claims: list[str] = []
        """Members that said they own less than they do."""
        self.ghosts: set[str] = set()
        """Members whose end could not be stored when they left."""
        self.never_named: dict[tuple[str, str], IdPartitions] = {}
        """By group and member: what it was assigned, did not name in a heartbeat with partitions, and had not before.

        Kafka: the coordinator takes what such a heartbeat does not name for given up
        (CurrentAssignmentBuilder.ownsRevokedPartitions). But a member that takes an assignment over may still send the
        one before: its acknowledgement waits for an answer, and that answer has the newer one
        (AbstractMembershipManager.processAssignmentReceived). If the target no longer has the partition, the next owner
        gets it at once, before the member learns of it.
        """
        self._named: dict[tuple[str, str], IdPartitions] = {}
        """By group and member: what it was assigned and has named since."""
        self._assigned_at: dict[tuple[str, TopicPartition], Millis] = {}
        """By consumer and partition: when it got it last."""
        simulation.world.listen(self._assigned, [PartitionsAssigned])
        self._topic_ids = {
            name: simulation.cluster.log_of(TopicPartition(name, 0)).topic_id for name in simulation.scenario.topics
        }
        simulation.disk.on_append.append(self._on_append)

    def ids_of(self, partitions: list[TopicPartition]) -> IdPartitions:
        """Partitions with the ids of their topics."""
        return {(self._topic_ids[topic], index) for topic, index in partitions}

    def _assigned(self, actor: Actor, event: Event, now: Millis) -> None:
        assert isinstance(event, PartitionsAssigned), "nothing else is listened for"
        for topic, indexes in event.partitions.items():
            for index in indexes:
                self._assigned_at[actor.name, TopicPartition(topic, index)] = now

    # -- the log

    def _on_append(self, append: Append) -> None:
        for record in append.records:
            group_id = getattr(getattr(getattr(record, "key", None), "data", None), "group_id", None)
            if group_id is not None:
                self._logged(group_id, record)

    def _logged(self, group_id: str, record: Record) -> None:
        group = self.logged.setdefault(group_id, LoggedGroup())
        match record:
            case ConsumerGroupMetadataRecord(value=None):
                del self.logged[group_id]
            case ConsumerGroupMetadataRecord(value=value) if value is not None:
                group.epoch = value.data.epoch
            case ConsumerGroupTargetAssignmentMetadataRecord(value=value):
                group.assignment_epoch = -1 if value is None else value.data.assignment_epoch
            case ConsumerGroupMemberMetadataRecord(key=key, value=value):
                (group.members.discard if value is None else group.members.add)(key.data.member_id)
            case ConsumerGroupTargetAssignmentMemberRecord(key=key, value=value):
                group.targets.pop(key.data.member_id, None)
                if value is not None:
                    group.targets[key.data.member_id] = _partitions(value.data.topic_partitions)
            case ConsumerGroupCurrentMemberAssignmentRecord(key=key, value=value):
                group.current.pop(key.data.member_id, None)
                if value is not None:
                    group.current[key.data.member_id] = value.data
                    self.stored_epochs.setdefault((group_id, key.data.member_id), set()).add(value.data.member_epoch)
            case _:
                pass

    # -- requests and answers

    def before(self, node: NodeActor, what: Received) -> None:
        """Observe a request before it changes anything."""
        exchange, request = what.token, what.request
        if not isinstance(exchange, Exchange):
            return
        if isinstance(request, ConsumerGroupHeartbeatRequest):
            shard = node.shard(request.group_id)
            if shard is None or not shard.is_active:
                return
            group = node.consumer_group(request.group_id)
            self.signs[node.name, node.incarnation, request.group_id, request.member_id] = self.simulation.world.now
            self.verdicts[exchange] = NONE if group is None else _heartbeat_verdict(group, request)
            if group is not None and request.member_id in group.members and self.verdicts[exchange] is NONE:
                self._note_named(request, group.members[request.member_id])
            self._compare_claim(exchange, request)
        elif isinstance(request, OffsetCommitRequest):
            group = node.consumer_group(request.group_id)
            if group is not None:
                self.verdicts[exchange] = _commit_verdict(group, request, self._topic_ids)

    def _note_named(self, request: ConsumerGroupHeartbeatRequest, member: ConsumerMemberSnapshot) -> None:
        """Keep which of its partitions a member has named; one that joins or leaves has none."""
        key = (request.group_id, request.member_id)
        if request.member_epoch <= 0:
            self._named.pop(key, None)
            self.never_named.pop(key, None)
            return
        assigned = flat(member.assigned) | flat(member.pending)
        named = self._named.get(key, set()) & assigned
        if request.topic_partitions is not None:
            said = {(each.topic_id, index) for each in request.topic_partitions for index in each.partitions}
            hidden = assigned - said - named
            self.never_named[key] = (self.never_named.get(key, set()) | hidden) - (assigned & said)
            named = assigned & said
        self._named[key] = named

    def _compare_claim(self, exchange: Exchange, request: ConsumerGroupHeartbeatRequest) -> None:
        """Compare what a member says it owns with what it owns."""
        consumer = self.simulation.consumers.get(exchange.connection.client.name)
        if consumer is None or exchange.serial < 0:
            return
        core = consumer.core
        if not isinstance(core, ConsumerCore) or request.topic_partitions is None:
            return
        if core.generation.member_id != request.member_id:
            return
        if request.member_epoch > 0 and core.generation.generation_id != request.member_epoch:
            return
        said = {(each.topic_id, index) for each in request.topic_partitions for index in each.partitions}
        # What it is taking over right now it has not acknowledged yet.
        acknowledged = [
            partition
            for partition in core.assignment()
            if self._assigned_at.get((consumer.name, partition), -1) < exchange.asked_at
        ]
        hidden = self.ids_of(acknowledged) - said
        if hidden and request.member_epoch >= 0:
            self.claims.append(f"{request.member_id}: {sorted(index for _, index in hidden)}")

    def after(self, step: ObservedStep, observed: Observations) -> None:
        """Observe a step that has passed the checks; the requests that it answers are still open."""
        for exchange, response in step.replies(ConsumerGroupHeartbeatResponse):
            request = exchange.request
            if not isinstance(request, ConsumerGroupHeartbeatRequest):
                continue
            if response.error_code is not NONE and request.member_epoch < 0:
                # Kafka: its timers are cancelled already, and nothing else removes it.
                self.ghosts.add(request.member_id)
            elif response.error_code is NONE:
                group_id = request.group_id
                self.acknowledged[group_id] = max(self.acknowledged.get(group_id, 0), response.member_epoch)
                came_at = observed.open[exchange][2] if exchange in observed.open else step.now
                if request.member_epoch >= 0:
                    key = (step.node.name, step.node.incarnation, group_id, response.member_id or "")
                    self.beats[key] = max(came_at, self.beats.get(key, 0))
                    self.signs[key] = max(came_at, self.signs.get(key, 0))
        for exchange, left in step.replies(LeaveGroupResponse):
            if left.error_code is not NONE and isinstance(exchange.request, LeaveGroupRequest):
                self.ghosts.update(each.member_id for each in exchange.request.members or ())
        for exchange, answer in step.replies(OffsetCommitResponse):
            if isinstance(exchange.request, OffsetCommitRequest):
                self._committed(exchange.request, answer)
        for effect in step.effects:
            match effect:
                case GroupConverted() | GroupCreated() | GroupDeleted():
                    self.acknowledged.pop(effect.group_id, None)
                    if isinstance(effect, GroupDeleted):
                        self.commits = {key: at for key, at in self.commits.items() if key[0] != effect.group_id}
                case GroupLoaded():
                    for member_id in effect.members:
                        key = (step.node.name, step.node.incarnation, effect.group_id, member_id)
                        self.signs[key] = step.now
                        self.beats.pop(key, None)
                case MemberRemoved():
                    self.beats.pop((step.node.name, step.node.incarnation, effect.group_id, effect.member_id), None)
                case _:
                    pass

    def _committed(self, request: OffsetCommitRequest, response: OffsetCommitResponse) -> None:
        wanted = {(t.name, p.partition_index): p.committed_offset for t in request.topics for p in t.partitions}
        for topic in response.topics:
            for partition in topic.partitions:
                if partition.error_code is NONE:
                    key = TopicPartition(topic.name, partition.partition_index)
                    self.commits[request.group_id, key] = wanted[topic.name, partition.partition_index]


def _partitions(topics: tuple[CurrentTopicPartitions | TopicPartitions, ...]) -> IdPartitions:
    return {(topic.topic_id, index) for topic in topics for index in topic.partitions}


def assignment_in_log(value: ConsumerGroupCurrentMemberAssignmentValue) -> tuple[int, int, IdPartitions, IdPartitions]:
    """A member's epoch, state and partitions by its record."""
    assigned, pending = _partitions(value.assigned_partitions), _partitions(value.partitions_pending_revocation)
    return value.member_epoch, value.state, assigned, pending


def flat(partitions: object) -> IdPartitions:
    """The partitions of a snapshot, each with its topic's id."""
    assert isinstance(partitions, dict), "a snapshot has partitions by topic id"
    return {(topic_id, index) for topic_id, indexes in partitions.items() for index in indexes}


# -- what the specification says


def _heartbeat_verdict(group: ConsumerGroupSnapshot, request: ConsumerGroupHeartbeatRequest) -> ErrorCode:
    """Whether a member may speak with this epoch."""
    if request.member_epoch <= 0:
        return NONE
    member = group.members.get(request.member_id)
    if request.instance_id is not None:
        owner = [each for each in group.members.values() if each.group_instance_id == request.instance_id]
        if owner and owner[0].member_id != request.member_id:
            return ErrorCode.FENCED_INSTANCE_ID
        member = owner[0] if owner else None
    if member is None:
        return ErrorCode.UNKNOWN_MEMBER_ID
    if request.member_epoch == member.epoch or _repeats(member, request):
        return NONE
    return ErrorCode.FENCED_MEMBER_EPOCH


def _repeats(member: ConsumerMemberSnapshot, request: ConsumerGroupHeartbeatRequest) -> bool:
    """Whether a member has missed an answer: it has the epoch before, and owns nothing that is not its own."""
    if request.member_epoch != member.previous_epoch or request.topic_partitions is None:
        return False
    return {(t.topic_id, index) for t in request.topic_partitions for index in t.partitions} <= flat(member.assigned)


def _commit_verdict(group: ConsumerGroupSnapshot, request: OffsetCommitRequest, topic_ids: dict[str, str]) -> ErrorCode:
    """Whether a member may commit; with an older epoch at least only what it has (KIP-1251)."""
    epoch = request.generation_id_or_member_epoch
    if epoch < 0 and not group.members:
        return NONE
    member = group.members.get(request.member_id)
    if member is None:
        return ErrorCode.UNKNOWN_MEMBER_ID
    committed = {(topic_ids[t.name], p.partition_index) for t in request.topics for p in t.partitions}
    has = flat(member.assigned) | flat(member.pending)
    is_early = epoch < member.epoch and committed <= has
    return NONE if epoch == member.epoch or is_early else ErrorCode.STALE_MEMBER_EPOCH


def must_give_up(member: ConsumerMemberSnapshot) -> bool:
    """Whether a member has to give something up."""
    return member.state is ConsumerMemberState.UNREVOKED_PARTITIONS
