"""Operations on single members: sessions, parked requests, removal.

A member waits with at most one JoinGroup and one SyncGroup; each is answered exactly once, here.
"""

from __future__ import annotations

from rejoin.coordinator.config import NEW_MEMBER_JOIN_TIMEOUT_MS
from rejoin.coordinator.core.groups.classic.group import ClassicGroup
from rejoin.coordinator.core.groups.classic.member import Member, ParkedJoin
from rejoin.coordinator.core.groups.classic.responses import join_refused, sync_refused
from rejoin.coordinator.core.groups.classic.state import GroupState
from rejoin.coordinator.core.groups.group import emit_fenced
from rejoin.coordinator.core.groups.statistics import StatisticsStore
from rejoin.coordinator.core.inputs import Token
from rejoin.coordinator.core.step_context import StepContext
from rejoin.journal.events.coordinator import (
    GroupStateChanged,
    LeaderChanged,
    MemberRemoved,
    PendingMemberRemoved,
    RemovalCause,
)
from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.messages.groups.join_group import JoinGroupResponse
from rejoin.protocol.messages.groups.sync_group import SyncGroupResponse


class MemberOperations:
    """Handles the members of one shard's groups, one by one."""

    def __init__(self, ctx: StepContext, statistics: StatisticsStore) -> None:
        self._ctx = ctx
        self._statistics = statistics

    def check_member(self, group: ClassicGroup, member_id: str, group_instance_id: str | None, api: str) -> ErrorCode:
        """Whether this is a member of the group; a fenced one is reported."""
        error = group.check_member(member_id, group_instance_id)
        emit_fenced(self._ctx, group, error, member_id, group_instance_id, api)
        return error

    def rename_member(self, group: ClassicGroup, member: Member, new_member_id: str) -> Member:
        """Give a static member a new id, and a session of its own."""
        renamed = group.rename(member, new_member_id)
        self._statistics.of(group.group_id).rename_member(member.member_id, new_member_id)
        self.restart_session(renamed)
        return renamed

    def remove(
        self, group: ClassicGroup, member: Member, cause: RemovalCause, client_reason: str | None = None
    ) -> None:
        """Remove a member. Its parked requests are answered UNKNOWN_MEMBER_ID, so that a live member starts again."""
        if member.parked_join is not None:
            self.answer_join(group, member, join_refused(member.parked_join, ErrorCode.UNKNOWN_MEMBER_ID))
        if member.parked_sync is not None:
            # Differs: Kafka never answers the SyncGroup of a member that is removed; a request would leak.
            self.answer_sync(member, sync_refused(ErrorCode.UNKNOWN_MEMBER_ID))
        self._ctx.deadlines.cancel(member.session_key)
        leader = group.leader
        state = group.state
        group.remove(member.member_id)
        self._ctx.emit(
            MemberRemoved(
                group_id=group.group_id,
                member_id=member.member_id,
                group_instance_id=member.group_instance_id,
                client_id=member.client_id,
                client_host=member.client_host,
                cause=cause,
                state=state,
                client_reason=client_reason,
            )
        )
        self.emit_leader_change(group, leader)

    def drop_pending(self, group: ClassicGroup, member_id: str, cause: RemovalCause) -> None:
        """Forget an id that was handed out and not used."""
        group.remove(member_id)
        self._ctx.emit(PendingMemberRemoved(group_id=group.group_id, member_id=member_id, cause=cause))

    # --- sessions

    def restart_session(self, member: Member) -> None:
        self._ctx.deadlines.set(member.session_key, self._ctx.now + member.session_timeout_ms)

    def start_new_member_session(self, member: Member) -> None:
        """A member that was just added does not know its id and cannot beat: it gets five minutes in the join phase."""
        self._ctx.deadlines.set(member.session_key, self._ctx.now + NEW_MEMBER_JOIN_TIMEOUT_MS)

    # --- parked requests

    def park_join(self, group: ClassicGroup, member: Member, parked: ParkedJoin) -> None:
        """Let a JoinGroup wait. One that waited already gives way."""
        if member.parked_join is None:
            group.awaiting_join += 1
        else:
            # Differs: Kafka never answers a JoinGroup that the same member's next one replaced; a request would leak.
            self._ctx.reply(member.parked_join.token, join_refused(member.parked_join, ErrorCode.REBALANCE_IN_PROGRESS))
        member.parked_join = parked

    def answer_join(self, group: ClassicGroup, member: Member, response: JoinGroupResponse) -> None:
        assert member.parked_join is not None, "only a parked JoinGroup is answered"
        self._ctx.reply(member.parked_join.token, response)
        member.parked_join = None
        group.awaiting_join -= 1

    def park_sync(self, member: Member, token: Token) -> None:
        """Let a SyncGroup wait. One that waited already gives way."""
        if member.parked_sync is not None:
            # Differs: as with JoinGroup, Kafka leaves the replaced request without an answer.
            self._ctx.reply(member.parked_sync, sync_refused(ErrorCode.REBALANCE_IN_PROGRESS))
        member.parked_sync = token

    def answer_sync(self, member: Member, response: SyncGroupResponse) -> None:
        assert member.parked_sync is not None, "only a parked SyncGroup is answered"
        self._ctx.reply(member.parked_sync, response)
        member.parked_sync = None

    def answer_sync_fenced(self, member: Member) -> None:
        """Fence the old id of a static member: another has taken its place."""
        self.answer_sync(member, sync_refused(ErrorCode.FENCED_INSTANCE_ID))

    # --- what is emitted

    def enter(self, group: ClassicGroup, state: GroupState) -> None:
        before = group.state
        group.enter(state, self._ctx.now)
        self.emit_state_change(group, before)

    def emit_state_change(self, group: ClassicGroup, before: GroupState) -> None:
        self._ctx.emit(
            GroupStateChanged(
                group_id=group.group_id, previous_state=before, state=group.state, generation=group.generation
            )
        )

    def emit_leader_change(self, group: ClassicGroup, before: str | None) -> None:
        """Say that another member leads, if that is so."""
        if group.leader != before:
            self._ctx.emit(LeaderChanged(group_id=group.group_id, previous_leader=before, leader=group.leader))
