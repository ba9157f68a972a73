"""A shard: the runtime around the state machine of one partition's log.

It knows the epoch, reads the log, counts appends in flight, and calls its state machine; what records and timers mean
is no business of its own. Kafka: CoordinatorRuntime.CoordinatorContext.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import IntEnum, StrEnum
from typing import Generic, Protocol, TypeAlias, TypeVar

from rejoin.coordinator.core.effects import Append, ReadLog
from rejoin.coordinator.core.runtime.appends import AppendCompletion, AppendInFlight, ShardLog
from rejoin.coordinator.core.runtime.state_machine import StateMachine
from rejoin.coordinator.core.runtime.timers import TimerKey
from rejoin.coordinator.core.step_context import StepContext
from rejoin.journal.events.coordinator import AppendFailed, PartitionElected, PartitionLoaded, PartitionResigned
from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.records.keyed import Record
from rejoin.protocol.types import TopicPartition

M = TypeVar("M", bound=StateMachine)

MakeMachine: TypeAlias = Callable[[StepContext, ShardLog], M]
"""Makes the state machine of a shard."""


class ShardTimer(IntEnum):
    """The shard's own timer. At one instant it comes after those of the state machine, whose numbers are smaller."""

    APPEND = 1_000


class ShardState(StrEnum):
    """Whether the shard serves requests yet."""

    LOADING = "loading"
    ACTIVE = "active"


class LogObserver(Protocol):
    """Observer of the logs of shards."""

    def on_stored(self, partition: TopicPartition, records: tuple[Record, ...]) -> None:
        """Records are durable, behind those before."""

    def on_resigned(self, partition: TopicPartition) -> None:
        """The log is led elsewhere, or will be read again."""


class Shard(Generic[M]):
    """One partition that this node leads, in one epoch, and the state machine on it."""

    def __init__(self, ctx: StepContext, partition: TopicPartition, epoch: int, make: MakeMachine[M]) -> None:
        self._ctx = ctx
        self.partition = partition
        self.epoch = epoch
        self.state = ShardState.LOADING
        self.in_flight: dict[int, AppendInFlight] = {}
        self._next_append_id = 1
        self._elected_at = ctx.now
        self._records_read = 0
        self._records_stored = 0
        self._append_key = TimerKey(ShardTimer.APPEND, partition)
        self.observer: LogObserver | None = None
        self.machine = make(ctx, self)

    @property
    def end_offset(self) -> int:
        """The offset of the next record of the log. Offsets are counted from what was read when it was loaded."""
        return self._records_read + self._records_stored

    # --- loading and resigning

    def elected(self) -> None:
        """Read the log; until that is done, requests are answered as loading."""
        self._ctx.emit(
            PartitionElected(topic=self.partition.topic, partition=self.partition.partition, epoch=self.epoch)
        )
        self._ctx.effects.append(ReadLog(self.partition, self.epoch))

    def log_read(self, records: tuple[Record, ...], end: bool) -> None:
        """Replay a piece of the log. With the end of it, begin to serve."""
        self._records_read += len(records)
        replay = self.machine.replay
        for record in records:
            replay(record)
        if end:
            self._begin_to_serve()

    def _begin_to_serve(self) -> None:
        self.state = ShardState.ACTIVE
        self._ctx.emit(
            PartitionLoaded(
                topic=self.partition.topic,
                partition=self.partition.partition,
                epoch=self.epoch,
                load_ms=self._ctx.now - self._elected_at,
                records=self._records_read,
                groups=self.machine.size(),
            )
        )
        self.machine.on_loaded()

    def resigned(self) -> None:
        """Answer every request that waits; the shard is of no use any more."""
        ctx = self._ctx
        ctx.deadlines.cancel_owner(self.partition)
        if self.observer is not None:
            self.observer.on_resigned(self.partition)
        size = self.machine.size()
        self.machine.on_resigned()
        for entry in list(self.in_flight.values()):
            if not entry.timed_out:
                entry.completion.ended(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        self.in_flight.clear()
        # Answering may have set timers or asked for appends; nothing of that is ours any more.
        ctx.deadlines.cancel_owner(self.partition)
        ctx.emit(
            PartitionResigned(
                topic=self.partition.topic, partition=self.partition.partition, epoch=self.epoch, groups=size
            )
        )

    # --- appends

    @property
    def is_writing(self) -> bool:
        """Whether any append is in flight."""
        return bool(self.in_flight)

    def append(self, records: tuple[Record, ...], completion: AppendCompletion) -> None:
        """Ask for records to be written. Without records: wait until everything before is."""
        ctx = self._ctx
        deadline = ctx.now + ctx.settings.offsets_commit_timeout_ms
        append_id = self._next_append_id
        self._next_append_id += 1
        if not self.in_flight:
            ctx.deadlines.set(self._append_key, deadline)
        self.in_flight[append_id] = AppendInFlight(append_id, records, deadline, completion)
        ctx.effects.append(Append(append_id, self.partition, self.epoch, records))

    def order_appends(self) -> None:
        """Put the appends in flight in the order in which they were asked for, after one was put in late."""
        self.in_flight = dict(sorted(self.in_flight.items(), key=lambda each: each[1].deadline))
        self._watch_appends()

    def continue_append_ids(self, before: Shard[M]) -> None:
        """Number appends on from where another shard of this epoch stopped, so that its late ends are not ours."""
        self._next_append_id = before._next_append_id

    def stored(self, append_id: int, error: ErrorCode) -> None:
        """An append has ended."""
        entry = self.in_flight.pop(append_id, None)
        if entry is None:
            return
        self._watch_appends()
        if error is ErrorCode.NONE:
            self._records_stored += len(entry.records)
        if not entry.timed_out:
            self._end(entry, error)
        if entry.timed_out or error is ErrorCode.REQUEST_TIMED_OUT:
            # A time-out that the log itself reports is the end of the append as well.
            entry.completion.ended_late(error)
        if error is ErrorCode.NONE and self.observer is not None:
            self.observer.on_stored(self.partition, entry.records)

    def _end(self, entry: AppendInFlight, error: ErrorCode) -> None:
        if error is not ErrorCode.NONE:
            self._ctx.emit(
                AppendFailed(
                    topic=self.partition.topic,
                    partition=self.partition.partition,
                    epoch=self.epoch,
                    records=len(entry.records),
                    error=error.name,
                )
            )
        entry.completion.ended(error)

    def _time_out_appends(self) -> None:
        """Stop waiting for appends that take too long. What they wrote may still become durable."""
        for entry in list(self.in_flight.values()):
            if not entry.timed_out and entry.deadline <= self._ctx.now:
                entry.timed_out = True
                self._end(entry, ErrorCode.REQUEST_TIMED_OUT)
        self._watch_appends()

    def _watch_appends(self) -> None:
        for entry in self.in_flight.values():
            if not entry.timed_out:
                self._ctx.deadlines.set(self._append_key, entry.deadline)
                return
        self._ctx.deadlines.cancel(self._append_key)

    # --- timers

    def timer_fired(self, key: TimerKey) -> None:
        """A timer of this shard is due: its own, or one of its state machine."""
        if key == self._append_key:
            self._time_out_appends()
        else:
            self.machine.timer_fired(key)
