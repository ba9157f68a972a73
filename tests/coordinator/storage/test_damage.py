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
from rejoin.coordinator.service.app import App
from rejoin.coordinator.service.clock import Clock
from rejoin.coordinator.service.http.cluster_views import readiness
from rejoin.coordinator.service.options import InitialTopic, Options
from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.messages.records.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from rejoin.protocol.messages.topics.create_topics import CreatableTopic, CreateTopicsRequest
from rejoin.protocol.messages.topics.delete_topics import DeleteTopicsRequest
from rejoin.protocol.messages.transactions.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from rejoin.protocol.records.consumer_offsets import offsets_partition
from rejoin.protocol.types import TopicPartition
from rejoin.protocol.wire.record_batch import BatchHeader, sealed
from rejoin.protocol.wire.records import DefaultRecord, write_records
from tests.coordinator.commands.log.logs import asked
from tests.coordinator.core.transactions.producer import batch
from tests.coordinator.service.helpers import ManualClock
from tests.coordinator.storage.helpers import PATIENCE, Postgres, Sqlite, Store, offset

PAGE = 4_096
NOT_LEADER = ErrorCode.NOT_LEADER_OR_FOLLOWER
BATCH = sealed(
    BatchHeader(0, 0, -1, 2, 0, 0, 0, 0, 0, -1, -1, -1, 1), write_records([DefaultRecord(0, 0, None, bytes(50))])
)


def zero_page_with(database: Path, content: bytes) -> None:
    """Overwrite the page that has this content in it."""
    at = database.read_bytes().index(content)
    with database.open("r+b") as file:
        file.seek(at // PAGE * PAGE)
        file.write(bytes(PAGE))


def node(folder: Path, clock: Clock | None = None) -> App:
    return App(Options(clock=clock or ManualClock(), data=folder, topics=(InitialTopic("orders", 2),), listen=False))


async def ask(app: App, request: Any, version: int) -> Any:
    return await app.runtime.submit(request, Context(api_version=version)).answer()


async def produce(app: App, partition: int, records: bytes = BATCH, transactional_id: str | None = None) -> ErrorCode:
    data = PartitionProduceData(index=partition, records=records)
    topic = TopicProduceData(name="orders", partition_data=(data,))
    request = ProduceRequest(transactional_id=transactional_id, acks=-1, timeout_ms=1_000, topic_data=(topic,))
    answer = await ask(app, request, 12)
    error: ErrorCode = answer.responses[0].partition_responses[0].error_code
    return error


async def produced(app: App, *partitions: int) -> None:
    """Produce to each partition, again and again while it is still read."""
    async with asyncio.timeout(PATIENCE):
        for partition in partitions:
            while (error := await produce(app, partition)) is NOT_LEADER:  # noqa: ASYNC110
                await asyncio.sleep(0.01)
            assert error is ErrorCode.NONE


async def init(app: App) -> InitProducerIdResponse:
    request = InitProducerIdRequest(
        transactional_id="tx", transaction_timeout_ms=60_000, producer_id=-1, producer_epoch=-1
    )
    answer: InitProducerIdResponse = await ask(app, request, 5)
    return answer


async def test_a_transaction_with_records_in_a_damaged_page_can_be_left_behind(
    tmp_path: Path, log_lines: list[MutableMapping[str, Any]]
) -> None:
    async with node(tmp_path) as app:
        await produced(app, 0, 1)
        producer = await init(app)
        for number in range(20):
            records = batch(producer.producer_id, producer.producer_epoch, number, value=b"%03d" % number * 200)
            assert await produce(app, 0, records, "tx") is ErrorCode.NONE
    zero_page_with(tmp_path / "coordinator.db", b"010" * 200)
    clock = ManualClock()
    async with node(tmp_path, clock) as app:
        await produced(app, 1)
        async with asyncio.timeout(PATIENCE):
            while not app.metrics.store.partitions_damaged:  # noqa: ASYNC110
                await asyncio.sleep(0.01)
            while (error := (await init(app)).error_code) is not ErrorCode.NONE:
                assert error in (ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.CONCURRENT_TRANSACTIONS)
                clock.advance(100)
                await asyncio.sleep(0.01)
        assert app.metrics.store.partitions_damaged == {TopicPartition("orders", 0): 1}
        (line,) = [each for each in log_lines if each["event"] == "partition_damaged"]
        assert line["problem"] == "orders-0: SQLite cannot read its pages: database disk image is malformed"
        assert not [each for each in log_lines if each["event"] == "read_failed"]
        is_ready, shown = readiness(app.runtime)
        assert (is_ready, shown["damagedPartitions"]) == (True, ["orders-0"])
        assert await produce(app, 0) is NOT_LEADER
        await ask(app, DeleteTopicsRequest(topic_names=("orders",), timeout_ms=1_000), 5)
        assert readiness(app.runtime)[1]["damagedPartitions"] == []


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
        zero_page_with(tmp_path / "coordinator.db", b'"offset":250')
        epoch = await store.elect(0)
        store.log.read(offsets_partition(0), epoch, lambda records, end: pytest.fail(f"{records} were read"))
        await store.until(lambda: bool(store.watching.damages))
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
    await durable.until(lambda: bool(durable.watching.damages))
    assert await durable.read(1) == [offset(1)]
    (line,) = [each for each in log_lines if each["event"] == "partition_damaged"]
    assert line["advice"] == (
        f"the groups of all other partitions are served; {restore} uses it, or save what can still be read of groups "
        f"and offsets with rejoin log export {option} --salvage; rejoin log verify {option} lists everything that is "
        "damaged"
    )
