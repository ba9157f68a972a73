"""Damage that is met when a partition is read: the partition is left out, and everything else is served."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import MutableMapping
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from rejoin.coordinator.core.inputs import Context
from rejoin.coordinator.service.app import App, InitialTopic, Options
from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.messages.records.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from rejoin.protocol.messages.topics.create_topics import CreatableTopic, CreateTopicsRequest
from rejoin.protocol.messages.topics.delete_topics import DeleteTopicsRequest
from rejoin.protocol.records.consumer_offsets import offsets_partition
from rejoin.protocol.wire.record_batch import BatchHeader, sealed
from rejoin.protocol.wire.records import DefaultRecord, write_records
from tests.coordinator.commands.log.logs import asked
from tests.coordinator.service.helpers import ManualClock
from tests.coordinator.storage.helpers import PATIENCE, Postgres, Sqlite, Store, offset

PAGE = 4_096
NOT_LEADER = ErrorCode.NOT_LEADER_OR_FOLLOWER
BATCH = sealed(
    BatchHeader(0, 0, -1, 2, 0, 0, 0, 0, 0, -1, -1, -1, 1), write_records([DefaultRecord(0, 0, None, bytes(50))])
)


def node(folder: Path) -> App:
    return App(Options(clock=ManualClock(), data=folder, topics=(InitialTopic("orders", 2),), listen=False))


async def ask(app: App, request: Any, version: int) -> Any:
    return await app.runtime.submit(request, Context(api_version=version)).answer()


async def produce(app: App, partition: int) -> ErrorCode:
    data = PartitionProduceData(index=partition, records=BATCH)
    topic = TopicProduceData(name="orders", partition_data=(data,))
    answer = await ask(app, ProduceRequest(acks=-1, timeout_ms=1_000, topic_data=(topic,)), 9)
    error: ErrorCode = answer.responses[0].partition_responses[0].error_code
    return error


async def produced(app: App, *partitions: int) -> None:
    """Produce to each partition, again and again while it is still read."""
    async with asyncio.timeout(PATIENCE):
        for partition in partitions:
            while (error := await produce(app, partition)) is NOT_LEADER:  # noqa: ASYNC110
                await asyncio.sleep(0.01)
            assert error is ErrorCode.NONE


async def test_its_partition_is_left_out_until_the_topic_is_created_again(
    tmp_path: Path, log_lines: list[MutableMapping[str, Any]]
) -> None:
    async with node(tmp_path) as app:
        await produced(app, 0, 1)
    with sqlite3.connect(tmp_path / "coordinator.db") as connection:
        damage = "UPDATE batches SET data = substr(data, 1, 70) || x'ff' || substr(data, 72) WHERE partition_id = 1"
        assert connection.execute(damage).rowcount == 1
    connection.close()
    async with node(tmp_path) as app:
        await produced(app, 1)
        async with asyncio.timeout(PATIENCE):
            while not (lines := [each for each in log_lines if each["event"] == "partition_damaged"]):  # noqa: ASYNC110
                await asyncio.sleep(0.01)
        (line,) = lines
        assert line["problem"] == "orders-0: the batch at offset 0 is not the one that was written"
        assert "all other partitions are served" in line["advice"]
        assert "or delete the topic orders and create it again" in line["advice"]
        assert await produce(app, 0) is NOT_LEADER
        await ask(app, DeleteTopicsRequest(topic_names=("orders",), timeout_ms=1_000), 5)
        again = CreatableTopic(name="orders", num_partitions=2, replication_factor=1, assignments=(), configs=())
        await ask(app, CreateTopicsRequest(topics=(again,)), 4)
        await produced(app, 0, 1)


async def test_a_damaged_page_takes_only_the_groups_away_whose_records_are_in_it(
    tmp_path: Path, log_lines: list[MutableMapping[str, Any]]
) -> None:
    store = Sqlite(tmp_path)
    await store.start()
    try:
        await store.append(1, await store.elect(1), offset(1))
        await store.append(0, await store.elect(0), *[offset(number) for number in range(500)])
        await store.restart()
        with closing(sqlite3.connect(tmp_path / "coordinator.db")) as connection:
            assert connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0] == 0
        content = (tmp_path / "coordinator.db").read_bytes()
        page = content.index(b'"offset":250') // PAGE * PAGE
        with (tmp_path / "coordinator.db").open("r+b") as file:
            file.seek(page)
            file.write(bytes(PAGE))
        epoch = await store.elect(0)
        store.log.read(offsets_partition(0), epoch, lambda records, end: pytest.fail(f"{records} were read"))
        await store.settled(lambda: bool(store.watching.damages))
        assert await store.read(1) == [offset(1)]
    finally:
        await store.close()
    (line,) = [each for each in log_lines if each["event"] == "partition_damaged"]
    assert line["problem"] == "__consumer_offsets-0: SQLite cannot read its pages: database disk image is malformed"


async def test_a_damaged_record_takes_only_the_groups_of_its_partition_away(
    log_lines: list[MutableMapping[str, Any]], durable: Store
) -> None:
    """A start refuses a directory with such a record; this one is changed while the node runs."""
    for partition in range(2):
        assert await durable.append(partition, await durable.elect(partition), offset(1)) is ErrorCode.NONE
    damage = "UPDATE log SET value = value || ' ' WHERE position = 1"
    if isinstance(durable, Sqlite):
        with sqlite3.connect(durable.folder / "coordinator.db") as connection:
            assert connection.execute(damage).rowcount == 1
        connection.close()
        option, restore = (
            f"--data {durable.folder}",
            f"put a complete copy of {durable.folder} back while no coordinator",
        )
    else:
        assert isinstance(durable, Postgres)
        await asked(durable.database.shown, f"{damage} AND partition = 0")
        option, restore = f"--store {durable.database.shown}", "restore the database from a backup while no node"
    epoch = await durable.elect(0)
    durable.log.read(offsets_partition(0), epoch, lambda records, end: pytest.fail(f"{records} were read"))
    await durable.settled(lambda: bool(durable.watching.damages))
    assert await durable.read(1) == [offset(1)]
    (line,) = [each for each in log_lines if each["event"] == "partition_damaged"]
    assert line["advice"] == (
        f"the groups of all other partitions are served; {restore} uses it, or save what can still be read of groups "
        f"and offsets with rejoin log export {option} --salvage; rejoin log verify {option} lists everything that is "
        "damaged"
    )
