"""One rule of streams groups broken at a time, each with the check that must find it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final

import pytest

from rejoin.coordinator.core.groups.modern.changes import Writes
from rejoin.coordinator.core.groups.modern.session_timers import RebalanceTimers, SessionTimers
from rejoin.coordinator.core.groups.streams import heartbeats
from rejoin.coordinator.core.groups.streams.assignors.sticky import _Assignment
from rejoin.coordinator.core.groups.streams.groups import StreamsGroups
from rejoin.coordinator.core.groups.streams.members import finding, reconciliation, removal, updating
from rejoin.coordinator.core.groups.streams.members.target import StreamsTargets
from rejoin.coordinator.core.groups.streams.model import records, replay
from rejoin.coordinator.core.groups.streams.model.group import StreamsGroup
from rejoin.coordinator.core.groups.streams.model.holders import TaskHolders
from rejoin.coordinator.core.groups.streams.model.tasks import NOTHING_HELD, HeldTasks
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


# --- who holds what


@caught_by("an_active_task_has_two_owners")
def active_tasks_are_given_before_they_are_free(patch: pytest.MonkeyPatch) -> None:
    right = TaskHolders.hold

    def wrong(self: TaskHolders, process_id: str, current: Any) -> None:
        right(self, process_id, current)
        self.active.clear()

    patch.setattr(TaskHolders, "hold", wrong)


@caught_by("a_process_has_a_task_twice", first=70)
def processes_are_not_looked_at(patch: pytest.MonkeyPatch) -> None:
    right = reconciliation.reconcile

    def wrong(current: Any, goal: Any, owned: Any) -> Any:
        return right(current, replace(goal, process_id=f"{goal.process_id} of its own"), owned)

    patch.setattr(updating, "reconcile", wrong)


@caught_by("an_active_task_runs_twice", first=59)
def tasks_count_as_given_up_at_once(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(HeldTasks, "any_in", lambda self, owned: False)


@caught_by("an_active_task_runs_twice", first=59)
def tasks_are_revoked_without_waiting(patch: pytest.MonkeyPatch) -> None:
    right = reconciliation.reconcile

    def wrong(current: Any, goal: Any, owned: Any) -> Any:
        found = right(current, goal, owned)
        return found if found is current else replace(found, pending=NOTHING_HELD)

    patch.setattr(updating, "reconcile", wrong)


# --- epochs


@caught_by("a_thread_with_another_epoch_is_accepted")
def epochs_are_not_compared(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(finding, "_check_epoch", lambda current, epoch, owned: ErrorCode.NONE)


@caught_by("a_thread_with_another_epoch_is_accepted")
def older_epochs_may_own_anything(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(HeldTasks, "contains", lambda self, owned: True)


@caught_by("a_streams_epoch_falls")
def a_coordinator_begins_with_an_older_epoch(patch: pytest.MonkeyPatch) -> None:
    right = StreamsGroups.loaded

    def wrong(self: Any, group: StreamsGroup, offset_count: int) -> None:
        right(self, group, offset_count)
        group.epoch -= 1

    patch.setattr(StreamsGroups, "loaded", wrong)


@caught_by("a_streams_epoch_is_answered_before_it_is_stored")
def epochs_are_answered_before_they_are_stored(patch: pytest.MonkeyPatch) -> None:
    right = Writes.commit

    def wrong(self: Any, group_id: str, changes: Any, on_written: Any) -> None:
        right(self, group_id, changes, _nothing)
        on_written(ErrorCode.NONE)

    patch.setattr(Writes, "commit", wrong)


# --- timers


@caught_by("a_thread_is_removed_that_beat_in_time")
def sessions_are_not_restarted(patch: pytest.MonkeyPatch) -> None:
    right = SessionTimers.restart_session

    def wrong(self: Any, member: Any, session_timeout_ms: int) -> None:
        if self._ctx.deadlines.at(member.session_key) is None:
            right(self, member, session_timeout_ms)

    patch.setattr(RebalanceTimers, "restart_session", wrong)


@caught_by("a_silent_thread_stays")
def sessions_never_end(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(removal.StreamsRemovals, "time_out", _nothing)


@caught_by("a_thread_never_gives_up_its_tasks", first=59)
def rebalances_never_time_out(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(removal.StreamsRemovals, "rebalance_timed_out", _nothing)


# --- targets


@caught_by("a_task_is_lost")
def the_assignor_forgets_a_task(patch: pytest.MonkeyPatch) -> None:
    right = _Assignment.give_active_tasks

    def wrong(self: Any) -> None:
        right(self)
        for member in self._members.values():
            if member.active:
                member.active.pop()
                return

    patch.setattr(_Assignment, "give_active_tasks", wrong)


@caught_by("a_task_is_lost")
def standbys_stay_where_they_are(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(_Assignment, "_give_standby", lambda self, task, processes: False)


@caught_by("a_streams_group_does_not_settle")
def a_member_that_leaves_brings_no_new_target(patch: pytest.MonkeyPatch) -> None:
    right = StreamsTargets.is_due
    patch.setattr(StreamsTargets, "is_due", lambda self, group: right(self, group) and group.epoch % 5 != 0)


# --- the log


@caught_by("a_streams_group_differs_from_its_log")
def replay_forgets_standbys(patch: pytest.MonkeyPatch) -> None:
    right = records.current_of

    def wrong(value: Any) -> Any:
        found = right(value)
        return replace(found, assigned=HeldTasks(found.assigned.active))

    patch.setattr(replay, "current_of", wrong)


@caught_by("a_streams_group_differs_from_its_log")
def replay_forgets_what_is_to_be_revoked(patch: pytest.MonkeyPatch) -> None:
    right = records.current_of
    patch.setattr(replay, "current_of", lambda value: replace(right(value), pending=NOTHING_HELD))


@caught_by("a_streams_group_differs_from_its_log")
def targets_are_not_stored(patch: pytest.MonkeyPatch) -> None:
    right = StreamsTargets.compute

    def wrong(self: Any, group: StreamsGroup, memory: Any, changes: Any, known: Any) -> None:
        right(self, group, memory, changes, known)
        changes.records = [each for each in changes.records if type(each).__name__ != _TARGET]

    patch.setattr(StreamsTargets, "compute", wrong)


_TARGET: Final = "StreamsGroupTargetAssignmentMemberRecord"


@caught_by("an_honest_thread_is_refused")
def tasks_of_a_topology_that_grows_do_not_exist(patch: pytest.MonkeyPatch) -> None:
    right = finding.owned_by

    def wrong(request: Any) -> Any:
        owned = right(request)
        if owned is None:
            return None
        return owned._replace(
            active={each: frozenset(index + 1 for index in tasks) for each, tasks in owned.active.items()}
        )

    patch.setattr(heartbeats, "owned_by", wrong)
