"""The states of share-partitions, as one partition of ``__share_group_state`` has them.

Operations compute an answer and, where something changes, a record. They change nothing: the caller appends the record
and calls ``replay`` with it, live as after a restart, so that both come to one state.

# Kafka: ShareCoordinatorShard.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Final, NamedTuple, Protocol

from rejoin.coordinator.core.inputs import Millis
from rejoin.coordinator.core.share_state.merging import cut, merge
from rejoin.coordinator.core.share_state.state_batch import PersistedBatch, PersistedState
from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.records.share_group_state import (
    NO_COUNT,
    ShareSnapshotValue,
    ShareStateRecord,
    ShareUpdateValue,
)
from rejoin.protocol.records.share_partitions import SharePartitionKey
from rejoin.protocol.unvalidated import unvalidated

NO_OFFSET: Final = -1
"""A start offset that the leader of the partition decides."""

_FIRST_LEADER_EPOCH: Final = 0


class ShareStateSettings(Protocol):
    """Settings of the share coordinator, read at each use."""

    @property
    def updates_per_snapshot(self) -> int:
        """``share.coordinator.snapshot.update.records.per.snapshot``; 0: snapshots only."""


class ShareState:
    """The state of one share-partition. Batches are in order and do not overlap."""

    __slots__ = (
        "batches",
        "create_timestamp",
        "delivery_complete_count",
        "highest_leader_epoch",
        "highest_state_epoch",
        "leader_epoch",
        "snapshot_epoch",
        "snapshot_log_offset",
        "start_offset",
        "state_epoch",
        "updates",
        "write_timestamp",
    )

    def __init__(self) -> None:
        self.snapshot_epoch = 0
        self.state_epoch = 0
        self.leader_epoch = 0
        self.start_offset = NO_OFFSET
        self.delivery_complete_count = NO_COUNT
        self.batches: list[PersistedBatch] = []
        self.create_timestamp: Millis = 0
        self.write_timestamp: Millis = 0
        self.highest_leader_epoch = -1
        self.highest_state_epoch = -1
        self.updates = 0
        """Updates since the last snapshot that was due."""
        self.snapshot_log_offset = 0


class Changed(NamedTuple):
    """The outcome of an operation, and the record to append; none: nothing changes."""

    error: ErrorCode = ErrorCode.NONE
    record: ShareStateRecord | None = None


class ReadOutcome(NamedTuple):
    """The outcome of a read: the state, and a record where the leader epoch is another than before."""

    error: ErrorCode = ErrorCode.NONE
    state: PersistedState | None = None
    record: ShareStateRecord | None = None


class StateSummary(NamedTuple):
    """The state without its batches."""

    error: ErrorCode = ErrorCode.NONE
    state_epoch: int = 0
    leader_epoch: int = 0
    start_offset: int = NO_OFFSET
    delivery_complete_count: int = NO_COUNT


class WrittenState(NamedTuple):
    """The contents of a WriteShareGroupState request for one share-partition."""

    state_epoch: int
    leader_epoch: int
    start_offset: int
    delivery_complete_count: int
    batches: Sequence[PersistedBatch]


class ShareStates:
    """States by share-partition. ``is_known`` says whether a topic id has such a partition."""

    def __init__(self, settings: ShareStateSettings, is_known: Callable[[SharePartitionKey], bool]) -> None:
        self._settings = settings
        self._is_known = is_known
        self._states: dict[SharePartitionKey, ShareState] = {}

    def __len__(self) -> int:
        return len(self._states)

    def __iter__(self) -> Iterator[SharePartitionKey]:
        return iter(self._states)

    def get(self, key: SharePartitionKey) -> ShareState | None:
        """The state of a share-partition, to look at."""
        return self._states.get(key)

    # --- operations

    def initialize(self, key: SharePartitionKey, state_epoch: int, start_offset: int, now: Millis) -> Changed:
        """Begin to keep a state, or begin anew: the group coordinator asks for it."""
        state = self._states.get(key)
        if key.partition < 0 or state_epoch < 0:
            return Changed(ErrorCode.INVALID_REQUEST)
        if state is not None and state_epoch < state.highest_state_epoch:
            return Changed(ErrorCode.FENCED_STATE_EPOCH)
        if not self._is_known(key):
            return Changed(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        value = unvalidated(
            ShareSnapshotValue,
            snapshot_epoch=0 if state is None else state.snapshot_epoch + 1,
            state_epoch=state_epoch,
            leader_epoch=_FIRST_LEADER_EPOCH,
            start_offset=start_offset,
            delivery_complete_count=NO_COUNT if start_offset == NO_OFFSET else 0,
            create_timestamp=now,
            write_timestamp=now,
            state_batches=(),
        )
        return Changed(record=ShareStateRecord(key, value))

    def read(self, key: SharePartitionKey, leader_epoch: int, now: Millis) -> ReadOutcome:
        """The state, for a leader that begins. An epoch that is new is put on record, to fence the leader before."""
        state = self._states.get(key)
        if key.partition < 0 or leader_epoch < 0 or state is None:
            return ReadOutcome(ErrorCode.INVALID_REQUEST)
        if leader_epoch < state.highest_leader_epoch:
            return ReadOutcome(ErrorCode.FENCED_LEADER_EPOCH)
        if not self._is_known(key):
            return ReadOutcome(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        found = PersistedState(state.state_epoch, state.start_offset, tuple(state.batches))
        if leader_epoch == state.highest_leader_epoch:
            return ReadOutcome(state=found)
        count = state.delivery_complete_count
        asked = WrittenState(state.state_epoch, leader_epoch, state.start_offset, count, ())
        return ReadOutcome(state=found, record=self._record_of(key, state, asked, leader_epoch, now))

    def write(self, key: SharePartitionKey, written: WrittenState, now: Millis) -> Changed:
        """A change by the leader of the partition."""
        state = self._states.get(key)
        if key.partition < 0 or written.leader_epoch < 0 or written.state_epoch < 0 or state is None:
            return Changed(ErrorCode.INVALID_REQUEST)
        if written.leader_epoch < state.highest_leader_epoch:
            return Changed(ErrorCode.FENCED_LEADER_EPOCH)
        if written.state_epoch < state.highest_state_epoch:
            return Changed(ErrorCode.FENCED_STATE_EPOCH)
        if not self._is_known(key):
            return Changed(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        return Changed(record=self._record_of(key, state, written, state.leader_epoch, now))

    def summarize(self, key: SharePartitionKey) -> StateSummary:
        """Offset, count and epochs. A state that is not known is no error."""
        if key.partition < 0:
            return StateSummary(ErrorCode.INVALID_REQUEST)
        if not self._is_known(key):
            return StateSummary(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        state = self._states.get(key)
        if state is None:
            return StateSummary()
        return StateSummary(
            ErrorCode.NONE, state.state_epoch, state.leader_epoch, state.start_offset, state.delivery_complete_count
        )

    def delete(self, key: SharePartitionKey) -> Changed:
        """Forget a state; a state that is not known is no error."""
        if key.partition < 0:
            return Changed(ErrorCode.INVALID_REQUEST)
        if not self._is_known(key):
            return Changed(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        return Changed(record=ShareStateRecord(key, None) if key in self._states else None)

    def tombstones(self, is_gone: Callable[[str], bool]) -> list[ShareStateRecord]:
        """Tombstones of all share-partitions whose topic is deleted, by topic id."""
        return [ShareStateRecord(key, None) for key in self._states if is_gone(key.topic_id)]

    def cold_snapshots(self, now: Millis, interval_ms: Millis) -> list[ShareStateRecord]:
        """Snapshots of states that were not written for so long, so that older records can be deleted.

        None while every state is as it was in such a snapshot.
        # Kafka: snapshotColdPartitions. A state whose two times differ was written by this.
        """
        if all(state.create_timestamp != state.write_timestamp for state in self._states.values()):
            return []
        return [
            ShareStateRecord(key, _snapshot(state, state.create_timestamp, now))
            for key, state in self._states.items()
            if now - state.write_timestamp >= interval_ms
        ]

    def first_useful_log_offset(self) -> int | None:
        """The log offset below which no record is needed any more, the oldest of the newest snapshots; or none."""
        return min((state.snapshot_log_offset for state in self._states.values()), default=None)

    def _record_of(
        self, key: SharePartitionKey, state: ShareState, written: WrittenState, leader_epoch: int, now: Millis
    ) -> ShareStateRecord:
        """An update, or a snapshot where as many updates stand as there may be."""
        start = max(written.start_offset, state.start_offset)
        count = _complete_count(state, written)
        if state.updates < self._settings.updates_per_snapshot:
            value = unvalidated(
                ShareUpdateValue,
                snapshot_epoch=state.snapshot_epoch,
                leader_epoch=leader_epoch,
                start_offset=start,
                delivery_complete_count=count,
                state_batches=tuple(merge((), written.batches, start)),
            )
            return ShareStateRecord(key, value)
        snapshot = unvalidated(
            ShareSnapshotValue,
            snapshot_epoch=state.snapshot_epoch + 1,
            state_epoch=written.state_epoch,
            leader_epoch=leader_epoch,
            start_offset=start,
            delivery_complete_count=count,
            create_timestamp=now,
            write_timestamp=now,
            state_batches=tuple(merge(state.batches, written.batches, start)),
        )
        return ShareStateRecord(key, snapshot)

    # --- replay

    def replay(self, record: ShareStateRecord, log_offset: int = 0) -> None:
        """Take over a record of the log: one that was just appended, or one of a log that is loaded."""
        key, value = record
        if value is None:
            self._states.pop(key, None)
        elif isinstance(value, ShareSnapshotValue):
            self._replay_snapshot(key, value, log_offset)
        else:
            self._replay_update(key, value, log_offset)

    def _replay_snapshot(self, key: SharePartitionKey, value: ShareSnapshotValue, log_offset: int) -> None:
        state = self._states.get(key)
        if state is None:
            state = self._states[key] = ShareState()
        state.snapshot_epoch = value.snapshot_epoch
        state.state_epoch = value.state_epoch
        state.leader_epoch = value.leader_epoch
        state.start_offset = value.start_offset
        state.delivery_complete_count = value.delivery_complete_count
        state.batches = list(value.state_batches)
        state.create_timestamp = value.create_timestamp
        state.write_timestamp = value.write_timestamp
        state.highest_leader_epoch = max(state.highest_leader_epoch, value.leader_epoch)
        state.highest_state_epoch = max(state.highest_state_epoch, value.state_epoch)
        state.snapshot_log_offset = log_offset
        # Kafka: handleShareSnapshot. A snapshot that was not due, as of an Initialize, does not reset the count.
        if state.updates >= self._settings.updates_per_snapshot:
            state.updates = 0

    def _replay_update(self, key: SharePartitionKey, value: ShareUpdateValue, log_offset: int) -> None:
        state = self._states.get(key)
        if state is None:
            # The snapshot was deleted with older records, or the log is cut.
            state = self._states[key] = ShareState()
            state.snapshot_log_offset = log_offset
        if value.start_offset != NO_OFFSET:
            state.start_offset = value.start_offset
        state.snapshot_epoch = value.snapshot_epoch
        state.leader_epoch = value.leader_epoch
        state.delivery_complete_count = value.delivery_complete_count
        state.batches = merge(state.batches, value.state_batches, state.start_offset)
        state.highest_leader_epoch = max(state.highest_leader_epoch, value.leader_epoch)
        state.updates += 1


def _complete_count(state: ShareState, written: WrittenState) -> int:
    """The count to put on record: it belongs to the start offset beside it."""
    if written.start_offset == state.start_offset:
        return max(written.delivery_complete_count, state.delivery_complete_count)
    if written.start_offset < state.start_offset:
        return state.delivery_complete_count
    return written.delivery_complete_count


def _snapshot(state: ShareState, create_timestamp: Millis, write_timestamp: Millis) -> ShareSnapshotValue:
    return unvalidated(
        ShareSnapshotValue,
        snapshot_epoch=state.snapshot_epoch + 1,
        state_epoch=state.state_epoch,
        leader_epoch=state.leader_epoch,
        start_offset=state.start_offset,
        delivery_complete_count=state.delivery_complete_count,
        create_timestamp=create_timestamp,
        write_timestamp=write_timestamp,
        state_batches=tuple(cut(state.batches, state.start_offset)),
    )
