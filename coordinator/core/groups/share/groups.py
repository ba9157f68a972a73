"""The share groups of one shard.

Kafka: the methods of GroupMetadataManager whose names begin with shareGroup.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping

from rejoin.coordinator.core.groups.classic.member import ParkedJoin
from rejoin.coordinator.core.groups.classic.member_requests import HEARTBEAT_RESPONSES, leave_unknown_group
from rejoin.coordinator.core.groups.classic.responses import join_refused, sync_refused
from rejoin.coordinator.core.groups.group import Group, GroupKind, OnChecked, TimedRecord
from rejoin.coordinator.core.groups.modern.changes import RecordChanges, Writes
from rejoin.coordinator.core.groups.modern.metadata import TopicsMetadata
from rejoin.coordinator.core.groups.modern.session_timers import SessionTimers
from rejoin.coordinator.core.groups.share.group_events import ShareGroupEvents
from rejoin.coordinator.core.groups.share.group_settings import ShareSettings
from rejoin.coordinator.core.groups.share.heartbeats import ShareHeartbeats
from rejoin.coordinator.core.groups.share.initializing import NO_STATE, Initializing
from rejoin.coordinator.core.groups.share.model.group import ShareGroup
from rejoin.coordinator.core.groups.share.model.records import group_records, group_tombstones
from rejoin.coordinator.core.groups.share.model.replay import ShareReplay
from rejoin.coordinator.core.groups.share.offsets import ShareGroupOffsets
from rejoin.coordinator.core.groups.share.persister import SharePersister
from rejoin.coordinator.core.groups.share.removal import ShareRemovals
from rejoin.coordinator.core.groups.share.view import of_share_group
from rejoin.coordinator.core.groups.timers import member_session_timer
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
from rejoin.protocol.messages.share.share_group_heartbeat import ShareGroupHeartbeatRequest
from rejoin.protocol.records.keyed import Record


class ShareGroups(GroupKind[ShareGroup]):
    """Serves the share groups of one shard."""

    def __init__(
        self,
        ctx: StepContext,
        log: ShardLog,
        groups: dict[str, Group],
        topics: TopicsMetadata,
        persister: SharePersister,
    ) -> None:
        self._ctx = ctx
        self._groups = groups
        self._partition = log.partition
        self._settings = ShareSettings(ctx, topics.group_configs)
        self._replay = ShareReplay(ctx, log.partition, groups)
        self.writes: Writes[RecordChanges] = Writes(log, self._replay, RecordChanges)
        self.writes.on_stored = self._stored
        self._events = ShareGroupEvents(ctx, topics, log.partition.partition)
        self._timers = SessionTimers(ctx)
        self._topics = topics
        self._removals = ShareRemovals(topics, self.writes, self._timers)
        self._initializing = Initializing(ctx, groups, topics, self.writes, persister, self._settings)
        self.offsets = ShareGroupOffsets(groups, topics, self._replay, self.writes, self._initializing, persister)
        self._heartbeats = ShareHeartbeats(
            ctx,
            groups,
            topics,
            self._replay,
            self.writes,
            self._removals,
            self._initializing,
            self._timers,
            self._settings,
        )

    # --- members

    def share_heartbeat(self, token: Token, request: ShareGroupHeartbeatRequest, context: Context) -> None:
        """ShareGroupHeartbeat, which may make the group. It is valid in itself."""
        self._heartbeats.heartbeat(token, request, context)

    def join(self, group: ShareGroup, token: Token, request: JoinGroupRequest, context: Context) -> None:
        """Kafka: a share group takes no other members, also where it is Empty."""
        parked = ParkedJoin(token, context.api_version)
        refused = join_refused(parked, ErrorCode.INCONSISTENT_GROUP_PROTOCOL, request.member_id)
        self._ctx.reply(token, refused)

    def sync(self, group: ShareGroup, token: Token, request: SyncGroupRequest) -> None:
        self._ctx.reply(token, sync_refused(ErrorCode.UNKNOWN_MEMBER_ID))

    def heartbeat(self, group: ShareGroup, request: HeartbeatRequest) -> HeartbeatResponse:
        return HEARTBEAT_RESPONSES[ErrorCode.UNKNOWN_MEMBER_ID]

    def leave(self, group: ShareGroup, token: Token, request: LeaveGroupRequest, version: int) -> LeaveGroupResponse:
        return leave_unknown_group(request, version)

    def committed(self, group: ShareGroup, member_id: str) -> None:
        """Kafka: a share group takes no commits."""

    # --- questions

    def group(self, group_id: str) -> ShareGroup | None:
        """A group, if it is there and of this kind."""
        group = self._groups.get(group_id)
        return group if isinstance(group, ShareGroup) else None

    def initialized_partitions(self, group_id: str) -> Mapping[str, frozenset[int]]:
        """The share-partitions of a group whose state is kept, by topic id; none without such a group."""
        group = self.group(group_id)
        states = None if group is None else group.state_partitions
        return {topic_id: state.partitions for topic_id, state in (states or NO_STATE).initialized.items()}

    # --- what happens

    def timer_fired(self, group: ShareGroup, key: TimerKey) -> None:
        self._removals.time_out(group, key)

    def session_key(self, group: ShareGroup, member_id: str) -> TimerKey:
        return member_session_timer(self._partition, group.group_id, member_id)

    def topics_changed(self, topics: Collection[str], *, has_new: bool) -> None:
        for group in self._groups.values():
            if isinstance(group, ShareGroup) and not group.topics.keys().isdisjoint(topics):
                group.refresh.at = 0

    def topics_deleted(self, topic_ids: Collection[str]) -> None:
        self._initializing.topics_deleted(topic_ids)

    # --- the log

    def replay(self, record: Record) -> Millis:
        self._replay.replay(record)
        return -1

    def loaded(self, group: ShareGroup, offset_count: int) -> None:
        group.persisted = True
        group.shown_state = group.previous_state = group.state
        group.state_since = self._ctx.now
        timeout_ms = self._settings.session_timeout_ms(group.group_id)
        for member in group.members.values():
            self._timers.restart_session(member, timeout_ms)
        self._events.loaded(group)

    def close(self, group: ShareGroup, error: ErrorCode) -> None:
        """No request is parked here. Answers of share coordinators come too late from now on."""
        self._initializing.is_closed = True

    def _stored(self, group_id: str, changes: RecordChanges) -> None:
        group = self.group(group_id)
        if group is not None:
            self._events.stored(group, changes)

    @property
    def groups_in_flight(self) -> Collection[str]:
        return self.writes.groups_in_flight

    def read_committed(self, group_id: str, read: Callable[[], None]) -> None:
        self.writes.committed(group_id, read)

    def records(self, group: ShareGroup) -> list[TimedRecord]:
        return [(self._ctx.now, record) for record in group_records(group)]

    def tombstones(self, group: ShareGroup) -> list[Record]:
        return [*group_tombstones(group.group_id)]

    # --- deletion

    def prepare_deletion(self, group: ShareGroup, then: OnChecked) -> None:
        self.offsets.prepare_deletion(group, then)

    def delete(self, group: ShareGroup, records: tuple[Record, ...], completion: AppendCompletion) -> None:
        changes = self.writes.begin()
        changes.write(*records, *group_tombstones(group.group_id))
        self.writes.append(group.group_id, changes, completion)

    def deleted(self, group: ShareGroup) -> None:
        """The group is no longer in the log."""

    # --- for people

    def view(self, group: ShareGroup) -> GroupView:
        timeout_ms = self._settings.session_timeout_ms(group.group_id)
        return of_share_group(group, self._topics, timeout_ms, self._ctx.deadlines)
