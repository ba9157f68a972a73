"""Stores and exports that the versions before wrote: read as they are, and brought up to date by a start."""

from __future__ import annotations

import asyncio
import sqlite3
import tarfile
from pathlib import Path

import pytest

from rejoin.coordinator.commands.log.command import export, verify
from rejoin.coordinator.commands.log.command import import_ as import_log
from rejoin.coordinator.storage.postgres.database import Database
from rejoin.coordinator.storage.postgres.schema import STEPS as POSTGRES_STEPS
from rejoin.coordinator.storage.sqlite.database import migrate, opened
from rejoin.coordinator.storage.sqlite.log import SqliteLog
from rejoin.coordinator.storage.sqlite.progress_file import DATABASE
from rejoin.coordinator.storage.sqlite.schema import STEPS as SQLITE_STEPS
from rejoin.coordinator.storage.topics_log.postgres import PostgresTopicsLog
from rejoin.coordinator.storage.topics_log.sqlite import SqliteTopicsLog
from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.records.batches import LogStartEntry
from rejoin.protocol.records.keyed import Record
from rejoin.protocol.types import TopicIdPartition, TopicPartition
from tests.coordinator.storage.helpers import Postgres, Sqlite, Store, batch, gone, group, marker, offset
from tests.paths import ROOT

STORES = ROOT / "tests" / "golden" / "stores"
WRITTEN: dict[int, list[Record]] = {
    0: [
        group(1, "g", 2),
        offset(1),
        offset(2, partition=1),
        offset(3, partition=2, producer_id=9),
        marker(9),
        offset(4, partition=3, producer_id=8),
    ],
    3: [offset(5), offset(6), gone(7), group(2, "h", 1)],
    49: [offset(number, partition=number) for number in range(20)],
}
"""What is in each of them, by offsets partition, in epoch 1. Partition 7 was only led, in epoch 0."""

THIRTY_RECORDS = "30 records in 3 offsets partitions, 0 batches in 0 data partitions, all as written\n"


@pytest.fixture(params=["closed", "killed"])
def directory(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A data directory of schema version 4, closed or left behind by a process that was killed."""
    folder = tmp_path / "data"
    with tarfile.open(STORES / f"sqlite-4-{request.param}.tar.gz") as archive:
        archive.extractall(folder, filter="data")
    return folder


@pytest.fixture
def tables(postgres: str) -> str:
    """A cluster's tables of schema version 3."""

    async def make() -> None:
        connection = await Database(postgres).reach()
        schema = postgres.rpartition("search_path=")[2]
        await connection.execute(f'CREATE SCHEMA "{schema}"')
        await connection.execute((STORES / "postgres-3.sql").read_text())
        await connection.close()

    asyncio.run(make())
    return postgres


async def check(store: Store) -> None:
    """Everything is there, and the epochs go on."""
    for partition, records in WRITTEN.items():
        epoch = await store.elect(partition)
        assert epoch == 2, "the one after that in which it was written"
        assert await store.append(partition, epoch - 1, offset(9)) is ErrorCode.NOT_LEADER_OR_FOLLOWER
        assert await store.read(partition, epoch) == records
        assert await store.append(partition, epoch, offset(100)) is ErrorCode.NONE
    assert await store.elect(7) == 1


@pytest.mark.parametrize("damage", [None, "DELETE FROM batches WHERE base_offset = 1"])
def test_batches_are_verified_in_a_directory_of_the_version_without_a_tail(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], damage: str | None
) -> None:
    with opened(tmp_path / DATABASE) as connection:
        migrate(connection, tmp_path / DATABASE, SQLITE_STEPS[:6])
        connection.execute("INSERT INTO data_partitions VALUES (1, ?, 0, 0, 2)", ("o" * 22,))
        written = [(each.base_offset, each.next_offset, each.data) for each in (batch(0), batch(1))]
        connection.executemany("INSERT INTO batches VALUES (1, ?, ?, ?)", written)
        if damage is not None:
            connection.execute(damage)
        connection.close()
    assert verify(data=tmp_path) == (0 if damage is None else 1)
    said = capsys.readouterr().out
    if damage is None:
        assert said.endswith(": 0 records in 0 offsets partitions, 2 batches in 1 data partition, all as written\n")
    else:
        assert said.startswith(f"{'o' * 22}-0: there is 1 batch, expected 2\n"), "by its id: no topic has it"


