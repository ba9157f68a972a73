"""What every store promises of the logs of data partitions."""

from __future__ import annotations

import asyncio
import random
import shutil
import sqlite3
from collections.abc import Iterator, MutableMapping
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from rejoin.coordinator.storage.base import StoreProblem
from rejoin.coordinator.storage.codec import Unreadable
from rejoin.coordinator.storage.sqlite import batch_tail
from rejoin.coordinator.storage.sqlite.batch_reader import SqliteBatchReader, batch_findings
from rejoin.coordinator.storage.sqlite.database import connect
from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.records.batches import CompactionEntry, LogStartEntry
from rejoin.protocol.records.consumer_offsets import offsets_partition
from rejoin.protocol.types import TopicIdPartition, TopicPartition
from tests.coordinator.storage.helpers import PATIENCE, Sqlite, Store, batch, offset

ORDERS = TopicIdPartition("o" * 22, 0, "orders")
OTHER = TopicIdPartition("o" * 22, 1, "orders")
AGAIN = TopicIdPartition("p" * 22, 0, "orders")
NONE, FENCED = ErrorCode.NONE, ErrorCode.NOT_LEADER_OR_FOLLOWER


async def contents(store: Store, partition: TopicIdPartition) -> list[object]:
    """What a log has: its batches in order, then its beginning, wherever that stands among them."""
    found = await store.read_data(partition, await store.elect(0))
    starts: list[object] = [entry for entry in found if isinstance(entry, LogStartEntry) and entry.offset]
    return [entry for entry in found if not isinstance(entry, LogStartEntry)] + starts[-1:]


async def test_batches_come_back_as_the_same_bytes_in_order(store: Store) -> None:
    epoch = await store.elect(0)
    assert await store.append_data(ORDERS, epoch, batch(0, 3), batch(3)) is NONE
    assert await store.append_data(OTHER, epoch, batch(0, size=70_000)) is NONE
    assert await store.append_data(ORDERS, epoch, batch(4, 100)) is NONE
    assert await contents(store, ORDERS) == [batch(0, 3), batch(3), batch(4, 100)]
    assert await contents(store, OTHER) == [batch(0, size=70_000)]
    assert await contents(store, AGAIN) == [], "a topic that is made again under its name has another log"


async def test_more_batches_than_one_read_takes(store: Store) -> None:
    epoch = await store.elect(0)
    written = [batch(offset) for offset in range(100)]
    assert await store.append_data(ORDERS, epoch, *written) is NONE
    assert await contents(store, ORDERS) == written


async def test_a_log_that_begins_later_has_no_batch_that_ends_before(store: Store) -> None:
    epoch = await store.elect(0)
    await store.append_data(ORDERS, epoch, batch(0, 3), batch(3, 3), batch(6), LogStartEntry(4))
    assert await contents(store, ORDERS) == [batch(3, 3), batch(6), LogStartEntry(4)]
    await store.append_data(ORDERS, await store.elect(0), LogStartEntry(7))
    assert await contents(store, ORDERS) == [LogStartEntry(7)]
    await store.append_data(ORDERS, await store.elect(0), batch(7))
    assert await contents(store, ORDERS) == [batch(7), LogStartEntry(7)]


async def test_compaction_replaces_what_lies_below_an_offset(store: Store) -> None:
    epoch = await store.elect(0)
    await store.append_data(ORDERS, epoch, batch(0, 3), batch(3, 3), batch(6), batch(7))
    await store.append_data(ORDERS, epoch, CompactionEntry(7, (batch(2), batch(6))))
    assert await contents(store, ORDERS) == [batch(2), batch(6), batch(7)]


async def test_the_epoch_of_the_lease_fences(store: Store) -> None:
    old = await store.elect(0)
    assert await store.append_data(ORDERS, old, batch(0)) is NONE
    new = await store.elect(0)
    assert await store.append_data(ORDERS, old, batch(1)) is FENCED
    assert await store.append_data(ORDERS, new, batch(1, 2)) is NONE
    assert await contents(store, ORDERS) == [batch(0), batch(1, 2)]


async def test_a_deleted_log_is_empty(store: Store) -> None:
    epoch = await store.elect(0)
    for partition in (ORDERS, OTHER, AGAIN):
        await store.append_data(partition, epoch, batch(0))
    store.data_logs.delete_data(ORDERS, epoch, offsets_partition(0))
    await emptied(store, ORDERS)
    assert [await contents(store, each) for each in (OTHER, AGAIN)] == [[batch(0)], [batch(0)]]
    store.data_logs.keep_only([AGAIN.topic_id])
    await emptied(store, OTHER)
    assert await contents(store, AGAIN) == [batch(0)]


