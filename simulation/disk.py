"""The logs by topic partition: durable, slow, fenced by epochs, and failing on command."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from random import Random
from typing import Final, NamedTuple, TypeAlias

from rejoin.coordinator.core.effects import Append
from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.records.consumer_offsets import GroupRecord, OffsetCommitValue, OffsetRecord, offset_record
from rejoin.protocol.records.keyed import KeyedRecord, Record, TransactionMarker
from rejoin.protocol.types import LogPartition, TopicIdPartition, TopicPartition
from rejoin.simulation.kernel import Millis, Order, World

OnStored: TypeAlias = Callable[[Append, ErrorCode], None]
Read: TypeAlias = Callable[[tuple[Record, ...]], None]
Key: TypeAlias = tuple[str, ...]

_COMPACT_FROM: Final = 2_000
_REMEMBERED: Final = 16
"""How many of the newest values of each offset are remembered for the checks."""


@dataclass(slots=True)
class Log:
    """The log of one partition."""

    epoch: int = -1
    records: list[Record | OffsetEntry] = field(default_factory=list)
    appends: int = 0
    last_at: Millis = 0
    compact_at: int = _COMPACT_FROM
    newest: dict[Key, deque[int]] = field(default_factory=dict)
    """By group, topic and partition: the last offsets that were written since the last tombstone."""
    pending: dict[int, list[tuple[Key, int]]] = field(default_factory=dict)
    """By producer id: offsets that were written in a transaction that is open."""
    groups: dict[str, GroupRecord] = field(default_factory=dict)
    """By group: its newest record."""
    has_transactions: bool = False

    def state(self) -> tuple[object, ...]:
        """All that a node which reads the log can learn from it."""
        return self.epoch, self.records if self.has_transactions else compacted(self.records), self.pending


class OffsetEntry(NamedTuple):
    """A committed offset in the log of a consumer that is played in short: its record in the fewest words."""

    group_id: str
    topic: str
    partition: int
    offset: int
    committed_at: Millis

    def record(self) -> OffsetRecord:
        """The record that the coordinator would have written, but for the id of the topic."""
        value = OffsetCommitValue(
            offset=self.offset, leader_epoch=-1, metadata="", commit_timestamp=self.committed_at, expire_timestamp=-1
        )
        return offset_record(self.group_id, self.topic, self.partition, value)


def key_of(record: Record | OffsetEntry) -> Key:
    """The key of a record, for compaction."""
    if type(record) is OffsetEntry:
        return (record[0], record[1], str(record[2]))
    match record:
        case GroupRecord():
            return (record.key.data.group,)
        case OffsetRecord():
            data = record.key.data
            return (data.group, data.topic, str(data.partition))
        case KeyedRecord():
            data = record.key.data
            group_id, *rest = (getattr(data, name) for name in data.__slots__)
            return (group_id, "", type(record).__name__, *rest)
    return ()


class Disk:
    """The logs of all partitions. ``draw`` says how long an append or a read takes in ms; appends keep their order.

    Without it nothing takes time: the append has ended, or the log is read, when the call returns. Either way appends
    and reads can be deferred, and ended one by one.
    """

    def __init__(self, world: World, draw: Callable[[Random], float] | None) -> None:
        self.world = world
        self.random = world.new_random()
        self.draw = draw
        self.slower_ms: Millis = 0
        self.error: ErrorCode | None = None
        self.logs: dict[LogPartition, Log] = {}
        self.fenced = 0
        """How many appends came from an older epoch."""
        self.defers_appends = False
        self.defers_reads = False
        self.pending_appends: deque[tuple[Append, OnStored]] = deque()
        self.pending_reads: deque[tuple[LogPartition, Read]] = deque()
        self.on_append: list[Callable[[Append], None]] = []
        """Called with every append that has been written."""

    def log(self, partition: LogPartition) -> Log:
        found = self.logs.get(partition)
        if found is None:
            found = self.logs[partition] = Log()
        return found

    def elect(self, partition: TopicPartition) -> int:
        """A new epoch of a partition; appends of older epochs are refused from now on."""
        log = self.log(partition)
        log.epoch += 1
        return log.epoch

    def append(self, wanted: Append, stored: OnStored) -> None:
        """Write all records or none; ``stored`` is called when they are durable."""
        if self.defers_appends:
            self.pending_appends.append((wanted, stored))
        elif self.draw is None:
            self._write((wanted, stored, self.error))
        else:
            at = self._when_done(wanted.partition, self.draw)
            self.world.at(at, Order.DISK, self._write, (wanted, stored, self.error))

    def end_append(self, error: ErrorCode | None = None) -> None:
        """End the oldest pending append, with an error if one is given."""
        self._write((*self.pending_appends.popleft(), error))

    def _write(self, what: tuple[Append, OnStored, ErrorCode | None]) -> None:
        wanted, stored, error = what
        log = self.log(wanted.partition)
        if wanted.epoch < self.log(wanted.leased_by or wanted.partition).epoch:
            self.fenced += 1
            stored(wanted, ErrorCode.NOT_LEADER_OR_FOLLOWER)
            return
        if error is not None:
            stored(wanted, error)
            return
        if isinstance(wanted.partition, TopicIdPartition):
            log.records.extend(wanted.records)  # batches, which have no keys
            log.appends += 1
        else:
            self._extend(log, wanted.records)
        for record in wanted.records:
            if isinstance(record, GroupRecord):
                log.groups[record.key.data.group] = record
            elif isinstance(record, OffsetRecord) and record.value is None:
                self._forget(log, key_of(record))
            elif isinstance(record, OffsetRecord) and record.value is not None:
                self._remember(log, record.producer_id, key_of(record), record.value.data.offset)
            elif isinstance(record, TransactionMarker):
                ended = log.pending.pop(record.producer_id, [])
                for key, offset in ended if record.committed else ():
                    self._remember(log, -1, key, offset)
        for listener in self.on_append:
            listener(wanted)
        stored(wanted, ErrorCode.NONE)

    @staticmethod
    def _remember(log: Log, producer_id: int, key: Key, offset: int) -> None:
        if producer_id >= 0:
            log.has_transactions = True
            log.pending.setdefault(producer_id, []).append((key, offset))
        else:
            log.newest.setdefault(key, deque(maxlen=_REMEMBERED)).append(offset)

    @staticmethod
    def _forget(log: Log, key: Key) -> None:
        """Take in a tombstone, which also ends what open transactions have of the offset."""
        log.newest.pop(key, None)
        for producer_id, pending in log.pending.items():
            log.pending[producer_id] = [each for each in pending if each[0] != key]

    @staticmethod
    def _extend(log: Log, records: Iterable[Record | OffsetEntry]) -> None:
        log.records.extend(records)
        log.appends += 1
        if len(log.records) >= log.compact_at and not log.has_transactions:
            log.records = compacted(log.records)
            log.compact_at = max(_COMPACT_FROM, 2 * len(log.records))

    @property
    def is_plain(self) -> bool:
        """Whether appends take their time and nothing else happens to them."""
        return (
            self.draw is not None
            and not (self.defers_appends or self.slower_ms or self.on_append)
            and self.error is None
        )

    def reserve(self, partition: TopicPartition) -> Millis:
        """When an append ends that begins now."""
        assert self.draw is not None, "only appends that take their time are reserved"
        return self._when_done(partition, self.draw)

    def write_entries(self, partition: TopicPartition, entries: list[OffsetEntry]) -> None:
        """Write what was reserved."""
        self._extend(self.log(partition), entries)

    def write(self, wanted: Append, stored: OnStored) -> None:
        """Write an append whose end was reserved before, and is now."""
        self._write((wanted, stored, None))

    def read(self, partition: LogPartition, done: Read) -> None:
        """Read a partition as it is when the read ends, after all appends that were asked for before."""
        if self.defers_reads:
            self.pending_reads.append((partition, done))
        elif self.draw is None:
            done(_as_records(self.log(partition).records))
        else:
            log, at = self.log(partition), self._when_done(partition, self.draw)
            self.world.at(at, Order.DISK, lambda _: done(_as_records(log.records)))

    def end_read(self) -> None:
        """End the oldest pending read."""
        partition, done = self.pending_reads.popleft()
        done(_as_records(self.log(partition).records))

    def _when_done(self, partition: LogPartition, draw: Callable[[Random], float]) -> Millis:
        """When an append or read ends that begins now; none overtakes another."""
        log = self.log(partition)
        log.last_at = max(log.last_at, self.world.now + max(1, round(draw(self.random))) + self.slower_ms)
        return log.last_at


def _as_records(records: list[Record | OffsetEntry]) -> tuple[Record, ...]:
    return tuple(each.record() if isinstance(each, OffsetEntry) else each for each in records)


def compacted(records: list[Record | OffsetEntry]) -> list[Record | OffsetEntry]:
    """The newest record of each key, in log order, without tombstones; for logs without transactions."""
    last = {key_of(record): index for index, record in enumerate(records)}
    return [
        record
        for index, record in enumerate(records)
        if last[key_of(record)] == index and (type(record) is OffsetEntry or getattr(record, "value", None) is not None)
    ]
