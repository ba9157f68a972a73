"""One rule of the coordinator broken at a time, each with the check that must find it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import Any, Final

import pytest

from rejoin.coordinator.core.groups import loading, shard
from rejoin.coordinator.core.groups.classic import group as classic_group
from rejoin.coordinator.core.groups.classic import groups as classic_groups
from rejoin.coordinator.core.groups.classic import joining, member_operations, member_requests, rebalance, replay
from rejoin.coordinator.core.groups.classic.state import EMPTY, ON_HEARTBEAT, PREPARING_REBALANCE
from rejoin.coordinator.core.offsets import commits as committing
from rejoin.coordinator.core.runtime import shard as runtime_shard
from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.records.consumer_offsets import GroupRecord
from rejoin.simulation.search.schedules import FAULTS_MS, SCHEDULES, Schedule, random_scenario

Break = Callable[[pytest.MonkeyPatch], None]


@dataclass(frozen=True)
class Mutation:
    """A broken rule, the check that must find it, the schedule whose scenarios are searched, and the first seed."""

    apply: Break
    check: str
    schedule: str
    first: int

    @property
    def name(self) -> str:
        return self.apply.__name__


MUTATIONS: list[Mutation] = []
"""Every broken rule, in the order below."""


def caught_by(check: str, schedule: str = "faults", first: int = 0) -> Callable[[Break], Break]:
    """Register a broken rule with the check that must find it; seeds before the first one find nothing."""

    def register(mutation: Break) -> Break:
        MUTATIONS.append(Mutation(mutation, check, schedule, first))
        return mutation

    return register


def crowded_rebalances(seed: int) -> dict[str, Any]:
    """A scenario in which four consumers crash, hang and reconnect in the middle of one rebalance after the other."""
    random = Random(f"rebalances/{seed}")
    data = random_scenario(seed)
    timeouts = {"session_timeout": "6s", "max_poll_interval": "10s", "request_timeout": "3s"}
    data["groups"] = {"app": {**data["groups"]["app"], "consumers": 4, **timeouts}}
    data["coordinator"]["log_latency"] = random.choice(("uniform(1ms,400ms)", "uniform(500ms,2500ms)"))
    events: list[tuple[int, dict[str, Any]]] = []
    for moment in range(8_000, FAULTS_MS, 12_000):
        first, *others = random.sample([f"app-{number}" for number in range(1, 5)], 4)
        events.append((moment, {"crash": {"who": first, "down": random.choice(("50ms", "3s"))}}))
        for name in others:
            faults: tuple[dict[str, Any], ...] = (
                {"pause": {"who": name, "for": random.choice(("7s", "11s"))}},
                {"reset": {"who": name}},
                {"stop": {"who": name, "down": "3s"}},
                {"stuck": {"who": name, "for": "12s"}},
            )
            events.append((moment + random.randint(0, 9_000), random.choice(faults)))
    events.sort(key=lambda event: event[0])
    data["events"] = [{"at": f"{at}ms", **fault} for at, fault in events]
    return {**data, "horizon": f"{FAULTS_MS + 120_000}ms"}


SEARCHED: Final[dict[str, Schedule]] = {**SCHEDULES, "rebalances": crowded_rebalances}
"""What is searched for broken rules, by name."""


def _nothing(*_: Any, **__: Any) -> None:
    """Does nothing."""


@caught_by("a_member_is_removed_that_beat_in_time")
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


@caught_by("a_silent_member_stays")
def sessions_never_end(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(rebalance.Rebalancer, "session_expired", _nothing)


@caught_by("a_heartbeat_is_answered_wrongly")
def heartbeats_of_any_generation_are_fine(patch: pytest.MonkeyPatch) -> None:
    right = member_requests.MemberRequests.heartbeat

    def wrong(self: Any, group: Any, request: Any) -> Any:
        return right(self, group, request.model_copy(update={"generation_id": group.generation}))

    patch.setattr(member_requests.MemberRequests, "heartbeat", wrong)


@caught_by("a_heartbeat_is_answered_wrongly")
def heartbeats_do_not_announce_a_rebalance(patch: pytest.MonkeyPatch) -> None:
    reactions = dict.fromkeys(ON_HEARTBEAT, ErrorCode.NONE)
    patch.setattr(member_requests, "ON_HEARTBEAT", reactions)


@caught_by("a_non_member_commits")
def any_member_may_commit(patch: pytest.MonkeyPatch) -> None:
    def wrong(self: Any, committer: Any, *_: Any) -> ErrorCode:
        return ErrorCode.NONE if committer.member_id in self.members else ErrorCode.UNKNOWN_MEMBER_ID

    patch.setattr(classic_group.ClassicGroup, "validate_offset_commit", wrong)


@caught_by("a_commit_is_acknowledged_before_it_is_stored")
def commits_are_answered_before_they_are_stored(patch: pytest.MonkeyPatch) -> None:
    def wrong(self: Any, group: Any, token: Any, request: Any, version: int, refused: Any) -> None:
        error = group.validate_offset_commit(committing.committer_of(request), version, ())
        self._ctx.reply(token, request.response(refused, error))

    patch.setattr(committing.OffsetCommits, "commit", wrong)


@caught_by("a_generation_is_handed_out_before_it_is_stored")
def an_assignment_is_handed_out_before_it_is_stored(patch: pytest.MonkeyPatch) -> None:
    def wrong(self: Any, group: Any, request: Any) -> None:
        given = {entry.member_id: entry.assignment for entry in request.assignments}
        self.become_stable(group, {member_id: given.get(member_id, b"") for member_id in group.members})

    patch.setattr(rebalance.Rebalancer, "receive_assignment", wrong)


@caught_by("a_partition_has_two_owners_in_a_generation")
def every_member_gets_the_leaders_share(patch: pytest.MonkeyPatch) -> None:
    right = rebalance.Rebalancer.become_stable

    def wrong(self: Any, group: Any, assignments: dict[str, bytes]) -> None:
        right(self, group, dict.fromkeys(assignments, assignments.get(group.leader, b"")))

    patch.setattr(rebalance.Rebalancer, "become_stable", wrong)


@caught_by("a_generation_goes_back")
def generations_do_not_count_up(patch: pytest.MonkeyPatch) -> None:
    right = classic_group.ClassicGroup.next_generation

    def wrong(self: Any, now: int) -> None:
        before = self.generation
        right(self, now)
        self.generation = max(1, before)

    patch.setattr(classic_group.ClassicGroup, "next_generation", wrong)


@caught_by("a_generation_has_two_leaders")
def every_member_leads(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(classic_group.ClassicGroup, "is_leader", lambda self, member_id: True)


@caught_by("a_generation_has_no_leader", schedule="rebalances")
def no_leader_is_elected_when_the_leader_stays_away(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(classic_group.ClassicGroup, "elect_rejoined_leader", lambda self: self.leader is not None)


@caught_by("a_join_phase_does_not_end", first=4)
def the_join_phase_has_no_timeout(patch: pytest.MonkeyPatch) -> None:
    def wrong(self: Any, group: Any) -> None:
        if group.initial_delay is not None:
            self.end_join_phase(group)

    patch.setattr(rebalance.Rebalancer, "join_timer_fired", wrong)


@caught_by("a_member_is_given_no_time_to_rejoin", first=4)
def the_join_phase_does_not_wait(patch: pytest.MonkeyPatch) -> None:
    def wrong(self: Any, group: Any) -> None:
        if group.state is PREPARING_REBALANCE and group.previous_state is not EMPTY:
            self.end_join_phase(group)

    patch.setattr(rebalance.Rebalancer, "finish_if_all_joined", wrong)


@caught_by("a_member_need_not_sync", schedule="rebalances", first=5)
def members_need_not_sync(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(rebalance.Rebalancer, "sync_timer_fired", _nothing)


@caught_by("a_first_rebalance_does_not_wait_for_more_members")
def a_first_rebalance_does_not_wait(patch: pytest.MonkeyPatch) -> None:
    def wrong(self: Any, group: Any) -> None:
        if group.state is PREPARING_REBALANCE and group.all_joined:
            self.end_join_phase(group)

    patch.setattr(rebalance.Rebalancer, "finish_if_all_joined", wrong)


@caught_by("a_request_is_never_answered", schedule="failovers", first=10)
def parked_requests_are_forgotten_when_a_node_resigns(patch: pytest.MonkeyPatch) -> None:
    def wrong(self: Any, group: Any, error: ErrorCode) -> None:
        self.deleted(group)

    patch.setattr(classic_groups.ClassicGroups, "close", wrong)


@caught_by("a_request_is_never_answered", schedule="rebalances", first=9)
def a_parked_sync_of_a_removed_member_is_forgotten(patch: pytest.MonkeyPatch) -> None:
    right = member_operations.MemberOperations.remove

    def wrong(self: Any, group: Any, member: Any, *rest: Any) -> None:
        member.parked_sync = None
        right(self, group, member, *rest)

    patch.setattr(member_operations.MemberOperations, "remove", wrong)


@caught_by("a_request_is_never_answered", schedule="rebalances")
def a_join_that_is_replaced_is_forgotten(patch: pytest.MonkeyPatch) -> None:
    def wrong(self: Any, group: Any, member: Any, parked: Any) -> None:
        if member.parked_join is None:
            group.awaiting_join += 1
        member.parked_join = parked

    patch.setattr(member_operations.MemberOperations, "park_join", wrong)


@caught_by("a_request_is_answered_twice")
def a_parked_join_is_answered_again(patch: pytest.MonkeyPatch) -> None:
    right = member_operations.MemberOperations.answer_join

    def wrong(self: Any, group: Any, member: Any, response: Any) -> None:
        token = member.parked_join.token
        right(self, group, member, response)
        self._ctx.reply(token, response)

    patch.setattr(member_operations.MemberOperations, "answer_join", wrong)


@caught_by("the_log_differs_from_memory", schedule="failovers")
def offsets_are_not_loaded(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(loading.Replay, "_replay_offset", _nothing)


@caught_by("a_completed_generation_is_forgotten", schedule="failovers")
def a_group_is_loaded_as_it_was_first(patch: pytest.MonkeyPatch) -> None:
    right = replay.ClassicReplay.replay

    def wrong(self: Any, record: GroupRecord) -> int:
        known = self._groups.get(record.key.data.group)
        return right(self, record) if known is None or not known.generation else -1

    patch.setattr(replay.ClassicReplay, "replay", wrong)


@caught_by("a_silent_member_stays", first=8)
def loaded_members_have_no_sessions(patch: pytest.MonkeyPatch) -> None:
    right = shard.GroupsShard.on_loaded

    def wrong(self: Any) -> None:
        right(self)
        for group in self.groups.values():
            for member in group.members.values():
                self._ctx.deadlines.cancel(member.session_key)

    patch.setattr(shard.GroupsShard, "on_loaded", wrong)


@caught_by("a_protocol_is_chosen_that_is_not_the_majoritys")
def the_first_name_is_chosen(patch: pytest.MonkeyPatch) -> None:
    right = classic_group.ClassicGroup.select_protocol

    def wrong(self: Any) -> str:
        right(self)
        supported: list[str] = sorted(self.supported)
        return supported[-1]

    patch.setattr(classic_group.ClassicGroup, "select_protocol", wrong)


@caught_by("the_core_fails")
def duplicate_instances_are_not_fenced(patch: pytest.MonkeyPatch) -> None:
    def wrong(self: Any, member_id: str, group_instance_id: str | None) -> ErrorCode:
        if member_id in self.members or group_instance_id in self.static_members:
            return ErrorCode.NONE
        return ErrorCode.UNKNOWN_MEMBER_ID

    patch.setattr(classic_group.ClassicGroup, "check_member", wrong)


@caught_by("a_member_is_added_under_no_id")
def members_are_added_without_an_id_of_their_own(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(joining, "FIRST_VERSION_WITH_MEMBER_ID_REQUIRED", 99)


@caught_by("a_member_that_left_is_still_a_member")
def members_that_leave_stay(patch: pytest.MonkeyPatch) -> None:
    def wrong(self: Any, group: Any, identity: Any) -> Any:
        return (ErrorCode.NONE, None)

    patch.setattr(member_requests.MemberRequests, "_leave_one", wrong)


@caught_by("the_core_fails", first=20)
def a_failed_append_counts_as_stored(patch: pytest.MonkeyPatch) -> None:
    right = committing.CommitCompletion.ended

    def wrong(self: Any, error: ErrorCode) -> None:
        right(self, ErrorCode.NONE)

    patch.setattr(committing.CommitCompletion, "ended", wrong)


@caught_by("the_core_fails", schedule="failovers")
def a_new_leader_of_the_log_serves_before_it_has_read(patch: pytest.MonkeyPatch) -> None:
    right = runtime_shard.Shard.elected

    def wrong(self: Any) -> None:
        right(self)
        self.state = runtime_shard.ShardState.ACTIVE

    patch.setattr(runtime_shard.Shard, "elected", wrong)
