"""Random steps of members, log, share coordinator and leaders: what must hold after each of them.

``REJOIN_SHARE_SEEDS=N`` plays N sequences.
"""

from __future__ import annotations

import os
from random import Random
from typing import Any, NamedTuple

import pytest

from rejoin.coordinator.core.share.window.values import NO_MEMBER, RecordState, SharePartitionView
from rejoin.coordinator.core.share_state.share_states import ShareState, ShareStates
from rejoin.protocol.records.share_group_state import ShareStateRecord
from tests.coordinator.core.share.random_steps import RandomSteps, random_sequence
from tests.coordinator.core.share.recordings import Player

SEEDS = int(os.environ.get("REJOIN_SHARE_SEEDS", "60"))
STEPS = 80
FINAL = (RecordState.ACKNOWLEDGED, RecordState.ARCHIVED)


class Record(NamedTuple):
    """A record of the window."""

    state: RecordState
    deliveries: int
    member: str
    in_transition: bool


def records_of(view: SharePartitionView) -> dict[int, Record]:
    found: dict[int, Record] = {}
    for batch in view.batches:
        for run in batch.runs:
            for offset in range(run.first_offset, run.last_offset + 1):
                assert offset not in found, "a record is in one batch"
                found[offset] = Record(run.state, run.delivery_count, run.member_id, run.in_transition)
    return found


class Checker:
    """One sequence of random steps, and what was seen of it so far."""

    def __init__(self, seed: int) -> None:
        random = Random(seed)
        self.player = Player(random_sequence(random))
        self.steps = RandomSteps(random, self.player)
        self.log: list[ShareStateRecord] = list(self.player.records)
        self.before: dict[int, Record] = {}
        self.acknowledged: set[int] = set()
        """Offsets whose acknowledgement stands: never delivered again, unless the offsets are altered."""
        self.open_calls: set[int] = set()
        self.is_altered = False

    def play(self, do: dict[str, Any]) -> None:
        if do["op"] == "lead":
            # Calls of the old leader are lost, and so are counts of what was acquired and not written.
            self.open_calls.clear()
            self.before.clear()
            self.is_altered = False
        elif do["op"] == "initialize":
            # The leader does not notice before its next write.
            self.acknowledged.clear()
            self.is_altered = True
        seen = self.player.partition.view(self.player.now)
        result = self.player.play({"do": do})
        self.log += self.player.records
        view = self.player.partition.view(self.player.now)
        records = records_of(view)
        self.check_window(view, records)
        self.check_fetch_offset(seen, result["out"])
        self.check_changes(do, records)
        self.check_acquired(do, result["out"], records)
        self.check_calls(do, result["out"])
        self.before = records
        if not self.is_altered:
            self.acknowledged.update(
                offset
                for offset, record in records.items()
                if record.state is RecordState.ACKNOWLEDGED and not record.in_transition
            )

    def check_window(self, view: SharePartitionView, records: dict[int, Record]) -> None:
        done = sum(record.state in FINAL for offset, record in records.items() if offset >= view.start_offset)
        assert view.delivery_complete_count == done
        for record in records.values():
            assert (record.state is RecordState.ACQUIRED) == (record.member != NO_MEMBER)
        for batch in view.batches:
            for run in batch.runs:
                locked = run.lock_ms is not None
                assert locked if run.state is RecordState.ACQUIRED else run.in_transition or not locked
        if records and view.start_offset <= max(records):
            assert view.end_offset >= max(records)

    def check_fetch_offset(self, seen: SharePartitionView, out: dict[str, Any]) -> None:
        """A fetch reads from the first record of all that is available, once there may be one."""
        has_holes = seen.gap_window is not None and seen.gap_window[1] == seen.end_offset
        if "fetch_offset" not in out or not seen.find_next or has_holes:
            return
        available = [
            offset
            for offset, record in records_of(seen).items()
            if record.state is RecordState.AVAILABLE and not record.in_transition
        ]
        empty = not seen.batches or seen.start_offset > seen.batches[-1].last_offset
        end = seen.end_offset if empty else seen.end_offset + 1
        assert out["fetch_offset"] == (end if empty else min(available, default=end))

    def check_changes(self, do: dict[str, Any], records: dict[int, Record]) -> None:
        for offset, now in records.items():
            before = self.before.get(offset)
            if before is None:
                continue
            assert now.deliveries >= before.deliveries, "delivery counts never fall"
            if before.state in FINAL and not before.in_transition:
                assert now == before, "acknowledged and archived are final"
            if before.state is now.state is RecordState.ACQUIRED and before.member != now.member:
                raise AssertionError("a record is held by one member at a time")
            if before.in_transition and now.state is RecordState.ACQUIRED:
                assert now.deliveries == before.deliveries, "a rollback is no delivery"

    def check_acquired(self, do: dict[str, Any], out: dict[str, Any], records: dict[int, Record]) -> None:
        for first, last, count in out.get("acquired", ()):
            for offset in range(first, last + 1):
                before = self.before.get(offset)
                assert before is None or (before.state is RecordState.AVAILABLE and not before.in_transition)
                assert offset not in self.acknowledged, "acknowledged is final, over leaders"
                assert records[offset] == (RecordState.ACQUIRED, count, do["member"], False)

    def check_calls(self, do: dict[str, Any], out: dict[str, Any]) -> None:
        ended = [done["call"] for done in out.get("done", ())]
        if "call" in do and "thrown" not in out:
            self.open_calls.add(do["call"])
        assert len(ended) == len(set(ended))
        assert set(ended) <= self.open_calls, "a call ends once"
        self.open_calls.difference_update(ended)
        if not self.player.parked:
            assert self.open_calls == set()


def contents(states: ShareStates) -> dict[Any, dict[str, Any]]:
    return {key: {name: getattr(states.get(key), name) for name in ShareState.__slots__} for key in states}


@pytest.mark.parametrize("seed", range(SEEDS))
def test_invariants_hold_after_each_step(seed: int) -> None:
    checker = Checker(seed)
    checker.play({"op": "lead", "leader_epoch": 0})
    for _ in range(STEPS):
        checker.play(checker.steps.next())
    replayed = ShareStates(checker.player.settings, lambda _: True)
    for record in checker.log:
        replayed.replay(record)
    assert contents(replayed) == contents(checker.player.states)
