"""Broken rules that need a certain order of events, beside those that ``search`` is tested with."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from rejoin.client.core import reactions
from rejoin.client.core.group import join_attempt, join_loop, membership
from rejoin.client.core.group.consumer import heartbeats, transitions
from rejoin.client.core.group.consumer.state import MembershipState
from rejoin.coordinator.core.groups.classic import (
    group,
    groups,
    member_operations,
    member_requests,
    rebalance,
    replay,
    static_replacement,
)
from rejoin.coordinator.core.groups.consumer.members import removal
from rejoin.coordinator.core.groups.consumer.model import records
from rejoin.protocol.errors import ErrorCode
from tests.simulation.search.mutations import Break, Mutation

MORE: list[Mutation] = []


def seeds_of(schedule: str) -> Callable[[Break], Break]:
    """Register a broken rule with the schedule of ``search`` that it is compared with. Any check may find it."""

    def register(mutation: Break) -> Break:
        MORE.append(Mutation(mutation, "", schedule, 0))
        return mutation

    return register


def _nothing(*_: Any, **__: Any) -> None:
    """Does nothing."""


# --- timers


@seeds_of("faults")
def sessions_end_a_moment_early(patch: pytest.MonkeyPatch) -> None:
    right = member_operations.MemberOperations.restart_session

    def wrong(self: Any, member: Any) -> None:
        right(self, member)
        at = self._ctx.deadlines.at(member.session_key)
        if at is not None:
            self._ctx.deadlines.set(member.session_key, at - 1)

    patch.setattr(member_operations.MemberOperations, "restart_session", wrong)


@seeds_of("faults")
def sessions_end_a_second_late(patch: pytest.MonkeyPatch) -> None:
    def wrong(self: Any, member: Any) -> None:
        self._ctx.deadlines.set(member.session_key, self._ctx.now + member.session_timeout_ms + 1_000)

    patch.setattr(member_operations.MemberOperations, "restart_session", wrong)


@seeds_of("faults")
def an_answered_sync_restarts_no_session(patch: pytest.MonkeyPatch) -> None:
    def wrong(self: Any, member: Any, response: Any) -> None:
        if member.parked_sync is not None:
            self._members.answer_sync(member, response)

    patch.setattr(rebalance.Rebalancer, "_answer_parked_sync", wrong)


@seeds_of("faults")
def the_sync_timer_of_the_last_attempt_goes_on(patch: pytest.MonkeyPatch) -> None:
    right = rebalance.Rebalancer.start

    def wrong(self: Any, found: Any, cause: Any) -> None:
        pending, at = dict(found.pending_sync), self._ctx.deadlines.at(found.sync_key)
        right(self, found, cause)
        if at is not None:
            found.pending_sync.update(pending)
            self._ctx.deadlines.set(found.sync_key, at)

    patch.setattr(rebalance.Rebalancer, "start", wrong)


# --- members of classic groups


@seeds_of("faults")
def the_last_to_leave_brings_no_rebalance(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(member_requests.MemberRequests, "_after_leaving", _nothing)


@seeds_of("faults")
def an_id_that_expires_leaves_the_join_phase_waiting(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(rebalance.Rebalancer, "_finish_even_if_initial", _nothing)


@seeds_of("faults")
def a_repeated_join_is_answered_without_members(patch: pytest.MonkeyPatch) -> None:
    right = group.ClassicGroup.join_response_members

    def wrong(self: Any) -> Any:
        return () if str(self.state) == "CompletingRebalance" and not self.awaiting_join else right(self)

    patch.setattr(group.ClassicGroup, "join_response_members", wrong)


@seeds_of("faults")
def the_old_process_of_an_instance_is_not_fenced(patch: pytest.MonkeyPatch) -> None:
    right = group.ClassicGroup.check_member

    def wrong(self: Any, member_id: str, group_instance_id: str | None) -> ErrorCode:
        error = right(self, member_id, group_instance_id)
        return ErrorCode.UNKNOWN_MEMBER_ID if error is ErrorCode.FENCED_INSTANCE_ID else error

    patch.setattr(group.ClassicGroup, "check_member", wrong)


@seeds_of("faults")
def a_static_member_that_comes_back_is_not_written(patch: pytest.MonkeyPatch) -> None:
    right = static_replacement.StaticReplacements.replace

    class Unwritten:
        def append(self, records: Any, completion: Any) -> None:
            completion.ended(ErrorCode.NONE)

    def wrong(self: Any, *arguments: Any) -> None:
        log, self._log = self._log, Unwritten()
        try:
            right(self, *arguments)
        finally:
            self._log = log

    patch.setattr(static_replacement.StaticReplacements, "replace", wrong)


@seeds_of("failovers")
def an_assignment_of_an_older_generation_counts(patch: pytest.MonkeyPatch) -> None:
    def wrong(self: Any, error: ErrorCode) -> None:
        if self.group.state != "CompletingRebalance":
            return
        if error is ErrorCode.NONE:
            self.rebalancer.become_stable(self.group, self.assignments)
        else:
            self.rebalancer.assignment_not_stored(self.group, self.leader, error)

    patch.setattr(rebalance.AssignmentCompletion, "ended", wrong)


@seeds_of("failovers")
def an_assignment_that_was_not_stored_counts(patch: pytest.MonkeyPatch) -> None:
    right = rebalance.AssignmentCompletion.ended
    patch.setattr(rebalance.AssignmentCompletion, "ended", lambda self, _: right(self, ErrorCode.NONE))


# --- the log


@seeds_of("failovers")
def an_empty_group_is_loaded_with_its_last_members(patch: pytest.MonkeyPatch) -> None:
    right = replay.ClassicReplay.replay

    def wrong(self: Any, record: Any) -> int:
        value = None if record.value is None else record.value.data
        return -1 if value is not None and not value.members else right(self, record)

    patch.setattr(replay.ClassicReplay, "replay", wrong)


@seeds_of("failovers")
def a_loaded_group_has_lost_its_leader(patch: pytest.MonkeyPatch) -> None:
    right = replay.ClassicReplay.replay

    def wrong(self: Any, record: Any) -> int:
        at = right(self, record)
        found = self._groups.get(record.key.data.group)
        if found is not None and found.members:
            found.leader = list(found.members)[-1]
        return at

    patch.setattr(replay.ClassicReplay, "replay", wrong)


@seeds_of("failovers")
def a_group_that_resigns_leaves_its_syncs_parked(patch: pytest.MonkeyPatch) -> None:
    right = groups.ClassicGroups.answer_parked

    def wrong(self: Any, found: Any, error: ErrorCode) -> None:
        for member in found.members.values():
            member.parked_sync = None
        right(self, found, error)

    patch.setattr(groups.ClassicGroups, "answer_parked", wrong)


# --- consumers of classic groups


@seeds_of("faults")
def a_consumer_does_not_join_again_after_an_illegal_generation(patch: pytest.MonkeyPatch) -> None:
    _ignored(patch, reactions.ON_HEARTBEAT, ErrorCode.ILLEGAL_GENERATION, "ON_HEARTBEAT", "Heartbeat")


@seeds_of("faults")
def a_consumer_does_not_join_again_when_it_is_unknown(patch: pytest.MonkeyPatch) -> None:
    _ignored(patch, reactions.ON_HEARTBEAT, ErrorCode.UNKNOWN_MEMBER_ID, "ON_HEARTBEAT", "Heartbeat")


@seeds_of("faults")
def a_consumer_does_not_hear_of_a_rebalance(patch: pytest.MonkeyPatch) -> None:
    _ignored(patch, reactions.ON_HEARTBEAT, ErrorCode.REBALANCE_IN_PROGRESS, "ON_HEARTBEAT", "Heartbeat")


def _ignored(patch: pytest.MonkeyPatch, table: Any, error: ErrorCode, name: str, api: str) -> None:
    wrong = {**table, error: reactions.Reaction.IGNORE}
    patch.setattr(reactions, name, wrong)
    patch.setitem(reactions.TABLES, api, wrong)


@seeds_of("faults")
def a_consumer_keeps_its_partitions_while_it_joins(patch: pytest.MonkeyPatch) -> None:
    def wrong(state: Any, ctx: Any) -> bool:
        join_loop._prepared(state)
        return True

    patch.setattr(join_loop, "_prepare", wrong)


@seeds_of("faults")
def a_consumer_keeps_an_id_that_is_unknown(patch: pytest.MonkeyPatch) -> None:
    right = membership.reset

    def wrong(state: Any, ctx: Any, reason: str, *, keep_member_id: bool = False) -> None:
        right(state, ctx, reason, keep_member_id=True)

    patch.setattr(membership, "reset", wrong)


@seeds_of("faults")
def a_consumer_takes_an_assignment_of_a_membership_that_is_over(patch: pytest.MonkeyPatch) -> None:
    def wrong(state: Any, ctx: Any, sent: Any, response: Any) -> None:
        attempt = state.join.attempt
        if response.error_code is not ErrorCode.NONE:
            attempt.outcome = join_attempt._react_to_sync(state, ctx, response.error_code, sent)
        else:
            join_attempt._become_stable(state, ctx, attempt, response.assignment)

    patch.setattr(join_attempt, "_sync_answered", wrong)


# --- consumer groups


@seeds_of("consumer")
def a_removal_bumps_no_epoch(patch: pytest.MonkeyPatch) -> None:
    right = records.epoch_record
    patch.setattr(removal, "epoch_record", lambda group_id, epoch, found: right(group_id, epoch - 1, found))


@seeds_of("consumer")
def a_removed_member_leaves_no_tombstone(patch: pytest.MonkeyPatch) -> None:
    right = records.PARTS

    class Wrong:
        def __getattr__(self, name: str) -> Any:
            return getattr(right, name)

        def member_tombstones(self, group_id: str, member_ids: Any) -> Any:
            return list(right.member_tombstones(group_id, member_ids))[:-1]

    patch.setattr(removal, "PARTS", Wrong())


@seeds_of("consumer")
def a_fenced_consumer_keeps_its_partitions(patch: pytest.MonkeyPatch) -> None:
    def wrong(state: Any, ctx: Any) -> None:
        member = transitions.member_of(state)
        if member.state is MembershipState.FENCED:
            transitions.join(state)

    patch.setattr(transitions, "release_lost", wrong)


@seeds_of("consumer")
def a_fenced_consumer_goes_on(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(transitions, "fence", _nothing)


@seeds_of("consumer")
def an_answer_to_an_older_heartbeat_counts(patch: pytest.MonkeyPatch) -> None:
    right = heartbeats._answered

    def wrong(state: Any, ctx: Any, sent: Any, response: Any) -> None:
        transitions.member_of(state).request_id = sent.request_id
        right(state, ctx, sent, response)

    patch.setattr(heartbeats, "_answered", wrong)
