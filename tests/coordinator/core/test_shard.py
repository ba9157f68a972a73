"""A shard hosts any state machine: here one that has nothing to do with groups, on a log of its own."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

from rejoin.coordinator.config import Settings
from rejoin.coordinator.core.effects import Append, ReadLog
from rejoin.coordinator.core.runtime.appends import AppendCompletion, ShardLog
from rejoin.coordinator.core.runtime.shard import ShardState
from rejoin.coordinator.core.runtime.shards import Shards
from rejoin.coordinator.core.runtime.state_machine import StateMachine
from rejoin.coordinator.core.runtime.timers import TimerKey
from rejoin.coordinator.core.step_context import StepContext
from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.records.keyed import Record, TransactionMarker
from rejoin.protocol.types import TopicPartition

TOPIC = "__transaction_state"
MARKER = TransactionMarker(producer_id=7, producer_epoch=0, committed=True)


class Timer(IntEnum):
    ABORT = 4


@dataclass
class RecordingCompletion(AppendCompletion):
    machine: Producers

    def ended(self, error: ErrorCode) -> None:
        self.machine.ended.append(error)

    def ended_late(self, error: ErrorCode) -> None:
        self.machine.ended_late.append(error)


class Producers(StateMachine):
    """Remembers producer ids, and aborts a transaction after a second."""

    def __init__(self, ctx: StepContext, log: ShardLog) -> None:
        self.ctx = ctx
        self.log = log
        self.known: list[int] = []
        self.aborted: list[str] = []
        self.ended: list[ErrorCode] = []
        self.ended_late: list[ErrorCode] = []
        self.resigned = False

    def replay(self, record: Record) -> None:
        assert isinstance(record, TransactionMarker)
        self.known.append(record.producer_id)

    def on_loaded(self) -> None:
        self.ctx.deadlines.set(TimerKey(Timer.ABORT, self.log.partition, "a", "first"), self.ctx.now + 1_000)
        self.ctx.deadlines.set(TimerKey(Timer.ABORT, self.log.partition, "b", "second"), self.ctx.now + 1_000)

    def on_resigned(self) -> None:
        self.resigned = True

    def timer_fired(self, key: TimerKey) -> None:
        self.aborted.append(key.name)

    def size(self) -> int:
        return len(self.known)


def loaded() -> tuple[StepContext, Shards[Producers], Producers]:
    ctx = StepContext(Settings(), lambda: "id")
    shards = Shards(ctx, TOPIC, 3, Producers)
    partition = shards.partition_of("transactional-id")
    shards.elect(partition, 4)
    shard = shards.by_partition[partition]
    assert shard.state is ShardState.LOADING
    assert [effect for effect in ctx.effects if isinstance(effect, ReadLog)] == [ReadLog(partition, 4)]
    shard.log_read((MARKER,), False)
    shard.log_read((), True)
    return ctx, shards, shard.machine


def fire(ctx: StepContext, shards: Shards[Producers], now: int) -> None:
    ctx.now = now
    while (key := ctx.deadlines.pop_due(now)) is not None:
        shards.fire(key)


def test_it_is_loaded_and_its_timers_come_back_to_it() -> None:
    ctx, shards, machine = loaded()
    assert machine.known == [7]
    assert machine.log.partition.topic == TOPIC
    ctx.deadlines.cancel_scope(machine.log.partition, "a")
    fire(ctx, shards, 1_000)
    assert machine.aborted == ["second"]


def test_an_append_times_out_and_may_still_end() -> None:
    ctx, shards, machine = loaded()
    machine.log.append((MARKER,), RecordingCompletion(machine))
    append = next(effect for effect in ctx.effects if isinstance(effect, Append))
    fire(ctx, shards, ctx.settings.offsets_commit_timeout_ms)
    assert machine.ended == [ErrorCode.REQUEST_TIMED_OUT]
    assert isinstance(append.partition, TopicPartition)
    shards.by_partition[append.partition].stored(append.append_id, ErrorCode.NONE)
    assert (machine.ended_late, machine.log.is_writing) == ([ErrorCode.NONE], False)


def test_a_shard_that_resigns_ends_its_appends_and_timers() -> None:
    ctx, shards, machine = loaded()
    machine.log.append((MARKER,), RecordingCompletion(machine))
    shards.resign(machine.log.partition)
    assert machine.resigned
    assert machine.ended == [ErrorCode.NOT_LEADER_OR_FOLLOWER]
    assert ctx.deadlines.next() is None
    assert shards.shard_of("transactional-id") is None


def test_a_reloaded_shard_numbers_its_appends_on() -> None:
    ctx, shards, machine = loaded()
    machine.log.append((MARKER,), RecordingCompletion(machine))
    partition: TopicPartition = machine.log.partition
    shards.reload(partition)
    anew = shards.by_partition[partition]
    anew.append((), RecordingCompletion(anew.machine))
    ids = [effect.append_id for effect in ctx.effects if isinstance(effect, Append)]
    assert len(set(ids)) == 2
