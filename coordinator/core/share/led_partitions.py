"""The share-partitions of this node: loaded with the first ShareFetch, dropped when the partition is led elsewhere.

Kafka: SharePartitionManager, SharePartitionCache.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Protocol, TypeAlias, cast

from rejoin.coordinator.core.fetch.logs import ReadableLogs, ReadablePartition
from rejoin.coordinator.core.fetch.synthetic import SyntheticBatches
from rejoin.coordinator.core.inputs import LockExpired, Millis, RecordReleased
from rejoin.coordinator.core.partitions.list_offsets import first_record_since
from rejoin.coordinator.core.partitions.log import PartitionLog
from rejoin.coordinator.core.runtime.timers import TimerKey
from rejoin.coordinator.core.share.events import SharePartitionEvents
from rejoin.coordinator.core.share.sessions import SharedPartition
from rejoin.coordinator.core.share.settings import (
    BY_DURATION,
    EARLIEST,
    SharePartitionSettings,
)
from rejoin.coordinator.core.share.timers import ShareTimer
from rejoin.coordinator.core.share.window.effects import CallEnded, DeadLetter, FetchesWoken, StateWrite
from rejoin.coordinator.core.share.window.share_partition import FENCING_ERRORS, SharePartition, leader_error
from rejoin.coordinator.core.share.window.values import SharePartitionState
from rejoin.coordinator.core.share_state.persister import Persister
from rejoin.coordinator.core.share_state.share_states import WrittenState
from rejoin.coordinator.core.share_state.state_batch import PersistedBatch, PersistedState
from rejoin.coordinator.core.step_context import StepContext
from rejoin.coordinator.core.topics.topics import Topics
from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.messages.share.acknowledgements import AcknowledgementBatch, AcknowledgeType
from rejoin.protocol.messages.share.share_group_state import (
    ReadPartitionResult,
)
from rejoin.protocol.records.share_partitions import SharePartitionKey
from rejoin.protocol.types import TopicIdPartition
from rejoin.protocol.units import iso_duration_ms

UNKNOWN: int = -1


class OnAcknowledged(Protocol):
    """Called once at the end of an acknowledgement or a release."""

    def __call__(self, error: ErrorCode, *, breaks_request: bool) -> None:
        """``breaks_request``: the whole request has failed (UNKNOWN_SERVER_ERROR)."""


class LedSharePartition:
    """A share-partition, with the partition that it reads."""

    __slots__ = ("events", "group_id", "key", "known_offset", "lock_timer", "machine", "partition", "settings")

    def __init__(
        self,
        ctx: StepContext,
        key: SharePartitionKey,
        partition: TopicIdPartition,
        leader_epoch: int,
        settings: SharePartitionSettings,
        number: int,
    ) -> None:
        self.key = key
        self.group_id = key.group_id
        self.partition = partition
        self.settings = settings
        self.machine = SharePartition(leader_epoch, settings)
        self.events = SharePartitionEvents(ctx, self.group_id, partition, settings, self.machine)
        # One that is fenced has locks yet, beside those of its successor.
        self.lock_timer = TimerKey(ShareTimer.RECORD_LOCK, partition, key.group_id, f"{number:012}")
        self.known_offset = UNKNOWN
        """The offset at which a fetch looked last. Kafka remembers its place in the log with it."""

    @property
    def shared(self) -> SharedPartition:
        return SharedPartition(self.key.topic_id, self.key.partition)


LettersEnded: TypeAlias = Callable[[ErrorCode], None]
"""Called once when dead letters are written, or are given up with an error."""


class DeadLetterSink(Protocol):
    """Writer of dead letters."""

    def send(self, led: LedSharePartition, letter: DeadLetter, on_end: LettersEnded) -> None:
        """Write records to the group's topic for them; ``on_end`` is called at the end, good or bad."""


