"""``rejoin log``: what it prints, what it finds, and that a copy is a copy."""

from __future__ import annotations

import asyncio
import errno
import json
import random
import re
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import asyncpg
import pytest

from rejoin.coordinator.commands.log.command import dump, export, import_, verify
from rejoin.coordinator.commands.log.tables import PostgresSource
from rejoin.coordinator.storage.base import StoreProblem
from rejoin.coordinator.storage.codec import checksum, encode
from rejoin.coordinator.storage.postgres.database import Database
from rejoin.coordinator.storage.postgres.schema import STEPS
from rejoin.coordinator.storage.sqlite.files import DATABASE, PROGRESS
from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.partitioner import partition_for
from rejoin.protocol.records.consumer_offsets import Record, offsets_partition
from tests.coordinator.storage.helpers import Postgres, Sqlite, Store, gone, group, marker, offset
from tests.coordinator.storage.histories import history

Run = Callable[..., tuple[int, str, str]]

AHEAD = f"{DATABASE}-wal"

RECORDS: dict[int, list[Record]] = {
    0: [offset(100, "group-id"), group(3, "group-id", members=2), gone(1, "group-id")],
    5: [
        offset(7, 'odd "\\ \u2028 \0 name', 2),
        offset(8, partition=3, producer_id=9),
        marker(),
        marker(4, committed=False),
    ],
    7: history(random.Random(7), 200),
}


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    def run(command: Callable[..., int], *arguments: object, **options: object) -> tuple[int, str, str]:
        capsys.readouterr()
        code = command(*arguments, **options)
        said = capsys.readouterr()
        return code, said.out, said.err

    return run


def filled(store: Store) -> None:
    async def fill() -> None:
        await store.start()
        for partition, records in RECORDS.items():
            for _ in range(3):
                epoch = await store.elect(partition)
            for record in records:
                assert await store.append(partition, epoch, record) is ErrorCode.NONE
        await store.elect(9)
        await store.close()

    asyncio.run(fill())


def read(store: Store) -> dict[int, list[Record]]:
    async def read() -> dict[int, list[Record]]:
        await store.start()
        found = {partition: await store.read(partition) for partition in RECORDS}
        await store.close()
        return found

    return asyncio.run(read())


@pytest.fixture
def data(tmp_path: Path) -> Path:
    store = Sqlite(tmp_path / "data")
    filled(store)
    return store.folder


# --- dump


def test_what_is_printed_is_what_kafkas_formatters_print(data: Path, run: Run) -> None:
    code, out, _ = run(dump, data=data, partition=(0,))
    assert code == 0
    assert out.splitlines() == [
        '{"key":{"version":1,"data":{"group":"group-id","topic":"orders","partition":0}},'
        '"value":{"version":3,"data":{"offset":100,"leaderEpoch":3,"metadata":"m","commitTimestamp":1}}}',
        '{"key":{"version":2,"data":{"group":"group-id"}},"value":{"version":3,"data":{"protocolType":"consumer",'
        '"generation":3,"protocol":"range","leader":"m-0","currentStateTimestamp":7,"members":['
        '{"memberId":"m-0","groupInstanceId":"static","clientId":"c","clientHost":"/127.0.0.1","rebalanceTimeout":60000,'
        '"sessionTimeout":45000,"subscription":"+//+AA==","assignment":""},'
        '{"memberId":"m-1","groupInstanceId":null,"clientId":"c","clientHost":"/127.0.0.1","rebalanceTimeout":60000,'
        '"sessionTimeout":45000,"subscription":"+//+AA==","assignment":"AA=="}]}}}',
        '{"key":{"version":1,"data":{"group":"group-id","topic":"orders","partition":1}},"value":null}',
    ]


def test_each_formatter_has_its_records_and_neither_has_the_ends_of_transactions(data: Path, run: Run) -> None:
    both = run(dump, data=data)[1].split("\n")[:-1]
    offsets = run(dump, data=data, only="offsets")[1].split("\n")[:-1]
    groups = run(dump, data=data, only="group-metadata")[1].split("\n")[:-1]
    assert sorted(both) == sorted(offsets + groups)
    assert {json.loads(line)["key"]["version"] for line in offsets} == {1}
    assert {json.loads(line)["key"]["version"] for line in groups} == {2}
    assert "committed" not in "".join(both)
    some = run(dump, data=data, partition=(0, 5))[1].split("\n")[:-1]
    assert len(some) == 5
    code, out, err = run(dump, data=data, partition=(77, 0, 78))
    assert (code, out.count("\n")) == (0, 3)
    assert err == "".join(f"rejoin: {data} has no records of __consumer_offsets-{number}\n" for number in (77, 78))
    assert both[:5] == some


