"""The rebalance machinery: from the first reason to rebalance until every member has an assignment again.

Each method named for a move is the only place where that move is made. Kafka: GroupMetadataManager, the methods from
prepareRebalance to expirePendingSync.
"""

from __future__ import annotations

from dataclasses import dataclass

from rejoin.coordinator.core.groups.classic.group import ClassicGroup, InitialDelay
from rejoin.coordinator.core.groups.classic.member import Member
from rejoin.coordinator.core.groups.classic.member_operations import MemberOperations
from rejoin.coordinator.core.groups.classic.responses import join_accepted, sync_accepted, sync_refused
from rejoin.coordinator.core.groups.classic.state import (
    COMPLETING_REBALANCE,
    DEAD,
    EMPTY,
    PREPARING_REBALANCE,
    STABLE,
)
from rejoin.coordinator.core.groups.statistics import StatisticsStore, count_moves
from rejoin.coordinator.core.runtime.appends import AppendCompletion, ShardLog, response_error_of_write
from rejoin.coordinator.core.step_context import StepContext
from rejoin.journal.events.coordinator import (
    AssignmentReceived,
    AssignmentStoreFailed,
    Cause,
    GroupEmptied,
    JoinPhaseEnded,
    JoinPhaseRepeated,
    RebalanceCompleted,
    RebalanceDelayExtended,
    RebalanceStarted,
)
from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.messages.groups.sync_group import SyncGroupRequest, SyncGroupResponse
from rejoin.protocol.records.consumer_offsets import group_record


