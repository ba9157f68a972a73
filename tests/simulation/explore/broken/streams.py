"""Broken rules of streams groups that worlds look for, beside those that ``search`` is tested with."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from rejoin.coordinator.core.groups.modern import changes
from rejoin.coordinator.core.groups.modern.session_timers import RebalanceTimers
from rejoin.coordinator.core.groups.streams.members import finding, reconciliation, removal, updating
from rejoin.coordinator.core.groups.streams.members.removal import StreamsRemovals
from rejoin.coordinator.core.groups.streams.members.target import StreamsTargets
from rejoin.coordinator.core.groups.streams.model import records, replay
from rejoin.coordinator.core.groups.streams.model.member import RELEASED
from rejoin.coordinator.core.groups.streams.model.tasks import NO_TASKS, each_task
from tests.simulation.search import streams_mutations
from tests.simulation.search.mutations import Break, Mutation

OF_STREAMS: list[Mutation] = [
    Mutation(apply, check, "streams", first) for apply, check, first in streams_mutations.MUTATIONS
]


def broken(mutation: Break) -> Break:
    """Register a broken rule. Any check may find it."""
    OF_STREAMS.append(Mutation(mutation, "", "streams", 0))
    return mutation


def _nothing(*_: Any, **__: Any) -> None:
    """Does nothing."""


# --- removal


@broken
def a_streams_removal_lowers_the_epoch(patch: pytest.MonkeyPatch) -> None:
    right = records.epoch_record
    patch.setattr(removal, "epoch_record", lambda group, epoch: right(group, epoch - 2))


@broken
def a_removed_thread_leaves_its_record(patch: pytest.MonkeyPatch) -> None:
    right = records.PARTS

    class Wrong:
        def __getattr__(self, name: str) -> Any:
            return getattr(right, name)

        def member_tombstones(self, group_id: str, member_ids: Any) -> Any:
            return list(right.member_tombstones(group_id, member_ids))[:-1]

    patch.setattr(removal, "PARTS", Wrong())


@broken
def a_thread_that_was_removed_keeps_its_timer(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(RebalanceTimers, "cancel_session", _nothing)


@broken
def a_static_thread_that_goes_for_a_moment_is_removed(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(
        StreamsRemovals,
        "leave_for_a_moment",
        lambda self, group, member, on_written: self.remove(group, member, "left", on_written),
    )


# --- static members


@broken
def a_static_thread_comes_back_beside_itself(patch: pytest.MonkeyPatch) -> None:
    right = records.PARTS

    class Wrong:
        def __getattr__(self, name: str) -> Any:
            return getattr(right, name)

        def member_tombstones(self, group_id: str, member_ids: Any) -> Any:
            return []

    patch.setattr(finding, "PARTS", Wrong())


@broken
def a_static_thread_comes_back_without_a_target(patch: pytest.MonkeyPatch) -> None:
    right = records.target_record
    patch.setattr(finding, "target_record", lambda group_id, member_id, _: right(group_id, member_id, NO_TASKS))


@broken
def a_static_thread_comes_back_without_its_tasks(patch: pytest.MonkeyPatch) -> None:
    right = records.current_record
    patch.setattr(finding, "current_record", lambda group_id, member_id, _: right(group_id, member_id, RELEASED))


# --- reconciliation


@broken
def a_thread_that_has_tasks_to_close_gets_new_ones(patch: pytest.MonkeyPatch) -> None:
    right = reconciliation.reconcile

    def wrong(current: Any, goal: Any, owned: Any) -> Any:
        found = right(current, goal, owned)
        return found if found is current or not found.pending else replace(found, epoch=goal.epoch)

    patch.setattr(updating, "reconcile", wrong)


@broken
def a_thread_takes_over_its_target_in_one_step(patch: pytest.MonkeyPatch) -> None:
    right = reconciliation._moves

    def wrong(current: Any, goal: Any) -> Any:
        active, standby, warmup, _ = right(current, goal)
        active.add |= set(each_task(goal.tasks.active)) - active.keep
        return active, standby, warmup, False

    patch.setattr(reconciliation, "_moves", wrong)


@broken
def a_thread_without_a_free_task_counts_as_stable(patch: pytest.MonkeyPatch) -> None:
    right = reconciliation._moves
    patch.setattr(reconciliation, "_moves", lambda current, goal: (*right(current, goal)[:3], False))


@broken
def a_new_thread_brings_no_new_target(patch: pytest.MonkeyPatch) -> None:
    right = StreamsTargets.is_due
    patch.setattr(StreamsTargets, "is_due", lambda self, group: right(self, group) and len(group.members) < 2)


# --- the log


@broken
def streams_changes_that_fail_stay(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(changes.RecordChanges, "undo", _nothing)


@broken
def threads_are_loaded_without_their_tasks(patch: pytest.MonkeyPatch) -> None:
    right = records.current_of
    patch.setattr(replay, "current_of", lambda value: replace(right(value), assigned=RELEASED.assigned))


@broken
def threads_are_loaded_with_the_epoch_before(patch: pytest.MonkeyPatch) -> None:
    right = records.current_of
    patch.setattr(replay, "current_of", lambda value: replace(right(value), epoch=right(value).previous_epoch))
