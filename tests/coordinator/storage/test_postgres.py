"""The log of several nodes: fencing, take-overs, and connections that break at the worst moment."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Sequence
from functools import partial
from typing import Any
from urllib.parse import urlsplit

import asyncpg
import pytest

from rejoin.coordinator.storage.base import StoreProblem
from rejoin.coordinator.storage.compaction import (
    doomed,
    doomed_query,
    doomed_with_transactions_query,
    has_transactions_query,
)
from rejoin.coordinator.storage.postgres import compaction, statements
from rejoin.coordinator.storage.postgres.database import Database
from rejoin.coordinator.storage.postgres.log import PostgresLog
from rejoin.coordinator.storage.postgres.schema import STEPS
from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.records.consumer_offsets import OFFSETS_TOPIC, offsets_partition
from rejoin.protocol.records.keyed import Record
from rejoin.protocol.types import TopicPartition
from tests.coordinator.storage.helpers import PATIENCE, Postgres, offset
from tests.coordinator.storage.histories import history
from tests.coordinator.storage.proxy import Cut, Wire
from tests.postgres import PostgresServer

NONE, FENCED, BROKEN = ErrorCode.NONE, ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.KAFKA_STORAGE_ERROR


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


def through(url: str, wire: Wire) -> Postgres:
    """A store that reaches its database over a wire."""
    return Postgres(url.replace(f":{urlsplit(url).port}/", f":{wire.port}/"), 1)


# --- fencing


async def test_only_the_leaders_records_are_written(one: Postgres, two: Postgres) -> None:
    first = await one.elect(0)
    assert await one.append(0, first, offset(1)) is NONE
    second = await two.elect(0)
    assert await one.append(0, first, offset(2)) is FENCED
    assert await one.append(0, first) is FENCED, "nor can it say that all is stored"
    assert await one.append(0, second, offset(3)) is FENCED, "the epoch is another node's"
    assert await two.append(0, second, offset(4)) is NONE
    assert one.watching.fenced_at == [0, 0, 0]
    assert await two.read(0, second) == [offset(1), offset(4)]


async def test_no_node_writes_to_a_partition_without_a_lease(one: Postgres) -> None:
    assert await one.append(7, 0, offset(1)) is FENCED
    assert await one.read(7) == []


async def test_a_lease_that_was_given_back_has_no_owner(one: Postgres, two: Postgres) -> None:
    epoch = await one.elect(0)
    async with two.database.acquire() as connection:
        await connection.execute("UPDATE leases SET node_id = NULL WHERE partition = 0")
    assert await one.append(0, epoch, offset(1)) is FENCED


async def test_a_take_over_under_way_decides(one: Postgres, two: Postgres) -> None:
    """An append that meets a take-over waits for it, and what else goes with it is written."""
    mine, other = await one.elect(0), await one.elect(1)
    await one.append(0, mine, offset(0))
    async with two.database.acquire() as connection:
        taking = connection.transaction()
        await taking.start()
        await connection.execute("UPDATE leases SET epoch = epoch + 1, node_id = 2 WHERE partition = 0")
        ends = [one.begin(0, mine, offset(1)), one.begin(1, other, offset(2)), one.begin(0, mine)]
        async with two.database.acquire() as looking:
            await waiting_for_a_lock(looking)
        assert not any(end.done() for end in ends)
        await taking.commit()
    assert await asyncio.gather(*ends) == [FENCED, NONE, FENCED]
    assert await two.read(0) == [offset(0)]
    assert await two.read(1) == [offset(2)]


async def test_a_take_over_that_is_given_up_changes_nothing(one: Postgres, two: Postgres) -> None:
    mine = await one.elect(0)
    async with two.database.acquire() as connection:
        taking = connection.transaction()
        await taking.start()
        await connection.execute("UPDATE leases SET epoch = epoch + 1, node_id = 2 WHERE partition = 0")
        end = one.begin(0, mine, offset(1))
        async with two.database.acquire() as looking:
            await waiting_for_a_lock(looking)
        await taking.rollback()
    assert await end is NONE
    assert await one.read(0, mine) == [offset(1)]


async def waiting_for_a_lock(connection: Any) -> None:
    """Wait until one session in the database waits for another."""
    async with asyncio.timeout(PATIENCE):
        query = "SELECT count(*) FROM pg_locks WHERE NOT granted"
        while not await connection.fetchval(query):  # noqa: ASYNC110
            await asyncio.sleep(0.01)


async def test_leadership_goes_back_and_forth_and_nothing_is_lost_or_doubled(one: Postgres, two: Postgres) -> None:
    acknowledged: list[Record] = []
    stop = asyncio.Event()
    epochs: dict[int, int] = {}

    async def commit(store: Postgres) -> None:
        number = store.node_id * 1_000_000
        while not stop.is_set():
            epoch = epochs.get(store.node_id)
            if epoch is None:
                await asyncio.sleep(0.001)
                continue
            some = [offset(number + each, partition=number + each) for each in range(3)]
            number += 3
            ends = await asyncio.gather(*(store.begin(0, epoch, each) for each in some))
            assert set(ends) <= {NONE, FENCED}
            acknowledged.extend(each for each, end in zip(some, ends, strict=True) if end is NONE)

    committing = [asyncio.ensure_future(commit(store)) for store in (one, two)]
    for number in range(24):
        leader = (one, two)[number % 2]
        epoch = await leader.elect(0)
        before = set(map(str, acknowledged))
        epochs[leader.node_id] = epoch
        found = await leader.read(0, epoch)
        assert before <= set(map(str, found)), "the new leader sees all that was said to be stored"
        done = len(acknowledged)
        async with asyncio.timeout(PATIENCE):
            while len(acknowledged) < done + 10:  # noqa: ASYNC110
                await asyncio.sleep(0.001)
    stop.set()
    await asyncio.gather(*committing)
    found = await one.read(0)
    assert sorted(map(str, found)) == sorted(map(str, acknowledged))
    assert one.watching.fenced_at
    assert two.watching.fenced_at


# --- connections that break


@pytest.mark.parametrize("cut", [Cut.REQUEST, Cut.ANSWER])
async def test_an_append_whose_answer_is_lost_is_stored_once(postgres: str, cut: Cut) -> None:
    async with Wire(urlsplit(postgres).port or 0) as wire:
        store = through(postgres, wire)
        await store.start()
        epochs = [await store.elect(partition) for partition in range(3)]
        assert await store.append(0, epochs[0]) is NONE
        expected: list[list[Record]] = [[], [], []]
        for number in range(10):
            wire.cut = cut
            ends = []
            for each in range(6):
                record = offset(number * 10 + each, partition=number * 10 + each)
                expected[each % 3].append(record)
                ends.append(store.begin(each % 3, epochs[each % 3], record))
            assert set(await asyncio.wait_for(asyncio.gather(*ends), PATIENCE)) == {NONE}
        assert wire.cuts == 10
        assert store.watching.reconnections == 10
        assert [await store.read(partition) for partition in range(3)] == expected
        await store.close()


async def test_a_lost_answer_is_settled_when_the_server_lets_it_in_again(
    postgres: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the server answers to a new connection says nothing about what was sent over the old one."""
    async with Wire(urlsplit(postgres).port or 0) as wire:
        store = through(postgres, wire)
        await store.start()
        epoch = await store.elect(0)
        assert await store.append(0, epoch, offset(1)) is NONE
        refusals: list[Exception] = [
            asyncpg.TooManyConnectionsError("sorry, too many clients already"),
            asyncpg.InvalidPasswordError("password authentication failed"),
        ]
        connect = store.database.connect

        async def refuse_at_first(*given: Any) -> Any:
            if refusals:
                raise refusals.pop()
            return await connect(*given)

        monkeypatch.setattr(store.database, "connect", refuse_at_first)
        wire.cut = Cut.ANSWER
        assert await store.append(0, epoch, offset(2)) is NONE
        assert not refusals
        assert await store.read(0, epoch) == [offset(1), offset(2)]
        await store.close()