class Rebalancer:
    """Runs the rebalances of one shard's groups."""

    def __init__(self, ctx: StepContext, log: ShardLog, members: MemberOperations, statistics: StatisticsStore) -> None:
        self._ctx = ctx
        self._log = log
        self._members = members
        self._statistics = statistics

    # --- starting

    def start_or_finish(self, group: ClassicGroup, cause: Cause) -> None:
        """Start a rebalance where the state allows one; in a join phase, end it if all have joined."""
        if group.can_rebalance:
            self.start(group, cause)
        else:
            self.finish_if_all_joined(group)

    def start(self, group: ClassicGroup, cause: Cause) -> None:
        """Begin a join phase. Members learn of it from their next request, or at once if they wait in SyncGroup."""
        ctx = self._ctx
        if group.state is COMPLETING_REBALANCE:
            self._withdraw_assignments(group, ErrorCode.REBALANCE_IN_PROGRESS)
        group.pending_sync.clear()
        ctx.deadlines.cancel(group.sync_key)

        initial = group.state is EMPTY
        rebalance_timeout_ms = group.rebalance_timeout_ms()
        delay_ms = ctx.settings.group_initial_rebalance_delay_ms
        if initial:
            group.initial_delay = InitialDelay(delay_ms, max(rebalance_timeout_ms - delay_ms, 0))
            ctx.deadlines.set(group.join_key, ctx.now + delay_ms)
        self._statistics.of(group.group_id).begin_rebalance(cause, ctx.now)
        previous_state = group.state
        self._members.enter(group, PREPARING_REBALANCE)
        ctx.emit(
            RebalanceStarted(
                group_id=group.group_id,
                generation=group.generation,
                previous_state=previous_state,
                cause=cause,
                initial=initial,
                join_timeout_ms=delay_ms if initial else rebalance_timeout_ms,
                members=list(group.members),
            )
        )
        if initial:
            return
        if group.all_joined:
            self.end_join_phase(group)
        else:
            # Kafka: the timer is set once, from the members of this moment, and not moved by those that join later.
            ctx.deadlines.set(group.join_key, ctx.now + rebalance_timeout_ms)

    def join_timer_fired(self, group: ClassicGroup) -> None:
        """The join phase has lasted long enough, unless it is an initial one that newcomers have extended."""
        delay = group.initial_delay
        if delay is None or not group.new_member_added or delay.remaining_ms == 0:
            self.end_join_phase(group)
            return
        group.new_member_added = False
        settings = self._ctx.settings
        next_delay_ms = min(settings.group_initial_rebalance_delay_ms, delay.remaining_ms)
        # Kafka: what is left shrinks by the delay that has passed, not by the next one.
        group.initial_delay = InitialDelay(next_delay_ms, max(delay.remaining_ms - delay.delay_ms, 0))
        self._ctx.deadlines.set(group.join_key, self._ctx.now + next_delay_ms)
        self._ctx.emit(
            RebalanceDelayExtended(
                group_id=group.group_id,
                delay_ms=next_delay_ms,
                remaining_ms=group.initial_delay.remaining_ms,
                member_count=len(group.members),
            )
        )

    # --- the end of the join phase

    def finish_if_all_joined(self, group: ClassicGroup) -> None:
        """End the join phase when all have joined. An initial one ends by its timer alone."""
        if group.state is PREPARING_REBALANCE and group.previous_state is not EMPTY and group.all_joined:
            self.end_join_phase(group)

    def end_join_phase(self, group: ClassicGroup) -> None:
        """Remove members that did not rejoin, and begin a generation with the others."""
        ctx = self._ctx
        ctx.deadlines.cancel(group.join_key)
        group.initial_delay = None
        late = [member for member in group.ordered_members() if not member.is_static and member.parked_join is None]
        for member in late:
            self._members.remove(group, member, "did-not-rejoin")
        if group.state is DEAD:
            return
        leader = group.leader
        if not group.elect_rejoined_leader() and group.members:
            # Kafka: only static members that did not come are left. No generation; their sessions will end it.
            timeout_ms = group.rebalance_timeout_ms()
            ctx.deadlines.set(group.join_key, ctx.now + timeout_ms)
            ctx.emit(
                JoinPhaseRepeated(group_id=group.group_id, join_timeout_ms=timeout_ms, members=list(group.members))
            )
            return
        self._members.emit_leader_change(group, leader)
        before = group.state
        group.next_generation(ctx.now)
        self._members.emit_state_change(group, before)
        if group.members:
            self._begin_generation(group, [member.member_id for member in late])
        else:
            self._become_empty(group)

    def _begin_generation(self, group: ClassicGroup, late: list[str]) -> None:
        """Answer every JoinGroup with the generation, and wait for the SyncGroups."""
        ctx = self._ctx
        rebalance = self._statistics.of(group.group_id).rebalance
        assert rebalance is not None, "a join phase belongs to a rebalance"
        assert group.leader is not None, "a generation with members has a leader"
        assert group.protocol_name is not None, "a generation with members has a protocol"
        rebalance.join_ended_at = ctx.now
        members = group.ordered_members()
        ctx.emit(
            JoinPhaseEnded(
                group_id=group.group_id,
                generation=group.generation,
                leader=group.leader,
                protocol=group.protocol_name,
                members=[member.member_id for member in members],
                absent=[member.member_id for member in members if member.parked_join is None],
                did_not_rejoin=late,
                join_ms=ctx.now - rebalance.attempt_started_at,
            )
        )
        for member in members:
            if member.parked_join is not None:
                roster = group.join_response_members() if group.is_leader(member.member_id) else ()
                accepted = join_accepted(member.parked_join, group, member.member_id, members=roster)
                self._members.answer_join(group, member, accepted)
            # Kafka: absent static members, too, get a full session from here.
            self._members.restart_session(member)
            member.is_new = False
            group.pending_sync[member.member_id] = None
        ctx.deadlines.set(group.sync_key, ctx.now + group.rebalance_timeout_ms())

    def _become_empty(self, group: ClassicGroup) -> None:
        """The join phase ended without members: that is a generation of its own, and is stored."""
        statistics = self._statistics.of(group.group_id)
        rebalance, before = statistics.end_rebalance(), statistics.last_stable()
        statistics.remember(group.leader, {}, {})
        self._ctx.emit(
            GroupEmptied(
                group_id=group.group_id,
                generation=group.generation,
                cause=rebalance.cause if rebalance else None,
                rebalance_ms=self._ctx.now - rebalance.started_at if rebalance else 0,
                owned_before=group.ownership(before.assignments),
            )
        )
        self._log.append((group_record(group.group_id, group.metadata({})),), EmptyGroupCompletion(group))

    # --- the sync phase

    def receive_assignment(self, group: ClassicGroup, request: SyncGroupRequest) -> None:
        """Store the leader's assignment; no SyncGroup is answered before it is durable."""
        assert group.state is COMPLETING_REBALANCE, "only a generation without an assignment takes one"
        given = {entry.member_id: entry.assignment for entry in request.assignments}
        # Kafka: ids that are not members are dropped, members without an entry get no bytes at all.
        assignments = {member_id: given.get(member_id, b"") for member_id in group.members}
        self._ctx.emit(
            AssignmentReceived(
                group_id=group.group_id,
                generation=group.generation,
                leader=request.member_id,
                member_count=len(group.members),
                static_member_count=len(group.static_members),
                without_assignment=[member_id for member_id in group.members if member_id not in given],
            )
        )
        record = group_record(group.group_id, group.metadata(assignments))
        self._log.append((record,), AssignmentCompletion(self, group, group.generation, request.member_id, assignments))

    def become_stable(self, group: ClassicGroup, assignments: dict[str, bytes]) -> None:
        """Give every member its assignment and start counting sessions again."""
        ctx = self._ctx
        for member in group.ordered_members():
            member.assignment = assignments.get(member.member_id, b"")
            self._answer_parked_sync(member, sync_accepted(group, member))
        self._members.enter(group, STABLE)
        statistics = self._statistics.of(group.group_id)
        statistics.rebalances += 1
        rebalance = statistics.end_rebalance()
        group.persisted = True
        if rebalance is None or group.leader is None or group.protocol_name is None:
            raise AssertionError("a generation that becomes stable has a rebalance, a leader and a protocol")
        before = statistics.last_stable()
        owned_before = group.ownership(before.assignments)
        owned_after = group.ownership(group.assignments())
        moved, regained = count_moves(statistics.last_owner, owned_after)
        statistics.remember(group.leader, group.assignments(), owned_after)
        ctx.emit(
            RebalanceCompleted(
                group_id=group.group_id,
                generation=group.generation,
                cause=rebalance.cause,
                attempts=rebalance.attempts,
                rebalance_ms=ctx.now - rebalance.started_at,
                join_ms=rebalance.join_ended_at - rebalance.attempt_started_at,
                sync_ms=ctx.now - rebalance.join_ended_at,
                leader=group.leader,
                previous_leader=before.leader,
                protocol=group.protocol_name,
                members_before=list(before.assignments),
                members_after=list(group.members),
                owned_before=owned_before,
                owned_after=owned_after,
                moved=moved,
                regained=regained,
            )
        )

    def assignment_not_stored(self, group: ClassicGroup, leader: str, error: ErrorCode) -> None:
        """The assignment is lost: every SyncGroup gets the error, and the members join again."""
        self._ctx.emit(AssignmentStoreFailed(group_id=group.group_id, generation=group.generation, error=error.name))
        self._withdraw_assignments(group, response_error_of_write(error))
        member = group.members.get(leader)
        cause = Cause(
            cause="store-failure", member_id=leader, group_instance_id=member.group_instance_id if member else None
        )
        self.start_or_finish(group, cause)

    def sync_timer_fired(self, group: ClassicGroup) -> None:
        """Remove members that have not sent SyncGroup in time, even if they send heartbeats, lead or are static."""
        if group.state not in (COMPLETING_REBALANCE, STABLE) or not group.pending_sync:
            return
        missing = list(group.pending_sync)
        first = group.members.get(missing[0])
        for member_id in missing:
            member = group.members.get(member_id)
            if member is None:
                # Kafka: an id that a static restart replaced can still be pending here, and makes the group rebalance.
                group.remove(member_id)
            else:
                self._members.remove(group, member, "sync-expiry")
        cause = Cause(
            cause="sync-expiry", member_id=missing[0], group_instance_id=first.group_instance_id if first else None
        )
        self.start(group, cause)

    def _withdraw_assignments(self, group: ClassicGroup, error: ErrorCode) -> None:
        for member in group.ordered_members():
            member.assignment = b""
            self._answer_parked_sync(member, sync_refused(error))

    def _answer_parked_sync(self, member: Member, response: SyncGroupResponse) -> None:
        """Answer a parked SyncGroup, if there is one, and count the session from here: it was exempt while parked."""
        if member.parked_sync is not None:
            self._members.answer_sync(member, response)
            self._members.restart_session(member)

    # --- members

    def session_expired(self, group: ClassicGroup, member_id: str) -> None:
        """No heartbeat in time: out, unless a parked request stands in for it."""
        if member_id in group.pending_join:
            self._members.drop_pending(group, member_id, "session-expiry")
            self._finish_even_if_initial(group)
            return
        member = group.members.get(member_id)
        if member is None or member.has_satisfied_heartbeat:
            return
        cause = Cause(cause="session-expiry", member_id=member_id, group_instance_id=member.group_instance_id)
        self._members.remove(group, member, "session-expiry")
        if group.state in (STABLE, COMPLETING_REBALANCE):
            self.start_or_finish(group, cause)
        else:
            self._finish_even_if_initial(group)

    def _finish_even_if_initial(self, group: ClassicGroup) -> None:
        # Kafka: an expiry does not look whether the join phase is an initial one, and may end it before its delay does.
        if group.state is PREPARING_REBALANCE and group.all_joined:
            self.end_join_phase(group)


@dataclass(slots=True)
class AssignmentCompletion(AppendCompletion):
    """The leader's assignment being written."""

    rebalancer: Rebalancer
    group: ClassicGroup
    generation: int
    leader: str
    assignments: dict[str, bytes]

    def ended(self, error: ErrorCode) -> None:
        # A join may have overtaken the append; then the SyncGroups are answered already, and this is of no use.
        if self.group.state is not COMPLETING_REBALANCE or self.group.generation != self.generation:
            return
        if error is ErrorCode.NONE:
            self.rebalancer.become_stable(self.group, self.assignments)
        else:
            self.rebalancer.assignment_not_stored(self.group, self.leader, error)


@dataclass(slots=True)
class EmptyGroupCompletion(AppendCompletion):
    """The record of a group that emptied. Kafka: its failure is only logged; the generation before may come back."""

    group: ClassicGroup

    def ended(self, error: ErrorCode) -> None:
        if error is ErrorCode.NONE:
            self.group.persisted = True