class LedSharePartitions:
    """All share-partitions that are in memory here."""

    def __init__(
        self, ctx: StepContext, topics: Topics, logs: ReadableLogs, persister: Persister, dead_letters: DeadLetterSink
    ) -> None:
        self._ctx = ctx
        self._topics = topics
        self._logs = logs
        self._persister = persister
        self._dead_letters = dead_letters
        self.on_wake: Callable[[LedSharePartition], None] = lambda led: None
        """Called when fetches that wait for a share-partition should look again."""
        self.on_failed: Callable[[LedSharePartition, ErrorCode], None] = lambda led, error: None
        """Called when a share-partition is thrown out of memory, with the error of fetches that wait for it."""
        self._led: dict[SharePartitionKey, LedSharePartition] = {}
        self._by_partition: dict[TopicIdPartition, dict[SharePartitionKey, LedSharePartition]] = {}
        self._by_timer: dict[TimerKey, LedSharePartition] = {}
        self._last_number = 0

    # --- looking up

    def get(self, key: SharePartitionKey) -> LedSharePartition | None:
        """A share-partition that is in memory, whether its state is read already or not."""
        return self._led.get(key)

    def named(self, group_id: str, topic: str, partition: int) -> LedSharePartition | None:
        """A share-partition that is in memory, by the name of its topic."""
        found = self._topics.by_name.get(topic)
        return None if found is None else self.get(SharePartitionKey(group_id, found.topic_id, partition))

    def all(self) -> list[LedSharePartition]:
        """All share-partitions, by group, topic id and partition."""
        return [led for _, led in sorted(self._led.items())]

    def get_or_make(self, key: SharePartitionKey, found: ReadablePartition) -> LedSharePartition:
        """A share-partition; one that is not in memory is of use when it is loaded."""
        led = self._led.get(key)
        if led is not None:
            return led
        partition = found.partition
        assert isinstance(partition, TopicIdPartition), "an offsets partition has no topic id to be fetched by"
        settings = SharePartitionSettings(key.group_id, self._ctx, self._topics.group_configs, self._ctx.features)
        self._last_number += 1
        led = self._led[key] = LedSharePartition(
            self._ctx, key, partition, found.leader_epoch, settings, self._last_number
        )
        self._by_partition.setdefault(partition, {})[key] = led
        return led

    # --- loading

    def load(self, led: LedSharePartition) -> None:
        """Load a share-partition, unless that has begun before. Fetches that wait for it are woken at the end."""
        if led.machine.start_loading():
            self._persister.read(led.group_id, led.shared, led.machine.leader_epoch, partial(self._read, led))

    def _read(self, led: LedSharePartition, result: ReadPartitionResult) -> None:
        """The share coordinator has answered."""
        state: PersistedState | ErrorCode = result.error_code
        if result.error_code is ErrorCode.NONE:
            batches = tuple(
                PersistedBatch(each.first_offset, each.last_offset, each.delivery_state, each.delivery_count)
                for each in result.state_batches
            )
            state = PersistedState(result.state_epoch, result.start_offset, batches)
        error = led.machine.loaded(state, partial(self._reset_offset, led))
        if led.machine.state is SharePartitionState.FENCED:
            return
        if result.error_code is not ErrorCode.NONE:
            led.events.persister_failed("read", result.error_code)
        if error is not ErrorCode.NONE:
            self._remove(led)
            self.on_failed(led, error)
            return
        _, index, topic = led.partition
        found = self._logs.find(topic, index)
        log_start = None if isinstance(found, ErrorCode) else found.log.log_start_offset
        led.events.loaded(is_reset=result.start_offset < 0, log_start=log_start)
        self.carry_out(led)
        self.on_wake(led)

    def _reset_offset(self, led: LedSharePartition) -> int | None:
        """Where a share-partition begins that has no offset; none: no record is that young."""
        _, index, topic = led.partition
        found = self._logs.find(topic, index)
        if isinstance(found, ErrorCode):
            return 0
        log, reset = found.log, led.settings.offset_reset
        if reset == EARLIEST:
            return log.log_start_offset
        if reset.startswith(BY_DURATION):
            length = iso_duration_ms(reset.removeprefix(BY_DURATION))
            assert isinstance(log, PartitionLog | SyntheticBatches), "a log is real or synthetic"
            since = first_record_since(log, self._ctx.now - length)
            return None if since.offset < 0 or since.offset >= log.high_watermark else since.offset
        return log.high_watermark

    # --- effects

    def acknowledged(self, led: LedSharePartition) -> None:
        """Acknowledgements have started: carry out what they led to; waiting fetches look again."""
        self.carry_out(led)
        self.on_wake(led)

    def carry_out(self, led: LedSharePartition) -> None:
        """Carry out the effects of a share-partition, after each call to it; and watch its locks."""
        with led.events:
            for effect in led.machine.take_effects():
                if isinstance(effect, StateWrite):
                    self._write(led, effect)
                elif isinstance(effect, CallEnded):
                    self._call_ended(led, effect)
                elif isinstance(effect, FetchesWoken):
                    self.on_wake(led)
                else:
                    self._dead_letters.send(led, effect, partial(self._letter_ended, led, effect.letter_id))
        self._watch_locks(led)

    def _write(self, led: LedSharePartition, effect: StateWrite) -> None:
        written = WrittenState(
            effect.state_epoch,
            effect.leader_epoch,
            effect.start_offset,
            effect.delivery_complete_count,
            effect.runs,
        )
        self._persister.write(led.group_id, led.shared, written, partial(self._written, led, effect.write_id))

    def _written(self, led: LedSharePartition, write_id: int, error: ErrorCode) -> None:
        if error is not ErrorCode.NONE:
            led.events.persister_failed("write", error)
        led.machine.written(write_id, error)
        self.carry_out(led)

    def _call_ended(self, led: LedSharePartition, effect: CallEnded) -> None:
        on_end = cast(OnAcknowledged, effect.call)
        if effect.error in FENCING_ERRORS:
            self.throw_out(led, effect.error)
        on_end(effect.error, breaks_request=effect.breaks_request)

    def _letter_ended(self, led: LedSharePartition, letter_id: int, error: ErrorCode) -> None:
        led.machine.dead_letter_ended(letter_id, "" if error is ErrorCode.NONE else error.name)
        self.carry_out(led)

    # --- locks

    def _watch_locks(self, led: LedSharePartition) -> None:
        deadline = led.machine.next_deadline()
        if deadline is None:
            self._by_timer.pop(led.lock_timer, None)
            self._ctx.deadlines.cancel(led.lock_timer)
        else:
            self._by_timer[led.lock_timer] = led
            self._ctx.deadlines.set(led.lock_timer, deadline)

    def postpone_locks(self, by_ms: Millis) -> None:
        """The clock has stepped forward by so much: locks keep the time that they had left."""
        for led in list(self._by_timer.values()):
            led.machine.postpone_locks(by_ms)

    def timer_fired(self, timer: TimerKey) -> None:
        """A lock has run out."""
        led = self._by_timer.get(timer)
        if led is None:
            return
        with led.events:
            while led.machine.expire_next(self._ctx.now) is not None:
                self.carry_out(led)
        self._watch_locks(led)

    def expire_lock(self, what: LockExpired) -> None:
        """End a lock before its time. Nothing happens where there is none."""
        led = self.named(what.group_id, what.topic, what.partition)
        if led is not None and led.machine.expire_lock(what.offset) is not None:
            self.carry_out(led)

    def release_record(self, what: RecordReleased) -> None:
        """Release a record for the member that holds it. Nothing happens where no member does."""
        led = self.named(what.group_id, what.topic, what.partition)
        member_id = None if led is None else led.machine.holder(what.offset)
        if led is None or member_id is None:
            return

        def ended(error: ErrorCode, *, breaks_request: bool) -> None:
            """Nothing waits for the result."""

        released = AcknowledgementBatch(
            first_offset=what.offset, last_offset=what.offset, acknowledge_types=(AcknowledgeType.RELEASE,)
        )
        led.machine.acknowledge(ended, member_id, (released,), self._ctx.now)
        self.acknowledged(led)

    # --- leaving memory

    def on_progress(self, partition: TopicIdPartition) -> None:
        """A partition has changed: readers may go on, or it is led elsewhere, or gone."""
        here = self._by_partition.get(partition)
        if not here:
            return
        _, index, topic = partition
        found = self._logs.find(topic, index, partition.topic_id)
        for led in list(here.values()):
            if isinstance(found, ErrorCode) or found.leader_epoch != led.machine.leader_epoch:
                exists = self._logs.exists(topic, index)
                self.throw_out(
                    led, ErrorCode.NOT_LEADER_OR_FOLLOWER if exists else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
                )
            else:
                self.on_wake(led)

    def throw_out(self, led: LedSharePartition, error: ErrorCode) -> None:
        """Fence a share-partition. Its locks still run out, and their writes meet a newer epoch."""
        led.machine.fence()
        self._remove(led)
        self.on_failed(led, error)

    def forget_group(self, group_id: str) -> None:
        """A group has no session here any more."""
        for led in [led for key, led in self._led.items() if key.group_id == group_id]:
            led.machine.fence()
            self._remove(led)

    def clear(self) -> None:
        """Share groups are switched off."""
        for led in list(self._led.values()):
            self.throw_out(led, ErrorCode.UNSUPPORTED_VERSION)

    def _remove(self, led: LedSharePartition) -> None:
        if self._led.get(led.key) is led:
            del self._led[led.key]
            here = self._by_partition[led.partition]
            del here[led.key]
            if not here:
                del self._by_partition[led.partition]


def client_error(error: ErrorCode) -> ErrorCode:
    """An error of the persister as a client of the leader sees it."""
    return leader_error(error)