async def test_who_lost_its_lease_while_it_was_cut_off_does_not_know_and_says_not_stored(
    postgres: str, two: Postgres
) -> None:
    async with Wire(urlsplit(postgres).port or 0) as wire:
        store = through(postgres, wire)
        await store.start()
        epoch, other = await store.elect(0), await store.elect(1)
        assert await store.append(0, epoch, offset(1)) is NONE
        wire.cut = Cut.ANSWER
        wire.is_closed = True
        ends = [store.begin(0, epoch, offset(2)), store.begin(1, other, offset(3))]
        await store.until(lambda: wire.cuts == 1)
        newer = await two.elect(0)
        wire.is_closed = False
        assert await asyncio.wait_for(asyncio.gather(*ends), PATIENCE) == [FENCED, NONE]
        assert await two.read(0, newer) == [offset(1), offset(2)], "written while it still had the lease"
        assert await store.append(0, epoch, offset(4)) is FENCED
        assert await two.read(1) == [offset(3)]
        await store.close()


async def test_a_session_of_a_connection_that_was_given_up_writes_nothing_more(one: Postgres) -> None:
    """Its statement may still be in flight when a new session has begun."""
    epoch = await one.elect(0)
    assert await one.append(0, epoch, offset(1)) is NONE
    log = one.log
    assert isinstance(log, PostgresLog)
    async with one.database.acquire() as connection:
        await connection.execute("UPDATE writers SET session = session + 1")
    assert await one.append(0, epoch, offset(2)) is NONE
    assert one.watching.reconnections == 1
    assert await one.read(0) == [offset(1), offset(2)]


