"""JoinGroup: who may become a member, who already is one, and when that makes the group rebalance.

Kafka: GroupMetadataManager.classicGroupJoinToClassicGroup and what it calls.
"""

from __future__ import annotations

from typing import Literal

from rejoin.coordinator.core.groups.classic.group import CLASSIC, ClassicGroup
from rejoin.coordinator.core.groups.classic.join_attempt import JoinAttempt
from rejoin.coordinator.core.groups.classic.member import Member, ParkedJoin
from rejoin.coordinator.core.groups.classic.member_operations import MemberOperations
from rejoin.coordinator.core.groups.classic.rebalance import Rebalancer
from rejoin.coordinator.core.groups.classic.responses import join_accepted, join_refused
from rejoin.coordinator.core.groups.classic.state import (
    COMPLETING_REBALANCE,
    DEAD,
    PREPARING_REBALANCE,
    STABLE,
)
from rejoin.coordinator.core.groups.classic.static_replacement import StaticReplacements
from rejoin.coordinator.core.groups.timers import session_timer
from rejoin.coordinator.core.inputs import Context, Token
from rejoin.coordinator.core.runtime.appends import ShardLog
from rejoin.coordinator.core.step_context import StepContext
from rejoin.journal.events.coordinator import (
    MemberIdHandedOut,
    MemberJoined,
    MemberRejoined,
)
from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.messages.groups.join_group import JoinGroupRequest
from rejoin.protocol.unvalidated import unvalidated

FIRST_VERSION_WITH_MEMBER_ID_REQUIRED = 4