async def test_a_directory_of_the_version_before_is_brought_up_to_date(directory: Path) -> None:
    store = Sqlite(directory)
    await store.start()
    log = store.log
    assert isinstance(log, SqliteLog)
    assert len((await SqliteTopicsLog(log.database).read(0)).changes) == 1
    await check(store)
    await store.restart()
    for partition, records in WRITTEN.items():
        assert await store.read(partition) == [*records, offset(100)]
    await store.close()
    connection = sqlite3.connect(directory / DATABASE)
    assert connection.execute("PRAGMA user_version").fetchone() == (len(SQLITE_STEPS),)
    connection.close()


async def test_logs_of_several_topics_lie_side_by_side_in_it(directory: Path) -> None:
    """Of partitions with the same number, too."""
    store = Sqlite(directory)
    await store.start()
    log = store.log
    assert isinstance(log, SqliteLog)
    other = TopicPartition("__transaction_state", 3)
    done: asyncio.Future[ErrorCode] = asyncio.get_running_loop().create_future()
    log.append(other, log.elect(other), (offset(7),), done.set_result)
    assert await done is ErrorCode.NONE
    assert await store.read(3) == WRITTEN[3]
    await store.restart()
    assert await store.read(3) == WRITTEN[3]
    log = store.log
    assert isinstance(log, SqliteLog)
    assert log.elect(other) == 1
    await store.close()


def test_a_directory_of_the_version_before_is_read_without_being_changed(
    directory: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = (directory / DATABASE).read_bytes()
    assert verify(data=directory) == 0
    assert capsys.readouterr().out == f"{directory}: {THIRTY_RECORDS}"
    assert export(data=directory, out=tmp_path / "export") == 0
    assert (directory / DATABASE).read_bytes() == before
    assert import_log(str(tmp_path / "export"), data=tmp_path / "new") == 0
    assert verify(data=tmp_path / "new") == 0


async def test_batches_of_the_version_before_stay_where_they_are(tmp_path: Path) -> None:
    """A directory of schema version 6, left behind by a process that was killed."""
    with tarfile.open(STORES / "sqlite-6-killed.tar.gz") as archive:
        archive.extractall(tmp_path / "data", filter="data")
    store = Sqlite(tmp_path / "data")
    await store.start()
    epoch = await store.elect(0)
    orders, other = [TopicIdPartition("o" * 22, number, "orders") for number in range(2)]
    assert await store.append_data(orders, epoch, batch(6)) is ErrorCode.NONE
    assert await store.read_data(orders, epoch) == [batch(3), batch(4, 2), batch(6), LogStartEntry(3)]
    assert await store.read_data(other, epoch) == [batch(0, size=20_000), batch(1)]
    assert await store.read(0, epoch) == [offset(1), offset(2, partition=1)]
    await store.close()


async def test_tables_of_the_version_before_are_brought_up_to_date(tables: str) -> None:
    store = Postgres(tables)
    await store.start()
    assert len((await PostgresTopicsLog(store.database, lambda: "channel").read(0)).changes) == 1
    await check(store)
    await store.restart()
    for partition, records in WRITTEN.items():
        assert await store.read(partition) == [*records, offset(100)]
    async with store.database.acquire() as connection:
        assert await connection.fetchval("SELECT max(version) FROM schema_version") == len(POSTGRES_STEPS)
    await store.close()


def test_tables_of_the_version_before_are_read_as_they_are(
    tables: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert verify(store=tables) == 0
    assert capsys.readouterr().out.endswith(f": {THIRTY_RECORDS}")
    assert export(store=tables, out=tmp_path / "export") == 0
    assert import_log(str(tmp_path / "export"), data=tmp_path / "new") == 0


async def test_an_export_of_the_version_before_can_be_imported(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    assert await asyncio.to_thread(import_log, str(STORES / "export-1.jsonl"), data=folder) == 0
    store = Sqlite(folder)
    await store.start()
    await check(store)
    await store.close()
