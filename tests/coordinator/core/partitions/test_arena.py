"""Logs of many batches: the batches lie behind each other in blocks of memory, which readers never notice."""

from __future__ import annotations

import copy
import weakref
from mmap import mmap

import pytest

from rejoin.coordinator.core.partitions import log as log_module
from rejoin.coordinator.core.partitions.log import PartitionLog
from rejoin.protocol.records.batch_run import BatchRun
from rejoin.protocol.wire.record_batch import BatchHeader, is_intact, parse_header, sealed
from rejoin.protocol.wire.records import read_batch
from tests.coordinator.core.partitions.real_topic import RealTopic, batch

MIB = 2**20
MINUTE_MS = 60_000


def large(number: int, size: int = MIB) -> bytes:
    """A batch of one record, whose bytes mean nothing, as a producer sends it."""
    return sealed(BatchHeader(0, 0, -1, 2, 0, 0, 0, 0, 0, -1, -1, -1, 1), bytes([number % 256]) * (size - 61))


def add(log: PartitionLog, data: bytes) -> None:
    """Append a batch as a partition does."""
    header = parse_header(data).with_position(log.end_offset, 3)
    log.append(log.copy_in(header, data), header)
    log.stored_up_to(log.end_offset)


def blocks_of(log: PartitionLog) -> dict[int, mmap]:
    """The blocks that hold batches, by their identities."""
    blocks = [each.data.obj for each in log.batches if isinstance(each.data, memoryview)]
    return {id(block): block for block in blocks if isinstance(block, mmap)}


def test_readers_get_the_same_bytes_wherever_they_lie() -> None:
    log = PartitionLog()
    # The last one is larger than any block would be.
    batches = [large(number, 300_000 + number) for number in range(40)] + [large(41, 40 * MIB), large(42)]
    for data in batches:
        add(log, data)
    assert len(blocks_of(log)) > 2
    for offset, data in enumerate(batches):
        read = bytes(log.read(offset, len(data), offset + 1, at_least_one=True))
        assert read[16:] == data[16:]
        assert parse_header(read) == parse_header(data).with_position(offset, 3)
        assert is_intact(read)
    assert log.size == sum(map(len, batches))


def test_a_small_log_takes_no_block() -> None:
    log = PartitionLog()
    for number in range(20):
        add(log, large(number, 100_000))
    assert not blocks_of(log)


def test_a_batch_that_is_read_cannot_be_changed() -> None:
    log = PartitionLog()
    for number in range(4):
        add(log, large(number))
    read = log.read(3, MIB, 4, at_least_one=True)
    assert isinstance(read, memoryview)
    with pytest.raises(TypeError, match="read-only"):
        read[0] = 1


def test_blocks_go_with_the_batches_that_are_deleted() -> None:
    log = PartitionLog()
    for number in range(60):
        add(log, large(number))
    (first, *_), before = map(weakref.ref, blocks_of(log).values()), len(blocks_of(log))
    log.start_at(30)
    assert first() is None
    assert len(blocks_of(log)) < before
    read = log.read(30, 60 * MIB, 60, at_least_one=True)
    assert isinstance(read, BatchRun)
    assert [piece[100] for piece in read.pieces()] == list(range(30, 60))


def test_a_log_that_is_emptied_keeps_no_block() -> None:
    log = PartitionLog()
    for number in range(10):
        add(log, large(number))
    left = [weakref.ref(block) for block in blocks_of(log).values()]
    log.start_at(10)
    assert log.newest_deleted is not None
    assert log.newest_deleted.data[100] == 0
    assert [block() for block in left] == [None] * len(left)
    add(log, large(11))
    assert bytes(log.read(10, MIB, 11, at_least_one=True))[100] == 11


def test_a_system_without_large_pages_gives_small_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    class OldMemory(mmap):
        def madvise(self, *_: int) -> None:
            raise OSError(22, "Invalid argument")

    monkeypatch.setattr("mmap.mmap", OldMemory)
    log = PartitionLog()
    for number in range(4):
        add(log, large(number))
    assert blocks_of(log)
    assert [each.data[100] for each in log.batches] == [0, 1, 2, 3]


def test_compaction_without_a_change_copies_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_module, "ARENA_FROM_BYTES", 0)
    driven = RealTopic()
    driven.configure(cleanup_policy=("compact",))
    for number in range(4):
        driven.produce(batch("x", keys=(str(number),), at=driven.now))
    before = [id(each.data) for each in driven.partition().log.batches]
    driven.elapse(5 * MINUTE_MS)
    assert driven.partition().log.compacted_up_to == 3
    assert [id(each.data) for each in driven.partition().log.batches] == before


def test_logs_with_the_same_past_go_on_apart() -> None:
    log = PartitionLog()
    for number in range(5):
        add(log, large(number, MIB // 2))
    assert blocks_of(log)
    other = copy.deepcopy(log)
    for number in range(5, 9):
        add(log, large(number, MIB // 2))
        add(other, large(number + 100, MIB // 2))
    assert [each.data[100] for each in log.batches] == [0, 1, 2, 3, 4, 5, 6, 7, 8]
    assert [each.data[100] for each in other.batches] == [0, 1, 2, 3, 4, 105, 106, 107, 108]
    del other.batches[:5]
    assert not blocks_of(log).keys() & blocks_of(other).keys()


def test_what_compaction_leaves_does_not_keep_the_rest(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_module, "ARENA_FROM_BYTES", 0)
    driven = RealTopic()
    driven.configure(cleanup_policy=("compact",))
    driven.produce(batch("1", "2", "3", keys=("a", "b", "a"), at=driven.now))
    driven.produce(batch("4", keys=("c",), at=driven.now))
    driven.produce(batch("5", keys=("d",), at=driven.now))
    assert len(blocks_of(driven.partition().log)) == 1
    driven.elapse(5 * MINUTE_MS)
    *cleaned, newest = driven.partition().log.batches
    assert [isinstance(each.data, bytes) for each in cleaned] == [True, True]
    assert isinstance(newest.data, memoryview)
    values = [record.value for each in (*cleaned, newest) for record in read_batch(each.data)]
    assert values == [b"2", b"3", b"4", b"5"]
