"""One rule of the consumer protocol broken at a time, on either side, each with the check that must find it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import pytest

from rejoin.client.core.group.consumer import heartbeats as client_heartbeats
from rejoin.client.core.group.consumer import transitions
from rejoin.client.core.group.consumer.state import MembershipState
from rejoin.coordinator.core.groups import shard
from rejoin.coordinator.core.groups.consumer import groups, migration
from rejoin.coordinator.core.groups.consumer.assignors import uniform
from rejoin.coordinator.core.groups.consumer.members import reconciliation, removal, subscribing, timers
from rejoin.coordinator.core.groups.consumer.model import group, records, replay
from rejoin.coordinator.core.groups.modern import changes
from rejoin.protocol.errors import ErrorCode

Break = Callable[[pytest.MonkeyPatch], None]

MUTATIONS: Final[list[tuple[Break, str, int]]] = []
"""Every broken rule, the name of the check that must find it, and the first seed to play."""


def caught_by(check: str, first: int = 0) -> Callable[[Break], Break]:
    """Register a broken rule with the check that must find it; seeds before the first one find nothing."""

    def register(mutation: Break) -> Break:
        MUTATIONS.append((mutation, check, first))
        return mutation

    return register


def _nothing(*_: Any, **__: Any) -> None:
    """Does nothing."""


# --- the coordinator


@caught_by("a_partition_has_two_holders")
def partitions_are_handed_out_that_others_hold(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(group.ConsumerGroup, "has_owner", lambda *_: False)


@caught_by("a_partition_has_two_owners")
def revocations_are_not_waited_for(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(reconciliation, "_still_owns", lambda *_: False)


@caught_by("a_partition_has_two_owners", first=21)
def a_member_acknowledges_with_whatever_it_names(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(reconciliation, "_still_owns", lambda owned, _: owned is None)


@caught_by("a_partition_has_two_owners", first=4)
def an_upgrade_forgets_who_has_what(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(migration.Migration, "_by_topic_id", lambda *_: {})


@caught_by("an_epoch_goes_back")
def removals_lower_the_epoch(patch: pytest.MonkeyPatch) -> None:
    right = records.epoch_record
    patch.setattr(removal, "epoch_record", lambda group_id, epoch, found: right(group_id, epoch - 3, found))


@caught_by("a_member_with_another_epoch_is_accepted")
def epochs_are_not_compared(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(subscribing, "check_epoch", lambda *_: ErrorCode.NONE)


@caught_by("a_member_commits_with_another_epoch")
def any_member_may_commit(patch: pytest.MonkeyPatch) -> None:
    def wrong(self: Any, committer: Any, *_: Any) -> ErrorCode:
        return ErrorCode.NONE if committer.member_id in self.members else ErrorCode.UNKNOWN_MEMBER_ID

    patch.setattr(group.ConsumerGroup, "validate_offset_commit", wrong)


@caught_by("a_consumer_group_member_is_removed_that_beat_in_time")
def heartbeats_restart_no_session(patch: pytest.MonkeyPatch) -> None:
    right = timers.MemberTimers.restart_session

    def wrong(self: Any, member: Any, session_timeout_ms: int) -> None:
        if self._ctx.deadlines.at(member.session_key) is None:
            right(self, member, session_timeout_ms)

    patch.setattr(timers.MemberTimers, "restart_session", wrong)
    patch.setattr("rejoin.coordinator.core.groups.consumer.heartbeats.ConsumerHeartbeats.answer_unchanged", _nothing)


@caught_by("a_silent_consumer_group_member_stays", first=5)
def sessions_never_end(patch: pytest.MonkeyPatch) -> None:
    right = removal.Removals.time_out

    def wrong(self: Any, consumer_group: Any, key: Any, cause: Any) -> None:
        if cause != "session-expiry":
            right(self, consumer_group, key, cause)

    patch.setattr(removal.Removals, "time_out", wrong)


@caught_by("a_silent_consumer_group_member_stays", first=13)
def loaded_members_have_no_sessions(patch: pytest.MonkeyPatch) -> None:
    right = groups.ConsumerGroups.loaded

    def wrong(self: Any, consumer_group: Any, offset_count: int) -> None:
        right(self, consumer_group, offset_count)
        for member in consumer_group.members.values():
            self._ctx.deadlines.cancel(member.session_key)

    patch.setattr(groups.ConsumerGroups, "loaded", wrong)


@caught_by("a_member_never_gives_up_its_partitions", first=9)
def rebalance_timeouts_remove_no_member(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(removal.Removals, "rebalance_timed_out", _nothing)


@caught_by("a_member_does_not_reach_its_target")
def removed_members_keep_their_partitions(patch: pytest.MonkeyPatch) -> None:
    right = group.ConsumerGroup._release

    def wrong(self: Any, current: Any, *held: Any) -> None:
        if current.epoch >= 0:
            right(self, current, *(() if current.assigned else held))

    patch.setattr(group.ConsumerGroup, "_release", wrong)


@caught_by("a_migration_loses_a_commit")
def a_downgrade_drops_offsets(patch: pytest.MonkeyPatch) -> None:
    offsets: dict[int, Any] = {}
    made, swap = shard.GroupsShard.__init__, migration.Migration._swap

    def remember(self: Any, *arguments: Any) -> None:
        made(self, *arguments)
        offsets[id(self.groups)] = self.offsets

    def wrong(self: Any, consumer_group: Any, *arguments: Any) -> None:
        swap(self, consumer_group, *arguments)
        offsets[id(self._groups)].take_out(consumer_group.group_id)

    patch.setattr(shard.GroupsShard, "__init__", remember)
    patch.setattr(migration.Migration, "_swap", wrong)


@caught_by("a_group_moves_against_its_policy", first=7)
def any_policy_upgrades(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(migration, "UPGRADES", frozenset({"disabled", "downgrade", *migration.UPGRADES}))


@caught_by("an_epoch_is_answered_before_it_is_stored")
def replies_do_not_wait_for_the_log(patch: pytest.MonkeyPatch) -> None:
    def wrong(self: Any, group_id: str, written: Any, on_written: Any) -> None:
        written.finish()
        on_written(ErrorCode.NONE)
        if written.records:
            self.append(group_id, written, changes.ReplyCompletion(_nothing))

    patch.setattr(changes.Writes, "commit", wrong)


@caught_by("a_group_differs_from_its_log", first=11)
def changes_that_fail_stay(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(changes.Writes, "failed", changes.Writes.stored)


@caught_by("a_group_differs_from_its_log")
def what_members_have_is_not_loaded(patch: pytest.MonkeyPatch) -> None:
    right = replay.ConsumerReplay._current

    def wrong(self: Any, record: Any) -> Any:
        known = self.known(record.key.data.group_id)
        if known is not None and not known.persisted and known.epoch > 2:
            return _nothing
        return right(self, record)

    patch.setattr(replay.ConsumerReplay, "_current", wrong)


@caught_by("a_member_does_not_reach_its_target")
def the_assignor_gives_a_partition_to_two(patch: pytest.MonkeyPatch) -> None:
    right = uniform.assign_homogeneous

    def wrong(members: Any, partition_counts: Any) -> Any:
        found = right(members, partition_counts)
        first = next(iter(found.values()), {})
        return {member_id: {**target, **first} for member_id, target in found.items()}

    patch.setattr(uniform, "assign_homogeneous", wrong)


# --- the consumer


@caught_by("a_member_says_that_it_gave_up_what_it_has", first=9)
def a_consumer_acknowledges_before_it_gives_up(patch: pytest.MonkeyPatch) -> None:
    right = client_heartbeats._fields

    def wrong(state: Any, ctx: Any, member: Any) -> Any:
        fields = right(state, ctx, member)
        is_running = member.state is MembershipState.RECONCILING and member.target.epoch >= 0
        return fields._replace(assignment=member.target) if is_running else fields

    def owned(member: Any) -> Any:
        return member.target if member.state is MembershipState.RECONCILING else member.current

    request = client_heartbeats._owned
    patch.setattr(client_heartbeats, "_fields", wrong)
    patch.setattr(client_heartbeats, "_owned", request)
    patch.setattr(
        client_heartbeats,
        "_request",
        _acknowledging(client_heartbeats._request, owned),
    )


def _acknowledging(right: Any, owned: Callable[[Any], Any]) -> Any:
    def wrong(state: Any, ctx: Any, member: Any) -> Any:
        request = right(state, ctx, member)
        if member.state is MembershipState.RECONCILING and member.target.epoch >= 0:
            return request.model_copy(update={"topic_partitions": client_heartbeats._owned(owned(member))})
        return request

    return wrong


@caught_by("a_member_does_not_reach_its_target")
def a_consumer_overlooks_an_assignment_that_comes_while_it_acknowledges(patch: pytest.MonkeyPatch) -> None:
    right = client_heartbeats._take_target

    def wrong(state: Any, ctx: Any, assignment: Any) -> None:
        if transitions.member_of(state).state is not MembershipState.STABLE:
            right(state, ctx, assignment)

    patch.setattr(client_heartbeats, "_take_target", wrong)
