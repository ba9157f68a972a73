"""The offsets log that fails on command; and time."""

from __future__ import annotations

import asyncio

from rejoin.coordinator.service.clock import SystemClock
from rejoin.coordinator.storage.memory import MemoryLog
from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.records.consumer_offsets import OffsetCommitValue, offset_record, offsets_partition
from rejoin.protocol.records.keyed import Record
from rejoin.protocol.types import TopicPartition
from tests.coordinator.faulty_log import FaultyLog

PARTITION = offsets_partition(0)


def offset(number: int, group: str = "g", partition: int = 0, producer_id: int = -1) -> Record:
    return offset_record(group, "orders", partition, OffsetCommitValue(offset=number, commit_timestamp=1), producer_id)


def read(log: MemoryLog | FaultyLog, partition: TopicPartition = PARTITION) -> list[Record]:
    found: list[Record] = []
    ends: list[bool] = []

    def piece(records: tuple[Record, ...], end: bool) -> None:
        found.extend(records)
        ends.append(end)

    log.read(partition, 0, piece)
    assert ends[-1:] == [True]
    return found


def test_a_faulty_log_holds_and_lets_go_in_order() -> None:
    log = FaultyLog(MemoryLog())
    ends: list[tuple[str, int]] = []
    epoch = log.elect(PARTITION)
    log.hold_appends = log.hold_reads = True
    log.append(PARTITION, epoch, (offset(1),), lambda error: ends.append(("append", error)))
    log.read(PARTITION, epoch, lambda records, end: ends.append(("read", len(records))))
    assert (ends, log.held) == ([], 2)
    log.release()
    assert ends == [("append", ErrorCode.NONE), ("read", 1)]
    assert log.held == 0


def test_a_faulty_log_fails_what_carries_records() -> None:
    log = FaultyLog(MemoryLog())
    ends: list[ErrorCode] = []
    epoch = log.elect(PARTITION)
    log.fail_appends = ErrorCode.KAFKA_STORAGE_ERROR
    log.append(PARTITION, epoch, (offset(1),), ends.append)
    log.append(PARTITION, epoch, (), ends.append)
    assert ends == [ErrorCode.KAFKA_STORAGE_ERROR, ErrorCode.NONE]
    assert read(log) == []


async def test_the_machines_clock_rings_after_its_time_and_not_before_it_returns() -> None:
    clock = SystemClock(asyncio.get_running_loop())
    rang: list[int] = []
    done = asyncio.Event()

    def ring() -> None:
        rang.append(clock.now())
        done.set()

    asked = clock.now()
    clock.call_at(asked - 5, ring)
    clock.call_at(asked + 5, lambda: None).cancel()
    assert rang == []
    async with asyncio.timeout(60):
        await done.wait()
    assert rang[0] >= asked
