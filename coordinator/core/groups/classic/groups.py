"""The classic groups of one shard: everything about them that depends on the protocol of their members.

Kafka: the methods of GroupMetadataManager whose names begin with classicGroup.
"""

from __future__ import annotations

from typing import Final

from rejoin.coordinator.core.groups.classic.group import ClassicGroup
from rejoin.coordinator.core.groups.classic.joining import JoinRequests
from rejoin.coordinator.core.groups.classic.member_operations import MemberOperations
from rejoin.coordinator.core.groups.classic.member_requests import MemberRequests
from rejoin.coordinator.core.groups.classic.rebalance import Rebalancer
from rejoin.coordinator.core.groups.classic.replay import ClassicReplay
from rejoin.coordinator.core.groups.classic.responses import join_refused, sync_refused
from rejoin.coordinator.core.groups.classic.state import DEAD, PREPARING_REBALANCE, STABLE
from rejoin.coordinator.core.groups.classic.view import of_classic_group
from rejoin.coordinator.core.groups.group import Group, GroupKind, TimedRecord
from rejoin.coordinator.core.groups.statistics import StatisticsStore
from rejoin.coordinator.core.groups.timers import GroupTimer, session_timer
from rejoin.coordinator.core.inputs import Context, Millis, Token
from rejoin.coordinator.core.runtime.appends import AppendCompletion, ShardLog
from rejoin.coordinator.core.runtime.timers import TimerKey
from rejoin.coordinator.core.step_context import StepContext
from rejoin.coordinator.core.views import GroupView
from rejoin.journal.events.coordinator import Cause, GroupLoaded
from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.messages.groups.heartbeat import HeartbeatRequest, HeartbeatResponse
from rejoin.protocol.messages.groups.join_group import JoinGroupRequest
from rejoin.protocol.messages.groups.leave_group import LeaveGroupRequest, LeaveGroupResponse
from rejoin.protocol.messages.groups.sync_group import SyncGroupRequest
from rejoin.protocol.records.consumer_offsets import GroupRecord, group_record
from rejoin.protocol.records.keyed import Record

WITH_MEMBER_ID: Final = (ErrorCode.NOT_COORDINATOR, ErrorCode.REBALANCE_IN_PROGRESS)
"""Errors of parked JoinGroups that give the member id back."""


class ClassicGroups(GroupKind[ClassicGroup]):
    """Serves the classic groups of one shard."""

    def __init__(self, ctx: StepContext, log: ShardLog, groups: dict[str, Group], statistics: StatisticsStore) -> None:
        self._ctx = ctx
        self._partition = log.partition
        self._log = log
        self._groups = groups
        self._statistics = statistics
        self._replay = ClassicReplay(ctx, log.partition, groups, statistics)
        self._members = MemberOperations(ctx, statistics)
        self._rebalancer = Rebalancer(ctx, log, self._members, statistics)
        self._join_requests = JoinRequests(ctx, log, self._members, self._rebalancer)
        self._member_requests = MemberRequests(ctx, self._members, self._rebalancer)

    def new_group(self, group_id: str) -> ClassicGroup:
        """A group that is Empty and of generation 0."""
        ctx = self._ctx
        return ClassicGroup(group_id, self._partition, ctx.now, ctx.settings.emulator_member_order)

    def loaded_group(self, group_id: str) -> ClassicGroup:
        """A group of which the log has only offsets so far."""
        return self._replay.new_group(group_id, self._ctx.now)

    # --- members

    def join(self, group: ClassicGroup, token: Token, request: JoinGroupRequest, context: Context) -> None:
        self._join_requests.join(group, token, request, context)

    def sync(self, group: ClassicGroup, token: Token, request: SyncGroupRequest) -> None:
        self._member_requests.sync(group, token, request)

    def heartbeat(self, group: ClassicGroup, request: HeartbeatRequest) -> HeartbeatResponse:
        return self._member_requests.heartbeat(group, request)

    def leave(self, group: ClassicGroup, token: Token, request: LeaveGroupRequest, version: int) -> LeaveGroupResponse:
        return self._member_requests.leave(group, request, version)

    def committed(self, group: ClassicGroup, member_id: str) -> None:
        if group.state in (STABLE, PREPARING_REBALANCE):
            self._members.restart_session(group.members[member_id])

    # --- time

    def timer_fired(self, group: ClassicGroup, key: TimerKey) -> None:
        match key.kind:
            case GroupTimer.SESSION:
                self._rebalancer.session_expired(group, key.name)
            case GroupTimer.JOIN:
                self._rebalancer.join_timer_fired(group)
            case GroupTimer.SYNC:
                self._rebalancer.sync_timer_fired(group)

    def session_key(self, group: ClassicGroup, member_id: str) -> TimerKey:
        return session_timer(self._partition, group.group_id, member_id)

    # --- the life of a group

    def replay(self, record: GroupRecord) -> Millis:
        return self._replay.replay(record)

    def loaded(self, group: ClassicGroup, offset_count: int) -> None:
        for member in group.members.values():
            self._members.restart_session(member)
        self._ctx.emit(
            GroupLoaded(
                group_id=group.group_id,
                offsets_partition=self._partition.partition,
                state=group.state,
                generation=group.generation,
                members=list(group.members),
                offset_count=offset_count,
            )
        )

    def enforce_max_size(self, group: ClassicGroup) -> None:
        if len(group.members) > self._ctx.settings.group_max_size:
            self._rebalancer.start(group, Cause(cause="over-capacity"))

    def adopt(self, group: ClassicGroup, cause: Cause | None) -> None:
        """A consumer group has become this one: sessions start anew, and with a cause a rebalance begins."""
        self._statistics.start(group.group_id).remember_loaded(group.leader, group.assignments(), readable=True)
        for member in group.members.values():
            self._members.restart_session(member)
        if cause is not None:
            self._rebalancer.start(group, cause)

    def close(self, group: ClassicGroup, error: ErrorCode) -> None:
        self.answer_parked(group, error)
        self.deleted(group)

    def answer_parked(self, group: ClassicGroup, error: ErrorCode) -> None:
        """Answer every request that waits."""
        for member in group.members.values():
            if member.parked_join is not None:
                # Kafka: GroupMetadataManager.onUnloaded gives the id back; a group that could not be stored does not.
                member_id = "" if error not in WITH_MEMBER_ID else member.member_id
                self._members.answer_join(group, member, join_refused(member.parked_join, error, member_id))
            if member.parked_sync is not None:
                self._members.answer_sync(member, sync_refused(error))

    def delete(self, group: ClassicGroup, records: tuple[Record, ...], completion: AppendCompletion) -> None:
        del self._groups[group.group_id]
        self._log.append((*records, *self.tombstones(group)), completion)

    def tombstones(self, group: ClassicGroup) -> list[Record]:
        return [group_record(group.group_id, None)]

    def records(self, group: ClassicGroup) -> list[TimedRecord]:
        if not group.persisted or not group.generation:
            return []
        value = group.metadata()
        return [(max(value.current_state_timestamp, 0) or self._ctx.now, group_record(group.group_id, value))]

    def deleted(self, group: ClassicGroup) -> None:
        self._members.enter(group, DEAD)

    def view(self, group: ClassicGroup) -> GroupView:
        return of_classic_group(group, self._statistics.of(group.group_id), self._ctx.deadlines)
