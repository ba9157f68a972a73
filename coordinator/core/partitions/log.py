"""The log of a data partition: batches as bytes, in memory, with what Kafka keeps beside them.

A batch is added with its offset; it counts for readers when it is stored, which moves the high watermark.

Kafka: UnifiedLog, LocalLog, LeaderEpochFileCache.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from rejoin.coordinator.core.inputs import Millis
from rejoin.protocol.records.batch_run import BatchRun, run_of
from rejoin.protocol.records.batches import BatchEntry
from rejoin.protocol.types import BatchBytes
from rejoin.protocol.wire.record_batch import MAGIC_AT, BatchHeader, parse_header

if TYPE_CHECKING:
    from rejoin.coordinator.core.partitions.arena import Arena

UNKNOWN_EPOCH: Final = -1
UNKNOWN_OFFSET: Final = -1

READ_UNCOMMITTED: Final = 0
READ_COMMITTED: Final = 1
"""Isolation levels: records up to the high watermark, or up to the last stable offset."""

ARENA_FROM_BYTES: Final = 2**21
"""Larger logs put their batches behind each other in blocks of memory."""
INDEX_INTERVAL_BYTES: Final = 4_096
"""Kafka: index.interval.bytes."""

_ABORTED_SHIFT: Final = 6

_base_offset = attrgetter("base_offset")
_last_offset = attrgetter("last_offset")
_position = attrgetter("position")
_last_stable_offset = attrgetter("last_stable_offset")


class LogBatch:
    """A batch of a log: its bytes, and often used fields of its header. It does not change."""

    __slots__ = ("base_offset", "data", "last_offset", "leader_epoch", "max_timestamp", "position")

    def __init__(self, data: BatchBytes, header: BatchHeader, position: int = 0) -> None:
        self.data = data
        self.position = position
        self.base_offset = header.base_offset
        self.last_offset = header.base_offset + header.last_offset_delta
        self.leader_epoch = header.partition_leader_epoch
        self.max_timestamp: Millis = header.max_timestamp

    def __deepcopy__(self, _: dict[int, Any]) -> LogBatch:
        return self

    def with_own_bytes(self) -> LogBatch:
        """A copy of the batch that keeps no larger buffer alive."""
        return LogBatch(bytes(self.data), self.header, self.position)

    @property
    def header(self) -> BatchHeader:
        return parse_header(self.data)


class _Cut:
    """The bytes of some batches, of the last one those below a position."""

    __slots__ = ("_batches", "_stop")

    def __init__(self, batches: list[LogBatch], stop: int) -> None:
        self._batches = batches
        self._stop = stop

    def __len__(self) -> int:
        return len(self._batches)

    def __contains__(self, data: object) -> bool:
        return any(data == each for each in self)

    def __iter__(self) -> Iterator[BatchBytes]:
        batches, last = self._batches, self._batches[-1]
        for index in range(len(batches) - 1):
            yield batches[index].data
        yield last.data[: self._stop - last.position]


class OffsetIndex:
    """The last offsets of some batches by their positions: about one for 4 KiB. Kafka: LogSegment.append, OffsetIndex.

    A reader of aborted transactions goes by it: they are collected up to the first entry behind what was read.
    """

    __slots__ = ("_since_entry", "end", "offsets", "positions")

    def __init__(self) -> None:
        self.end = 0
        self.offsets: list[int] = []
        self.positions: list[int] = []
        self._since_entry = 0

    def append(self, last_offset: int, size: int) -> int:
        """Take in a batch; returns its position."""
        position = self.end
        if self._since_entry > INDEX_INTERVAL_BYTES:
            self.offsets.append(last_offset)
            self.positions.append(position)
            self._since_entry = 0
        self._since_entry += size
        self.end = position + size
        return position

    def upper_bound(self, position: int) -> int | None:
        """The offset of the first entry at a position or behind it, or none."""
        index = bisect_left(self.positions, position)
        return self.offsets[index] if index < len(self.offsets) else None


class EpochEntry(NamedTuple):
    """A leader epoch, and the first offset that was written in it."""

    epoch: int
    start_offset: int


class AbortedTxn(NamedTuple):
    """A transaction that was aborted: its first offset here, and that of its marker."""

    producer_id: int
    first_offset: int
    last_offset: int
    last_stable_offset: int


class AbortedTxns:
    """Aborted transactions in the order of their markers, as readers of committed records ask for them.

    They are asked for by where they began. So the smallest first offset of each 64 of them is kept as well, and of each
    64 times 64: what began too late is passed over in large steps. Kafka: TransactionIndex.
    """

    __slots__ = ("_of_64", "_of_4096", "_txns")

    def __init__(self) -> None:
        self._txns: list[AbortedTxn] = []
        self._of_64: list[int] = []
        self._of_4096: list[int] = []

    def __iter__(self) -> Iterator[AbortedTxn]:
        return iter(self._txns)

    def append(self, aborted: AbortedTxn) -> None:
        """A marker has ended one."""
        number, first = len(self._txns), aborted.first_offset
        self._txns.append(aborted)
        for smallest in (self._of_64, self._of_4096):
            number >>= _ABORTED_SHIFT
            if number == len(smallest):
                smallest.append(first)
            elif first < smallest[number]:
                smallest[number] = first

    def start_at(self, offset: int) -> None:
        """Forget those that ended below an offset."""
        gone = bisect_left(self._txns, offset, key=_last_offset)
        if gone:
            self.keep(self._txns[gone:])

    def keep(self, left: list[AbortedTxn]) -> None:
        """Forget all others."""
        self._txns, self._of_64, self._of_4096 = [], [], []
        for aborted in left:
            self.append(aborted)

    def between(self, offset: int, upper_bound: int) -> list[AbortedTxn]:
        """Transactions that ended at an offset or behind it, and began below a bound, in order.

        None is looked at behind the first before which everything below the bound had ended.
        """
        # Kafka: TransactionIndex.collectAbortedTxns.
        txns, of_64 = self._txns, self._of_64
        begin = bisect_left(txns, offset, key=_last_offset)
        end = min(len(txns), 1 + bisect_left(txns, upper_bound, lo=begin, key=_last_stable_offset))
        found: list[AbortedTxn] = []
        for large in _blocks(begin, end, 2 * _ABORTED_SHIFT):
            if self._of_4096[large] < upper_bound:
                inside = max(begin, large << 2 * _ABORTED_SHIFT), min(end, large + 1 << 2 * _ABORTED_SHIFT)
                for small in _blocks(*inside, _ABORTED_SHIFT):
                    if of_64[small] < upper_bound:
                        some = txns[max(begin, small << _ABORTED_SHIFT) : min(end, small + 1 << _ABORTED_SHIFT)]
                        found += [aborted for aborted in some if aborted.first_offset < upper_bound]
        return found


def _blocks(begin: int, end: int, shift: int) -> range:
    """The numbers of the blocks that have some of these."""
    return range(begin >> shift, (end - 1 >> shift) + 1)


def newest_of(one: LogBatch | None, other: LogBatch) -> LogBatch:
    """Of two batches the one with the larger timestamp, or else the first."""
    return other if one is None or other.max_timestamp > one.max_timestamp else one


class PartitionLog:
    """One log, from ``log_start_offset`` to ``end_offset``. Readers see it up to ``high_watermark``."""

    __slots__ = (
        "_arena",
        "aborted",
        "batches",
        "compacted_up_to",
        "end_offset",
        "epochs",
        "first_unstable_offset",
        "high_watermark",
        "index",
        "log_start_offset",
        "newest_deleted",
        "size",
    )

    def __init__(self) -> None:
        self.batches: list[LogBatch] = []
        self.log_start_offset = 0
        self.compacted_up_to = 0
        """Compaction has nothing to do below this offset, until something comes behind it."""
        self.end_offset = 0
        """Kafka's LEO: the offset of the next record."""
        self.high_watermark = 0
        """The end of the stored part of the log."""
        self.first_unstable_offset: int | None = None
        """Where the oldest open transaction began."""
        self.epochs: list[EpochEntry] = []
        self.aborted = AbortedTxns()
        self.index = OffsetIndex()
        self._arena: Arena | None = None
        self.newest_deleted: LogBatch | None = None
        """Of the batches that DeleteRecords removed, the one with the largest timestamp."""
        # Kafka: the segment is still there, and knows its largest timestamp.
        self.size = 0
        """The bytes of all batches."""

    @property
    def last_stable_offset(self) -> int:
        """The end for readers of committed records."""
        first = self.first_unstable_offset
        if first is None:
            return self.high_watermark
        if first < self.log_start_offset:
            # Kafka: UnifiedLog.convertToOffsetMetadataOrThrow. It is the batch with that offset, which may begin below.
            index = self._index_at(self.log_start_offset)
            first = self.batches[index].base_offset if index < len(self.batches) else self.log_start_offset
        return min(self.high_watermark, first)

    # --- writing

    def copy_in(self, header: BatchHeader, data: BatchBytes) -> BatchBytes:
        """A copy of a batch for the log to keep, with the offset and epoch of its header."""
        start, rest = header.pack_start(), memoryview(data)[MAGIC_AT:]
        if self.size < ARENA_FROM_BYTES:
            return b"".join((start, rest))
        if self._arena is None:
            # Imported here: most logs are small.
            from rejoin.coordinator.core.partitions.arena import Arena  # noqa: PLC0415

            self._arena = Arena()
        return self._arena.copy_in(start, rest, self.size)

    def _give_up_arena(self) -> None:
        """A log that has become small needs no block."""
        if self.size < ARENA_FROM_BYTES:
            self._arena = None

    def append(self, data: BatchBytes, header: BatchHeader) -> LogBatch:
        """Add a batch, which ends behind the end."""
        last_offset, size = header.last_offset, len(data)
        assert last_offset >= self.end_offset, "offsets grow"
        batch = LogBatch(data, header, self.index.append(last_offset, size))
        self.batches.append(batch)
        self.size += size
        if not self.epochs or batch.leader_epoch > self.epochs[-1].epoch:
            self.start_epoch(batch.leader_epoch, batch.base_offset)
        self.end_offset = last_offset + 1
        return batch

    def start_epoch(self, epoch: int, start_offset: int) -> None:
        """Remember where a leader epoch began, if it is newer than the ones before."""
        if epoch >= 0 and (not self.epochs or epoch > self.epochs[-1].epoch):
            while self.epochs and self.epochs[-1].start_offset >= start_offset:
                self.epochs.pop()
            self.epochs.append(EpochEntry(epoch, start_offset))

    def stored_up_to(self, offset: int) -> bool:
        """All below an offset is stored; returns whether readers see more than before."""
        if offset <= self.high_watermark:
            return False
        self.high_watermark = offset
        return True

    def start_at(self, offset: int) -> bool:
        """Let the log begin at an offset, never below where it began before; returns whether it moved."""
        if offset <= self.log_start_offset:
            return False
        self.log_start_offset = offset
        gone, newest = 0, self.newest_deleted
        while gone < len(self.batches) and self.batches[gone].last_offset < offset:
            self.size -= len(self.batches[gone].data)
            newest = newest_of(newest, self.batches[gone])
            gone += 1
        del self.batches[:gone]
        if newest is not self.newest_deleted and newest is not None:
            self.newest_deleted = newest.with_own_bytes()
        self._give_up_arena()
        self.aborted.start_at(offset)
        self.end_offset = max(self.end_offset, offset)
        self.high_watermark = max(self.high_watermark, offset)
        self._truncate_epochs(offset)
        return True

    def _truncate_epochs(self, offset: int) -> None:
        """Of the epochs that began at or below an offset keep the last, and let it begin there."""
        below = bisect_right(self.epochs, offset, key=attrgetter("start_offset"))
        if below:
            self.epochs[:below] = [EpochEntry(self.epochs[below - 1].epoch, offset)]

    @property
    def dirty(self) -> range:
        """The numbers of the batches that were not compacted yet, up to open transactions and without the newest."""
        # Kafka: LogCleanerManager.cleanableOffsets. Records of an open transaction replace none: it may be aborted.
        first, newest = self._index_at(self.compacted_up_to), max(len(self.batches) - 1, 0)
        return range(first, max(first, bisect_left(self.batches, self.last_stable_offset, hi=newest, key=_last_offset)))

    def compacted(self, end_offset: int, aborted: list[AbortedTxn]) -> None:
        """All below an offset was compacted, and these aborted transactions are left."""
        self.compacted_up_to = end_offset
        self.aborted.keep(aborted)

    def replace(self, end_offset: int, batches: tuple[BatchEntry, ...]) -> None:
        """Put compacted batches where all those stand that begin below an offset."""
        rest = self.batches[self._index_at(end_offset) :]
        self.index = OffsetIndex()
        self.batches = []
        for data in [*(entry.data for entry in batches), *(batch.data for batch in rest)]:
            header = parse_header(data)
            self.batches.append(LogBatch(data, header, self.index.append(header.last_offset, len(data))))
        self.size = self.index.end
        self._give_up_arena()

    # --- reading

    def _index_at(self, offset: int) -> int:
        """The number of the batch that has an offset, or of the first behind it."""
        index = bisect_right(self.batches, offset, key=_base_offset)
        return index - 1 if index and self.batches[index - 1].last_offset >= offset else index

    def batches_from(self, offset: int) -> Iterator[LogBatch]:
        """The batches from the one on that has an offset, or begins behind it."""
        for index in range(self._index_at(offset), len(self.batches)):
            yield self.batches[index]

    def read(self, offset: int, max_bytes: int, limit: int, *, at_least_one: bool) -> BatchBytes | BatchRun:
        """The bytes from the batch of an offset on, up to a limit offset, cut anywhere after ``max_bytes``.

        A first batch that is larger comes whole with ``at_least_one``, and without it nothing.
        """
        batches, index = self.batches, self._index_at(offset)
        if index == len(batches) or batches[index].base_offset >= limit:
            return b""
        first = batches[index]
        if len(first.data) > max_bytes:
            return first.data if at_least_one else b""
        stop = first.position + max_bytes
        end = bisect_left(batches, stop, lo=index + 1, key=_position)
        if batches[end - 1].base_offset >= limit:
            end = bisect_left(batches, limit, lo=index + 1, hi=end, key=_base_offset)
        if end == index + 1:
            return first.data
        last = batches[end - 1]
        stop = min(stop, last.position + len(last.data))
        return run_of(_Cut(batches[index:end], stop), stop - first.position)

    def aborted_between(self, offset: int, size: int) -> list[AbortedTxn]:
        """The aborted transactions of a reading from an offset on that gave so many bytes, or that follow closely."""
        # Kafka: LocalLog.addAbortedTransactions.
        index = self._index_at(offset)
        position = self.batches[index].position if index < len(self.batches) else self.index.end
        upper_bound = self.index.upper_bound(position + size)
        if upper_bound is None:
            upper_bound = self.end_offset
        return self.aborted.between(offset, upper_bound)

    def bytes_between(self, offset: int, limit: int, at_most: int) -> int:
        """How many bytes a reader finds from an offset up to a limit offset, counted no further than a bound."""
        found = 0
        for batch in self.batches_from(offset):
            if batch.base_offset >= limit or found >= at_most:
                break
            found += len(batch.data)
        return min(found, at_most)

    def end_offset_for(self, epoch: int) -> tuple[int, int]:
        """The largest leader epoch up to one that is asked for, and where it ended; -1 and -1 where that is unknown."""
        # Kafka: LeaderEpochFileCache.endOffsetFor.
        if epoch == UNKNOWN_EPOCH or not self.epochs or epoch > self.epochs[-1].epoch:
            return UNKNOWN_EPOCH, UNKNOWN_OFFSET
        if epoch == self.epochs[-1].epoch:
            return epoch, self.end_offset
        following = bisect_right(self.epochs, epoch, key=attrgetter("epoch"))
        if following == 0:
            return epoch, self.epochs[0].start_offset
        return self.epochs[following - 1].epoch, self.epochs[following].start_offset
