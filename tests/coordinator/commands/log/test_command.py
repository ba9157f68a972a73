"""``rejoin log dump`` and ``verify``: what they print, and what they find."""

from __future__ import annotations

import asyncio
import json
import re
import shutil
import sqlite3
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from rejoin.coordinator.commands.log.command import dump, export, import_, verify
from rejoin.coordinator.commands.log.tables import PostgresSource
from rejoin.coordinator.storage.base import StoreProblem
from rejoin.coordinator.storage.codec import checksum, encode
from rejoin.coordinator.storage.postgres.database import Database
from rejoin.coordinator.storage.postgres.schema import STEPS
from rejoin.coordinator.storage.sqlite.progress_file import DATABASE, PROGRESS
from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.records.consumer_offsets import offsets_partition
from tests.coordinator.commands.log.logs import AHEAD, ONE_RECORD, RECORDS, Run, asked, filled, read
from tests.coordinator.storage.helpers import Postgres, Sqlite, offset

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
    assert f"stop that process, or verify an export: rejoin log export --data {data} --out" in verified[2]


# --- verify


def test_a_log_that_is_as_it_was_written(data: Path, run: Run) -> None:
    code, out, err = run(verify, data=data)
    assert (code, err) == (0, "")
    count = sum(map(len, RECORDS.values()))
    assert out == f"{data}: {count} records in 3 offsets partitions, 0 batches in 0 data partitions, all as written\n"
    export(data=data, out=data / "export")
    code, out, _ = run(verify, str(data / "export"))
    assert (code, out) == (0, f"{data / 'export'}: {count} records in 3 offsets partitions, all as written\n")


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
    assert f"rejoin: {what}; records that were lost are missing from the output\n" in err
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

        def grown(before: int) -> bool:
            return number > before

        writing = asyncio.create_task(write())
        found = []
        for _ in range(30):
            before = number
            found.append(await asyncio.to_thread(run, export, data=tmp_path / "data"))
            await store.until(partial(grown, before))
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
    assert "is lost: records were read from" in err
    assert ahead.read_bytes() == before
    assert run(import_, str(tmp_path / "saved"), data=tmp_path / "new")[0] == 0
    assert read(Sqlite(tmp_path / "new")) == RECORDS
    ahead.write_bytes(bytes(len(before)))
    assert "Nothing can be read from the write-ahead log either" in run(export, data=broken, salvage=True)[2]
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
    assert f"{DATABASE} is lost: records were read from" in err
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
    assert "__consumer_offsets-0, position 1: the checksum does not match the record" in out
    assert "__consumer_offsets-5, position 1: of epoch 99, which no node had: the lease has 2" in out
    assert "__consumer_offsets-5, position 2: of epoch 2, behind one of epoch 99" in out


SCHEMAS = "SELECT nspname::text FROM pg_namespace ORDER BY 1"


def test_tables_that_are_not_there_are_not_made_by_looking_for_them(postgres: str, run: Run) -> None:
    schemas = asyncio.run(asked(postgres, SCHEMAS))
    for command in (verify, dump, export):
        code, out, err = run(command, store=postgres)
        assert (code, out) == (2, "")
        assert err == (
            f"rejoin: {postgres} has no tables of a coordinator; expected the URL that was --store "
            "of a coordinator, with its search_path\n"
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
    assert run(verify, store=postgres) == (0, f"{postgres}{ONE_RECORD}", "")
    assert run(dump, store=postgres)[1].startswith('{"key":{"version":1,')
    code, out, _ = run(export, store=postgres)
    assert (code, out.count("\n")) == (0, 4)
    assert asyncio.run(asked(postgres, "SELECT max(version) FROM schema_version")) == [version]


def test_the_reader_of_what_is_printed_may_take_its_time(postgres: str) -> None:
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
