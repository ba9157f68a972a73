"""Reading a log: as many bytes as a plain walk over its batches gives, and a run of batches is as their bytes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rejoin.coordinator.core.partitions.log import PartitionLog
from rejoin.protocol.records.batch_run import BatchRun, whole
from rejoin.protocol.wire.record_batch import BatchHeader, parse_header, sealed

SIZES = st.lists(st.sampled_from((1, 100, 5_000, 20_000)), min_size=1, max_size=25)


def log_of(sizes: list[int]) -> PartitionLog:
    log = PartitionLog()
    for number, size in enumerate(sizes):
        data = sealed(BatchHeader(2 * number, 0, 0, 2, 0, 0, 1, 0, 0, -1, -1, -1, 2), bytes([number]) * size)
        log.append(data, parse_header(data))
    log.stored_up_to(log.end_offset)
    return log


def walked(log: PartitionLog, offset: int, max_bytes: int, limit: int, at_least_one: bool) -> bytes:
    found = b""
    for batch in log.batches_from(offset):
        if batch.base_offset >= limit:
            break
        if not found and len(batch.data) > max_bytes:
            return bytes(batch.data) if at_least_one else b""
        found += bytes(batch.data)[: max_bytes - len(found)]
        if len(found) >= max_bytes:
            break
    return found


@given(SIZES, st.integers(0, 52), st.integers(0, 200_000), st.integers(0, 52), st.booleans(), st.integers(0, 10))
def test_a_reading_is_what_a_walk_finds(
    sizes: list[int], offset: int, max_bytes: int, limit: int, at_least_one: bool, start: int
) -> None:
    log = log_of(sizes)
    log.start_at(start)
    read = log.read(offset, max_bytes, limit, at_least_one=at_least_one)
    expected = walked(log, offset, max_bytes, limit, at_least_one)
    assert whole(read) == expected
    assert len(read) == len(expected)
    if isinstance(read, BatchRun):
        pieces = list(read.pieces())
        assert b"".join(pieces) == expected
        assert all(len(piece) >= 16_384 for piece in pieces[:-1] if len(pieces) < 3)


def test_a_run_outlives_the_batches_of_its_log() -> None:
    log = log_of([20_000] * 10)
    read = log.read(0, 10**6, 20, at_least_one=True)
    before = bytes(read)
    log.start_at(20)
    assert isinstance(read, BatchRun)
    assert (len(log.batches), bytes(read)) == (0, before)


@pytest.mark.parametrize("batches", [1, 100_000])
def test_a_reading_of_many_batches_looks_at_few(batches: int, monkeypatch: pytest.MonkeyPatch) -> None:
    log = log_of([1])
    only = log.batches[0]
    looked_at = 0

    class Counted(type(only)):  # type: ignore[misc]
        __slots__ = ()

        @property
        def data(self) -> bytes:
            nonlocal looked_at
            looked_at += 1
            return bytes(only.data)

        @data.setter
        def data(self, _: bytes) -> None:
            pass

    header = only.header
    log.batches = [Counted(b"", header.with_position(2 * number, 0), 62 * number) for number in range(batches)]
    log.read(0, 10**9, 2 * batches, at_least_one=True)
    assert looked_at < 5
