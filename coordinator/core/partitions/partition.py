"""One data partition that this node leads: its log, and the appends under way.

At most one append is in flight. What is appended meanwhile goes with the next one, all together.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from operator import attrgetter
from typing import Protocol

from rejoin.coordinator.core.effects import AlterPartition, Append, HighWatermarkMoved, ReadLog
from rejoin.coordinator.core.inputs import Millis, PartitionRegistration
from rejoin.coordinator.core.partitions.cleaning import compaction, is_worth_compacting, next_look, retained_from
from rejoin.coordinator.core.partitions.log import AbortedTxn, PartitionLog
from rejoin.coordinator.core.partitions.producer_state import ProducerStateManager
from rejoin.coordinator.core.partitions.topic_config import TopicConfig
from rejoin.coordinator.core.partitions.transaction_events import TransactionEvents
from rejoin.coordinator.core.runtime.appends import AppendCompletion
from rejoin.coordinator.core.runtime.followers import Followers
from rejoin.coordinator.core.step_context import StepContext
from rejoin.journal.events.coordinator import AppendFailed
from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.records.batches import BatchEntry, CompactionEntry, DataEntry, LogStartEntry
from rejoin.protocol.types import BatchBytes, TopicIdPartition, TopicPartition
from rejoin.protocol.wire.control_batches import marker_batch
from rejoin.protocol.wire.record_batch import BatchHeader, parse_header
from rejoin.protocol.wire.records import ControlRecordType, EndTransactionMarker, read_batch

_end_offset = attrgetter("end_offset")


class PartitionTimer(IntEnum):
    """The timers of all data partitions that are led here."""

    CLEANING = 2_000
    PRODUCER_EXPIRY = 2_001
    ISR_EXPIRY = 2_002
    COMPACTION = 2_003


class PartitionObserver(Protocol):
    """An observer of changes that readers of a partition can see."""

    def on_progress(self, partition: TopicIdPartition) -> None:
        """High watermark, last stable offset or log start have moved, or the partition is not led here any more."""


@dataclass(slots=True)
class _Replicating:
    """A callback for when all in-sync replicas have the log up to an offset."""

    end_offset: int
    completion: AppendCompletion


@dataclass(slots=True)
class _Wanted:
    """A pending append, with its completion callback."""

    entry: DataEntry
    end_offset: int
    completions: list[AppendCompletion] = field(default_factory=list)


class Partition:
    """One data partition in one leader epoch. ``leased_by`` is the offsets partition whose leader leads this one."""

    __slots__ = (
        "_append_id",
        "_ctx",
        "_in_flight",
        "_observer",
        "_replicating",
        "_waiting",
        "config",
        "epoch",
        "events",
        "followers",
        "is_damaged",
        "is_loading",
        "leased_by",
        "log",
        "partition",
        "producers",
        "stored_end",
    )

    def __init__(
        self,
        ctx: StepContext,
        partition: TopicIdPartition,
        leased_by: TopicPartition,
        epoch: int,
        observer: PartitionObserver,
        config: TopicConfig,
        registration: PartitionRegistration | None = None,
    ) -> None:
        self._ctx = ctx
        self._observer = observer
        self.partition = partition
        self.leased_by = leased_by
        self.epoch = epoch
        self.config = config
        self.is_loading = True
        self.is_damaged = False
        """Whether the log cannot be read. The partition is then loading for ever."""
        self.log = PartitionLog()
        self.producers = ProducerStateManager()
        self.events = TransactionEvents(ctx, partition, self.log, self.producers)
        self.followers = Followers(registration, ctx.settings.broker_id)
        self.stored_end = 0
        """The end of what this node has stored; readers see what all replicas in sync have."""
        self._in_flight: list[_Wanted] = []
        self._waiting: list[_Wanted] = []
        self._replicating: list[_Replicating] = []
        self._append_id = 0

    # --- leading

    def elected(self) -> None:
        """Read the log; until that is done, this node does not serve the partition."""
        self.is_loading = True
        self.is_damaged = False
        self._empty()
        self._ctx.effects.append(ReadLog(self.partition, self.epoch))

    def log_read(self, entries: tuple[DataEntry, ...], end: bool, *, is_restart: bool) -> None:
        """Replay a piece of the log. With the end of it, begin to serve."""
        for entry in entries:
            self._replay(entry)
        if end:
            self.stored_end = self.log.end_offset
            self.log.stored_up_to(self.followers.high_watermark(self.stored_end))
            self.log.start_epoch(self.epoch, self.log.end_offset)
            if is_restart:
                self.producers.restarted()
            self.expire_producers()
            self.producers.stored_up_to(self.log.high_watermark)
            self.log.first_unstable_offset = self.producers.first_unstable_offset
            self.is_loading = False
            if self.followers.are_any:
                self._publish_high_watermark()
            self._observer.on_progress(self.partition)

    def replicated(self, entries: tuple[DataEntry, ...], high_watermark: int) -> None:
        """Take in more of the log of another leader. A copy is never led: it counts as loading."""
        for entry in entries:
            self._replay(entry)
        self.stored_end = self.log.end_offset
        self.log.stored_up_to(min(high_watermark, self.stored_end))
        self.producers.stored_up_to(self.log.high_watermark)
        self.log.first_unstable_offset = self.producers.first_unstable_offset

    def log_damaged(self) -> None:
        """Drop the loaded log: this node cannot serve the partition."""
        self.is_damaged = True
        self._empty()

    def _empty(self) -> None:
        self.log = PartitionLog()
        self.stored_end = 0
        self.producers = ProducerStateManager()
        self.events = TransactionEvents(self._ctx, self.partition, self.log, self.producers)

    def _replay(self, entry: DataEntry) -> None:
        match entry:
            case BatchEntry():
                header = parse_header(entry.data)
                self._add(entry.data, header)
            case LogStartEntry():
                self.log.start_at(entry.offset)
            case CompactionEntry():
                self.log.replace(entry.end_offset, entry.batches)

    def reload(self) -> None:
        """End all appends, and read the log again."""
        self._fail(ErrorCode.KAFKA_STORAGE_ERROR)
        self.elected()
        self._observer.on_progress(self.partition)

    def resigned(self) -> None:
        """End all appends; the partition is led elsewhere, or gone."""
        self._fail(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        self._observer.on_progress(self.partition)

    # --- cleaning

    def delete_old(self) -> None:
        """Delete the records that the topic keeps no longer."""
        start = retained_from(self.log, self.config, self._ctx.now)
        if start > self.log.log_start_offset:
            self.start_at(start)
            self.log.newest_deleted = None

    def clean(self, *, always: bool = False) -> Millis | None:
        """Delete old records of a compacted log, and compact it; ``always``: however little of it is dirty.

        Returns when to look at it again though nothing is appended.
        """
        # Kafka: LogCleaner.CleanerThread does both. LogManager.cleanupLogs leaves compacted logs out.
        self.delete_old()
        if always or is_worth_compacting(self.log, self.config, self._ctx.now):
            self._compact()
        return next_look(self.log, self.config, self._ctx.now)

    def _compact(self) -> None:
        log = self.log
        compacted = compaction(log, self.producers.entries, self.config, self._ctx.now)
        if compacted is not None:
            log.compacted(compacted.entry.end_offset, compacted.aborted)
            if compacted.has_changed:
                log.replace(compacted.entry.end_offset, compacted.entry.batches)
                self._want(compacted.entry)

    def expire_producers(self) -> None:
        """Forget producers that are silent."""
        self.producers.expire(self._ctx.now, self._ctx.settings.producer_id_expiration_ms)

    # --- appending

    @property
    def is_writing(self) -> bool:
        """Whether an append is in flight."""
        return bool(self._in_flight)

    def append(self, data: BatchBytes, header: BatchHeader, marker: EndTransactionMarker | None = None) -> None:
        """Add a batch with the offset and epoch of its header, and have it stored.

        With ``marker``, that is what the batch is.
        """
        data = self.log.copy_in(header, data)
        self._add(data, header, marker)
        self._want(BatchEntry(header.base_offset, data))
        if header.base_offset in self.producers.ongoing and header.is_transactional:
            self.when_stored(self.log.end_offset, self.events.opening(header))

    def append_marker(self, producer_id: int, producer_epoch: int, marker: EndTransactionMarker) -> None:
        """End a transaction with a marker, and have it stored."""
        end_offset, now = self.log.end_offset, self._ctx.now
        data, header = marker_batch(producer_id, producer_epoch, marker, end_offset, self.epoch, now)
        first_offset = self.producers.first_offset_of(producer_id)
        self.append(data, header, marker)
        self.when_stored(self.log.end_offset, self.events.ending(header, marker, first_offset))

    def _add(self, data: BatchBytes, header: BatchHeader, marker: EndTransactionMarker | None = None) -> None:
        """Take in a batch, or a marker."""
        self.log.append(data, header)
        if not header.has_producer_id:
            return
        if header.is_control:
            if marker is None and (records := read_batch(data)):
                # Kafka: of a transaction whose records are all compacted away, the marker may be empty.
                marker = EndTransactionMarker.of(records[0])
            if marker is not None:
                self._end_transaction(header, marker)
        else:
            self.producers.append(header)
        if header.is_transactional and not self.is_loading:
            self.log.first_unstable_offset = self.producers.first_unstable_offset

    def _end_transaction(self, header: BatchHeader, marker: EndTransactionMarker) -> None:
        producers = self.producers
        is_abort = marker.control_type is ControlRecordType.ABORT
        completed = producers.end_transaction(header, marker.coordinator_epoch, is_abort=is_abort)
        if completed is not None and is_abort:
            # Kafka: ProducerStateManager.lastStableOffset.
            last_stable_offset = next(iter(producers.ongoing), completed.last_offset + 1)
            _, first, last, _ = completed
            self.log.aborted.append(AbortedTxn(header.producer_id, first, last, last_stable_offset))

    def when_stored(self, end_offset: int, completion: AppendCompletion) -> None:
        """Call back when all that was asked for up to an end of the log is stored, or has failed."""
        for some in (self._in_flight, self._waiting):
            if some and (last := some[-1].end_offset) >= end_offset:
                if last == end_offset:
                    some[-1].completions.append(completion)
                    return
                some[bisect_left(some, end_offset, key=_end_offset)].completions.append(completion)
                return
        completion.ended(ErrorCode.NONE)

    def when_replicated(self, end_offset: int, completion: AppendCompletion) -> None:
        """Call back when all replicas in sync have the log up to an offset, or when they will not."""
        if self.followers.replicas == 1:
            self.when_stored(end_offset, completion)
        elif self.log.high_watermark >= end_offset:
            completion.ended(ErrorCode.NONE)
        else:
            self._replicating.append(_Replicating(end_offset, completion))

    def when_all_stored(self, completion: AppendCompletion) -> None:
        """Call back when all that was asked for is stored, or has failed."""
        pending = self._waiting or self._in_flight
        if pending:
            pending[-1].completions.append(completion)
        else:
            completion.ended(ErrorCode.NONE)

    def start_at(self, offset: int) -> None:
        """Let the log begin at an offset, and have that stored."""
        self.log.start_at(offset)
        self._want(LogStartEntry(offset))
        self._observer.on_progress(self.partition)

    def _want(self, entry: DataEntry) -> None:
        self._waiting.append(_Wanted(entry, self.log.end_offset))
        if not self._in_flight:
            self._append_waiting()

    def _append_waiting(self) -> None:
        self._in_flight, self._waiting = self._waiting, []
        wanted = self._in_flight
        if wanted:
            self._append_id += 1
            entries = (wanted[0].entry,) if len(wanted) == 1 else tuple([each.entry for each in wanted])
            self._ctx.effects.append(Append(self._append_id, self.partition, self.epoch, entries, self.leased_by))

    def stored(self, append_id: int, error: ErrorCode) -> None:
        """The append in flight has ended."""
        if append_id != self._append_id or not self._in_flight:
            return
        if error is not ErrorCode.NONE:
            self._append_failed(error)
            return
        ended = self._in_flight
        self.stored_end = ended[-1].end_offset
        if self.followers.are_any:
            self.followers.appended(self.stored_end, self._ctx.now)
        has_moved = self._advance()
        self._in_flight = []
        if self._waiting:
            self._append_waiting()
        for wanted in ended:
            for completion in wanted.completions:
                completion.ended(ErrorCode.NONE)
        if self.producers.ongoing:
            self.events.grown()
        if has_moved:
            if self._replicating:
                self._end_replicated()
            self._observer.on_progress(self.partition)

    # --- replicas

    def _advance(self) -> bool:
        """Let readers see what all replicas in sync have; returns whether that is more than before."""
        end_offset = self.stored_end
        if self.followers.are_any:
            if not self.followers.is_enough(self.config.min_insync_replicas):
                # Kafka: Partition.maybeIncrementLeaderHW. Fewer replicas than that could lose it again.
                return False
            end_offset = self.followers.high_watermark(end_offset)
        has_moved = self.log.stored_up_to(end_offset)
        if has_moved and self.followers.are_any:
            self._publish_high_watermark()
        if self.producers.unstored:
            self.producers.stored_up_to(self.log.high_watermark)
            self.log.first_unstable_offset = self.producers.first_unstable_offset
        return has_moved

    def _publish_high_watermark(self) -> None:
        self._ctx.effects.append(HighWatermarkMoved(self.partition, self.epoch, self.log.high_watermark))

    def followers_fetched(self, end_offsets: Mapping[int, int], silent: tuple[int, ...]) -> None:
        """Followers have got so far; those that have caught up are in sync again."""
        self.followers.fetched(end_offsets, silent, self.stored_end)
        self._on_replicas()
        self._want_isr(self.followers.grown(self.log.high_watermark))

    def alter(self, registration: PartitionRegistration) -> None:
        """The controller has decided on the replicas in sync."""
        self.followers.alter(registration)
        self._on_replicas()

    def expire_followers(self, lag_ms: Millis) -> None:
        """Followers that have been behind for too long are not in sync."""
        self._want_isr(self.followers.shrunk(self._ctx.now, lag_ms))

    def _want_isr(self, isr: tuple[int, ...]) -> None:
        if isr not in (self.followers.isr, self.followers.wanted_isr):
            self.followers.wanted_isr = isr
            self._ctx.effects.append(AlterPartition(self.partition, self.epoch, isr))

    def _on_replicas(self) -> None:
        """Complete the waits for replicas that are over."""
        if self.is_loading:
            return
        if self._advance():
            self._end_replicated()
            self._observer.on_progress(self.partition)

    def _end_replicated(self) -> None:
        """Go on with what waited for replicas that are there now."""
        if not self._replicating:
            return
        ended = [each for each in self._replicating if each.end_offset <= self.log.high_watermark]
        self._replicating = [each for each in self._replicating if each.end_offset > self.log.high_watermark]
        for each in ended:
            each.completion.ended(ErrorCode.NONE)

    def _append_failed(self, error: ErrorCode) -> None:
        """Appends behind a failed one fail, too: the stored log is read again."""
        self._ctx.emit(
            AppendFailed(
                topic=self.partition.topic,
                partition=self.partition.partition,
                epoch=self.epoch,
                records=len(self._in_flight),
                error=error.name,
            )
        )
        if error is ErrorCode.NOT_LEADER_OR_FOLLOWER:
            self._fail(error)
        self.reload()

    def _fail(self, error: ErrorCode) -> None:
        ended = self._in_flight + self._waiting
        self._in_flight, self._waiting = [], []
        completions = [each for wanted in ended for each in wanted.completions]
        completions += [each.completion for each in self._replicating]
        self._replicating = []
        for completion in completions:
            completion.ended(error)