class JoinRequests:
    """Handles JoinGroup for one shard's groups."""

    def __init__(self, ctx: StepContext, log: ShardLog, members: MemberOperations, rebalancer: Rebalancer) -> None:
        self._ctx = ctx
        self._members = members
        self._rebalancer = rebalancer
        self._static = StaticReplacements(ctx, log, members, rebalancer)

    def join(self, group: ClassicGroup, token: Token, request: JoinGroupRequest, context: Context) -> None:
        """Admit a member, park its request, answer it at once, or refuse it."""
        join = JoinAttempt(request, context, ParkedJoin(token, context.api_version))
        if not self._has_room(group, request.member_id):
            self._refuse_surplus(group, join)
        elif request.member_id:
            self._join_known(group, join)
        else:
            self._join_new(group, join)

    # --- room

    def _has_room(self, group: ClassicGroup, member_id: str) -> bool:
        limit = self._ctx.settings.group_max_size
        member = group.members.get(member_id)
        if group.state is PREPARING_REBALANCE:
            # Kafka: those that wait are counted, not the members, so that a lowered limit drops the last to rejoin.
            return (member is not None and member.parked_join is not None) or group.awaiting_join < limit
        if group.state in (COMPLETING_REBALANCE, STABLE):
            return member is not None or len(group.members) < limit
        return True

    def _refuse_surplus(self, group: ClassicGroup, join: JoinAttempt) -> None:
        # Kafka: the member is only taken out. Nothing tries to end the join phase, which then runs to its timer.
        member_id = join.request.member_id
        member = group.members.get(member_id)
        if member is not None:
            self._members.remove(group, member, "over-capacity")
        elif member_id in group.pending_join:
            self._members.drop_pending(group, member_id, "over-capacity")
        self._refuse(join, ErrorCode.GROUP_MAX_SIZE_REACHED, "")

    # --- without a member id

    def _join_new(self, group: ClassicGroup, join: JoinAttempt) -> None:
        request = join.request
        if group.state is DEAD:
            self._refuse(join, ErrorCode.COORDINATOR_NOT_AVAILABLE, "")
        elif not group.supports_protocols(request.protocol_type, request.protocols):
            self._refuse(join, ErrorCode.INCONSISTENT_GROUP_PROTOCOL, "")
        else:
            named = request.group_instance_id if request.group_instance_id is not None else join.context.client_id
            new_id = f"{named}-{self._ctx.new_id()}"
            if request.group_instance_id is not None:
                self._join_new_static(group, join, new_id, request.group_instance_id)
            elif join.context.api_version >= FIRST_VERSION_WITH_MEMBER_ID_REQUIRED:
                self._hand_out_id(group, join, new_id)
            else:
                self._add(group, join, new_id)

    def _hand_out_id(self, group: ClassicGroup, join: JoinAttempt, new_id: str) -> None:
        """Have a dynamic member come back with its id. A client that never does leaves no member behind (KIP-394)."""
        request = join.request
        group.pending_join[new_id] = None
        key = session_timer(group.partition, group.group_id, new_id)
        self._ctx.deadlines.set(key, self._ctx.now + request.session_timeout_ms)
        self._ctx.emit(
            unvalidated(
                MemberIdHandedOut,
                group_id=group.group_id,
                member_id=new_id,
                client_id=join.context.client_id,
                client_host=join.context.client_host,
                session_timeout_ms=request.session_timeout_ms,
                client_reason=request.reason,
            )
        )
        self._refuse(join, ErrorCode.MEMBER_ID_REQUIRED, new_id)

    def _join_new_static(self, group: ClassicGroup, join: JoinAttempt, new_id: str, instance_id: str) -> None:
        # Kafka: no MEMBER_ID_REQUIRED for static members; their instance id identifies a retry.
        old_id = group.static_members.get(instance_id)
        if old_id is None:
            self._add(group, join, new_id)
        else:
            self._static.replace(group, join, group.members[old_id], new_id)

    # --- with a member id

    def _join_known(self, group: ClassicGroup, join: JoinAttempt) -> None:
        request = join.request
        member_id = request.member_id
        if group.state is DEAD:
            self._refuse(join, ErrorCode.COORDINATOR_NOT_AVAILABLE, member_id)
        elif not group.supports_protocols(request.protocol_type, request.protocols):
            self._refuse(join, ErrorCode.INCONSISTENT_GROUP_PROTOCOL, member_id)
        elif member_id in group.pending_join:
            if request.group_instance_id is not None:
                # Kafka: an illegal state. Ids are handed out to dynamic members only.
                self._refuse(join, ErrorCode.UNKNOWN_SERVER_ERROR, "")
            else:
                self._add(group, join, member_id)
        else:
            error = self._members.check_member(group, member_id, request.group_instance_id, "JoinGroup")
            if error is not ErrorCode.NONE:
                self._refuse(join, error, member_id)
            else:
                self._rejoin(group, join, group.members[member_id])

    def _rejoin(self, group: ClassicGroup, join: JoinAttempt, member: Member) -> None:
        changed = member.protocols != join.request.protocols
        cause: Literal["rejoin-metadata", "rejoin-leader"] = "rejoin-metadata" if changed else "rejoin-leader"
        if group.state is PREPARING_REBALANCE:
            self._park_rejoin(group, join, member)
            self._rebalancer.finish_if_all_joined(group)
        elif group.state is COMPLETING_REBALANCE and not changed:
            # Kafka: the answer may have been lost. The same member in the same attempt gets it once more.
            members = group.join_response_members() if group.is_leader(member.member_id) else ()
            self._ctx.reply(join.parked.token, join_accepted(join.parked, group, member.member_id, members=members))
        elif group.state is STABLE and not changed and not group.is_leader(member.member_id):
            self._ctx.reply(join.parked.token, join_accepted(join.parked, group, member.member_id))
        elif group.state in (COMPLETING_REBALANCE, STABLE):
            self._park_rejoin(group, join, member)
            self._rebalancer.start_or_finish(group, join.cause(cause, member))
        else:
            self._refuse(join, ErrorCode.UNKNOWN_MEMBER_ID, member.member_id)

    # --- moves

    def _add(self, group: ClassicGroup, join: JoinAttempt, member_id: str) -> None:
        """Make it a member, and the group rebalance."""
        ctx = self._ctx
        if group.is_initial:
            group.new_member_added = True
        if not group.members:
            group.protocol_type = join.request.protocol_type
        leader = group.leader
        member = Member.joining(join.request, join.context, group.partition, member_id)
        member.parked_join = join.parked
        state = group.state
        group.add(member)
        ctx.emit(
            unvalidated(
                MemberJoined,
                group_id=group.group_id,
                member_id=member_id,
                group_instance_id=member.group_instance_id,
                client_id=member.client_id,
                client_host=member.client_host,
                session_timeout_ms=member.session_timeout_ms,
                rebalance_timeout_ms=member.rebalance_timeout_ms,
                protocols=member.protocol_names(),
                topics=member.topics(group.protocol_name),
                state=str(state),
                client_reason=join.request.reason,
                member_type=CLASSIC,
            )
        )
        self._members.emit_leader_change(group, leader)
        self._members.start_new_member_session(member)
        self._rebalancer.start_or_finish(group, join.cause("join-new", member))

    def _park_rejoin(self, group: ClassicGroup, join: JoinAttempt, member: Member) -> None:
        changed = member.protocols != join.request.protocols
        self._members.park_join(group, member, join.parked)
        join.update(group, member)
        self._ctx.emit(
            MemberRejoined(
                group_id=group.group_id,
                member_id=member.member_id,
                group_instance_id=member.group_instance_id,
                protocols=member.protocol_names(),
                topics=member.topics(group.protocol_name),
                state=group.state,
                changed=changed,
                client_reason=join.request.reason,
            )
        )

    def _refuse(self, join: JoinAttempt, error: ErrorCode, member_id: str) -> None:
        self._ctx.reply(join.parked.token, join_refused(join.parked, error, member_id))
