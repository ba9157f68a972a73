"""What every store promises of the logs of data partitions."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.records.batches import BatchEntry, CompactionEntry, LogStartEntry
from rejoin.protocol.records.consumer_offsets import offsets_partition
from rejoin.protocol.types import TopicIdPartition
from rejoin.protocol.wire.record_batch import BatchHeader, sealed
from tests.coordinator.storage.conftest import made
from tests.coordinator.storage.helpers import Sqlite, Store

ORDERS = TopicIdPartition("o" * 22, 0, "orders")
OTHER = TopicIdPartition("o" * 22, 1, "orders")
AGAIN = TopicIdPartition("p" * 22, 0, "orders")
NONE, FENCED = ErrorCode.NONE, ErrorCode.NOT_LEADER_OR_FOLLOWER

WITH_DATA = ("memory", "sqlite")


@pytest.fixture(params=WITH_DATA)
async def store(request: pytest.FixtureRequest) -> Store:
    """A store of each kind, started."""
    kept = made(request.param, request)
    await kept.start()
    return kept


def batch(base_offset: int, count: int = 1, size: int = 100) -> BatchEntry:
    header = BatchHeader(base_offset, 0, 0, 2, 0, 0, count - 1, 0, 0, -1, -1, -1, count)
    return BatchEntry(base_offset, sealed(header, bytes(size - 61)))


def batches_of(entries: list[object]) -> list[object]:
    return [entry for entry in entries if not (isinstance(entry, LogStartEntry) and entry.offset == 0)]


async def contents(store: Store, partition: TopicIdPartition) -> list[object]:
    return batches_of(list(await store.read_data(partition, await store.elect(0))))


async def test_batches_come_back_as_the_same_bytes_in_order(store: Store) -> None:
    epoch = await store.elect(0)
    assert await store.append_data(ORDERS, epoch, batch(0, 3), batch(3)) is NONE
    assert await store.append_data(OTHER, epoch, batch(0, size=70_000)) is NONE
    assert await store.append_data(ORDERS, epoch, batch(4, 100)) is NONE
    assert await contents(store, ORDERS) == [batch(0, 3), batch(3), batch(4, 100)]
    assert await contents(store, OTHER) == [batch(0, size=70_000)]
    assert await contents(store, AGAIN) == [], "a topic that is made again under its name has another log"
    await store.close()


async def test_more_batches_than_one_read_takes(store: Store) -> None:
    epoch = await store.elect(0)
    written = [batch(offset) for offset in range(100)]
    assert await store.append_data(ORDERS, epoch, *written) is NONE
    assert await contents(store, ORDERS) == written
    await store.close()


async def test_a_log_that_begins_later_has_no_batch_that_ends_before(store: Store) -> None:
    epoch = await store.elect(0)
    await store.append_data(ORDERS, epoch, batch(0, 3), batch(3, 3), batch(6), LogStartEntry(4))
    assert await contents(store, ORDERS) == [LogStartEntry(4), batch(3, 3), batch(6)]
    await store.append_data(ORDERS, await store.elect(0), LogStartEntry(7))
    assert await contents(store, ORDERS) == [LogStartEntry(7)]
    await store.append_data(ORDERS, await store.elect(0), batch(7))
    assert await contents(store, ORDERS) == [LogStartEntry(7), batch(7)]
    await store.close()


async def test_compaction_replaces_what_lies_below_an_offset(store: Store) -> None:
    epoch = await store.elect(0)
    await store.append_data(ORDERS, epoch, batch(0, 3), batch(3, 3), batch(6), batch(7))
    await store.append_data(ORDERS, epoch, CompactionEntry(7, (batch(2), batch(6))))
    assert await contents(store, ORDERS) == [batch(2), batch(6), batch(7)]
    await store.close()


async def test_the_epoch_of_the_lease_fences(store: Store) -> None:
    old = await store.elect(0)
    assert await store.append_data(ORDERS, old, batch(0)) is NONE
    new = await store.elect(0)
    assert await store.append_data(ORDERS, old, batch(1)) is FENCED
    assert await store.append_data(ORDERS, new, batch(1, 2)) is NONE
    assert await contents(store, ORDERS) == [batch(0), batch(1, 2)]
    await store.close()


async def test_a_deleted_log_is_empty(store: Store) -> None:
    epoch = await store.elect(0)
    for partition in (ORDERS, OTHER, AGAIN):
        await store.append_data(partition, epoch, batch(0))
    store.data_logs.delete_data(ORDERS, epoch, offsets_partition(0))
    assert [await contents(store, each) for each in (ORDERS, OTHER, AGAIN)] == [[], [batch(0)], [batch(0)]]
    store.data_logs.keep_only([AGAIN.topic_id])
    assert [await contents(store, each) for each in (ORDERS, OTHER, AGAIN)] == [[], [], [batch(0)]]
    await store.close()


async def test_everything_is_there_after_a_restart(tmp_path: Path) -> None:
    store = Sqlite(tmp_path / "data")
    await store.start()
    await store.append_data(ORDERS, await store.elect(0), batch(0, 3), batch(3), LogStartEntry(3))
    await store.restart()
    assert await contents(store, ORDERS) == [LogStartEntry(3), batch(3)]
    await store.close()


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        ("UPDATE batches SET data = x'01' || substr(data, 2) WHERE base_offset = 3", "offset 3"),
        (
            "UPDATE batches SET data = substr(data, 1, 90) || x'ff' || substr(data, 92) WHERE base_offset = 3",
            "offset 3",
        ),
        ("UPDATE batches SET data = substr(data, 1, 60) WHERE base_offset = 3", "offset 3"),
        ("UPDATE batches SET data = 7 WHERE base_offset = 3", "offset 3"),
        ("DELETE FROM batches WHERE base_offset = 3", "there are 2 batches, expected 3"),
    ],
)
async def test_what_is_damaged_or_lost_is_not_served(tmp_path: Path, damage: str, said: str) -> None:
    store = Sqlite(tmp_path / "data")
    await store.start()
    await store.append_data(ORDERS, await store.elect(0), batch(0, 3), batch(3), batch(4))
    await store.close()
    with sqlite3.connect(tmp_path / "data" / "coordinator.db") as connection:
        connection.execute(damage)
    connection.close()
    await store.start()
    try:
        epoch = await store.elect(0)
        store.data_logs.read_data(ORDERS, epoch, lambda entries, end: pytest.fail(f"{entries} were read"))
        await store.settled(lambda: bool(store.watching.damages))
        assert said in store.watching.damages[0]
    finally:
        await store.close()