async def test_the_server_is_killed_under_load(one: Postgres, postgres_server: PostgresServer) -> None:
    epochs = [await one.elect(partition) for partition in range(4)]
    acknowledged: list[list[Record]] = [[] for _ in epochs]
    stop = asyncio.Event()

    async def commit(partition: int) -> None:
        number = 0
        while not stop.is_set():
            number += 1
            record = offset(number, partition=number)
            assert await one.append(partition, epochs[partition], record) is NONE
            acknowledged[partition].append(record)

    def grown(before: list[int]) -> bool:
        return all(len(a) > b + 20 for a, b in zip(acknowledged, before, strict=True))

    committing = [asyncio.ensure_future(commit(partition)) for partition in range(4)]
    for _ in range(2):
        before = [len(each) for each in acknowledged]
        await one.until(partial(grown, before))
        await asyncio.to_thread(postgres_server.restart)
    before = [len(each) for each in acknowledged]
    await one.until(partial(grown, before))
    stop.set()
    await asyncio.gather(*committing)
    assert [await one.read(partition) for partition in range(4)] == acknowledged
    assert one.watching.reconnections >= 2


async def test_reading_goes_on_after_the_server_was_killed(one: Postgres, postgres_server: PostgresServer) -> None:
    epoch = await one.elect(0)
    records = [offset(number, partition=number) for number in range(4_000)]
    assert await one.append(0, epoch, *records) is NONE
    reading = asyncio.ensure_future(one.read(0, epoch))
    await asyncio.to_thread(postgres_server.restart)
    assert await reading == records


async def test_a_log_that_is_closed_while_the_server_is_down_does_not_wait_for_it(
    one: Postgres, postgres_server: PostgresServer
) -> None:
    epoch = await one.elect(0)
    postgres_server.kill()
    end = one.begin(0, epoch, offset(1))
    log = one.log
    assert isinstance(log, PostgresLog)
    await log.close(patience_s=0.1)
    assert not end.done(), "its end is unknown"


async def test_a_server_that_takes_no_writes_fails_appends_until_it_does(one: Postgres) -> None:
    epoch = await one.elect(0)
    assert await one.append(0, epoch, offset(1)) is NONE
    async with one.database.acquire() as connection:
        await connection.execute("ALTER TABLE log ADD CONSTRAINT full_disk CHECK (position < 2) NOT VALID")
    assert await one.append(0, epoch, offset(2)) is BROKEN
    assert await one.append(0, epoch) is NONE
    assert one.watching.failures == [BROKEN]
    async with one.database.acquire() as connection:
        await connection.execute("ALTER TABLE log DROP CONSTRAINT full_disk")
    assert await one.append(0, epoch, offset(3)) is NONE
    assert await one.read(0) == [offset(1), offset(3)]