def test_a_directory_that_is_in_use_can_be_dumped_but_not_verified(data: Path, run: Run) -> None:
    async def while_open() -> tuple[int, tuple[int, str, str]]:
        store = Sqlite(data)
        await store.start()
        dumped = await asyncio.to_thread(run, dump, data=data)
        verified = await asyncio.to_thread(run, verify, data=data)
        await store.close()
        return len(dumped[1].split("\n")[:-1]), verified

    before = len(run(dump, data=data)[1].split("\n")[:-1])
    lines, verified = asyncio.run(while_open())
    assert lines == before
    assert verified[0] == 2
    assert "in use by another process" in verified[2]
    assert f"stop that one, or verify an export: rejoin log export --data {data} --out" in verified[2]


# --- verify


def test_a_log_that_is_as_it_was_written(data: Path, run: Run) -> None:
    code, out, err = run(verify, data=data)
    assert (code, err) == (0, "")
    assert out == f"{data}: {sum(map(len, RECORDS.values()))} records in 3 partitions, all as written\n"


@pytest.mark.parametrize(
    ("statement", "said"),
    [
        ("DELETE FROM log WHERE position = 2", "__consumer_offsets-0: expected 3 records, found 2"),
        ("UPDATE log SET key = replace(key, 'group-id', 'group-ix') WHERE position = 1", "position 1: the checksum"),
        ("UPDATE store SET batch = 1", "ends with batch 1, but batch"),
        ("UPDATE store SET batch = 'x'", "does not say what its newest batch is: expected a number, found 'x'"),
        ("UPDATE store SET tail_checksums = 'x'", "the table store: expected numbers for where the log ends"),
        ("UPDATE log SET partition_id = 99 WHERE position = 2", "expected a partition of the table, found id 99"),
        ("UPDATE log SET value = 'nonsense' WHERE position = 2", "position 2: the checksum"),
    ],
)
def test_what_was_changed_is_found(data: Path, run: Run, statement: str, said: str) -> None:
    connection = sqlite3.connect(data / DATABASE)
    connection.execute(statement)
    connection.commit()
    connection.close()
    code, out, _ = run(verify, data=data)
    assert code == 1
    assert said in out


def test_a_broken_page_is_found_and_the_rest_can_be_saved(data: Path, tmp_path: Path, run: Run) -> None:
    path = data / DATABASE
    content = path.read_bytes()
    at = content.index(b"group-id")
    path.write_bytes(content[:at] + b"X" + content[at + 1 :])
    assert run(verify, data=data)[0] == 1
    code, out, err = run(export, data=data, salvage=True)
    assert code == 1
    assert "1 damaged records were left out" in err
    saved = tmp_path / "saved"
    saved.write_text(out)
    assert run(import_, str(saved), data=tmp_path / "new")[0] == 0
    assert sum(map(len, read(Sqlite(tmp_path / "new")).values())) == sum(map(len, RECORDS.values())) - 1


def test_what_a_lost_write_ahead_log_left_behind_can_be_saved(data: Path, tmp_path: Path, run: Run) -> None:
    shutil.copy(data / DATABASE, tmp_path / "before")
    filled_more = Sqlite(data)
    filled(filled_more)
    (tmp_path / "broken").mkdir()
    shutil.copy(tmp_path / "before", tmp_path / "broken" / DATABASE)
    shutil.copy(data / PROGRESS, tmp_path / "broken" / PROGRESS)
    assert run(verify, data=tmp_path / "broken")[0] == 1
    code, _, err = run(export, data=tmp_path / "broken", salvage=True, out=tmp_path / "saved")
    assert code == 1
    assert "ends with batch " in err
    assert run(import_, str(tmp_path / "saved"), data=tmp_path / "new")[0] == 0
    assert read(Sqlite(tmp_path / "new")) == RECORDS


