"""One rule of the coordinator broken at a time: each takes a monkeypatch and breaks its rule."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from rejoin.coordinator.core.groups import loading, shard
from rejoin.coordinator.core.groups.classic import group as classic_group
from rejoin.coordinator.core.groups.classic import joining, member_operations, member_requests, rebalance
from rejoin.coordinator.core.offsets import commits as committing
from rejoin.coordinator.core.runtime import shard as runtime_shard
from rejoin.protocol.errors import ErrorCode

Break = Callable[[pytest.MonkeyPatch], None]


def _nothing(*_: Any, **__: Any) -> None:
    """Does nothing."""


def a_heartbeat_restarts_no_session(patch: pytest.MonkeyPatch) -> None:
    right = member_requests.MemberRequests.heartbeat

    def wrong(self: Any, group: Any, request: Any) -> Any:
        deadlines = self._ctx.deadlines
        member = group.members.get(request.member_id)
        before = None if member is None else deadlines.at(member.session_key)
        answer = right(self, group, request)
        if before is not None:
            deadlines.set(member.session_key, before)
        return answer

    patch.setattr(member_requests.MemberRequests, "heartbeat", wrong)


def sessions_never_end(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(rebalance.Rebalancer, "session_expired", _nothing)


def heartbeats_of_any_generation_are_fine(patch: pytest.MonkeyPatch) -> None:
    right = member_requests.MemberRequests.heartbeat

    def wrong(self: Any, group: Any, request: Any) -> Any:
        return right(self, group, request.model_copy(update={"generation_id": group.generation}))

    patch.setattr(member_requests.MemberRequests, "heartbeat", wrong)


def a_rebalance_is_not_told_to_those_who_beat(patch: pytest.MonkeyPatch) -> None:
    told = dict.fromkeys(member_requests.ON_HEARTBEAT, ErrorCode.NONE)
    patch.setattr(member_requests, "ON_HEARTBEAT", told)


def anybody_may_commit(patch: pytest.MonkeyPatch) -> None:
    def wrong(self: Any, committer: Any) -> ErrorCode:
        return ErrorCode.NONE if committer.member_id in self.members else ErrorCode.UNKNOWN_MEMBER_ID

    patch.setattr(classic_group.ClassicGroup, "validate_offset_commit", wrong)


def commits_are_answered_before_they_are_stored(patch: pytest.MonkeyPatch) -> None:
    def wrong(self: Any, group: Any, token: Any, request: Any, version: int, refused: Any) -> None:
        error = group.validate_offset_commit(committing.committer_of(request))
        self._ctx.reply(token, request.response(refused, error))

    patch.setattr(committing.OffsetCommits, "commit", wrong)


def an_assignment_is_handed_out_before_it_is_stored(patch: pytest.MonkeyPatch) -> None:
    def wrong(self: Any, group: Any, request: Any) -> None:
        given = {entry.member_id: entry.assignment for entry in request.assignments}
        self.become_stable(group, {member_id: given.get(member_id, b"") for member_id in group.members})

    patch.setattr(rebalance.Rebalancer, "receive_assignment", wrong)


def everybody_gets_the_leaders_share(patch: pytest.MonkeyPatch) -> None:
    right = rebalance.Rebalancer.become_stable

    def wrong(self: Any, group: Any, assignments: dict[str, bytes]) -> None:
        right(self, group, dict.fromkeys(assignments, assignments.get(group.leader, b"")))

    patch.setattr(rebalance.Rebalancer, "become_stable", wrong)


def generations_do_not_count_up(patch: pytest.MonkeyPatch) -> None:
    right = classic_group.ClassicGroup.next_generation

    def wrong(self: Any, now: int) -> None:
        before = self.generation
        right(self, now)
        self.generation = max(1, before)

    patch.setattr(classic_group.ClassicGroup, "next_generation", wrong)


def everybody_leads(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(classic_group.ClassicGroup, "is_leader", lambda self, member_id: True)


def nobody_is_elected_when_the_leader_stays_away(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(classic_group.ClassicGroup, "elect_rejoined_leader", lambda self: self.leader is not None)


def the_join_phase_waits_for_good(patch: pytest.MonkeyPatch) -> None:
    def wrong(self: Any, group: Any) -> None:
        if group.initial_delay is not None:
            self.end_join_phase(group)

    patch.setattr(rebalance.Rebalancer, "join_timer_fired", wrong)


def the_join_phase_waits_for_nobody(patch: pytest.MonkeyPatch) -> None:
    def wrong(self: Any, group: Any) -> None:
        if group.state is rebalance.PREPARING_REBALANCE and group.previous_state is not rebalance.EMPTY:
            self.end_join_phase(group)

    patch.setattr(rebalance.Rebalancer, "finish_if_all_joined", wrong)


def nobody_has_to_sync(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(rebalance.Rebalancer, "sync_timer_fired", _nothing)


def a_first_rebalance_does_not_wait(patch: pytest.MonkeyPatch) -> None:
    def wrong(self: Any, group: Any) -> None:
        if group.state is rebalance.PREPARING_REBALANCE and group.all_joined:
            self.end_join_phase(group)

    patch.setattr(rebalance.Rebalancer, "finish_if_all_joined", wrong)


def those_who_wait_are_forgotten_when_a_node_resigns(patch: pytest.MonkeyPatch) -> None:
    def wrong(self: Any, group: Any, error: ErrorCode) -> None:
        self.members.enter(group, shard.DEAD)

    patch.setattr(shard.GroupsShard, "_close", wrong)


def a_removed_member_that_waits_is_forgotten(patch: pytest.MonkeyPatch) -> None:
    right = member_operations.MemberOperations.remove

    def wrong(self: Any, group: Any, member: Any, *rest: Any) -> None:
        member.parked_sync = None
        right(self, group, member, *rest)

    patch.setattr(member_operations.MemberOperations, "remove", wrong)


def a_join_that_is_replaced_is_forgotten(patch: pytest.MonkeyPatch) -> None:
    def wrong(self: Any, group: Any, member: Any, parked: Any) -> None:
        if member.parked_join is None:
            group.awaiting_join += 1
        member.parked_join = parked

    patch.setattr(member_operations.MemberOperations, "park_join", wrong)


def a_parked_join_is_answered_again(patch: pytest.MonkeyPatch) -> None:
    right = member_operations.MemberOperations.answer_join

    def wrong(self: Any, group: Any, member: Any, response: Any) -> None:
        token = member.parked_join.token
        right(self, group, member, response)
        self._ctx.reply(token, response)

    patch.setattr(member_operations.MemberOperations, "answer_join", wrong)


def offsets_are_not_loaded(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(loading.Replay, "_replay_offset", _nothing)


def a_group_is_loaded_as_it_was_first(patch: pytest.MonkeyPatch) -> None:
    right = loading.Replay._replay_group

    def wrong(self: Any, group_id: str, value: Any) -> None:
        known = self._groups.get(group_id)
        if known is None or not known.generation:
            right(self, group_id, value)

    patch.setattr(loading.Replay, "_replay_group", wrong)


def loaded_members_have_no_sessions(patch: pytest.MonkeyPatch) -> None:
    right = shard.GroupsShard.on_loaded

    def wrong(self: Any) -> None:
        right(self)
        for group in self.groups.values():
            for member in group.members.values():
                self._ctx.deadlines.cancel(member.session_key)

    patch.setattr(shard.GroupsShard, "on_loaded", wrong)


def the_first_name_is_chosen(patch: pytest.MonkeyPatch) -> None:
    right = classic_group.ClassicGroup.select_protocol

    def wrong(self: Any) -> str:
        right(self)
        return sorted(self.supported)[-1]

    patch.setattr(classic_group.ClassicGroup, "select_protocol", wrong)


def nobody_is_fenced(patch: pytest.MonkeyPatch) -> None:
    def wrong(self: Any, member_id: str, group_instance_id: str | None) -> ErrorCode:
        if member_id in self.members or group_instance_id in self.static_members:
            return ErrorCode.NONE
        return ErrorCode.UNKNOWN_MEMBER_ID

    patch.setattr(classic_group.ClassicGroup, "check_member", wrong)


def members_are_added_without_an_id_of_their_own(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(joining, "FIRST_VERSION_WITH_MEMBER_ID_REQUIRED", 99)


def those_who_leave_stay(patch: pytest.MonkeyPatch) -> None:
    def wrong(self: Any, group: Any, identity: Any) -> Any:
        return (ErrorCode.NONE, None)

    patch.setattr(member_requests.MemberRequests, "_leave_one", wrong)


def a_failed_append_counts_as_stored(patch: pytest.MonkeyPatch) -> None:
    right = committing.CommitCompletion.ended

    def wrong(self: Any, error: ErrorCode) -> None:
        right(self, ErrorCode.NONE)

    patch.setattr(committing.CommitCompletion, "ended", wrong)


def a_new_leader_of_the_log_serves_before_it_has_read(patch: pytest.MonkeyPatch) -> None:
    right = runtime_shard.Shard.elected

    def wrong(self: Any) -> None:
        right(self)
        self.state = runtime_shard.ShardState.ACTIVE

    patch.setattr(runtime_shard.Shard, "elected", wrong)


MUTATIONS: tuple[Break, ...] = tuple(
    value
    for name, value in list(globals().items())
    if callable(value) and getattr(value, "__module__", "") == __name__ and not name.startswith("_") and name.islower()
)
"""Every broken rule, in the order above."""

FOUND_WITH = {
    "a_heartbeat_restarts_no_session": 0,
    "sessions_never_end": 2,
    "heartbeats_of_any_generation_are_fine": 0,
    "a_rebalance_is_not_told_to_those_who_beat": 2,
    "anybody_may_commit": 0,
    "commits_are_answered_before_they_are_stored": 1,
    "an_assignment_is_handed_out_before_it_is_stored": 0,
    "everybody_gets_the_leaders_share": 0,
    "generations_do_not_count_up": 0,
    "everybody_leads": 0,
    "the_join_phase_waits_for_good": 4,
    "the_join_phase_waits_for_nobody": 4,
    "nobody_has_to_sync": 48,
    "a_first_rebalance_does_not_wait": 1,
    "those_who_wait_are_forgotten_when_a_node_resigns": 28,
    "a_join_that_is_replaced_is_forgotten": 115,
    "a_parked_join_is_answered_again": 0,
    "offsets_are_not_loaded": 8,
    "a_group_is_loaded_as_it_was_first": 3,
    "loaded_members_have_no_sessions": 8,
    "the_first_name_is_chosen": 1,
    "nobody_is_fenced": 0,
    "members_are_added_without_an_id_of_their_own": 1,
    "those_who_leave_stay": 1,
    "a_failed_append_counts_as_stored": 20,
    "a_new_leader_of_the_log_serves_before_it_has_read": 13,
    "nobody_is_elected_when_the_leader_stays_away": 210,
    "a_removed_member_that_waits_is_forgotten": 344,
}
"""The first seed of the search that finds each."""