async def test_a_partition_that_cannot_be_read_at_first_is_read_when_it_can(
    one: Postgres, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither the first append after a start nor what waits behind it may hang for that."""
    epoch = await one.elect(0)
    with monkeypatch.context() as broken:
        broken.setattr(statements, "ENDS", "SELECT 1/0 FROM unnest($1::text[], $2::integer[])")
        assert await one.append(0, epoch, offset(1)) is BROKEN
        reading = asyncio.ensure_future(one.read(0, epoch))
        assert await one.append(0, epoch) is BROKEN
    assert await one.append(0, epoch, offset(2)) is NONE
    assert await reading == [offset(2)]


# --- the tables


async def test_nodes_that_start_together_make_the_tables_once(postgres: str) -> None:
    databases = [Database(postgres) for _ in range(5)]
    await asyncio.gather(*(database.start() for database in databases))
    async with databases[0].acquire() as connection:
        versions = await connection.fetch("SELECT version FROM schema_version ORDER BY version")
    assert [version for (version,) in versions] == list(range(1, len(STEPS) + 1))
    await asyncio.gather(*(database.close() for database in databases))


async def test_older_tables_become_newer_ones(postgres: str) -> None:
    old = Database(postgres, steps=STEPS[:1])
    await old.start()
    async with old.acquire() as connection:
        await connection.execute("INSERT INTO leases VALUES (0, 5, 1)")
        assert await connection.fetchval("SELECT to_regclass('topics_log')") is None
    await old.close()
    store = Postgres(postgres)
    await store.start()
    assert await store.append(0, 5, offset(1)) is NONE
    async with store.database.acquire() as connection:
        assert await connection.fetchval("SELECT count(*) FROM topics_log") == 0
    await store.close()


async def test_a_node_of_an_older_program_goes_on_beside_a_newer_one(postgres: str) -> None:
    """It takes leases, reads and writes in tables that have become newer under it. It cannot start again."""
    old = Database(postgres, steps=STEPS[:3])
    await old.start()
    store = Postgres(postgres)
    await store.start()
    epoch = await store.elect(4)
    assert await store.append(4, epoch, offset(1)) is NONE
    async with old.acquire() as connection:
        [(taken,)] = await connection.fetch("UPDATE leases SET epoch = epoch + 1 WHERE partition = 4 RETURNING epoch")
        assert taken == epoch + 1
        columns = "partition, position, epoch, producer_id, checksum, key, value"
        [row] = await connection.fetch(f"SELECT {columns} FROM log WHERE partition = 4")
        values = {**row, "position": row["position"] + 1, "epoch": taken}
        await connection.execute(f"INSERT INTO log ({columns}) VALUES ($1, $2, $3, $4, $5, $6, $7)", *values.values())
    assert await store.append(4, epoch, offset(2)) is FENCED
    assert await store.read(4) == [offset(1), offset(1)]
    await old.close()
    with pytest.raises(StoreProblem, match="made by a newer program"):
        await old.start()
    await store.close()


async def test_a_migration_is_reported_once(postgres: str, log_lines: list[dict[str, object]]) -> None:
    for steps in (STEPS[:1], STEPS, STEPS):
        database = Database(postgres, steps=steps)
        await database.start()
        await database.close()
    assert log_lines == [
        {
            "event": "schema_migrated",
            "log_level": "info",
            "store": postgres,
            "from_version": 1,
            "to_version": len(STEPS),
        }
    ]


async def test_which_tables_are_meant_is_shown_and_nothing_else(unused_tcp_port: int) -> None:
    place = f"127.0.0.1:{unused_tcp_port}/rejoin"
    shown = Database(f"postgresql://me:secret@{place}?password=secret&search_path=a,b&sslmode=disable").shown
    assert shown == f"postgresql://me@{place}?search_path=a,b"
    assert Database(f"postgresql://{place}").shown == f"postgresql://{place}"


async def test_newer_tables_are_refused(postgres: str) -> None:
    newer = Database(postgres, steps=(*STEPS, "SELECT 1", "SELECT 2"))
    await newer.start()
    await newer.close()
    with pytest.raises(StoreProblem, match="made by a newer program") as problem:
        await Database(postgres).start()
    assert f"has tables of version {len(STEPS) + 2}" in str(problem.value)


async def test_a_server_that_is_not_there_is_said_to_be_so_without_the_password(unused_tcp_port: int) -> None:
    url = f"postgresql://me:secret@127.0.0.1:{unused_tcp_port}/rejoin"
    with pytest.raises(StoreProblem, match="cannot be reached") as problem:
        await Database(url).start()
    assert f"postgresql://me@127.0.0.1:{unused_tcp_port}/rejoin" in str(problem.value)
    assert "secret" not in str(problem.value)


# --- compaction


async def test_what_it_removes_is_what_every_node_would(one: Postgres) -> None:
    histories: list[Sequence[Record]] = [history(random.Random(seed), seed % 60) for seed in range(60)]
    for partition, records in enumerate(histories):
        epoch = await one.elect(partition)
        assert await one.append(partition, epoch, *records) is NONE
    async with one.database.acquire() as connection:
        for partition, records in enumerate(histories):
            of = f"topic = '{OFFSETS_TOPIC}' AND partition = {partition}"
            has_transactions = await connection.fetchval(has_transactions_query(of))
            query = doomed_with_transactions_query(of, "position") if has_transactions else doomed_query(of)
            found = await connection.fetch(query)
            assert [position - 1 for (position,) in found] == sorted(doomed(records))


async def test_a_compaction_counts_what_it_removed_before_a_reader_stopped_it(
    one: Postgres, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compaction, "_SLICE_RECORDS", 30)
    epoch = await one.elect(0)
    await one.append(0, epoch, *(offset(number) for number in range(100)))
    log = one.log
    assert isinstance(log, PostgresLog)
    led = log.writer.leaders[offsets_partition(0)]
    removed: list[int] = []

    def read_from_now_on(partition: TopicPartition, count: int) -> None:
        removed.append(count)
        led.readers += 1

    monkeypatch.setattr(one.watching, "compacted", read_from_now_on)
    log.compactor.compact(offsets_partition(0), led)
    await one.until(lambda: not log.compactor.compacting)
    assert removed == [30]


async def test_only_the_leader_removes(one: Postgres, two: Postgres) -> None:
    epoch = await one.elect(0)
    await one.append(0, epoch, *(offset(number) for number in range(900)))
    newer = await two.elect(0)
    log = one.log
    assert isinstance(log, PostgresLog)
    log.compactor.compact(offsets_partition(0), log.writer.leaders[offsets_partition(0)])
    await one.until(lambda: not log.compactor.compacting)
    assert one.watching.removed == 0
    assert len(await two.read(0, newer)) == 900
