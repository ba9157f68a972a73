"""The streams groups of one shard.

Kafka: the methods of GroupMetadataManager whose names begin with streamsGroup.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from functools import partial

from rejoin.coordinator.core.groups.classic.member import ParkedJoin
from rejoin.coordinator.core.groups.classic.member_requests import HEARTBEAT_RESPONSES, leave_unknown_group
from rejoin.coordinator.core.groups.classic.responses import join_refused, sync_refused
from rejoin.coordinator.core.groups.group import Group, GroupKind, TimedRecord
from rejoin.coordinator.core.groups.modern.changes import RecordChanges, Writes
from rejoin.coordinator.core.groups.modern.member_order import Known
from rejoin.coordinator.core.groups.modern.metadata import TopicsMetadata
from rejoin.coordinator.core.groups.modern.session_timers import RebalanceTimers
from rejoin.coordinator.core.groups.streams.group_events import StreamsGroupEvents
from rejoin.coordinator.core.groups.streams.group_settings import StreamsSettings
from rejoin.coordinator.core.groups.streams.heartbeats import StreamsHeartbeats
from rejoin.coordinator.core.groups.streams.internal_topics import InternalTopics
from rejoin.coordinator.core.groups.streams.members.removal import StreamsRemovals
from rejoin.coordinator.core.groups.streams.members.responses import StreamsResponses
from rejoin.coordinator.core.groups.streams.members.target import StreamsTargets
from rejoin.coordinator.core.groups.streams.members.updating import StreamsUpdates
from rejoin.coordinator.core.groups.streams.model.group import StreamsGroup
from rejoin.coordinator.core.groups.streams.model.records import group_records, group_tombstones
from rejoin.coordinator.core.groups.streams.model.replay import StreamsReplay
from rejoin.coordinator.core.groups.streams.model.state import StreamsMemberState
from rejoin.coordinator.core.groups.streams.unchanged import UnchangedHeartbeats
from rejoin.coordinator.core.groups.streams.view import of_streams_group
from rejoin.coordinator.core.groups.timers import GroupTimer, member_session_timer
from rejoin.coordinator.core.inputs import Context, Millis, Token
from rejoin.coordinator.core.runtime.appends import AppendCompletion, ShardLog
from rejoin.coordinator.core.runtime.timers import TimerKey
from rejoin.coordinator.core.step_context import StepContext
from rejoin.coordinator.core.views import GroupView
from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.messages.groups.heartbeat import HeartbeatRequest, HeartbeatResponse
from rejoin.protocol.messages.groups.join_group import JoinGroupRequest
from rejoin.protocol.messages.groups.leave_group import LeaveGroupRequest, LeaveGroupResponse
from rejoin.protocol.messages.groups.sync_group import SyncGroupRequest
from rejoin.protocol.messages.streams.streams_group_heartbeat import StreamsGroupHeartbeatRequest
from rejoin.protocol.records.keyed import Record


class StreamsGroups(GroupKind[StreamsGroup]):
    """Serves the streams groups of one shard."""

    def __init__(self, ctx: StepContext, log: ShardLog, groups: dict[str, Group], topics: TopicsMetadata) -> None:
        self._ctx = ctx
        self._groups = groups
        self._partition = log.partition
        self._topics = topics
        self.settings = StreamsSettings(ctx, topics.group_configs)
        self._replay = StreamsReplay(log.partition, groups)
        self.writes: Writes[RecordChanges] = Writes(log, self._replay, RecordChanges)
        self.writes.on_stored = self._stored
        self._events = StreamsGroupEvents(ctx, log.partition.partition)
        self._timers = RebalanceTimers(ctx)
        self._targets = StreamsTargets(ctx, self.settings)
        self._removals = StreamsRemovals(self.writes, self._timers)
        responses = StreamsResponses(topics, self.settings)
        self._unchanged = UnchangedHeartbeats(ctx, groups, topics, self.writes, self._targets, responses, self.settings)
        self._heartbeats = StreamsHeartbeats(
            ctx,
            groups,
            self._replay,
            self.writes,
            StreamsUpdates(ctx, groups, topics, self._targets, self._timers, self.settings),
            self._removals,
            responses,
            self._timers,
            self.settings,
        )

    # --- members

    def streams_heartbeat(
        self, token: Token, request: StreamsGroupHeartbeatRequest, context: Context, internal: InternalTopics
    ) -> None:
        """StreamsGroupHeartbeat, which may make the group. It is valid in itself."""
        self._heartbeats.heartbeat(token, request, context, internal)

    def answer_unchanged(self, token: Token, request: StreamsGroupHeartbeatRequest, context: Context) -> bool:
        """Answer a heartbeat that changes nothing, and so needs no look at whether it is valid; false for others."""
        return self._unchanged.answer(token, request, context)

    def join(self, group: StreamsGroup, token: Token, request: JoinGroupRequest, context: Context) -> None:
        """Kafka: while a streams group has members, it takes no others."""
        parked = ParkedJoin(token, context.api_version)
        self._ctx.reply(token, join_refused(parked, ErrorCode.INCONSISTENT_GROUP_PROTOCOL, ""))

    def sync(self, group: StreamsGroup, token: Token, request: SyncGroupRequest) -> None:
        self._ctx.reply(token, sync_refused(ErrorCode.UNKNOWN_MEMBER_ID))

    def heartbeat(self, group: StreamsGroup, request: HeartbeatRequest) -> HeartbeatResponse:
        return HEARTBEAT_RESPONSES[ErrorCode.UNKNOWN_MEMBER_ID]

    def leave(self, group: StreamsGroup, token: Token, request: LeaveGroupRequest, version: int) -> LeaveGroupResponse:
        """Kafka: an administrator cannot remove members of streams groups."""
        return leave_unknown_group(request, version)

    def yields_to_classic(self, group: StreamsGroup) -> bool:
        return group.is_empty

    def yielded(self, group: StreamsGroup) -> None:
        self._targets.cancel_initial_delay(group)

    def committed(self, group: StreamsGroup, member_id: str) -> None:
        """Kafka: commits do not keep a session alive here."""

    # --- questions

    def group(self, group_id: str) -> StreamsGroup | None:
        """A group, if it is there and of this kind."""
        group = self._groups.get(group_id)
        return group if isinstance(group, StreamsGroup) else None

    # --- what happens

    def timer_fired(self, group: StreamsGroup, key: TimerKey) -> None:
        match key.kind:
            case GroupTimer.MEMBER_SESSION:
                self._removals.time_out(group, key)
            case GroupTimer.REBALANCE:
                self._removals.rebalance_timed_out(group, key)
            case GroupTimer.INITIAL_REBALANCE:
                self._end_initial_delay(group, key)

    def _end_initial_delay(self, group: StreamsGroup, key: TimerKey) -> None:
        """Compute the target for the members that have joined.

        Kafka: not where no topology is configured in memory, as after the very first heartbeat of the group.
        """
        if group.is_empty or group.memory.configured is None or not self._targets.is_due(group):
            return
        changes = self.writes.begin()
        self._targets.compute(group, group.memory, changes, Known(group.member_order.capacity))
        self.writes.commit(group.group_id, changes, partial(self._timers.retry, key))

    def session_key(self, group: StreamsGroup, member_id: str) -> TimerKey:
        return member_session_timer(self._partition, group.group_id, member_id)

    def topics_changed(self, topics: Collection[str], *, has_new: bool) -> None:
        for group in self._groups.values():
            if isinstance(group, StreamsGroup) and not group.required_topics().isdisjoint(topics):
                group.refresh.at = 0
                group.look_again()

    def configured(self, group_id: str) -> None:
        """The settings of a group have changed: they take effect with the next heartbeat of each member."""
        group = self.group(group_id)
        if group is not None:
            group.look_again(*group.members)

    # --- the log

    def replay(self, record: Record) -> Millis:
        self._replay.replay(record)
        return -1

    def loaded(self, group: StreamsGroup, offset_count: int) -> None:
        group.persisted = True
        group.shown_state = group.previous_state = group.state
        group.state_since = self._ctx.now
        timeout_ms = self.settings.session_timeout_ms(group.group_id)
        for member in group.members.values():
            self._timers.restart_session(member, timeout_ms)
            if member.current.state is StreamsMemberState.UNREVOKED_TASKS:
                self._timers.start_rebalance(group, member)
        self._events.loaded(group, offset_count)

    def close(self, group: StreamsGroup, error: ErrorCode) -> None:
        """No request is parked here."""

    def _stored(self, group_id: str, changes: RecordChanges) -> None:
        group = self.group(group_id)
        if group is not None:
            self._events.stored(group, changes)

    @property
    def groups_in_flight(self) -> Collection[str]:
        return self.writes.groups_in_flight

    def read_committed(self, group_id: str, read: Callable[[], None]) -> None:
        self.writes.committed(group_id, read)

    def records(self, group: StreamsGroup) -> list[TimedRecord]:
        return [(self._ctx.now, record) for record in group_records(group)]

    def tombstones(self, group: StreamsGroup) -> list[Record]:
        return [*group_tombstones(group)]

    # --- deletion

    def delete(self, group: StreamsGroup, records: tuple[Record, ...], completion: AppendCompletion) -> None:
        self._targets.cancel_initial_delay(group)
        changes = self.writes.begin()
        changes.write(*records, *group_tombstones(group))
        self.writes.append(group.group_id, changes, completion)

    def deleted(self, group: StreamsGroup) -> None:
        """The group is no longer in the log."""

    # --- for people

    def filter_name(self, group: StreamsGroup) -> str:
        # Kafka: filters are compared with the state's name in its code. The name that is shown finds nothing.
        return group.state.name.lower()

    def view(self, group: StreamsGroup) -> GroupView:
        return self._view(group, in_short=False)

    def summary(self, group: StreamsGroup) -> GroupView:
        return self._view(group, in_short=True)

    def _view(self, group: StreamsGroup, *, in_short: bool) -> GroupView:
        group_id = group.group_id
        timeout_ms, assignor = self.settings.session_timeout_ms(group_id), self.settings.assignor(group_id)
        counts = self._topics.partition_count
        return of_streams_group(group, assignor, timeout_ms, self._ctx.deadlines, counts, in_short=in_short)