async def emptied(store: Store, partition: TopicIdPartition) -> None:
    """Wait until a log is deleted."""
    async with asyncio.timeout(PATIENCE):
        while await contents(store, partition):  # noqa: ASYNC110
            await asyncio.sleep(0.01)


async def test_everything_is_there_after_a_restart(durable: Store) -> None:
    await durable.append_data(ORDERS, await durable.elect(0), batch(0, 3), batch(3), LogStartEntry(3))
    await durable.restart()
    assert await contents(durable, ORDERS) == [batch(3), LogStartEntry(3)]


async def test_ends_of_appends_that_were_written_together_are_reported_together(durable: Store) -> None:
    epoch = await durable.elect(0)
    reported = durable.watching.reported
    reported.clear()
    last: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    partitions = [TopicIdPartition("o" * 22, number, "orders") for number in range(10)]

    def ended(number: int, error: ErrorCode) -> None:
        assert error is NONE
        reported[-1].append(number)
        if number == 9:
            last.set_result(None)

    for partition in partitions:
        stored = partial(ended, partition.partition)
        durable.data_logs.append_data(partition, epoch, offsets_partition(0), (batch(0),), stored)
    await asyncio.wait_for(last, PATIENCE)
    assert reported == [list(range(10))]


async def test_appends_of_data_and_of_offsets_end_in_order(store: Store) -> None:
    epoch = await store.elect(0)
    ends = [
        end
        for number in range(50)
        for end in (store.begin(0, epoch, offset(number)), store.begin_data(ORDERS, epoch, batch(number)))
    ]
    assert set(await asyncio.gather(*ends)) == {NONE}
    assert await contents(store, ORDERS) == [batch(number) for number in range(50)]
    assert await store.read(0) == [offset(number) for number in range(50)]


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        ("UPDATE batches SET data = x'01' || substr(data, 2) WHERE base_offset = 3", "offset 3"),
        (
            "UPDATE batches SET data = substr(data, 1, 90) || x'ff' || substr(data, 92) WHERE base_offset = 3",
            "offset 3",
        ),
        (
            "UPDATE batches SET data = substr(data, 1, 16) || x'03' || substr(data, 18) WHERE base_offset = 3",
            "offset 3",
        ),
        ("UPDATE batches SET data = substr(data, 1, 60) WHERE base_offset = 3", "offset 3"),
        ("UPDATE batches SET data = 7 WHERE base_offset = 3", "offset 3"),
        ("DELETE FROM batches WHERE base_offset = 3", "there are 2 batches, expected 3"),
    ],
)
async def test_what_is_damaged_or_lost_is_not_served(
    tmp_path: Path, damage: str, said: str, log_lines: list[MutableMapping[str, Any]]
) -> None:
    store = Sqlite(tmp_path / "data")
    await store.start()
    await store.append_data(ORDERS, await store.elect(0), batch(0, 3), batch(3), batch(4))
    await store.close()
    with sqlite3.connect(tmp_path / "data" / "coordinator.db") as connection:
        connection.execute(damage)
    connection.close()
    await store.start()
    try:
        epoch, damaged = await store.elect(0), asyncio.Event()
        store.data_logs.read_data(ORDERS, epoch, lambda entries, end: pytest.fail(f"{entries} were read"), damaged.set)
        await asyncio.wait_for(damaged.wait(), PATIENCE)
        assert said in store.watching.damages[0]
    finally:
        await store.close()
    (line,) = [each for each in log_lines if each["event"] == "partition_damaged"]
    assert (line["log_level"], line["partition"]) == ("error", f"{ORDERS.topic_id}:orders-0")
    assert line["advice"] == (
        f"all other partitions are served; put a complete copy of {store.folder} back while no coordinator uses it, "
        "or delete the topic orders and create it again; "
        f"rejoin log verify --data {store.folder} lists everything that is damaged"
    )


