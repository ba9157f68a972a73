"""Observations of a run so far, and the questions that checks ask about them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from rejoin.client.assignors.cooperative_sticky import CooperativeStickyAssignor
from rejoin.coordinator.core.effects import Append, Effect, Reply
from rejoin.coordinator.core.groups.classic.state import COMPLETING_REBALANCE, EMPTY, PREPARING_REBALANCE
from rejoin.coordinator.core.inputs import Elected, Input, Received
from rejoin.coordinator.core.snapshots import GroupSnapshot
from rejoin.journal.events.base import Event
from rejoin.journal.events.coordinator import (
    AppendFailed,
    GroupLoaded,
    JoinPhaseEnded,
    JoinPhaseRepeated,
    MemberJoined,
    MemberRemoved,
    PendingMemberRemoved,
    RebalanceCompleted,
    RebalanceStarted,
    StaticMemberReplaced,
    StaticMemberRestored,
)
from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.message import Request, Response
from rejoin.protocol.messages.groups.heartbeat import HeartbeatRequest, HeartbeatResponse
from rejoin.protocol.messages.groups.join_group import JoinGroupRequest
from rejoin.protocol.messages.groups.sync_group import SyncGroupRequest
from rejoin.protocol.messages.offsets.offset_commit import OffsetCommitRequest
from rejoin.protocol.messages.topics.delete_topics import DeleteTopicsRequest
from rejoin.protocol.messages.transactions.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from rejoin.protocol.records.consumer_offsets import GroupRecord, offsets_partition
from rejoin.protocol.types import TopicPartition
from rejoin.simulation.actors.node import NodeActor
from rejoin.simulation.kernel import Millis
from rejoin.simulation.network import Exchange
from rejoin.simulation.output.ownership import GroupPartition
from rejoin.simulation.search.observed_topics import ObservedTopics
from rejoin.simulation.search.observed_transaction_log import ObservedTransactionLog
from rejoin.simulation.search.observed_transactions import ObservedTransactions
from rejoin.simulation.simulation import Simulation

if TYPE_CHECKING:
    from rejoin.simulation.search.observed_consumer_groups import ObservedConsumerGroups
    from rejoin.simulation.search.observed_shares import ObservedShares
    from rejoin.simulation.search.streaming.observed import ObservedStreams

NEW_MEMBER_MS = 300_000

F = TypeVar("F", bound=Event)
Q = TypeVar("Q", bound=Request)
A = TypeVar("A", bound=Response)
LeaderTerm: TypeAlias = tuple[str, int, int, str]
"""Node, its incarnation, the epoch of the offsets partition, group: one term, in which generations count up."""


class Violation(Exception):
    """Something happened that never may."""

    def __init__(self, check: str, at: Millis, text: str) -> None:
        super().__init__(f"{check.replace('_', ' ')}: {text}")
        self.check = check
        self.at = at
        self.text = text


def request_of(exchange: Exchange, kind: type[Q]) -> Q:
    """The request that is answered."""
    assert isinstance(exchange.request, kind), f"a {kind.__name__} is answered, not a {type(exchange.request).__name__}"
    return exchange.request


@dataclass(slots=True)
class ObservedStep:
    """One step of a node."""

    node: NodeActor
    what: Input
    effects: list[Effect]
    now: Millis
    epoch_before: int = -1
    """Of the offsets partition that was elected, if one was: the epoch in which this node led it until then."""
    _groups: dict[str, GroupSnapshot | None] = field(default_factory=dict)

    def events(self, kind: type[F]) -> Iterator[F]:
        return (effect for effect in self.effects if isinstance(effect, kind))

    def replies(self, kind: type[A]) -> Iterator[tuple[Exchange, A]]:
        for effect in self.effects:
            if isinstance(effect, Reply) and isinstance(effect.response, kind) and isinstance(effect.token, Exchange):
                yield effect.token, effect.response

    def received(self, kind: type[Q]) -> Q | None:
        if isinstance(self.what, Received) and isinstance(self.what.request, kind):
            return self.what.request
        return None

    def group(self, group_id: str) -> GroupSnapshot | None:
        """A group as this step leaves it."""
        if group_id not in self._groups:
            self._groups[group_id] = self.node.group(group_id)
        return self._groups[group_id]

    def changed_groups(self) -> Iterator[GroupSnapshot]:
        """The groups that this step emitted events of."""
        named = (getattr(effect, "group_id", None) for effect in self.effects if isinstance(effect, Event))
        for group_id in dict.fromkeys(each for each in named if each is not None):
            group = self.group(group_id)
            if group is not None:
                yield group

    def concerns(self, group_id: str) -> bool:
        """Whether this step emitted events of a group, or wrote records of a consumer group."""
        for effect in self.effects:
            if getattr(effect, "group_id", None) == group_id:
                return True
            if isinstance(effect, Append) and effect.records:
                key = getattr(effect.records[0], "key", None)
                if key is not None and getattr(key.data, "group_id", None) == group_id:
                    return True
        return False

    def serves(self, group_id: str) -> bool:
        shard = self.node.shard(group_id)
        return shard is not None and shard.is_active

    def leader_term(self, group_id: str) -> LeaderTerm:
        """The term in which a response was given. At an election only overdue timers answer; they come before it."""
        if isinstance(self.what, Elected) and self.what.partition == self.node.cluster.partition_of(group_id):
            epoch = self.epoch_before
        else:
            shard = self.node.shard(group_id)
            epoch = -1 if shard is None else shard.epoch
        return (self.node.name, self.node.incarnation, epoch, group_id)


@dataclass(slots=True)
class Observations:
    """Observations so far."""

    simulation: Simulation
    generations: dict[tuple[str, str], int] = field(default_factory=dict)
    completed: dict[str, int] = field(default_factory=dict)
    leaders: dict[tuple[Any, ...], str] = field(default_factory=dict)
    owners: dict[tuple[Any, ...], dict[TopicPartition, str]] = field(default_factory=dict)
    assignments: dict[tuple[Any, ...], dict[str, bytes]] = field(default_factory=dict)
    open: dict[Exchange, tuple[NodeActor, int, Millis]] = field(default_factory=dict)
    commit_verdicts: dict[Exchange, ErrorCode] = field(default_factory=dict)
    beats: dict[tuple[str, int, str, str], Millis] = field(default_factory=dict)
    """When a member's heartbeat was last accepted."""
    signs: dict[tuple[str, int, str, str], Millis] = field(default_factory=dict)
    """When a member's session was restarted by anything."""
    repeated: dict[tuple[str, str], Millis] = field(default_factory=dict)
    join_ended: dict[tuple[str, str], Millis] = field(default_factory=dict)
    initial: dict[tuple[str, str], tuple[Millis | None, bool]] = field(default_factory=dict)
    failed_appends: dict[TopicPartition, Millis] = field(default_factory=dict)
    undecided: set[TopicPartition] = field(default_factory=set)
    """Where a change failed while others were in flight that may have been made of it, and no rebalance has completed
    since: these are in the log, and so in memory."""
    returned: set[str] = field(default_factory=set)
    """Groups to which a static member came back without a rebalance, and that have not completed one since."""
    transactions: ObservedTransactions | None = None
    """Where consumers transform in transactions."""
    transaction_log: ObservedTransactionLog | None = None
    """Beside it."""
    consumer_groups: ObservedConsumerGroups | None = None
    """Where groups use the consumer protocol, or move to it."""
    shares: ObservedShares | None = None
    """Where consumers share partitions."""
    streams: ObservedStreams | None = None
    """Where threads of an application send raw heartbeats."""
    topics: ObservedTopics = field(default_factory=ObservedTopics)
    """Topics that were deleted."""
    _active: tuple[int, list[tuple[NodeActor, GroupSnapshot]]] = (-1, [])

    # -- observing

    def before(self, node: NodeActor, what: Input) -> None:
        """Observe an input before it changes anything."""
        if self.shares is not None:
            self.shares.before(node, what)
        if not isinstance(what, Received) or not isinstance(what.token, Exchange):
            return
        self.open[what.token] = (node, node.incarnation, self.simulation.world.now)
        if self.consumer_groups is not None:
            self.consumer_groups.before(node, what)
        if self.streams is not None:
            self.streams.before(node, what)
        if isinstance(what.request, OffsetCommitRequest):
            request = what.request
            verdict = self.commit_verdicts[what.token] = self._commit_verdict(node, request)
            if verdict is ErrorCode.NONE:
                # Kafka: OffsetMetadataManager restarts the session when the commit comes, not when it is stored.
                key = (node.name, node.incarnation, request.group_id, request.member_id)
                self.signs[key] = max(self.simulation.world.now, self.signs.get(key, 0))

    def after(self, step: ObservedStep) -> None:
        """Observe a step that has passed the checks."""
        if self.consumer_groups is not None:
            self.consumer_groups.after(step, self)
        if self.shares is not None:
            self.shares.after(step)
        if self.streams is not None:
            self.streams.after(step, self)
        deletion = step.received(DeleteTopicsRequest)
        if deletion is not None:
            self.topics.deleted(step.node, list(self.simulation.scenario.groups), deletion)
        for effect in step.effects:
            if isinstance(effect, Reply):
                if isinstance(effect.token, Exchange):
                    self.open.pop(effect.token, None)
                    self._sign_of_life(step, effect.token, effect.response)
                    self._fence(effect.token, effect.response)
            elif isinstance(effect, Event):
                self._remember(step, effect)

    def _fence(self, exchange: Exchange, response: Response) -> None:
        if isinstance(response, InitProducerIdResponse) and response.error_code is ErrorCode.NONE:
            request = exchange.request
            assert isinstance(request, InitProducerIdRequest), "an InitProducerId is answered"
            if self.transactions is not None and request.transactional_id is not None:
                self.transactions.initialised(response)

    def _sign_of_life(self, step: ObservedStep, exchange: Exchange, response: Response) -> None:
        request = exchange.request
        who = (step.node.name, step.node.incarnation)
        if isinstance(request, HeartbeatRequest) and isinstance(response, HeartbeatResponse):
            if response.error_code in (ErrorCode.NONE, ErrorCode.REBALANCE_IN_PROGRESS):
                self.beats[*who, request.group_id, request.member_id] = step.now
                self.signs[*who, request.group_id, request.member_id] = step.now
        elif isinstance(request, (JoinGroupRequest, SyncGroupRequest, OffsetCommitRequest)):
            key = (*who, request.group_id, request.member_id)
            self.signs[key] = max(step.now, self.signs.get(key, 0))

    def _remember(self, step: ObservedStep, event: Event) -> None:
        node = step.node
        who = (node.name, node.incarnation)
        match event:
            case MemberJoined():
                self.signs[*who, event.group_id, event.member_id] = step.now + NEW_MEMBER_MS
            case StaticMemberReplaced() | StaticMemberRestored():
                self.returned.add(event.group_id)
                self.signs[*who, event.group_id, event.member_id] = step.now
            case GroupLoaded():
                for member_id in event.members:
                    self.signs[*who, event.group_id, member_id] = step.now
                    # Heartbeats of an earlier term do not count any more.
                    self.beats.pop((*who, event.group_id, member_id), None)
            case JoinPhaseEnded():
                self.join_ended[node.name, event.group_id] = step.now
                for member_id in event.members:
                    self.signs[*who, event.group_id, member_id] = step.now
            case JoinPhaseRepeated():
                self.repeated[node.name, event.group_id] = step.now
            case RebalanceStarted():
                self.initial[node.name, event.group_id] = (step.now if event.initial else None, False)
            case MemberRemoved() | PendingMemberRemoved():
                if event.cause == "session-expiry" and (node.name, event.group_id) in self.initial:
                    self.initial[node.name, event.group_id] = (self.initial[node.name, event.group_id][0], True)
            case RebalanceCompleted():
                self.returned.discard(event.group_id)
                partition = self.simulation.cluster.partition_of(event.group_id)
                self.failed_appends.pop(partition, None)
                self.undecided.discard(partition)
            case AppendFailed():
                partition = offsets_partition(event.partition)
                self.failed_appends[partition] = step.now
                self.topics.append_failed(partition)
                shard = None if node.core is None else node.core.shard(partition)
                if shard is not None and shard.appends_in_flight:
                    self.undecided.add(partition)
            case _:
                pass

    # -- what the specification says

    def was_answered(self, token: object) -> bool:
        return isinstance(token, Exchange) and token.answers > 0

    def _commit_verdict(self, node: NodeActor, request: OffsetCommitRequest) -> ErrorCode:
        """Whether a commit may be taken, as the specification says it (14.1)."""
        shard = node.shard(request.group_id)
        if shard is None or not shard.is_active:
            return ErrorCode.NOT_COORDINATOR
        group = node.group(request.group_id)
        generation = request.generation_id_or_member_epoch
        if group is None:
            return ErrorCode.NONE if generation < 0 else ErrorCode.ILLEGAL_GENERATION
        if generation < 0 and group.state is EMPTY:
            return ErrorCode.NONE
        error = self._identity(group, request.member_id, request.group_instance_id)
        if error is not ErrorCode.NONE:
            return error
        if generation != group.generation:
            return ErrorCode.ILLEGAL_GENERATION
        return ErrorCode.REBALANCE_IN_PROGRESS if group.state is COMPLETING_REBALANCE else ErrorCode.NONE

    def expected_heartbeat(self, step: ObservedStep, request: HeartbeatRequest) -> ErrorCode:
        """The answer to a heartbeat, as the specification says it (11)."""
        group = step.group(request.group_id)
        if group is None:
            return ErrorCode.UNKNOWN_MEMBER_ID
        error = self._identity(group, request.member_id, request.group_instance_id)
        if error is not ErrorCode.NONE:
            return error
        if request.generation_id != group.generation:
            return ErrorCode.ILLEGAL_GENERATION
        return ErrorCode.REBALANCE_IN_PROGRESS if group.state is PREPARING_REBALANCE else ErrorCode.NONE

    @staticmethod
    def _identity(group: GroupSnapshot, member_id: str, instance_id: str | None) -> ErrorCode:
        if instance_id is not None:
            owner = [each for each in group.members.values() if each.group_instance_id == instance_id]
            if not owner:
                return ErrorCode.UNKNOWN_MEMBER_ID
            return ErrorCode.NONE if owner[0].member_id == member_id else ErrorCode.FENCED_INSTANCE_ID
        return ErrorCode.NONE if member_id in group.members else ErrorCode.UNKNOWN_MEMBER_ID

    # -- questions

    def session_timeout(self, group_id: str) -> Millis:
        return self.simulation.scenario.groups[group_id].session_timeout

    def rebalance_timeout(self, group_id: str) -> Millis:
        return self.simulation.scenario.groups[group_id].max_poll_interval

    def newest_group(self, group_id: str) -> GroupRecord | None:
        return self.simulation.disk.log(self.simulation.cluster.partition_of(group_id)).groups.get(group_id)

    def written(self, group_id: str, topic: str, partition: int) -> tuple[int, ...]:
        log = self.simulation.disk.log(self.simulation.cluster.partition_of(group_id))
        return tuple(log.newest.get((group_id, topic, str(partition)), ()))

    def active_groups(self) -> list[tuple[NodeActor, GroupSnapshot]]:
        """Groups that are served by a node that is up and not paused; taken once for all checks of an instant."""
        steps, found = self._active
        if steps != self.simulation.world.steps:
            found = list(self._active_groups())
            self._active = self.simulation.world.steps, found
        return found

    def _active_groups(self) -> Iterator[tuple[NodeActor, GroupSnapshot]]:
        for node in self.simulation.cluster.nodes:
            if node.core is not None and node.paused_until <= self.simulation.world.now:
                for group_id in node.core.group_ids():
                    shard, group = node.shard(group_id), node.group(group_id)
                    if shard is not None and shard.is_active and group is not None:
                        yield node, group

    def resumed(self, node: NodeActor) -> Millis:
        """When a node's last pause ended."""
        return node.paused_until

    def is_parked(self, node: NodeActor, exchange: Exchange) -> bool:
        """Whether a request is parked in its group."""
        group = node.group(getattr(exchange.request, "group_id", ""))
        return group is not None and any(
            token is exchange for member in group.members.values() for token in member.parked
        )

    def may_be_overlooked(self, partition: GroupPartition) -> bool:
        """Whether a group of static members may overlook that a partition has no owner.

        Kafka: a static leader that comes back (KIP-814) takes the topics as it finds them for those that the assignment
        was made from: if a topic grew just before, no member rejoins for that. A static member that comes back with
        another subscription starts no rebalance as long as the protocol is the same. Nor does one that has revoked
        partitions for the second of two cooperative rebalances, and is restarted before it asks for that one. A topic
        that is gone is overlooked as one that has grown.
        """
        group = self.simulation.scenario.groups[partition.group_id]
        newer = partition.partition >= self.simulation.scenario.topics[partition.topic].partitions
        newer |= self.simulation.cluster.topics[partition.topic].is_gone
        given_up = CooperativeStickyAssignor.name in group.assignor and partition.group_id in self.returned
        return group.static and (
            newer or partition.topic not in self.simulation.scenario.topics_of(partition.group_id) or given_up
        )

    def leads_in_truth(self, node: NodeActor, group_id: str) -> bool:
        """Whether no other node has been elected after this one."""
        shard = node.shard(group_id)
        return shard is not None and shard.epoch == self.simulation.disk.log(shard.partition).epoch

    def is_quiet(self, node: NodeActor, group: GroupSnapshot) -> bool:
        """Whether no append of this group's offsets partition is in flight, and the node leads it in truth."""
        shard = node.shard(group.group_id)
        return shard is not None and not shard.appends_in_flight and self.leads_in_truth(node, group.group_id)

    def lost_group_record(self, group: GroupSnapshot) -> bool:
        """Whether an append failed since the group was last Stable: then the log may be behind, as in Kafka."""
        return group.partition in self.failed_appends
