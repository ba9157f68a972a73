"""The log of a data partition: what readers get, and what stays of epochs and beginnings."""

from __future__ import annotations

from rejoin.coordinator.core.partitions.log import PartitionLog
from rejoin.protocol.records.batches import BatchEntry
from rejoin.protocol.wire.record_batch import BatchHeader, parse_header, sealed

SIZE = 100


def batch(base_offset: int, count: int, epoch: int = 0) -> bytes:
    """A batch of so many records, whose bytes mean nothing."""
    header = BatchHeader(base_offset, 0, epoch, 2, 0, 0, count - 1, 0, 0, -1, -1, -1, count)
    return sealed(header, bytes(SIZE - 61))


def log_of(*batches: bytes) -> PartitionLog:
    """A log with these batches, all of them stored."""
    log = PartitionLog()
    for data in batches:
        log.append(data, parse_header(data))
    log.stored_up_to(log.end_offset)
    return log


def test_a_read_begins_with_the_batch_of_the_offset_and_is_cut_anywhere() -> None:
    first, second, third = batch(0, 3), batch(3, 2), batch(5, 1)
    log = log_of(first, second, third)
    assert log.read(1, 1_000, 6, at_least_one=True) == first + second + third
    assert log.read(3, 150, 6, at_least_one=True) == second + third[:50]
    assert log.read(0, 1_000, 5, at_least_one=True) == first + second
    assert log.read(6, 1_000, 6, at_least_one=True) == b""


def test_a_first_batch_that_is_too_large_comes_whole_or_not_at_all() -> None:
    log = log_of(batch(0, 1), batch(1, 1))
    assert log.read(0, 10, 2, at_least_one=True) == batch(0, 1)
    assert log.read(0, 10, 2, at_least_one=False) == b""


def test_nothing_is_read_that_is_not_stored() -> None:
    log = log_of(batch(0, 1))
    data = batch(1, 1)
    log.append(data, parse_header(data))
    assert (log.high_watermark, log.end_offset) == (1, 2)
    assert log.read(0, 1_000, log.high_watermark, at_least_one=True) == batch(0, 1)


def test_a_log_begins_in_the_middle_of_a_batch() -> None:
    log = log_of(batch(0, 2), batch(2, 4))
    assert log.start_at(3)
    assert not log.start_at(1)
    assert (log.log_start_offset, log.size) == (3, SIZE)
    assert log.read(3, 1_000, 6, at_least_one=True) == batch(2, 4)


def test_where_an_epoch_ended() -> None:
    log = log_of(batch(0, 2, epoch=1), batch(2, 2, epoch=3))
    assert log.end_offset_for(3) == (3, 4)
    assert log.end_offset_for(2) == (1, 2)
    assert log.end_offset_for(1) == (1, 2)
    assert log.end_offset_for(0) == (0, 0)
    assert log.end_offset_for(4) == log.end_offset_for(-1) == (-1, -1)


def test_epochs_that_ended_below_the_beginning_are_forgotten() -> None:
    log = log_of(batch(0, 2, epoch=1), batch(2, 2, epoch=3))
    log.start_at(3)
    assert log.epochs == [(3, 3)]


def test_compacted_batches_take_the_place_of_those_that_were_read() -> None:
    log = log_of(batch(0, 2), batch(2, 2), batch(4, 1))
    smaller = batch(0, 2)
    log.replace(4, (BatchEntry(0, smaller),))
    assert log.read(0, 1_000, 5, at_least_one=True) == smaller + batch(4, 1)
    assert log.read(2, 1_000, 5, at_least_one=True) == batch(4, 1)
