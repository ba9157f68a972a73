"""One rule of share groups broken at a time, each with the check that must find it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import pytest

from rejoin.coordinator.core.share.led_partitions import LedSharePartitions
from rejoin.coordinator.core.share.sessions import FINAL_EPOCH, ShareSessions
from rejoin.coordinator.core.share.window import acquiring, loading, share_partition
from rejoin.coordinator.core.share.window.acknowledging import MemberChanges
from rejoin.coordinator.core.share.window.locks import Locks
from rejoin.coordinator.core.share.window.share_partition import SharePartition
from rejoin.coordinator.core.share_state.shard import ShareStateShard
from rejoin.coordinator.core.share_state.share_states import ShareStates
from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.records.share_group_state import ShareSnapshotValue

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


# --- the window


@caught_by("a_lock_never_ends", first=20)
def locks_never_end(patch: pytest.MonkeyPatch) -> None:
    right = Locks.set

    def wrong(self: Any, deadline: int, *arguments: Any, **how: Any) -> Any:
        return right(self, deadline + 10**9, *arguments, **how)

    patch.setattr(Locks, "set", wrong)


@caught_by("a_record_has_two_holders")
def locks_end_too_soon(patch: pytest.MonkeyPatch) -> None:
    right = Locks.set

    def wrong(self: Any, deadline: int, since: int, *arguments: Any, **how: Any) -> Any:
        return right(self, (deadline + since) // 2, since, *arguments, **how)

    patch.setattr(Locks, "set", wrong)


@caught_by("a_record_has_two_holders")
def a_session_that_ends_releases_what_others_hold(patch: pytest.MonkeyPatch) -> None:
    right = MemberChanges.release

    def wrong(self: Any, reason: str) -> None:
        holders = {batch.member for batch in self._window.batches}
        for records in [batch.records for batch in self._window.batches if batch.records is not None]:
            holders.update(records.members)
        for self._member in sorted(holders - {""}):
            right(self, reason)

    patch.setattr(MemberChanges, "release", wrong)


@caught_by("a_member_decides_about_a_record_of_another")
def any_member_decides(patch: pytest.MonkeyPatch) -> None:
    right = MemberChanges._acknowledge_in

    def wrong(self: Any, batch: Any, first: int, last: int, types: Any) -> Any:
        records = batch.records
        if records is None and batch.member:
            self._member = batch.member
        elif records is not None and records.members[max(first - batch.first, 0)]:
            self._member = records.members[max(first - batch.first, 0)]
        return right(self, batch, first, last, types)

    patch.setattr(MemberChanges, "_acknowledge_in", wrong)


@caught_by("a_delivery_is_not_counted")
def deliveries_are_not_counted(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(acquiring, "MOST_DELIVERIES", 1)


@caught_by("a_verdict_is_answered_before_it_is_stored")
def verdicts_are_answered_before_they_are_stored(patch: pytest.MonkeyPatch) -> None:
    right = LedSharePartitions._write

    def wrong(self: Any, led: Any, effect: Any) -> None:
        right(self, led, effect)
        led.machine.written(effect.write_id, ErrorCode.NONE)
        self.carry_out(led)

    patch.setattr(LedSharePartitions, "_write", wrong)


@caught_by("a_verdict_is_answered_before_it_is_stored")
def verdicts_are_not_stored(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(
        LedSharePartitions, "_write", lambda self, led, effect: self._written(led, effect.write_id, ErrorCode.NONE)
    )


@caught_by("a_verdict_is_answered_before_it_is_stored")
def writes_that_fail_count(patch: pytest.MonkeyPatch) -> None:
    right = SharePartition.written
    patch.setattr(SharePartition, "written", lambda self, write_id, _: right(self, write_id, ErrorCode.NONE))


@caught_by("a_loaded_window_differs_from_the_log")
def a_leader_loads_without_delivery_counts(patch: pytest.MonkeyPatch) -> None:
    right = loading.load

    def wrong(window: Any, start: int, batches: Any, limit: int) -> Any:
        return right(window, start, tuple(each._replace(delivery_count=0) for each in batches), limit)

    patch.setattr(share_partition, "load", wrong)


@caught_by("a_shared_record_is_lost")
def the_first_record_is_skipped(patch: pytest.MonkeyPatch) -> None:
    right = LedSharePartitions._reset_offset
    patch.setattr(LedSharePartitions, "_reset_offset", lambda self, led: (right(self, led) or 0) + 1)


@caught_by("a_shared_record_is_left")
def state_that_cannot_be_read_is_not_read_again(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(LedSharePartitions, "_remove", _nothing)


# --- the session


@caught_by("a_request_with_another_session_epoch_is_accepted")
def session_epochs_are_not_compared(patch: pytest.MonkeyPatch) -> None:
    right = ShareSessions.find

    def wrong(self: Any, key: Any, epoch: int) -> Any:
        if key in self and epoch != FINAL_EPOCH:
            self._sessions[key].epoch = epoch
        return right(self, key, epoch)

    patch.setattr(ShareSessions, "find", wrong)


# --- the share coordinator


@caught_by("a_loaded_window_differs_from_the_log")
def replay_forgets_a_batch(patch: pytest.MonkeyPatch) -> None:
    right = ShareStates._replay_update

    def wrong(self: Any, key: Any, value: Any, log_offset: int) -> None:
        right(self, key, value.model_copy(update={"state_batches": value.state_batches[:-1]}), log_offset)

    patch.setattr(ShareStates, "_replay_update", wrong)


@caught_by("a_loaded_window_differs_from_the_log")
def a_coordinator_loads_all_but_the_last_batch(patch: pytest.MonkeyPatch) -> None:
    right = ShareStateShard.load

    def wrong(self: Any) -> None:
        right(self)
        for key in self.states:
            self.states.get(key).batches = self.states.get(key).batches[:-1]

    patch.setattr(ShareStateShard, "load", wrong)


@caught_by("a_finished_record_is_delivered")
def a_leader_of_before_may_write(patch: pytest.MonkeyPatch) -> None:
    right = ShareStates.write

    def wrong(self: Any, key: Any, written: Any, now: int) -> Any:
        state = self.get(key)
        newest = written.leader_epoch if state is None else state.highest_leader_epoch
        return right(self, key, written._replace(leader_epoch=max(newest, written.leader_epoch)), now)

    patch.setattr(ShareStates, "write", wrong)


@caught_by("a_snapshot_differs_from_the_log")
def snapshots_lack_the_first_batch(patch: pytest.MonkeyPatch) -> None:
    right = ShareStates._record_of

    def wrong(self: Any, *arguments: Any) -> Any:
        record = right(self, *arguments)
        if not isinstance(record.value, ShareSnapshotValue):
            return record
        value = record.value.model_copy(update={"state_batches": record.value.state_batches[1:]})
        return record._replace(value=value)

    patch.setattr(ShareStates, "_record_of", wrong)
