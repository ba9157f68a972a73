"""SyncGroup, Heartbeat and LeaveGroup: the requests of a member after it joined.

Kafka: GroupMetadataManager.classicGroupSync, classicGroupHeartbeat and classicGroupLeave.
"""

from __future__ import annotations

from typing import Final

from rejoin.coordinator.core.groups.classic.group import ClassicGroup
from rejoin.coordinator.core.groups.classic.member import Member
from rejoin.coordinator.core.groups.classic.member_operations import MemberOperations
from rejoin.coordinator.core.groups.classic.rebalance import Rebalancer
from rejoin.coordinator.core.groups.classic.responses import sync_accepted, sync_refused
from rejoin.coordinator.core.groups.classic.state import (
    BEFORE_SYNC,
    COMPLETING_REBALANCE,
    DEAD,
    EMPTY,
    ON_HEARTBEAT,
    ON_SYNC,
    PREPARING_REBALANCE,
    STABLE,
)
from rejoin.coordinator.core.groups.timers import session_timer
from rejoin.coordinator.core.inputs import Token
from rejoin.coordinator.core.step_context import StepContext
from rejoin.journal.events.coordinator import Cause
from rejoin.protocol.brokers.releases import has_former_coordinator
from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.messages.groups.heartbeat import HeartbeatRequest, HeartbeatResponse
from rejoin.protocol.messages.groups.leave_group import (
    LeaveGroupRequest,
    LeaveGroupResponse,
    LeaveGroupResponseMember,
    MemberIdentity,
)
from rejoin.protocol.messages.groups.sync_group import SyncGroupRequest

HEARTBEAT_RESPONSES: Final = {error: HeartbeatResponse(error_code=error) for error in ErrorCode}
"""One response for each error, made once: most requests of a coordinator are heartbeats."""


