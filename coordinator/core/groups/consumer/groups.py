"""The consumer groups of one shard: everything about them that depends on the protocol of their members.

Kafka: the methods of GroupMetadataManager whose names begin with consumerGroup.
"""

from __future__ import annotations

from collections.abc import Callable, Collection

from rejoin.coordinator.core.groups.classic.groups import ClassicGroups
from rejoin.coordinator.core.groups.consumer.classic_members import ClassicMembers
from rejoin.coordinator.core.groups.consumer.group_events import GroupEvents
from rejoin.coordinator.core.groups.consumer.group_settings import GroupSettings
from rejoin.coordinator.core.groups.consumer.heartbeats import ConsumerHeartbeats
from rejoin.coordinator.core.groups.consumer.members.regexes import Regexes
from rejoin.coordinator.core.groups.consumer.members.removal import Removals
from rejoin.coordinator.core.groups.consumer.members.target import TargetAssignments, preferred_assignor
from rejoin.coordinator.core.groups.consumer.members.timers import MemberTimers
from rejoin.coordinator.core.groups.consumer.members.updating import Updates
from rejoin.coordinator.core.groups.consumer.migration import Migration
from rejoin.coordinator.core.groups.consumer.model.changes import Changes, Writes
from rejoin.coordinator.core.groups.consumer.model.group import ConsumerGroup
from rejoin.coordinator.core.groups.consumer.model.records import group_records, group_tombstones
from rejoin.coordinator.core.groups.consumer.model.replay import ConsumerReplay
from rejoin.coordinator.core.groups.consumer.model.rules import rules_of
from rejoin.coordinator.core.groups.consumer.model.state import CONSUMER, ConsumerGroupState, ConsumerMemberState
from rejoin.coordinator.core.groups.consumer.progress import GroupProgress
from rejoin.coordinator.core.groups.consumer.view import of_consumer_group
from rejoin.coordinator.core.groups.group import Group, GroupKind, TimedRecord
from rejoin.coordinator.core.groups.modern.metadata import TopicsMetadata
from rejoin.coordinator.core.groups.quiet_session import QuietSession
from rejoin.coordinator.core.groups.timers import GroupTimer, member_session_timer
from rejoin.coordinator.core.inputs import Context, Millis, RegexesResolved, Token
from rejoin.coordinator.core.runtime.appends import AppendCompletion, ShardLog
from rejoin.coordinator.core.runtime.timers import TimerKey
from rejoin.coordinator.core.step_context import StepContext
from rejoin.coordinator.core.views import GroupView
from rejoin.journal.events.coordinator import GroupCreated, GroupLoaded, GroupStateChanged
from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.messages.groups.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from rejoin.protocol.messages.groups.heartbeat import HeartbeatRequest, HeartbeatResponse
from rejoin.protocol.messages.groups.join_group import JoinGroupRequest
from rejoin.protocol.messages.groups.leave_group import LeaveGroupRequest
from rejoin.protocol.messages.groups.sync_group import SyncGroupRequest
from rejoin.protocol.records.keyed import Record


