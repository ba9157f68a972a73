"""``rejoin log verify`` reads the batches of topics, too: by the checks of a start, with the names of the topics."""

from __future__ import annotations

import asyncio
import shutil
import sqlite3
from pathlib import Path

import pytest

from rejoin.coordinator.commands.log.command import verify
from rejoin.coordinator.storage.sqlite.progress_file import DATABASE
from rejoin.coordinator.storage.topics_log.base import as_text
from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.records.topics import TopicData, TopicRecord
from rejoin.protocol.records.transaction_state import TRANSACTION_STATE_TOPIC, TRANSACTION_STATE_TOPIC_ID
from rejoin.protocol.types import TopicIdPartition
from tests.coordinator.commands.log.logs import Run, asked
from tests.coordinator.storage.helpers import Postgres, Sqlite, Store, batch, offset

ORDERS = [TopicIdPartition("o" * 22, number, "orders") for number in range(2)]
TRANSACTIONS = TopicIdPartition(TRANSACTION_STATE_TOPIC_ID, 7, TRANSACTION_STATE_TOPIC)
TOPICS = as_text(
    tuple(
        TopicRecord(data=TopicData(name=each.topic, topic_id=each.topic_id, records_per_second=None))
        for each in (ORDERS[0], TRANSACTIONS)
    )
)
INSERT_TOPICS = "INSERT INTO topics_log VALUES (1, '" + TOPICS + "')"
ALL_THERE = "1 record in 1 offsets partition, 45 batches in 3 data partitions, all as written\n"
WRONG_BYTE = "UPDATE {} SET data = substr(data, 1, 70) || x'ff' || substr(data, 72) WHERE base_offset = 39"
LEFT_OUT = ": 1 problem. A start leaves these partitions out and serves all others. To have them back, "
CREATE_AGAIN = "; to serve them without their records, delete their topics and create them again\n"


async def fill(store: Store) -> None:
    """More batches of a topic than are read at a time."""
    epoch = await store.elect(0)
    assert await store.append(0, epoch, offset(1)) is ErrorCode.NONE
    for partition, count in ((ORDERS[0], 40), (ORDERS[1], 2), (TRANSACTIONS, 3)):
        written = (batch(number, size=20_000 if number == 20 else 100) for number in range(count))
        assert await store.append_data(partition, epoch, *written) is ErrorCode.NONE


def damage(folder: Path, statement: str) -> None:
    with sqlite3.connect(folder / DATABASE) as connection:
        assert connection.execute(statement).rowcount > 0
    connection.close()


@pytest.fixture(params=["closed", "killed"])
def directory(tmp_path: Path, request: pytest.FixtureRequest) -> Path:
    """A data directory with batches of topics: in a table of their own as long as the coordinator runs."""

    async def make() -> None:
        store = Sqlite(tmp_path / "closed")
        await store.start()
        await fill(store)
        shutil.copytree(store.folder, tmp_path / "killed")
        await store.close()

    asyncio.run(make())
    folder: Path = tmp_path / request.param
    damage(folder, INSERT_TOPICS)
    return folder


def test_batches_are_counted(directory: Path, run: Run) -> None:
    assert run(verify, data=directory) == (0, f"{directory}: {ALL_THERE}", "")


def test_a_changed_batch_is_found_under_the_name_of_its_topic(directory: Path, run: Run) -> None:
    damage(directory, WRONG_BYTE.format("batch_tail" if directory.name == "killed" else "batches"))
    code, out, err = run(verify, data=directory)
    assert (code, err) == (1, "")
    restore = f"put a complete copy of {directory} back while no coordinator uses it"
    assert out == (
        "orders-0: the batch at offset 39 is not the one that was written\n"
        f"{directory}{LEFT_OUT}{restore}{CREATE_AGAIN}"
    )


