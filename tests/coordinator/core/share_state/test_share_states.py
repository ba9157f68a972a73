"""Operations of the share coordinator: what is refused, what is put on record, and that replay comes to the same."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random
from typing import Any

import pytest

from rejoin.coordinator.core.share_state.share_states import (
    Changed,
    ShareState,
    ShareStates,
    StateSummary,
    WrittenState,
)
from rejoin.coordinator.core.share_state.state_batch import PersistedBatch, PersistedState
from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.records.share_group_state import (
    ShareRecordType,
    ShareSnapshotValue,
    ShareStateRecord,
    ShareUpdateValue,
)
from rejoin.protocol.records.share_partitions import SharePartitionKey

TOPIC = "AAAAAAAAAAEAAAAAAAAAAQ"
KEY = SharePartitionKey("g", TOPIC, 0)
NO_TOPIC = SharePartitionKey("g", "BAAAAAAAAAEAAAAAAAAAAQ", 0)
NO_PARTITION = SharePartitionKey("g", TOPIC, -1)
NOW = 1_700_000_000_000


@dataclass
class Settings:
    updates_per_snapshot: int = 500


class Coordinator:
    """States with their log: each record is appended and replayed."""

    def __init__(self, updates_per_snapshot: int = 500) -> None:
        self.settings = Settings(updates_per_snapshot)
        self.log: list[ShareStateRecord] = []
        self.known = {TOPIC}
        self.states = self._empty()

    def _empty(self) -> ShareStates:
        return ShareStates(self.settings, lambda key: key.topic_id in self.known)

    def append(self, record: ShareStateRecord | None) -> None:
        if record is not None:
            self.log.append(record)
            self.states.replay(record, len(self.log) - 1)

    def initialize(self, start: int = 0, state_epoch: int = 0, now: int = NOW) -> ErrorCode:
        return self._did(self.states.initialize(KEY, state_epoch, start, now))

    def write(self, *batches: PersistedBatch, epochs: tuple[int, int] = (0, 0), start: int = 0, count: int = 0) -> Any:
        return self._did(self.states.write(KEY, WrittenState(*epochs, start, count, batches), NOW))

    def read(self, leader_epoch: int) -> PersistedState | ErrorCode:
        outcome = self.states.read(KEY, leader_epoch, NOW)
        self.append(outcome.record)
        return outcome.error if outcome.state is None else outcome.state

    def _did(self, changed: Changed) -> ErrorCode:
        self.append(changed.record)
        return changed.error

    def replayed(self) -> ShareStates:
        states = self._empty()
        for offset, record in enumerate(self.log):
            states.replay(record, offset)
        return states


def contents(states: ShareStates) -> dict[SharePartitionKey, dict[str, Any]]:
    found = {key: states.get(key) for key in states}
    return {key: {name: getattr(state, name) for name in ShareState.__slots__} for key, state in found.items()}


@pytest.fixture
def coordinator() -> Coordinator:
    return Coordinator()


def test_a_state_that_was_not_initialized_is_neither_read_nor_written(coordinator: Coordinator) -> None:
    assert coordinator.read(0) is ErrorCode.INVALID_REQUEST
    assert coordinator.write(PersistedBatch(0, 9, 2, 1)) is ErrorCode.INVALID_REQUEST
    assert coordinator.states.summarize(KEY) == StateSummary()
    assert coordinator.states.delete(KEY) == Changed()
    assert coordinator.log == []


def test_older_epochs_are_fenced_the_leaders_first(coordinator: Coordinator) -> None:
    coordinator.initialize(state_epoch=3)
    assert coordinator.read(5) == PersistedState(3, 0, ())
    assert coordinator.write(epochs=(2, 4)) is ErrorCode.FENCED_LEADER_EPOCH
    assert coordinator.write(epochs=(2, 5)) is ErrorCode.FENCED_STATE_EPOCH
    assert coordinator.write(epochs=(3, 5)) is ErrorCode.NONE
    assert coordinator.read(4) is ErrorCode.FENCED_LEADER_EPOCH
    assert coordinator.initialize(state_epoch=2) is ErrorCode.FENCED_STATE_EPOCH
    assert coordinator.initialize(state_epoch=3) is ErrorCode.NONE


def test_a_topic_that_is_gone_and_numbers_below_zero_are_refused(coordinator: Coordinator) -> None:
    coordinator.initialize()
    states, written = coordinator.states, WrittenState(0, 0, 0, 0, ())
    assert states.initialize(NO_TOPIC, 0, 0, NOW).error is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert states.summarize(NO_TOPIC).error is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert states.delete(NO_TOPIC).error is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    coordinator.known.clear()
    assert coordinator.read(0) is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert coordinator.write() is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    for changed in (
        states.initialize(NO_PARTITION, 0, 0, NOW),
        states.initialize(KEY, -1, 0, NOW),
        states.write(NO_PARTITION, written, NOW),
        states.write(KEY, written._replace(leader_epoch=-1), NOW),
        states.write(KEY, written._replace(state_epoch=-1), NOW),
        states.delete(NO_PARTITION),
    ):
        assert changed == Changed(ErrorCode.INVALID_REQUEST)
    assert coordinator.states.read(KEY, -1, NOW).error is ErrorCode.INVALID_REQUEST
    assert coordinator.states.summarize(NO_PARTITION).error is ErrorCode.INVALID_REQUEST


def test_a_state_that_begins_has_a_count_if_it_has_a_start(coordinator: Coordinator) -> None:
    coordinator.initialize(start=-1)
    assert coordinator.states.summarize(KEY) == StateSummary()
    coordinator.initialize(start=4, state_epoch=1)
    assert coordinator.states.summarize(KEY) == StateSummary(ErrorCode.NONE, 1, 0, 4, 0)
    assert [record.value.snapshot_epoch for record in coordinator.log if record.value] == [0, 1]


def test_a_read_by_the_leader_of_the_same_epoch_writes_nothing(coordinator: Coordinator) -> None:
    coordinator.initialize()
    coordinator.read(0)
    assert len(coordinator.log) == 1
    coordinator.read(1)
    coordinator.read(1)
    assert [record.type for record in coordinator.log] == [ShareRecordType.SNAPSHOT, ShareRecordType.UPDATE]
    assert coordinator.states.summarize(KEY).leader_epoch == 1


def test_after_so_many_updates_there_is_a_snapshot() -> None:
    coordinator = Coordinator(updates_per_snapshot=2)
    coordinator.initialize()
    for offset in range(6):
        coordinator.write(PersistedBatch(offset, offset, 2, 1))
    kinds = "".join("U" if isinstance(record.value, ShareUpdateValue) else "S" for record in coordinator.log)
    assert kinds == "S" + "UUS" * 2
    last = coordinator.log[-1].value
    assert isinstance(last, ShareSnapshotValue)
    assert [(each.first_offset, each.last_offset) for each in last.state_batches] == [(0, 5)]


def test_the_count_of_done_records_belongs_to_the_start_beside_it(coordinator: Coordinator) -> None:
    coordinator.initialize()
    coordinator.write(start=0, count=5)
    coordinator.write(start=0, count=3)
    assert coordinator.states.summarize(KEY)[3:] == (0, 5)
    coordinator.write(start=7, count=1)
    assert coordinator.states.summarize(KEY)[3:] == (7, 1)
    coordinator.write(start=2, count=9)
    assert coordinator.states.summarize(KEY)[3:] == (7, 1)


def test_what_is_deleted_begins_anew(coordinator: Coordinator) -> None:
    coordinator.initialize(state_epoch=5)
    coordinator.append(coordinator.states.delete(KEY).record)
    assert coordinator.read(0) is ErrorCode.INVALID_REQUEST
    assert coordinator.initialize(state_epoch=1) is ErrorCode.NONE
    assert coordinator.states.tombstones(lambda topic_id: topic_id == TOPIC) == [ShareStateRecord(KEY, None)]
    assert coordinator.states.tombstones(lambda topic_id: topic_id != TOPIC) == []


def test_a_state_that_rests_gets_one_more_snapshot(coordinator: Coordinator) -> None:
    coordinator.initialize()
    for offset in range(3):
        coordinator.write(PersistedBatch(2 * offset, 2 * offset, 2, 1))
    assert coordinator.states.first_useful_log_offset() == 0
    assert coordinator.states.cold_snapshots(NOW + 299_999, 300_000) == []
    for record in coordinator.states.cold_snapshots(NOW + 300_000, 300_000):
        coordinator.append(record)
    assert coordinator.states.first_useful_log_offset() == 4
    assert len(coordinator.log[-1].value.state_batches) == 3  # type: ignore[union-attr]
    assert coordinator.states.cold_snapshots(NOW + 900_000, 300_000) == []


@pytest.mark.parametrize("seed", range(40))
def test_states_replayed_are_those_that_were_live(seed: int) -> None:
    random = Random(seed)
    coordinator = Coordinator(updates_per_snapshot=random.choice((0, 1, 3, 500)))
    coordinator.initialize(random.choice((-1, 0)))
    start = leader_epoch = state_epoch = 0
    for _ in range(60):
        roll = random.random()
        if roll < 0.1:
            leader_epoch += random.randrange(3)
            coordinator.read(leader_epoch)
        elif roll < 0.15:
            state_epoch += random.randrange(2)
            coordinator.initialize(random.randrange(-1, 50), state_epoch)
        elif roll < 0.18:
            coordinator.append(coordinator.states.delete(KEY).record)
        elif roll < 0.25:
            for record in coordinator.states.cold_snapshots(NOW + random.randrange(9), 3):
                coordinator.append(record)
        else:
            start += random.randrange(4)
            first = start + random.randrange(30)
            batch = PersistedBatch(first, first + random.randrange(9), random.choice((0, 2, 4)), random.randrange(1, 4))
            coordinator.write(batch, epochs=(state_epoch, leader_epoch), start=start, count=random.randrange(9))
    assert contents(coordinator.replayed()) == contents(coordinator.states)
