"""Broken rules of share groups that worlds look for, beside those that ``search`` is tested with."""

from __future__ import annotations

from typing import Any

import pytest

from rejoin.coordinator.core.groups.modern.session_timers import SessionTimers
from rejoin.coordinator.core.groups.share import removal
from rejoin.coordinator.core.groups.share.model import records
from rejoin.coordinator.core.groups.share.removal import ShareRemovals
from rejoin.coordinator.core.share.window import acknowledging, changes, expiring, share_partition
from rejoin.coordinator.core.share.window.acknowledging import MemberChanges
from rejoin.coordinator.core.share.window.share_partition import SharePartition
from rejoin.protocol.messages.share.acknowledgements import AcknowledgeType
from tests.simulation.search import share_mutations
from tests.simulation.search.mutations import Break, Mutation

OF_SHARES: list[Mutation] = [
    Mutation(apply, check, "share", first) for apply, check, first in share_mutations.MUTATIONS
]


def broken(mutation: Break) -> Break:
    """Register a broken rule. Any check may find it."""
    OF_SHARES.append(Mutation(mutation, "", "share", 0))
    return mutation


def _nothing(*_: Any, **__: Any) -> None:
    """Does nothing."""


# --- deliveries


@broken
def a_record_is_delivered_once_more_than_its_limit(patch: pytest.MonkeyPatch) -> None:
    right = changes.released

    def wrong(count: int, limit: int, *, dead_letters: bool) -> int:
        return right(count - 1, limit, dead_letters=dead_letters)

    patch.setattr(acknowledging, "released", wrong)
    patch.setattr(expiring, "released", wrong)


@broken
def a_record_is_given_up_before_its_limit(patch: pytest.MonkeyPatch) -> None:
    right = changes.released

    def wrong(count: int, limit: int, *, dead_letters: bool) -> int:
        return right(count + 1, limit, dead_letters=dead_letters)

    patch.setattr(acknowledging, "released", wrong)
    patch.setattr(expiring, "released", wrong)


@broken
def an_accepted_record_is_delivered_again(patch: pytest.MonkeyPatch) -> None:
    right = MemberChanges._codes

    def wrong(self: Any, count: int) -> bytes:
        table = bytearray(right(self, count))
        table[AcknowledgeType.ACCEPT] = table[AcknowledgeType.RELEASE]
        return bytes(table)

    patch.setattr(MemberChanges, "_codes", wrong)


@broken
def a_record_that_is_given_back_is_done_with(patch: pytest.MonkeyPatch) -> None:
    right = MemberChanges._codes

    def wrong(self: Any, count: int) -> bytes:
        table = bytearray(right(self, count))
        table[AcknowledgeType.RELEASE] = table[AcknowledgeType.REJECT]
        return bytes(table)

    patch.setattr(MemberChanges, "_codes", wrong)


@broken
def a_write_that_fails_leaves_its_records_in_transition(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(SharePartition, "_roll_back", _nothing)


@broken
def locks_that_end_are_not_stored_as_deliveries(patch: pytest.MonkeyPatch) -> None:
    right = expiring.expire

    def wrong(window: Any, batch: Any, first: int, last: int, settings: Any) -> Any:
        found = right(window, batch, first, last, settings)
        if batch.records is None:
            batch.count -= 1
        else:
            for offset in range(first, last + 1):
                batch.records.counts[offset - batch.first] -= 1
        return found

    patch.setattr(share_partition, "expire", wrong)


# --- members


@broken
def share_heartbeats_restart_no_session(patch: pytest.MonkeyPatch) -> None:
    right = SessionTimers.restart_session

    def wrong(self: Any, member: Any, session_timeout_ms: int) -> None:
        if self._ctx.deadlines.at(member.session_key) is None:
            right(self, member, session_timeout_ms)

    patch.setattr(SessionTimers, "restart_session", wrong)


@broken
def share_sessions_never_end(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(ShareRemovals, "time_out", _nothing)


@broken
def a_share_removal_lowers_the_epoch(patch: pytest.MonkeyPatch) -> None:
    right = records.epoch_record
    patch.setattr(
        removal, "epoch_record", lambda group_id, epoch, metadata_hash: right(group_id, epoch - 2, metadata_hash)
    )