class ConsumerGroups(GroupKind[ConsumerGroup]):
    """Serves the consumer groups of one shard."""

    def __init__(
        self,
        ctx: StepContext,
        log: ShardLog,
        groups: dict[str, Group],
        topics: TopicsMetadata,
        classic: ClassicGroups,
    ) -> None:
        self._ctx = ctx
        self._groups = groups
        self._topics = topics
        self._partition = log.partition
        self._settings = GroupSettings(ctx, topics.group_configs)
        self._replay = ConsumerReplay(log.partition, groups, topics, rules_of(ctx.settings.emulator_as_kafka))
        self.writes = Writes(log, self._replay, Changes)
        self.writes.on_stored = self._stored
        self._events = GroupEvents(ctx, topics)
        self._timers = MemberTimers(ctx)
        self._regexes = Regexes(ctx, log, groups, topics, self.writes)
        self._targets = TargetAssignments(ctx.settings, topics)
        self._removals = Removals(ctx, topics, self.writes, self._timers)
        self._migration = Migration(ctx, groups, topics, classic, self._timers)
        self._removals.downgrade = self._migration.downgrade
        self._updates = Updates(ctx, groups, topics, self._targets, self._regexes, self._timers, self._settings)
        self._heartbeats = ConsumerHeartbeats(
            ctx,
            groups,
            self._replay,
            self.writes,
            self._updates,
            self._removals,
            self._timers,
            self._settings,
            self._migration.upgrade,
        )
        self._classic_members = ClassicMembers(
            ctx, topics, self.writes, self._updates, self._removals, self._migration, self._timers
        )

    # --- members

    def consumer_heartbeat(self, token: Token, request: ConsumerGroupHeartbeatRequest, context: Context) -> None:
        """ConsumerGroupHeartbeat, which may make the group. It is valid in itself."""
        self._heartbeats.heartbeat(token, request, context)

    def answer_unchanged(self, token: Token, request: ConsumerGroupHeartbeatRequest, context: Context) -> bool:
        """Answer a heartbeat that changes nothing, and so needs no look at whether it is valid; false for others."""
        return self._heartbeats.answer_unchanged(token, request, context)

    def quiet_session(
        self, group_id: str, member_id: str, instance_id: str | None, member_epoch: int
    ) -> QuietSession | None:
        """The session of a member whose heartbeats only restart it, or none."""
        return self._heartbeats.quiet_session(self.group(group_id), member_id, instance_id, member_epoch)

    def join(self, group: ConsumerGroup, token: Token, request: JoinGroupRequest, context: Context) -> None:
        self._classic_members.join(group, token, request, context)

    def sync(self, group: ConsumerGroup, token: Token, request: SyncGroupRequest) -> None:
        self._classic_members.sync(group, token, request)

    def heartbeat(self, group: ConsumerGroup, request: HeartbeatRequest) -> HeartbeatResponse:
        return self._classic_members.heartbeat(group, request)

    def leave(self, group: ConsumerGroup, token: Token, request: LeaveGroupRequest, version: int) -> None:
        self._classic_members.leave(group, token, request, version)

    def committed(self, group: ConsumerGroup, member_id: str) -> None:
        """Kafka: commits do not keep a session alive here."""

    def session_timeout_ms(self, group_id: str) -> Millis:
        """The session timeout of the members of a group that speak the consumer protocol."""
        return self._settings.session_timeout_ms(group_id)

    @property
    def default_assignor(self) -> str:
        """The assignor of groups whose members ask for none."""
        return self._targets.default

    # --- time

    def group(self, group_id: str) -> ConsumerGroup:
        """A group of this kind. Raises KeyError where there is none."""
        group = self._groups[group_id]
        assert isinstance(group, ConsumerGroup), f"{group_id} is a {group.kind} group"
        return group

    def yields_to_classic(self, group: ConsumerGroup) -> bool:
        return group.is_empty

    def assignor_of(self, group: ConsumerGroup) -> str:
        """The assignor that a group's members prefer, or else the default."""
        return preferred_assignor(group.subscriptions.server_assignors) or self.default_assignor

    def timer_fired(self, group: ConsumerGroup, key: TimerKey) -> None:
        match key.kind:
            case GroupTimer.MEMBER_SESSION:
                self._removals.time_out(group, key, "session-expiry")
            case GroupTimer.REBALANCE:
                epoch = self._timers.rebalance_epoch(group, key.name)
                if epoch is not None:
                    self._removals.rebalance_timed_out(group, key, epoch)
            case GroupTimer.MEMBER_JOIN:
                self._removals.time_out(group, key, "did-not-rejoin")
            case GroupTimer.MEMBER_SYNC:
                self._removals.time_out(group, key, "sync-expiry")

    def session_key(self, group: ConsumerGroup, member_id: str) -> TimerKey:
        return member_session_timer(self._partition, group.group_id, member_id)

    def regexes_resolved(self, what: RegexesResolved) -> None:
        """The topics of a group's expressions have been found."""
        self._regexes.resolved(what)

    def topics_changed(self, topics: Collection[str], *, has_new: bool) -> None:
        """Topics were created, grown or deleted: the next heartbeat of each group that reads one looks at it."""
        if has_new:
            self._regexes.created_at = self._topics.version
        for group in self._groups.values():
            if isinstance(group, ConsumerGroup) and not group.subscriptions.topics.keys().isdisjoint(topics):
                group.look_at_topics()

    def configured(self, group_id: str) -> None:
        """The settings of a group have changed: they take effect with the next heartbeat of each member."""
        group = self._groups.get(group_id)
        if isinstance(group, ConsumerGroup):
            group.look_at_topics()
            for member in group.members.values():
                member.unchanged = None

    # --- the life of a group

    def progress(self, group_id: str) -> GroupProgress:
        """How far a group is, as the log has it, and the rebalance that is under way."""
        return self._events.progress(group_id)

    def _stored(self, group_id: str, changes: Changes) -> None:
        """A change of a group is in the log."""
        group = self._groups.get(group_id)
        if not isinstance(group, ConsumerGroup):
            # It has become a classic one, or is gone.
            self._events.deleted(group_id)
            for event in changes.events:
                self._ctx.emit(event)
            return
        if not group.persisted:
            group.persisted = True
            group.state_since = self._ctx.now
            if changes.upgraded_from is None:
                partition = self._partition.partition
                self._ctx.emit(
                    GroupCreated(group_id=group_id, offsets_partition=partition, simple=False, group_type=CONSUMER)
                )
            else:
                group.shown_state = ConsumerGroupState.STABLE
        progress = self._events.stored(group_id, changes)
        self._show_state(group, progress.state)
        self._events.finish(group_id, progress)

    def _show_state(self, group: ConsumerGroup, state: ConsumerGroupState) -> None:
        before = group.shown_state
        if before is not state:
            group.show_state(state, self._ctx.now)
            self._ctx.emit(
                GroupStateChanged(group_id=group.group_id, previous_state=before, state=state, generation=group.epoch)
            )

    def replay(self, record: Record) -> Millis:
        self._replay.replay(record)
        return -1

    def loaded(self, group: ConsumerGroup, offset_count: int) -> None:
        group.persisted = True
        group.shown_state = group.previous_state = group.state
        group.state_since = self._ctx.now
        timeout_ms = self._settings.session_timeout_ms(group.group_id)
        for member in group.members.values():
            self._timers.restart_session(member, timeout_ms)
            if member.current.state is ConsumerMemberState.UNREVOKED_PARTITIONS:
                self._timers.start_rebalance(group, member)
        self._ctx.emit(
            GroupLoaded(
                group_id=group.group_id,
                offsets_partition=self._partition.partition,
                state=group.state,
                generation=group.epoch,
                members=list(group.members),
                offset_count=offset_count,
                group_type=CONSUMER,
            )
        )
        self._events.loaded(group)

    # Kafka: a loaded group may be larger than it could become.

    def close(self, group: ConsumerGroup, error: ErrorCode) -> None:
        """No request is parked here."""

    def delete(self, group: ConsumerGroup, records: tuple[Record, ...], completion: AppendCompletion) -> None:
        changes = self.writes.begin()
        changes.write(*records, *group_tombstones(group))
        self.writes.append(group.group_id, changes, completion)

    @property
    def groups_in_flight(self) -> Collection[str]:
        return self.writes.groups_in_flight

    def read_committed(self, group_id: str, read: Callable[[], None]) -> None:
        self.writes.committed(group_id, read)

    def records(self, group: ConsumerGroup) -> list[TimedRecord]:
        return [(self._ctx.now, record) for record in group_records(group)]

    def tombstones(self, group: ConsumerGroup) -> list[Record]:
        return [*group_tombstones(group)]

    def deleted(self, group: ConsumerGroup) -> None:
        if group.group_id not in self._groups:
            self._events.deleted(group.group_id)

    def view(self, group: ConsumerGroup) -> GroupView:
        group_id = group.group_id
        assignor, timeout_ms = self.assignor_of(group), self.session_timeout_ms(group_id)
        return of_consumer_group(group, assignor, timeout_ms, self.progress(group_id), self._ctx.deadlines)
