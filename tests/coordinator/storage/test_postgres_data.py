"""Data partitions in PostgreSQL: nodes beside each other, connections that break, and damage."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, MutableMapping
from typing import Any
from urllib.parse import urlsplit

import pytest

from rejoin.coordinator.storage.postgres import batch_reader
from rejoin.coordinator.storage.topics_log.base import as_text
from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.records.batches import CompactionEntry, DataEntry, LogStartEntry
from rejoin.protocol.records.topics import RemoveTopicData, RemoveTopicRecord, TopicData, TopicRecord
from rejoin.protocol.types import TopicIdPartition
from tests.coordinator.storage.helpers import PATIENCE, Postgres, batch, offset
from tests.coordinator.storage.proxy import Cut, Wire

ORDERS = TopicIdPartition("o" * 22, 0, "orders")
NONE, FENCED = ErrorCode.NONE, ErrorCode.NOT_LEADER_OR_FOLLOWER


@pytest.fixture
async def one(postgres: str) -> AsyncIterator[Postgres]:
    store = Postgres(postgres, 1)
    await store.start()
    yield store
    await store.close()


@pytest.fixture
async def two(postgres: str) -> AsyncIterator[Postgres]:
    store = Postgres(postgres, 2)
    await store.start()
    yield store
    await store.close()


async def test_a_new_leader_reads_everything_and_the_old_one_writes_nothing_more(one: Postgres, two: Postgres) -> None:
    epoch = await one.elect(0)
    assert await one.append_data(ORDERS, epoch, batch(0, 3)) is NONE
    newer = await two.elect(0)
    assert await two.read_data(ORDERS, newer) == [batch(0, 3)]
    refused: list[DataEntry] = [batch(3), LogStartEntry(2), CompactionEntry(3, (batch(2),))]
    assert [await one.append_data(ORDERS, epoch, entry) for entry in refused] == [FENCED] * 3
    assert await one.append_data(ORDERS, newer, batch(3)) is FENCED, "the epoch is another node's"
    assert await two.append_data(ORDERS, newer, batch(3)) is NONE
    assert await two.read_data(ORDERS, newer) == [batch(0, 3), batch(3)]
    again = await one.elect(0)
    refusals = len(one.watching.fenced_at)
    assert await one.read_data(ORDERS, again) == [batch(0, 3), batch(3)]
    assert len(one.watching.fenced_at) == refusals, "to read is not refused"


@pytest.mark.parametrize("cut", [Cut.REQUEST, Cut.ANSWER])
async def test_an_append_whose_answer_is_lost_is_stored_once(postgres: str, cut: Cut) -> None:
    async with Wire(urlsplit(postgres).port or 0) as wire:
        store = Postgres(postgres.replace(f":{urlsplit(postgres).port}/", f":{wire.port}/"), 1)
        await store.start()
        epoch = await store.elect(0)
        assert await store.append_data(ORDERS, epoch, batch(0)) is NONE
        for number in range(1, 9):
            # Some go with a change of the log's start, which takes a transaction of several statements.
            entries: list[DataEntry] = [batch(number)]
            entries += [LogStartEntry(number // 2)] if number % 2 else []
            wire.cut = cut
            ends = [store.begin(0, epoch, offset(number)), store.begin_data(ORDERS, epoch, *entries)]
            assert await asyncio.wait_for(asyncio.gather(*ends), PATIENCE) == [NONE, NONE]
        assert wire.cuts == 8
        assert await store.read_data(ORDERS, epoch) == [*(batch(number) for number in range(3, 9)), LogStartEntry(3)]
        assert await store.read(0, epoch) == [offset(number) for number in range(1, 9)]
        await store.close()


async def test_a_log_is_read_in_pieces_of_so_many_bytes(one: Postgres, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batch_reader, "PIECE_BYTES", 10_000)
    epoch = await one.elect(0)
    sizes = [4_000, 4_000, 4_000, 50_000, 100, 100, 100]
    written = [batch(number, size=size) for number, size in enumerate(sizes)]
    assert await one.append_data(ORDERS, epoch, *written) is NONE
    pieces = await one.data_pieces(ORDERS, epoch)
    assert [entry for piece in pieces for entry in piece] == written
    assert [len(piece) for piece in pieces] == [3, 1, 3]
    monkeypatch.setattr(batch_reader, "PIECE_BATCHES", 3)
    assert [len(piece) for piece in await one.data_pieces(ORDERS, epoch)] == [3, 1, 3, 0]


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        ("UPDATE batches SET data = set_byte(data, 0, 1) WHERE base_offset = 3", "offset 3"),
        ("UPDATE batches SET data = set_byte(data, 90, 255) WHERE base_offset = 3", "offset 3"),
        ("UPDATE batches SET data = substr(data, 1, 60) WHERE base_offset = 3", "offset 3"),
        ("DELETE FROM batches WHERE base_offset = 3", "there are 2 batches, expected 3"),
        ("DELETE FROM batches WHERE base_offset = 4", "there are 2 batches, expected 3"),
        ("DELETE FROM batches", "there are 0 batches, expected 3"),
        ("DELETE FROM data_logs", "there are 3 batches, expected 0"),
    ],
)
async def test_what_is_damaged_or_lost_is_not_served(
    log_lines: list[MutableMapping[str, Any]], one: Postgres, damage: str, said: str
) -> None:
    epoch = await one.elect(0)
    await one.append_data(ORDERS, epoch, batch(0, 3), batch(3), batch(4))
    async with one.database.acquire() as connection:
        await connection.execute(damage)
    damaged = asyncio.Event()
    one.data_logs.read_data(ORDERS, epoch, lambda entries, end: pytest.fail(f"{entries} were read"), damaged.set)
    await asyncio.wait_for(damaged.wait(), PATIENCE)
    assert said in one.watching.damages[0]
    (line,) = [each for each in log_lines if each["event"] == "partition_damaged"]
    assert line["advice"] == (
        "all other partitions are served; restore the database from a backup while no node uses it, "
        "or delete the topic orders and create it again; "
        f"rejoin log verify --store {one.database.shown} lists everything that is damaged"
    )


async def test_a_starting_node_keeps_the_logs_of_topics_that_it_does_not_know_yet(one: Postgres) -> None:
    epoch = await one.elect(0)
    newer, removed, unknown = (TopicIdPartition(letter * 22, 0, "t") for letter in "nru")
    for partition in (ORDERS, newer, removed, unknown):
        await one.append_data(partition, epoch, batch(0))
    topics = (
        TopicRecord(data=TopicData(name=str(number), topic_id=each.topic_id, records_per_second=None))
        for number, each in enumerate((newer, removed))
    )
    async with one.database.acquire() as connection:
        insert = "INSERT INTO topics_log VALUES ($1, $2::jsonb)"
        await connection.execute(insert, 1, as_text(tuple(topics)))
        gone = RemoveTopicRecord(data=RemoveTopicData(topic_id=removed.topic_id))
        await connection.execute(insert, 2, as_text((gone,)))
    one.data_logs.keep_only([ORDERS.topic_id])
    async with asyncio.timeout(PATIENCE):
        while await one.read_data(removed, epoch) or await one.read_data(unknown, epoch):  # noqa: ASYNC110
            await asyncio.sleep(0.01)
    assert await one.read_data(ORDERS, epoch) == await one.read_data(newer, epoch) == [batch(0)]