CUTS: dict[str, tuple[Callable[[bytes], bytes] | None, tuple[str, ...]]] = {
    "cut short": (lambda ahead: ahead[:-2_000], (DATABASE, AHEAD, PROGRESS)),
    "half": (lambda ahead: ahead[: len(ahead) // 2], (DATABASE, AHEAD, PROGRESS)),
    "one byte changed": (lambda ahead: ahead[:9_000] + b"\xa5" + ahead[9_001:], (DATABASE, AHEAD, PROGRESS)),
    "removed": (None, (DATABASE, PROGRESS)),
    "the database alone": (None, (DATABASE,)),
    "a mark that is damaged": (lambda ahead: ahead, (DATABASE, AHEAD, PROGRESS)),
}  # fmt: skip


@pytest.mark.parametrize("how", CUTS)
def test_a_directory_that_lost_its_newest_records_is_read_to_save_them_only(tmp_path: Path, run: Run, how: str) -> None:
    """What a start refuses is not exported as if it were whole; what there is is saved, with a word about the rest."""
    change, names = CUTS[how]
    broken = tmp_path / "broken"
    broken.mkdir()

    async def while_open() -> None:
        store = Sqlite(tmp_path / "data")
        await store.start()
        epoch = await store.elect(0)
        for number in range(30):
            assert await store.append(0, epoch, offset(number, partition=number)) is ErrorCode.NONE
        for name in names:
            shutil.copy(store.folder / name, broken / name)
        await store.close()

    asyncio.run(while_open())
    ahead = broken / AHEAD
    if change is not None:
        ahead.write_bytes(change(ahead.read_bytes()))
    if how == "a mark that is damaged":
        (broken / PROGRESS).write_text("nonsense")
    before = {name: (broken / name).read_bytes() for name in names}
    with pytest.raises(StoreProblem) as refused:
        asyncio.run(Sqlite(broken).start())
    for command in (dump, export):
        code, out, err = run(command, data=broken)
        assert (code, out, err) == (2, "", f"rejoin: {refused.value}\n")
    code, out, _ = run(verify, data=broken)
    what, _, advice = str(refused.value).partition(". Put ")
    assert code == 1
    assert out.startswith(f"{what}\n")
    assert out.endswith(f": 1 problem. Put {advice}\n")
    code, _, err = run(export, data=broken, salvage=True, out=tmp_path / "saved")
    assert code == 1
    assert f"rejoin: {what}; what is not there any more is not in what was saved\n" in err
    if PROGRESS in names and how != "a mark that is damaged":
        assert re.search(r"ends with batch \d+, but batch 30 was stored", err)
    assert {name: (broken / name).read_bytes() for name in names} == before
    assert run(import_, str(tmp_path / "saved"), data=tmp_path / "new")[0] == 0
    code, out, _ = run(verify, data=tmp_path / "new")
    assert code == 0
    count = int(out.removeprefix(f"{tmp_path / 'new'}: ").split()[0])
    assert count == 30 if how == "a mark that is damaged" else count < 30


def test_a_directory_that_is_written_to_is_read_as_it_is_at_one_moment(tmp_path: Path, run: Run) -> None:
    """Its mark moves on meanwhile: what is compared with is never newer than what is read."""

    async def while_written() -> list[tuple[int, str, str]]:
        store = Sqlite(tmp_path / "data")
        await store.start()
        epoch = await store.elect(0)
        done = asyncio.Event()

        number = 0

        async def write() -> None:
            nonlocal number
            while not done.is_set():
                assert await store.append(0, epoch, offset(number, partition=number % 7)) is ErrorCode.NONE
                number += 1

        writing = asyncio.create_task(write())
        found = []
        for _ in range(30):
            before = number
            found.append(await asyncio.to_thread(run, export, data=tmp_path / "data"))
            await store.settled(lambda before=before: number > before)
        done.set()
        await writing
        await store.close()
        return found

    found = asyncio.run(while_written())
    assert {(code, err) for code, _, err in found} == {(0, "")}
    counts = [out.count("\n") for _, out, _ in found]
    assert counts == sorted(counts)
    assert counts[-1] > counts[0]


@pytest.mark.parametrize("is_missing", [True, False], ids=["missing", "empty"])
def test_an_emptied_database_is_found_and_its_write_ahead_log_can_be_saved(
    data: Path, tmp_path: Path, run: Run, is_missing: bool
) -> None:
    """No command that looks may let SQLite delete the log."""
    broken = tmp_path / "broken"

    async def while_open() -> None:
        store = Sqlite(data)
        await store.start()
        for partition, records in RECORDS.items():
            assert await store.append(partition, await store.elect(partition), *records) is ErrorCode.NONE
        shutil.copytree(data, broken)
        await store.close()

    shutil.rmtree(data)
    asyncio.run(while_open())
    (broken / DATABASE).unlink() if is_missing else (broken / DATABASE).write_bytes(b"")
    ahead = broken / f"{DATABASE}-wal"
    before = ahead.read_bytes()
    code, out, err = run(verify, data=broken)
    assert (code, err) == (1, "")
    assert f"{broken / DATABASE} is " in out
    assert "the progress file mark beside it says" in out
    assert [run(command, data=broken)[0] for command in (dump, export)] == [2, 2]
    code, _, err = run(export, data=broken, salvage=True, out=tmp_path / "saved")
    assert code == 1
    assert "what could be read is from" in err
    assert ahead.read_bytes() == before
    assert run(import_, str(tmp_path / "saved"), data=tmp_path / "new")[0] == 0
    assert read(Sqlite(tmp_path / "new")) == RECORDS
    ahead.write_bytes(bytes(len(before)))
    assert "nothing in that log that can be read" in run(export, data=broken, salvage=True)[2]
    ahead.unlink()
    code, out, _ = run(verify, data=broken)
    assert code == 1
    assert "Put a complete copy of the directory back" in out


def test_a_short_write_ahead_log_beside_an_emptied_database_can_be_saved(data: Path, tmp_path: Path, run: Run) -> None:
    """It has few pages: none of those that say which tables there are."""
    shutil.rmtree(data)

    async def while_open() -> None:
        store = Sqlite(data)
        await store.start()
        assert await store.append(3, await store.elect(3), offset(1), offset(2)) is ErrorCode.NONE
        shutil.copytree(data, tmp_path / "broken")
        await store.close()

    asyncio.run(while_open())
    (tmp_path / "broken" / DATABASE).write_bytes(b"")
    code, out, err = run(export, data=tmp_path / "broken", salvage=True)
    assert code == 1
    assert f"{DATABASE} is lost; what could be read is from" in err
    assert out == run(export, data=data)[1]


def test_tables_are_verified_as_well(postgres: str, run: Run) -> None:
    filled(Postgres(postgres))
    assert run(verify, store=postgres)[0] == 0

    async def damage() -> None:
        store = Postgres(postgres)
        await store.database.start()
        async with store.database.acquire() as connection:
            await connection.execute("UPDATE log SET value = value || ' ' WHERE partition = 0 AND position = 1")
            await connection.execute("UPDATE log SET epoch = 99 WHERE partition = 5 AND position = 1")
        await store.database.close()

    asyncio.run(damage())
    code, out, _ = run(verify, store=postgres)
    assert code == 1
    assert "__consumer_offsets-0, position 1: the checksum does not fit the record" in out
    assert "__consumer_offsets-5, position 1: of epoch 99, which no node had: the lease has 2" in out
    assert "__consumer_offsets-5, position 2: of epoch 2, behind one of epoch 99" in out


async def asked(url: str, *statements: str) -> list[object]:
    """What the last of some statements gave, without this program's hands in between."""
    connection = await asyncpg.connect(url)
    try:
        for statement in statements:
            found = await connection.fetch(statement)
    finally:
        await connection.close()
    return [value for (value,) in found]


SCHEMAS = "SELECT nspname::text FROM pg_namespace ORDER BY 1"


def test_tables_that_are_not_there_are_not_made_by_looking_for_them(postgres: str, run: Run) -> None:
    schemas = asyncio.run(asked(postgres, SCHEMAS))
    for command in (verify, dump, export):
        code, out, err = run(command, store=postgres)
        assert (code, out) == (2, "")
        assert err == (
            f"rejoin: {postgres} has no tables of a coordinator; expected a database, and in its URL a "
            "search_path, that a coordinator's --store named\n"
        )
    assert asyncio.run(asked(postgres, SCHEMAS)) == schemas


@pytest.mark.parametrize("version", range(1, len(STEPS)))
def test_older_tables_are_read_as_they_are(postgres: str, run: Run, version: int) -> None:
    async def make() -> None:
        old = Database(postgres, steps=STEPS[:version])
        await old.start()
        async with old.acquire() as connection:
            await connection.execute("INSERT INTO leases VALUES (3, 5, 1)")
            entry = encode(offset(1))
            row = (3, 1, 5, entry.producer_id, checksum(offsets_partition(3), 0, entry), entry.key, entry.value)
            await connection.execute("INSERT INTO log VALUES ($1, $2, $3, $4, $5, $6, $7)", *row)
        await old.close()

    asyncio.run(make())
    assert run(verify, store=postgres) == (0, f"{postgres}: 1 record in 1 partition, all as written\n", "")
    assert run(dump, store=postgres)[1].startswith('{"key":{"version":1,')
    code, out, _ = run(export, store=postgres)
    assert (code, out.count("\n")) == (0, 4)
    assert asyncio.run(asked(postgres, "SELECT max(version) FROM schema_version")) == [version]


def test_whoever_reads_what_is_printed_may_take_their_time(postgres: str) -> None:
    filled(Postgres(postgres))
    with PostgresSource(postgres) as source:
        assert source._fetch("SHOW idle_in_transaction_session_timeout")[0][0] == "1h"


def test_newer_tables_are_not_read(postgres: str, run: Run) -> None:
    async def make() -> None:
        newer = Database(postgres, steps=(*STEPS, "SELECT 1"))
        await newer.start()
        await newer.close()

    asyncio.run(make())
    code, _, err = run(verify, store=postgres)
    assert code == 2
    assert f"has tables of version {len(STEPS) + 1}, made by a newer program" in err


# --- export and import


@pytest.mark.parametrize("kinds", ["sqlite sqlite", "sqlite postgres sqlite", "postgres sqlite"])
def test_a_copy_is_a_copy(tmp_path: Path, run: Run, kinds: str, postgres: str) -> None:
    first, *others = kinds.split()
    original = Sqlite(tmp_path / "0") if first == "sqlite" else Postgres(postgres)
    filled(original)
    place = {"data": tmp_path / "0"} if first == "sqlite" else {"store": postgres}
    code, text, _ = run(export, **place)
    assert code == 0
    for number, kind in enumerate(others, 1):
        (tmp_path / "export").write_text(text)
        place = {"data": tmp_path / str(number)} if kind == "sqlite" else {"store": postgres}
        code, said, _ = run(import_, str(tmp_path / "export"), **place)
        assert code == 0
        assert said.startswith(f"{sum(map(len, RECORDS.values()))} records from")
        assert run(verify, **place)[0] == 0
        assert run(export, **place)[1] == text
    copy = Postgres(postgres) if others[-1] == "postgres" else Sqlite(tmp_path / str(len(others)))
    assert read(copy) == RECORDS


def test_a_store_that_has_a_log_is_not_filled(data: Path, postgres: str, tmp_path: Path, run: Run) -> None:
    run(export, data=data, out=tmp_path / "export")
    before = run(export, data=data)[1]
    code, _, err = run(import_, str(tmp_path / "export"), data=data)
    assert code == 2
    assert "has a log already: expected an empty directory" in err
    assert run(export, data=data)[1] == before
    assert run(import_, str(tmp_path / "export"), store=postgres)[0] == 0
    assert run(import_, str(tmp_path / "export"), store=postgres)[0] == 2


def test_tables_with_topics_are_not_filled(data: Path, postgres: str, tmp_path: Path, run: Run) -> None:
    run(export, data=data, out=tmp_path / "export")
    filled(Postgres(postgres))
    asyncio.run(asked(postgres, "DELETE FROM log", "INSERT INTO topics_log VALUES (1, '[]')"))
    code, out, err = run(import_, str(tmp_path / "export"), store=postgres)
    assert (code, out) == (2, "")
    assert err.startswith(f"rejoin: {postgres} has topics already: expected tables without records and topics")
    assert asyncio.run(asked(postgres, "SELECT count(*) FROM log")) == [0]


def test_what_the_server_says_against_an_import_is_told_in_one_line(
    data: Path, postgres: str, tmp_path: Path, run: Run
) -> None:
    run(export, data=data, out=tmp_path / "export")
    filled(Postgres(postgres))
    asyncio.run(asked(postgres, "DELETE FROM log", "ALTER TABLE log ADD CHECK (position < 2)"))
    code, out, err = run(import_, str(tmp_path / "export"), store=postgres)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert f"{postgres} cannot be filled: new row for relation" in err
    assert "nothing of the log is in it" in err
    assert asyncio.run(asked(postgres, "SELECT count(*) FROM log")) == [0]


def test_tables_that_a_node_uses_are_not_filled(data: Path, postgres: str, tmp_path: Path, run: Run) -> None:
    """It would go on with what it has loaded, and its leases would be of older epochs than the log."""
    run(export, data=data, out=tmp_path / "export")
    filled(Postgres(postgres))
    node = "INSERT INTO nodes (node_id, incarnation, host, port, expires_at) VALUES "
    alive = "(1, '00000000-0000-0000-0000-000000000001', 'one.example', 9092, now() + interval '1 hour')"
    ended = "(2, '00000000-0000-0000-0000-000000000002', 'two.example', 9092, now() - interval '1 second')"
    asyncio.run(asked(postgres, "DELETE FROM log", f"{node} {alive}, {ended}"))
    epochs = asyncio.run(asked(postgres, "SELECT epoch FROM leases ORDER BY partition"))
    code, out, err = run(import_, str(tmp_path / "export"), store=postgres)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert re.search(r" is in use: node 1 \(one.example:9092, for \d+ s\). Expected no node that is alive: stop", err)
    assert asyncio.run(asked(postgres, "SELECT epoch FROM leases ORDER BY partition")) == epochs
    asyncio.run(asked(postgres, "UPDATE nodes SET expires_at = now()"))
    assert run(import_, str(tmp_path / "export"), store=postgres)[0] == 0
    assert asyncio.run(asked(postgres, "SELECT count(*) FROM leases WHERE node_id IS NOT NULL")) == [0]
    assert run(export, store=postgres)[1] == run(export, data=data)[1]


def test_an_import_that_is_refused_leaves_an_empty_store(data: Path, tmp_path: Path, run: Run) -> None:
    path = tmp_path / "export"
    run(export, data=data, out=path)
    lines = path.read_text().splitlines(keepends=True)
    for text, said in (
        ("".join(lines[:-1]), "is cut off: its last line is missing"),
        ("".join([*lines[:-2], lines[-1]]), "the lines before are not those that were written"),
        ("".join(lines).replace('"offset":100', '"offset":"x"'), "it is no record"),
        ("".join(lines).replace('"version":2}', '"version":3}', 1), "expected version 2 or older, found 3"),
        ("nonsense", "line 1: this is not JSON"),
    ):
        path.write_text(text)
        code, _, err = run(import_, str(path), data=tmp_path / "new")
        assert code == 2
        assert said in err
        assert not (tmp_path / "new").exists()


def test_an_import_says_how_many_records_later_ones_replaced(tmp_path: Path, run: Run) -> None:
    key = {"version": 1, "data": {"group": "g", "topic": "orders", "partition": 0}}
    values = [{"version": 3, "data": {"offset": each, "leaderEpoch": -1, "metadata": "", "commitTimestamp": 1}}
              for each in range(2_000)]  # fmt: skip
    (tmp_path / "printed").write_text("".join(json.dumps({"key": key, "value": value}) for value in values))
    code, out, _ = run(import_, str(tmp_path / "printed"), data=tmp_path / "new")
    assert code == 0
    assert out.endswith(", 1999 of them removed at once: later ones replace them\n")
    assert run(verify, data=tmp_path / "new")[1].endswith(": 1 record in 1 partition, all as written\n")


def test_what_a_console_consumer_printed_can_be_imported(data: Path, tmp_path: Path, run: Run) -> None:
    """Kafka 4 puts no line ends between the objects; records of other kinds of groups are left out."""
    printed = run(dump, data=data, partition=(0,))[1].replace("\n", "")
    other = '{"key":{"version":3,"data":"unknown"},"value":{"version":0,"data":"unknown"}}'
    (tmp_path / "printed").write_text(printed + other + "\n")
    code, said, _ = run(import_, str(tmp_path / "printed"), data=tmp_path / "new", partitions=50)
    assert (code, said) == (0, f"3 records from {tmp_path / 'printed'}, 1 of kinds that are not known here left out\n")
    assert run(dump, data=tmp_path / "new", partition=(partition_for("group-id", 50),))[1].replace("\n", "") == printed


def test_tables_filled_with_what_a_console_consumer_printed_have_all_partitions(
    data: Path, tmp_path: Path, postgres: str, run: Run
) -> None:
    """A node that is told how many there are refuses to start with fewer."""
    (tmp_path / "printed").write_text(run(dump, data=data, partition=(0,))[1])
    assert run(import_, str(tmp_path / "printed"), store=postgres, partitions=12)[0] == 0
    assert asyncio.run(asked(postgres, "SELECT partition FROM leases ORDER BY 1")) == list(range(12))
    asyncio.run(asked(postgres, "DELETE FROM log"))
    for partitions in (5, 50):
        code, _, err = run(import_, str(tmp_path / "printed"), store=postgres, partitions=partitions)
        assert code == 2
        assert f"{postgres} was made for 12 offsets partitions, and this log has {partitions}: expected as many" in err
    assert asyncio.run(asked(postgres, "SELECT count(*) FROM leases")) == [12]
    assert run(import_, str(tmp_path / "printed"), store=postgres, partitions=12)[0] == 0


def test_what_has_one_record_is_told_in_the_singular(tmp_path: Path, run: Run) -> None:
    async def fill() -> None:
        store = Sqlite(tmp_path / "one")
        await store.start()
        assert await store.append(0, await store.elect(0), offset(1)) is ErrorCode.NONE
        await store.close()

    asyncio.run(fill())
    assert run(verify, data=tmp_path / "one")[1].endswith(": 1 record in 1 partition, all as written\n")
    code, out, err = run(export, data=tmp_path / "one", out=tmp_path / "export")
    assert (code, out, err) == (0, "", f"1 record to {tmp_path / 'export'}\n")
    code, out, _ = run(import_, str(tmp_path / "export"), data=tmp_path / "two")
    assert (code, out) == (0, f"1 record from {tmp_path / 'export'}\n")


def test_an_export_that_has_no_place_to_go_leaves_nothing_behind(data: Path, tmp_path: Path, run: Run) -> None:
    before = sorted(tmp_path.iterdir())
    for out, said in (
        (tmp_path, "this is no regular file; expected the name of one to write"),
        (tmp_path / "nope" / "x", f"there is no directory {tmp_path / 'nope'}; expected one for the file to go into"),
        (Path("/proc/export"), "it cannot be written: "),
    ):
        code, _, err = run(export, data=data, out=out)
        assert code == 2
        assert err.startswith(f"rejoin: --out {out}: {said}")
        assert err.count("\n") == 1
    assert sorted(tmp_path.iterdir()) == before
    assert not tmp_path.with_name(tmp_path.name + ".new").exists()


def test_a_directory_that_cannot_be_locked_or_read_is_refused_in_one_line(
    data: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    (data / "lock").unlink()
    (data / "lock").mkdir()
    code, out, err = run(verify, data=data)
    assert (code, out) == (2, "")
    assert err == (
        f"rejoin: the data directory {data} cannot be used: lock: Is a directory; expected a directory to write "
        "to, and a file lock in it or none\n"
    )

    def refuse(path: Path, **_: object) -> None:
        raise PermissionError(errno.EACCES, "Permission denied", str(path))

    monkeypatch.setattr(Path, "stat", refuse)
    code, out, err = run(verify, data=data)
    assert (code, out) == (2, "")
    assert err.startswith(f"rejoin: {data}")
    assert "Permission denied; expected" in err


def test_the_command_line_reads_standard_input_and_says_what_is_wrong_with_it(data: Path) -> None:
    def ask(*words: object, text: str = "") -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "rejoin", "log", *map(str, words)]
        return subprocess.run(command, input=text, capture_output=True, text=True, check=False)

    exported = ask("export", "--data", data)
    assert exported.returncode == 0
    dumped = ask("dump", "-", text=exported.stdout)
    assert dumped.stdout == ask("dump", "--data", data).stdout
    wrong = ask("dump")
    assert wrong.returncode == 2
    assert wrong.stderr == "rejoin: expected one of FILE, --data DIR and --store postgresql://..., and no more\n"
    wrong = ask("export")
    assert wrong.stderr == "rejoin: expected either --data DIR or --store postgresql://..., and not both\n"
    assert ask("dump", "/nowhere").stderr == (
        "rejoin: /nowhere cannot be read: No such file or directory; expected a file of log export\n"
    )