@pytest.mark.parametrize("directory", ["closed"], indirect=True)
@pytest.mark.parametrize(
    ("statement", "said"),
    [
        (
            "DELETE FROM batches WHERE partition_id = 1 AND base_offset = 5",
            "orders-0: there are 39 batches, expected 40",
        ),
        ("DELETE FROM batches WHERE partition_id = 1", "orders-0: there are 0 batches, expected 40"),
        ("UPDATE batches SET base_offset = 99 WHERE base_offset = 39", "orders-0: the batch at offset 99 is not"),
        ("UPDATE data_partitions SET batches = 3 WHERE partition = 1", "orders-1: there are 2 batches, expected 3"),
        ("DELETE FROM batches WHERE partition_id = 3", "__transaction_state-7: there are 0 batches, expected 3"),
        ("UPDATE topics_log SET record = '[7]'", f"{DATABASE}: the topics cannot be read: "),
        (
            "UPDATE topics_log SET version = 2",
            f"{DATABASE}: the topics cannot be read: change 1 of the topics is missing",
        ),
    ],
)
def test_what_is_lost_is_found(directory: Path, run: Run, statement: str, said: str) -> None:
    damage(directory, statement)
    code, out, _ = run(verify, data=directory)
    assert code == 1
    assert said in out
    assert ": 1 problem. " in out


@pytest.mark.parametrize("directory", ["closed"], indirect=True)
def test_every_damaged_partition_is_named(directory: Path, run: Run) -> None:
    damage(directory, "DELETE FROM batches WHERE base_offset = 1")
    code, out, _ = run(verify, data=directory)
    assert code == 1
    assert [line.partition(":")[0] for line in out.splitlines()[:-1]] == [
        "__transaction_state-7",
        "orders-0",
        "orders-1",
    ]


@pytest.mark.parametrize("directory", ["closed"], indirect=True)
def test_batches_that_a_start_would_not_miss_are_found(directory: Path, run: Run) -> None:
    damage(directory, "DELETE FROM data_partitions WHERE id = 2")
    code, out, _ = run(verify, data=directory)
    assert code == 1
    assert "the table batches: expected ids of data_partitions, found id 2 (2 times)\n" in out
    assert ": 1 problem. Put a complete copy of the directory back" in out


@pytest.mark.parametrize("directory", ["killed"], indirect=True)
def test_a_batch_that_is_missing_from_the_tail_is_found(directory: Path, run: Run) -> None:
    """Which partition it is of is not known, and the next start is refused."""
    damage(directory, "DELETE FROM batch_tail WHERE partition_id = 1 AND base_offset = 5")
    code, out, _ = run(verify, data=directory)
    assert code == 1
    assert out.startswith("the table batch_tail: expected 44 batches, found 43\n")
    assert ": 1 problem. Put a complete copy of the directory back" in out


def test_batches_in_tables_are_verified_as_well(postgres: str, run: Run) -> None:
    async def make() -> None:
        store = Postgres(postgres)
        await store.start()
        await fill(store)
        await store.close()
        await asked(postgres, INSERT_TOPICS)

    asyncio.run(make())
    assert run(verify, store=postgres) == (0, f"{postgres}: {ALL_THERE}", "")
    asyncio.run(asked(postgres, "UPDATE batches SET data = set_byte(data, 70, 255) WHERE base_offset = 39"))
    code, out, err = run(verify, store=postgres)
    assert (code, err) == (1, "")
    assert out == (
        "orders-0: the batch at offset 39 is not the one that was written\n"
        f"{postgres}{LEFT_OUT}restore the database from a backup while no node uses it{CREATE_AGAIN}"
    )
    asyncio.run(
        asked(postgres, "DELETE FROM batches WHERE base_offset = 1", "DELETE FROM data_logs WHERE partition = 7")
    )
    code, out, _ = run(verify, store=postgres)
    assert code == 1
    assert out.splitlines()[:-1] == [
        "__transaction_state-7: there are 2 batches, expected 0",
        "orders-0: the batch at offset 39 is not the one that was written",
        "orders-1: there is 1 batch, expected 2",
    ]
    asyncio.run(asked(postgres, "UPDATE topics_log SET record = '[7]'"))
    code, out, _ = run(verify, store=postgres)
    assert out.startswith("the table topics_log cannot be read: ")
    assert f"{'o' * 22}-0: the batch at offset 39" in out