def overwritten(path: Path) -> Iterator[tuple[int, str]]:
    """Overwrite each page of the file in turn, except those that list its tables: a start refuses such a file."""
    whole = path.read_bytes()
    size = int.from_bytes(whole[16:18], "big")
    draw = random.Random(1)
    with closing(connect(path, read_only=True)) as connection:
        tables = connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()
    for at in range(0, len(whole), size):
        few = bytearray(whole[at : at + size])
        for _ in range(100):
            few[draw.randrange(size)] = draw.randrange(256)
        for kind, page in (("zeros", bytes(size)), ("noise", draw.randbytes(size)), ("flips", bytes(few))):
            path.write_bytes(whole[:at] + page + whole[at + size :])
            try:
                with closing(connect(path, read_only=True)) as connection:
                    has_tables = connection.execute("SELECT count(*) FROM sqlite_schema").fetchone() == tables
            except (sqlite3.Error, UnicodeDecodeError):
                has_tables = False
            if has_tables:
                yield at // size, kind


def read_all(connection: sqlite3.Connection, partition: TopicIdPartition) -> list[object] | Unreadable:
    """The entries of a partition, or its damage. Anything else is raised."""
    reader = SqliteBatchReader(partition)
    entries: list[object] = []
    end = False
    try:
        while not end:
            found, end = reader.next_piece(connection)
            entries += found
    except Unreadable as damage:
        return damage
    return entries


async def test_whatever_page_is_damaged_a_partition_is_read_whole_or_known_as_damaged(tmp_path: Path) -> None:
    store = Sqlite(tmp_path / "data")
    await store.start()
    epoch = await store.elect(0)
    written = {
        partition: [batch(offset, size=9_000 if offset % 8 == number else 300) for offset in range(12)]
        for number, partition in enumerate((ORDERS, OTHER))
    }
    for pair in zip(*written.values(), strict=True):
        for partition, each in zip(written, pair, strict=True):
            assert await store.append_data(partition, epoch, each) is NONE
    await store.close()
    path = store.folder / "coordinator.db"
    damaged: set[tuple[str, TopicIdPartition]] = set()
    for page, kind in overwritten(path):
        with closing(connect(path, read_only=True)) as connection:
            found = {partition: read_all(connection, partition) for partition in written}
            defects = list(batch_findings(connection, {ORDERS.topic_id: "orders"}))
        for partition, entries in found.items():
            # A bit more or less in the index by topic id, and a partition looks like one that nothing was written to.
            expected = [written[partition], []] if kind == "flips" else [written[partition]]
            assert isinstance(entries, Unreadable) or entries in expected, (page, kind)
        lost = {each for each, entries in found.items() if isinstance(entries, Unreadable)}
        damaged |= {(kind, each) for each in lost}
        # Unless the list of partitions is what cannot be read, each of them is in it.
        named = {each.partition for each in defects}
        assert None in named or {TopicPartition("orders", each.partition) for each in lost} <= named, (page, kind)
    assert damaged == {(kind, each) for kind in ("zeros", "noise", "flips") for each in written}


def killed(store: Sqlite, folder: Path) -> Sqlite:
    """What a store would find that starts now, had this one been killed."""
    shutil.copytree(store.folder, folder)
    return Sqlite(folder)


async def test_batches_are_read_in_order_wherever_they_lie(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Few at a time are moved out of the tail, and large batches never lie there."""
    monkeypatch.setattr(batch_tail, "MOVED_BATCHES", 5)
    store = Sqlite(tmp_path / "data")
    await store.start()
    epoch = await store.elect(0)
    written = [batch(offset, size=20_000 if offset % 4 == 1 else 100) for offset in range(47)]
    for each in written:
        ends = [store.append_data(partition, epoch, each) for partition in (ORDERS, OTHER)]
        assert await asyncio.gather(*ends) == [NONE, NONE]
    assert await contents(store, ORDERS) == await contents(store, OTHER) == written
    await store.append_data(OTHER, await store.elect(0), LogStartEntry(46))
    left_behind = killed(store, tmp_path / "killed")
    await store.restart()
    await left_behind.start()
    for opened in (store, left_behind):
        assert await contents(opened, ORDERS) == written
        assert await contents(opened, OTHER) == [written[-1], LogStartEntry(46)]
        await opened.close()


async def test_a_batch_that_is_missing_after_a_kill_is_noticed(tmp_path: Path) -> None:
    store = Sqlite(tmp_path / "data")
    await store.start()
    assert await store.append_data(ORDERS, await store.elect(0), batch(0, 3), batch(3), batch(4)) is NONE
    left_behind = killed(store, tmp_path / "killed")
    await store.close()
    with sqlite3.connect(left_behind.folder / "coordinator.db") as connection:
        connection.execute("DELETE FROM batch_tail WHERE base_offset = 3")
    connection.close()
    with pytest.raises(StoreProblem, match=r"batch_tail: expected 3 batches, found 2\. Put a complete copy"):
        await left_behind.start()