class MemberRequests:
    """Handles the requests of members for one shard's groups."""

    def __init__(self, ctx: StepContext, members: MemberOperations, rebalancer: Rebalancer) -> None:
        self._ctx = ctx
        self._members = members
        self._rebalancer = rebalancer
        self._is_former = has_former_coordinator(ctx.settings.emulator_as_kafka)

    # --- SyncGroup

    def sync(self, group: ClassicGroup, token: Token, request: SyncGroupRequest) -> None:
        """Park the request, take the leader's assignment, or return the stored assignment."""
        error = self._check_sync(group, request)
        if error is not ErrorCode.NONE:
            self._ctx.reply(token, sync_refused(error))
            return
        member = group.members[request.member_id]
        self._stop_waiting_for(group, member)
        if group.state is STABLE:
            # A leader's new assignments are ignored: the generation has one.
            self._ctx.reply(token, sync_accepted(group, member))
            return
        assert group.state is COMPLETING_REBALANCE, "the other states have a fixed answer"
        self._members.park_sync(member, token)
        if group.is_leader(member.member_id):
            self._rebalancer.receive_assignment(group, request)

    def _check_sync(self, group: ClassicGroup, request: SyncGroupRequest) -> ErrorCode:
        fixed = BEFORE_SYNC.get(group.state)
        if fixed is not None:
            return fixed
        error = self._members.check_member(group, request.member_id, request.group_instance_id, "SyncGroup")
        if error is not ErrorCode.NONE:
            return error
        if request.generation_id != group.generation:
            return ErrorCode.ILLEGAL_GENERATION
        if _differs(request.protocol_type, group.protocol_type) or _differs(request.protocol_name, group.protocol_name):
            return ErrorCode.INCONSISTENT_GROUP_PROTOCOL
        if self._is_former and group.protocol_name is None and request.protocol_name is not None:
            # Kafka: before 4.0 a group that has chosen no protocol yet has another one than any that is named.
            return ErrorCode.INCONSISTENT_GROUP_PROTOCOL
        return ON_SYNC.get(group.state, ErrorCode.NONE)

    def _stop_waiting_for(self, group: ClassicGroup, member: Member) -> None:
        if member.member_id in group.pending_sync:
            del group.pending_sync[member.member_id]
            if not group.pending_sync:
                self._ctx.deadlines.cancel(group.sync_key)

    # --- Heartbeat

    def heartbeat(self, group: ClassicGroup, request: HeartbeatRequest) -> HeartbeatResponse:
        """Restart the session and report a rebalance. Never changes the group's state."""
        state = group.state
        if state is DEAD:
            return HEARTBEAT_RESPONSES[ErrorCode.COORDINATOR_NOT_AVAILABLE]
        member = group.members.get(request.member_id)
        if member is None or request.group_instance_id is not None:
            error = self._members.check_member(group, request.member_id, request.group_instance_id, "Heartbeat")
            if error is not ErrorCode.NONE:
                return HEARTBEAT_RESPONSES[error]
            member = group.members[request.member_id]
        if request.generation_id != group.generation:
            return HEARTBEAT_RESPONSES[ErrorCode.ILLEGAL_GENERATION]
        if state is not EMPTY:
            self._members.restart_session(member)
        return HEARTBEAT_RESPONSES[ON_HEARTBEAT[state]]

    # --- LeaveGroup

    def leave(self, group: ClassicGroup, request: LeaveGroupRequest, version: int) -> LeaveGroupResponse:
        """Remove members at once, each entry for itself, and rebalance once for all of them."""
        if group.state is DEAD:
            return LeaveGroupResponse(error_code=ErrorCode.COORDINATOR_NOT_AVAILABLE)
        results: list[LeaveGroupResponseMember] = []
        cause: Cause | None = None
        for identity in leaving_members(request, version):
            error, left = self._leave_one(group, identity)
            results.append(leave_result(identity, error))
            cause = cause or left
        if cause is not None:
            self._after_leaving(group, cause)
        if version < 3:
            return LeaveGroupResponse(error_code=results[0].error_code)
        return LeaveGroupResponse(members=tuple(results))

    def _leave_one(self, group: ClassicGroup, identity: MemberIdentity) -> tuple[ErrorCode, Cause | None]:
        member_id = identity.member_id
        if not member_id:
            # Kafka: this is how an administrator removes a static member without knowing its id.
            member_id = group.static_members.get(identity.group_instance_id or "", "")
            if not member_id:
                return ErrorCode.UNKNOWN_MEMBER_ID, None
        elif member_id in group.pending_join:
            self._ctx.deadlines.cancel(session_timer(group.partition, group.group_id, member_id))
            self._members.drop_pending(group, member_id, "left")
            if self._is_former and group.state is not PREPARING_REBALANCE:
                return ErrorCode.NONE, None
            return ErrorCode.NONE, Cause(cause="leave", member_id=member_id, client_reason=identity.reason)
        else:
            error = self._members.check_member(group, member_id, identity.group_instance_id, "LeaveGroup")
            if error is not ErrorCode.NONE:
                return error, None
        member = group.members[member_id]
        self._members.remove(group, member, "left", identity.reason)
        cause = Cause(
            cause="leave",
            member_id=member_id,
            group_instance_id=member.group_instance_id,
            client_reason=identity.reason,
        )
        return ErrorCode.NONE, cause

    def _after_leaving(self, group: ClassicGroup, cause: Cause) -> None:
        # Kafka: since 4.0 dropped pending ids count, too, so a Stable group rebalances though no member has gone.
        if group.state in (STABLE, COMPLETING_REBALANCE):
            self._rebalancer.start_or_finish(group, cause)
        elif group.state is PREPARING_REBALANCE:
            self._rebalancer.finish_if_all_joined(group)


def leaving_members(request: LeaveGroupRequest, version: int) -> tuple[MemberIdentity, ...]:
    """Who shall go: before v3 one member, from then on a batch."""
    return request.members if version >= 3 else (MemberIdentity(member_id=request.member_id),)


def leave_result(identity: MemberIdentity, error: ErrorCode) -> LeaveGroupResponseMember:
    """The result of one entry, which echoes it."""
    return LeaveGroupResponseMember(
        member_id=identity.member_id, group_instance_id=identity.group_instance_id, error_code=error
    )


def leave_unknown_group(request: LeaveGroupRequest, version: int) -> LeaveGroupResponse:
    """The answer where there is no such group: each member is unknown."""
    if version < 3:
        return LeaveGroupResponse(error_code=ErrorCode.UNKNOWN_MEMBER_ID)
    return LeaveGroupResponse(
        members=tuple(leave_result(identity, ErrorCode.UNKNOWN_MEMBER_ID) for identity in request.members)
    )


def _differs(given: str | None, known: str | None) -> bool:
    """Whether a client names another protocol than the group's; what either does not know is not compared."""
    return given is not None and known is not None and given != known
