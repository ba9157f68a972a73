"""The restart of a static member: it joins without a member id, and its instance id is known (KIP-345).

Kafka: GroupMetadataManager.updateStaticMemberThenRebalanceOrCompleteJoin.
"""

from __future__ import annotations

from dataclasses import dataclass

from rejoin.coordinator.core.groups.classic.group import ClassicGroup
from rejoin.coordinator.core.groups.classic.join_attempt import JoinAttempt
from rejoin.coordinator.core.groups.classic.member import Member, Protocols
from rejoin.coordinator.core.groups.classic.member_operations import MemberOperations
from rejoin.coordinator.core.groups.classic.rebalance import Rebalancer
from rejoin.coordinator.core.groups.classic.responses import join_accepted, join_refused
from rejoin.coordinator.core.groups.classic.state import COMPLETING_REBALANCE, DEAD, EMPTY, STABLE
from rejoin.coordinator.core.runtime.appends import AppendCompletion, ShardLog, response_error_of_write
from rejoin.coordinator.core.step_context import StepContext
from rejoin.journal.events.coordinator import StaticMemberReplaced, StaticMemberRestored
from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.records.consumer_offsets import group_record

FIRST_VERSION_WITH_SKIP_ASSIGNMENT = 9


class StaticReplacements:
    """Replaces the members of one shard's groups that come back under a new id."""

    def __init__(self, ctx: StepContext, log: ShardLog, members: MemberOperations, rebalancer: Rebalancer) -> None:
        self._ctx = ctx
        self._log = log
        self._members = members
        self._rebalancer = rebalancer

    def replace(self, group: ClassicGroup, join: JoinAttempt, old: Member, new_id: str) -> None:
        """A static member came back under a new id: it takes the old one's place (KIP-345)."""
        members, rebalancer = self._members, self._rebalancer
        if group.state in (EMPTY, DEAD):
            # Kafka: an illegal state. A group without members has no instance ids.
            self._ctx.reply(join.parked.token, join_refused(join.parked, ErrorCode.UNKNOWN_SERVER_ERROR, ""))
            return
        if old.parked_join is not None:
            members.answer_join(group, old, join_refused(old.parked_join, ErrorCode.FENCED_INSTANCE_ID, old.member_id))
        if old.parked_sync is not None:
            members.answer_sync_fenced(old)
        leader = group.leader
        before = ReplacedMember(old.member_id, old.protocols, old.rebalance_timeout_ms, old.session_timeout_ms, leader)
        member = members.rename_member(group, old, new_id)
        join.update(group, member)
        members.park_join(group, member, join.parked)
        same_protocol = group.state is STABLE and group.select_protocol() == group.protocol_name
        self._ctx.emit(
            StaticMemberReplaced(
                group_id=group.group_id,
                group_instance_id=member.group_instance_id or "",
                old_member_id=old.member_id,
                member_id=new_id,
                state=group.state,
                rebalance=group.state is COMPLETING_REBALANCE or (group.state is STABLE and not same_protocol),
                client_reason=join.request.reason,
            )
        )
        members.emit_leader_change(group, leader)
        if same_protocol:
            record = group_record(group.group_id, group.metadata())
            self._log.append((record,), ReplacementCompletion(self._ctx, members, group, member, join, before))
        elif group.state is STABLE:
            rebalancer.start_or_finish(group, join.cause("static-protocol", member))
        elif group.state is COMPLETING_REBALANCE:
            # Kafka: the leader may be computing with the old id, and the new one would get nothing.
            rebalancer.start(group, join.cause("static-metadata", member))
        else:
            rebalancer.finish_if_all_joined(group)


@dataclass(slots=True, frozen=True)
class ReplacedMember:
    """The state of a static member before its instance came back under a new id."""

    member_id: str
    protocols: Protocols
    rebalance_timeout_ms: int
    session_timeout_ms: int
    leader: str | None


@dataclass(slots=True)
class ReplacementCompletion(AppendCompletion):
    """A static member's new id being written; the generation goes on, without a rebalance."""

    ctx: StepContext
    members: MemberOperations
    group: ClassicGroup
    member: Member
    join: JoinAttempt
    before: ReplacedMember

    def ended(self, error: ErrorCode) -> None:
        # The new id may itself have been replaced or removed meanwhile; then its JoinGroup is answered already.
        if self.group.members.get(self.member.member_id) is not self.member or self.member.parked_join is None:
            return
        if error is ErrorCode.NONE:
            self._accept()
        else:
            self._take_back(error)

    def _accept(self) -> None:
        group, member = self.group, self.member
        if self.join.context.api_version >= FIRST_VERSION_WITH_SKIP_ASSIGNMENT:
            leads = group.is_leader(member.member_id)
            members = group.join_response_members() if leads else ()
            accepted = join_accepted(self.join.parked, group, member.member_id, members=members, skip_assignment=leads)
        else:
            # Kafka: before KIP-814 a returning leader must not assign again, so its old id is named as leader.
            accepted = join_accepted(self.join.parked, group, member.member_id, leader=self.before.leader)
        self.members.answer_join(group, member, accepted)

    def _take_back(self, error: ErrorCode) -> None:
        group, member, before = self.group, self.member, self.before
        response = join_accepted(
            self.join.parked, group, "", leader=before.leader, error=response_error_of_write(error)
        )
        self.members.answer_join(group, member, response)
        group.replace_protocols(member, before.protocols)
        member.rebalance_timeout_ms = before.rebalance_timeout_ms
        member.session_timeout_ms = before.session_timeout_ms
        restored = self.members.rename_member(group, member, before.member_id)
        self.ctx.emit(
            StaticMemberRestored(
                group_id=group.group_id,
                group_instance_id=restored.group_instance_id or "",
                member_id=restored.member_id,
                refused_member_id=member.member_id,
                error=error.name,
            )
        )
