"""A partition of ``__share_group_state`` that is led here: states by share-partition, each stored before it counts.

Kafka: ShareCoordinatorShard on CoordinatorRuntime.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from rejoin.coordinator.core.partitions.partition import Partition
from rejoin.coordinator.core.runtime.appends import AppendCompletion, response_error_of_write
from rejoin.coordinator.core.runtime.timers import TimerKey
from rejoin.coordinator.core.share.timers import ShareStateTimer
from rejoin.coordinator.core.share_state.share_states import ShareStates
from rejoin.coordinator.core.step_context import StepContext
from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.records.share_group_state import (
    ShareStateRecord,
)
from rejoin.protocol.records.share_partitions import SharePartitionKey
from rejoin.protocol.wire.record_batch import batch_of_one
from rejoin.protocol.wire.record_encoder import encode_record
from rejoin.protocol.wire.records import read_batch
from rejoin.protocol.wire.state_topics.share_group_state import key_bytes, read_record, value_bytes

OnStored: TypeAlias = Callable[[ErrorCode], None]
"""Called once when a record is durable, or with the error for the client."""


class _OwnSettings:
    """Settings of the share coordinator."""

    def __init__(self, ctx: StepContext) -> None:
        self._settings = ctx.settings

    @property
    def updates_per_snapshot(self) -> int:
        return self._settings.share_coordinator_snapshot_update_records_per_snapshot


class ShareStateShard:
    """The states of one partition, in one leader epoch."""

    def __init__(self, ctx: StepContext, partition: Partition, is_known: Callable[[SharePartitionKey], bool]) -> None:
        self._ctx = ctx
        self._partition = partition
        self.coordinator_epoch = partition.epoch
        self.states = ShareStates(_OwnSettings(ctx), is_known)
        self._prune_timer = TimerKey(ShareStateTimer.PRUNE, partition.partition)

    def load(self) -> None:
        """Read the log."""
        for batch in self._partition.log.batches:
            for record in read_batch(batch.data):
                found = None if record.key is None else read_record(record.key, record.value)
                if found is not None:
                    self.states.replay(found, batch.base_offset + record.offset_delta)
        self._prune_later()

    def resigned(self) -> None:
        """The partition is led elsewhere, or will be read again."""
        self._ctx.deadlines.cancel(self._prune_timer)

    def store(self, record: ShareStateRecord | None, on_end: OnStored) -> None:
        """Append a record, and take it over at once; without one, wait for those before it.

        Kafka: CoordinatorRuntime. What follows sees the record, and is answered when both are durable.
        """
        partition = self._partition
        if record is not None:
            self._append(record)
            self._prune_later()
        partition.when_replicated(partition.log.end_offset, _Stored(on_end))

    def _append(self, record: ShareStateRecord) -> None:
        partition = self._partition
        offset = partition.log.end_offset
        key = key_bytes(record.key, record.type)
        value = None if record.value is None else value_bytes(record.value)
        batch = batch_of_one(offset, partition.epoch, self._ctx.now, encode_record(0, 0, key, value))
        partition.append(*batch)
        self.states.replay(record, offset)

    # --- topics and time

    def topics_deleted(self, is_gone: Callable[[str], bool]) -> None:
        """Forget the share-partitions of topics that are gone."""
        for record in self.states.tombstones(is_gone):
            self._append(record)

    def _prune_later(self) -> None:
        if len(self.states) and self._ctx.deadlines.at(self._prune_timer) is None:
            interval = self._ctx.settings.share_coordinator_state_topic_prune_interval_ms
            self._ctx.deadlines.set(self._prune_timer, self._ctx.now + interval)

    def timer_fired(self) -> None:
        """Delete records below the oldest snapshot that counts; write states anew that were not written for long."""
        interval = self._ctx.settings.share_coordinator_cold_partition_snapshot_interval_ms
        cold = self.states.cold_snapshots(self._ctx.now, interval)
        for record in cold:
            self._append(record)
        offset = self.states.first_useful_log_offset()
        log = self._partition.log
        if offset is not None and log.log_start_offset < offset <= log.high_watermark:
            self._partition.start_at(offset)
            self._prune_later()
        elif cold:
            self._prune_later()


class _Stored(AppendCompletion):
    """A requester waits for the log."""

    __slots__ = ("_on_end",)

    def __init__(self, on_end: OnStored) -> None:
        self._on_end = on_end

    def ended(self, error: ErrorCode) -> None:
        self._on_end(response_error_of_write(error))
