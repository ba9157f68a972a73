"""Timers of a transactions shard: transactions that take too long are aborted, and unused transactional ids expire."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from rejoin.coordinator.core.inputs import Millis
from rejoin.coordinator.core.partitions.partition import Partition
from rejoin.coordinator.core.runtime.appends import AppendCompletion
from rejoin.coordinator.core.runtime.timers import TimerKey
from rejoin.coordinator.core.step_context import StepContext
from rejoin.coordinator.core.transactions.log import (
    batch_of_tombstones,
    tombstone_batches,
)
from rejoin.coordinator.core.transactions.metadata import (
    IS_IDLE,
    TransactionMetadata,
    TransactionState,
)
from rejoin.coordinator.core.transactions.producer_ids import ProducerIds
from rejoin.coordinator.core.transactions.producers import (
    unanswered,
    unanswered_with,
)
from rejoin.coordinator.core.transactions.timers import TransactionTimer
from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.java import concurrent_hash_map_order

if TYPE_CHECKING:
    from rejoin.coordinator.core.transactions.shard import TransactionsShard


class TransactionCleanup:
    """Looks at all transactional ids of a shard, every interval since the shard was loaded."""

    def __init__(self, ctx: StepContext, shard: TransactionsShard, partition: Partition, ids: ProducerIds) -> None:
        self._ctx = ctx
        self._shard = shard
        self._partition = partition
        self._ids = ids
        self._loaded_at = ctx.now
        self._abort_key = TimerKey(TransactionTimer.ABORT_TIMED_OUT, partition.partition)
        self._expiry_key = TimerKey(TransactionTimer.EXPIRY, partition.partition)

    def timer_fired(self, key: TimerKey) -> None:
        """Look, and look again later."""
        if key == self._abort_key:
            self._abort_timed_out()
            self.watch_timeouts()
        elif key == self._expiry_key:
            self._expire()
            self.watch_expiry()

    def _abort_timed_out(self) -> None:
        now = self._ctx.now
        for metadata in list(self._shard.transactions.values()):
            is_late = metadata.started_at + metadata.timeout_ms < now
            if metadata.state is TransactionState.ONGOING and metadata.pending_state is None and is_late:
                if metadata.is_epoch_exhausted and not self._ids.has_any:
                    self._ids.request(unanswered)  # the next run finds one
                else:
                    self._shard.abort(metadata, "timeout", unanswered_with)

    def _expire(self) -> None:
        now, partition = self._ctx.now, self._partition
        unused_since = now - self._ctx.settings.transactional_id_expiration_ms
        expired = {
            transactional_id: metadata
            for transactional_id, metadata in self._shard.transactions.items()
            if metadata.updated_at <= unused_since and metadata.state in IS_IDLE and metadata.pending_state is None
        }
        if not expired:
            return
        in_order = [each for each in concurrent_hash_map_order(list(self._shard.transactions)) if each in expired]
        for ids, records in tombstone_batches(in_order, partition.config.max_message_bytes):
            partition.append(*batch_of_tombstones(len(ids), records, partition.log.end_offset, partition.epoch, now))
            for transactional_id in ids:
                metadata = expired[transactional_id]
                metadata.pending_state = TransactionState.DEAD
                partition.when_stored(partition.log.end_offset, _TombstoneStored(self._shard, metadata))

    def watch_timeouts(self) -> None:
        """Look for transactions that take too long, while there are open ones."""
        if any(metadata.state is TransactionState.ONGOING for metadata in self._shard.transactions.values()):
            self.set_abort_timer()

    def set_abort_timer(self) -> None:
        """A transaction is open: look at the next interval whether it takes too long."""
        settings = self._ctx.settings
        self._set(self._abort_key, settings.transaction_abort_timed_out_transaction_cleanup_interval_ms)

    def watch_expiry(self) -> None:
        """Look for unused transactional ids, while there are any."""
        if self._shard.transactions:
            settings = self._ctx.settings
            self._set(self._expiry_key, settings.transaction_remove_expired_transaction_cleanup_interval_ms)

    def _set(self, key: TimerKey, interval_ms: Millis) -> None:
        """Look at the next multiple of an interval."""
        now, deadlines = self._ctx.now, self._ctx.deadlines
        if deadlines.at(key) is None:
            deadlines.set(key, now + interval_ms - self._since_interval(now, interval_ms))

    def _since_interval(self, now: Millis, interval_ms: Millis) -> Millis:
        """The time since the last interval began; the first one began when the shard was loaded."""
        return (now - self._loaded_at) % interval_ms

    def since_look(self, now: Millis) -> Millis:
        """The time since the last instant at which transactions that take too long could be looked for."""
        interval_ms = self._ctx.settings.transaction_abort_timed_out_transaction_cleanup_interval_ms
        return self._since_interval(now, interval_ms)


@dataclass(slots=True)
class _TombstoneStored(AppendCompletion):
    """A transactional id that is about to be forgotten."""

    shard: TransactionsShard
    metadata: TransactionMetadata

    def ended(self, error: ErrorCode) -> None:
        self.metadata.pending_state = None
        if error is ErrorCode.NONE:
            self.shard.forgotten(self.metadata)
