"""A data directory: who may use it, how it survives what happens to files, and that nothing is lost silently."""

from __future__ import annotations

import asyncio
import os
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from rejoin.coordinator.storage.base import StoreProblem
from rejoin.coordinator.storage.codec import checksum, encode
from rejoin.coordinator.storage.sqlite import partition_index
from rejoin.coordinator.storage.sqlite import schema as sqlite_schema
from rejoin.coordinator.storage.sqlite.progress_file import DATABASE, PROGRESS
from rejoin.protocol.records.consumer_offsets import offsets_partition
from tests.coordinator.storage.directories import NONE, RECORDS, copied, fill, refused
from tests.coordinator.storage.helpers import Sqlite, offset


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[Sqlite]:
    kept = Sqlite(tmp_path / "data")
    await kept.start()
    yield kept
    await kept.close()


# --- one at a time


async def test_a_second_process_is_refused_before_anything_is_written(store: Sqlite) -> None:
    before = {path.name: path.stat().st_mtime_ns for path in store.folder.iterdir()}
    done = await asyncio.to_thread(
        subprocess.run,
        [sys.executable, "-m", "rejoin", "serve", "--data", str(store.folder), "--port", "0"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert f"{store.folder} is in use by another process, {os.getpid()}" in done.stderr
    assert {path.name: path.stat().st_mtime_ns for path in store.folder.iterdir()} == before


async def test_the_same_process_is_refused_as_well(store: Sqlite) -> None:
    with pytest.raises(StoreProblem, match="in use"):
        await Sqlite(store.folder).start()


async def test_a_refused_start_leaves_the_directory_free(store: Sqlite) -> None:
    await store.close()
    (store.folder / PROGRESS).write_text("nonsense")
    with pytest.raises(StoreProblem, match="mark is damaged"):
        await store.start()
    (store.folder / PROGRESS).unlink()
    await store.start()


# --- versions


def made_long_ago(folder: Path, version: int) -> Sqlite:
    """A directory as programs of an older version left it."""
    folder.mkdir()
    connection = sqlite3.connect(folder / DATABASE)
    for step in sqlite_schema.STEPS[:version]:
        connection.executescript(step)
    checksums = 0
    for position, record in enumerate(RECORDS, 1):
        entry = encode(record)
        crc = checksum(offsets_partition(position % 2), position, entry)
        checksums += crc * (position % 2)
        row = (position, position % 2, 4, entry.producer_id, crc, entry.key, entry.value)
        connection.execute("INSERT INTO log VALUES (?, ?, ?, ?, ?, ?, ?)", row)
    (all_checksums,) = connection.execute("SELECT sum(checksum) FROM log").fetchone()
    for partition, each in ((0, all_checksums - checksums), (1, checksums)):
        counted = (150, each) if version < 4 else (0, 0)
        named = "" if version < 5 else f", '__consumer_offsets', {partition}"
        connection.execute(f"INSERT INTO partitions VALUES (?, 4, ?, ?, 0{named})", (partition, *counted))
    store = "INSERT INTO store (id, name, batch, next_position, in_use) VALUES (1, 'old', 30, 301, 0)"
    connection.execute(store)
    if version >= 4:
        connection.execute("UPDATE store SET tail_checksums = ?", (all_checksums,))
    connection.execute(f"PRAGMA user_version = {version}")
    connection.commit()
    connection.close()
    return Sqlite(folder)


@pytest.mark.parametrize("version", range(1, len(sqlite_schema.STEPS)))
async def test_an_older_directory_becomes_a_newer_one(tmp_path: Path, version: int) -> None:
    store = made_long_ago(tmp_path / "old", version)
    await store.start()
    epoch = await store.elect(0)
    assert epoch == 5, "the one after that in which it was written"
    assert await store.append(0, epoch, offset(7)) is NONE
    assert await store.read(0, epoch) == [*RECORDS[1::2], offset(7)]
    await store.restart()
    assert await store.read(0) == [*RECORDS[1::2], offset(7)]
    assert await store.read(1) == RECORDS[::2]
    await store.close()
    with sqlite3.connect(store.folder / DATABASE) as connection:
        assert connection.execute("PRAGMA user_version").fetchone() == (len(sqlite_schema.STEPS),)
        assert connection.execute("SELECT * FROM topics_log").fetchall() == []
    connection.close()


async def test_an_older_directory_that_lost_something_is_refused_as_it_is(tmp_path: Path) -> None:
    store = made_long_ago(tmp_path / "old", 2)
    connection = sqlite3.connect(store.folder / DATABASE)
    connection.execute("DELETE FROM log WHERE position = 17")
    connection.commit()
    connection.close()
    assert "__consumer_offsets-1: expected 150 records, found 149" in await refused(store)


@pytest.mark.parametrize(
    ("statement", "said"),
    [
        ("UPDATE store SET tail_checksums = 'text'", "the table store: expected numbers for where the log ends"),
        ("UPDATE partitions SET epoch = 'text'", "the table partitions, id 0: expected numbers and a topic's name"),
        ("UPDATE partitions SET topic = x'00ff'", "the table partitions, id 0: expected numbers and a topic's name"),
        ("UPDATE log SET epoch = 'text' WHERE position = 299", "position 299: there is no record in its place"),
    ],
)
async def test_a_column_of_the_wrong_type_is_refused_in_words(store: Sqlite, statement: str, said: str) -> None:
    await fill(store)
    await store.close()
    with sqlite3.connect(store.folder / DATABASE) as connection:
        connection.execute(statement)
    connection.close()
    assert said in await refused(store)


async def test_a_newer_directory_is_refused(store: Sqlite) -> None:
    await store.close()
    connection = sqlite3.connect(store.folder / DATABASE)
    connection.execute("PRAGMA user_version = 77")
    connection.close()
    said = await refused(store)
    assert "is of version 77, made by a newer program" in said
    assert "run the newer one" in said


async def test_the_database_of_another_program_is_refused(tmp_path: Path) -> None:
    connection = sqlite3.connect(tmp_path / DATABASE)
    connection.execute("CREATE TABLE photos (name TEXT)")
    connection.close()
    assert "some other program" in await refused(Sqlite(tmp_path))


async def test_a_directory_that_cannot_be_made_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreProblem, match=r"cannot be used: .*expected one to write to"):
        await Sqlite(tmp_path / "file").start()
    with pytest.raises(StoreProblem, match="cannot be used"):
        await Sqlite(tmp_path / "file" / "inside").start()


async def test_a_file_that_cannot_be_opened_is_not_called_damaged(tmp_path: Path) -> None:
    """No copy of it would help."""
    (tmp_path / DATABASE).mkdir()
    with pytest.raises(StoreProblem) as problem:
        await Sqlite(tmp_path).start()
    said = str(problem.value)
    assert said.startswith(f"{tmp_path / DATABASE} cannot be opened: disk I/O error (SQLITE_IOERR")
    assert said.endswith(
        "; expected a disk that works and has room, and the right to write to the directory and the files in it"
    )
    (tmp_path / DATABASE).rmdir()
    (tmp_path / DATABASE).write_bytes(b"nonsense" * 1_000)
    said = await refused(Sqlite(tmp_path))
    assert "cannot be read: file is not a database. It is damaged, or not made by this program" in said
    assert f"log export --data {tmp_path} --salvage" in said


async def test_a_mark_that_cannot_be_read_is_refused_with_what_to_do(store: Sqlite) -> None:
    await store.close()
    mark = store.folder / PROGRESS
    mark.write_text("nonsense")
    said = await refused(store)
    assert f"{mark} is damaged, so {store.folder / DATABASE} may be incomplete. Put a complete" in said
    assert f"log export --data {store.folder} --salvage" in said
    mark.unlink()
    mark.mkdir()
    with pytest.raises(StoreProblem, match=r"mark cannot be read \(Is a directory; expected a file\)"):
        await store.start()
    mark.rmdir()
    await store.start()


async def test_a_first_start_that_ended_in_its_first_moment_is_made_up_for(tmp_path: Path) -> None:
    """The tables are there, and nothing is in them yet."""
    connection = sqlite3.connect(tmp_path / DATABASE)
    for step in sqlite_schema.STEPS:
        connection.executescript(step)
    connection.execute(f"PRAGMA user_version = {len(sqlite_schema.STEPS)}")
    connection.close()
    store = Sqlite(tmp_path)
    await store.start()
    await fill(store)
    await store.restart()
    assert await store.read(0) == RECORDS
    await store.close()


async def test_a_migration_is_reported_once(tmp_path: Path, log_lines: list[dict[str, object]]) -> None:
    store = made_long_ago(tmp_path / "old", 1)
    await store.start()
    await store.restart()
    await store.close()
    migrated = [line for line in log_lines if line["event"] == "schema_migrated"]
    assert migrated == [
        {
            "event": "schema_migrated",
            "log_level": "info",
            "store": str(store.folder / DATABASE),
            "from_version": 1,
            "to_version": len(sqlite_schema.STEPS),
        }
    ]
    log_lines.clear()
    new = Sqlite(tmp_path / "new")
    await new.start()
    await new.close()
    assert log_lines == [], "what is made new was of no version before"


# --- copies, and files that are cut or changed


async def test_a_copy_of_everything_made_while_it_runs_has_everything(store: Sqlite, tmp_path: Path) -> None:
    await fill(store)
    copy = copied(store, tmp_path / "copy")
    await copy.start()
    assert await copy.read(0) == RECORDS
    await copy.close()


async def test_a_copy_of_the_database_alone_made_while_it_runs_is_refused(store: Sqlite, tmp_path: Path) -> None:
    await fill(store)
    said = await refused(copied(store, tmp_path / "copy", DATABASE))
    assert "copied while a coordinator used it" in said
    assert "log export --data" in said


async def test_a_copy_without_the_write_ahead_log_is_refused(store: Sqlite, tmp_path: Path) -> None:
    await fill(store)
    said = await refused(copied(store, tmp_path / "copy", DATABASE, PROGRESS))
    assert "batch 30 was stored" in said
    assert "coordinator.db-wal is missing" in said


async def test_a_copy_of_the_database_alone_is_enough_once_it_is_closed(store: Sqlite, tmp_path: Path) -> None:
    await fill(store)
    await store.close()
    copy = copied(store, tmp_path / "copy", DATABASE)
    await copy.start()
    assert await copy.read(0) == RECORDS
    await copy.close()


async def test_a_mark_without_its_database_is_refused(store: Sqlite, tmp_path: Path) -> None:
    await fill(store)
    await store.close()
    assert "coordinator.db is missing, and 30 batches" in await refused(copied(store, tmp_path / "copy", PROGRESS))


async def test_an_older_copy_under_a_newer_mark_is_refused(store: Sqlite, tmp_path: Path) -> None:
    await fill(store)
    await store.close()
    old = copied(store, tmp_path / "old", DATABASE)
    await store.start()
    await fill(store)
    await store.close()
    shutil.copy(store.folder / PROGRESS, old.folder / PROGRESS)
    assert "older copy" in await refused(old)


def cut(share: float) -> Callable[[bytes], bytes]:
    return lambda content: content[: int(len(content) * share)]


def flipped(share: float) -> Callable[[bytes], bytes]:
    def change(content: bytes) -> bytes:
        at = int(len(content) * share)
        return content[:at] + bytes([content[at] ^ 0x10]) + content[at + 1 :]

    return change


def zeroed(share: float) -> Callable[[bytes], bytes]:
    def change(content: bytes) -> bytes:
        at = int(len(content) * share)
        return content[:at] + bytes(512) + content[at + 512 :]

    return change


DAMAGES = [
    pytest.param(change(share), id=f"{change.__name__} at {share}")
    for change in (cut, flipped, zeroed)
    for share in (0.001, 0.01, 0.1, 0.2, 0.3, 0.45, 0.55, 0.6, 0.75, 0.9, 0.97, 0.99)
]
EMPTIED = pytest.param(cut(0.0), id="emptied")


async def recovers_or_refuses(store: Sqlite) -> None:
    """Either everything that was acknowledged is there, or the start is refused with words about it."""
    problem = None
    try:
        await store.start()
    except StoreProblem as found:
        problem = str(found)
    if problem is not None:
        assert str(store.folder) in problem
        return
    assert await store.read(0) == RECORDS
    await store.close()


@pytest.mark.parametrize("damage", [EMPTIED, *DAMAGES])
async def test_a_damaged_write_ahead_log_loses_nothing_quietly(
    store: Sqlite, tmp_path: Path, damage: Callable[[bytes], bytes]
) -> None:
    await fill(store)
    copy = copied(store, tmp_path / "copy", DATABASE, f"{DATABASE}-wal", PROGRESS)
    ahead = copy.folder / f"{DATABASE}-wal"
    assert ahead.stat().st_size > 100_000
    ahead.write_bytes(damage(ahead.read_bytes()))
    await recovers_or_refuses(copy)


@pytest.mark.parametrize("damage", DAMAGES)
async def test_a_damaged_database_loses_nothing_quietly(
    store: Sqlite, tmp_path: Path, damage: Callable[[bytes], bytes]
) -> None:
    await fill(store)
    await store.close()
    copy = copied(store, tmp_path / "copy", DATABASE)
    path = copy.folder / DATABASE
    path.write_bytes(damage(path.read_bytes()))
    await recovers_or_refuses(copy)


async def test_a_database_whose_tables_have_names_that_are_no_text_is_refused(store: Sqlite) -> None:
    """SQLite quotes such a name in its error, so that the error is no text either."""
    await fill(store)
    await store.close()
    path = store.folder / DATABASE
    path.write_bytes(
        path.read_bytes().replace(b"tablelog", b"tablel\xe3g").replace(b"CREATE TABLE log", b"CREATE T\xe3BLE log")
    )
    assert f"{path} cannot be read" in await refused(store)


@pytest.mark.parametrize("damage", [EMPTIED, *DAMAGES])
@pytest.mark.parametrize("names", [(PROGRESS,), (PROGRESS, f"{DATABASE}-wal"), (f"{DATABASE}-wal",)], ids="+".join)
async def test_a_damaged_database_beside_its_other_files_loses_nothing_quietly(
    store: Sqlite, tmp_path: Path, names: tuple[str, ...], damage: Callable[[bytes], bytes]
) -> None:
    await fill(store)
    if f"{DATABASE}-wal" not in names:
        await store.close()
    copy = copied(store, tmp_path / "copy", DATABASE, *names)
    path = copy.folder / DATABASE
    path.write_bytes(damage(path.read_bytes()))
    await recovers_or_refuses(copy)


@pytest.mark.parametrize("size", [None, 0, 1], ids=["missing", "empty", "one byte"])
async def test_a_lost_database_is_refused_and_its_write_ahead_log_is_kept(
    store: Sqlite, tmp_path: Path, size: int | None
) -> None:
    """SQLite itself would delete the log, with everything that a killed process had acknowledged."""
    await fill(store)
    for name, beside, words in (
        (
            "killed",
            (PROGRESS, f"{DATABASE}-wal"),
            ("30 batches had been written", "mark", f"{DATABASE}-wal", "--salvage"),
        ),
        ("no mark", (f"{DATABASE}-wal",), ("expected both, or neither", f"{DATABASE}-wal", "--salvage")),
        ("no log", (PROGRESS,), ("30 batches had been written", "mark", "Put a complete copy of the directory back")),
    ):
        copy = copied(store, tmp_path / name, *beside)
        if size is not None:
            (copy.folder / DATABASE).write_bytes(bytes(size))
        said = await refused(copy)
        assert all(word in said for word in (str(copy.folder / DATABASE), *words)), said


async def test_a_database_without_tables_under_a_mark_is_refused(store: Sqlite, tmp_path: Path) -> None:
    copy = copied(store, tmp_path / "copy", PROGRESS)
    connection = sqlite3.connect(copy.folder / DATABASE)
    connection.execute("VACUUM")
    connection.close()
    assert (copy.folder / DATABASE).stat().st_size > 1
    assert "has no tables, and 0 batches" in await refused(copy)


async def test_an_empty_file_becomes_a_store(tmp_path: Path) -> None:
    """As a process leaves it that is killed in the first moment of its first start."""
    (tmp_path / DATABASE).write_bytes(b"")
    store = Sqlite(tmp_path)
    await store.start()
    await fill(store)
    await store.restart()
    assert await store.read(0) == RECORDS
    await store.close()


@pytest.mark.parametrize("catch_up", [25, 4_000], ids=["counted by partition", "not yet"])
async def test_records_that_vanish_or_change_are_noticed(
    store: Sqlite, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, catch_up: int
) -> None:
    monkeypatch.setattr(partition_index, "_CATCH_UP_RECORDS", catch_up)
    await fill(store)
    await store.close()
    for name, statement, said in (
        ("gone", "DELETE FROM log WHERE position = 17", "expected 300 records, found 299"),
        ("changed", "UPDATE log SET value = replace(value, 'm', 'n') WHERE position = 17", "position 17: the checksum"),
        ("moved", "UPDATE log SET position = 999 WHERE position = 17", "position 999: the checksum"),
        ("doubled", "INSERT INTO log SELECT 999, partition_id, epoch, producer_id, checksum, key, value FROM log "
         "WHERE position = 17", "position 999: the checksum"),
    ):  # fmt: skip
        copy = copied(store, tmp_path / name)
        connection = sqlite3.connect(copy.folder / DATABASE)
        connection.execute(statement)
        connection.commit()
        connection.close()
        assert said in await refused(copy)


@pytest.mark.parametrize("catch_up", [25, 4_000], ids=["counted by partition", "not yet"])
async def test_one_record_in_place_of_another_is_noticed(
    store: Sqlite, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, catch_up: int
) -> None:
    """With a checksum that fits, even: the sum over all of them does not."""
    monkeypatch.setattr(partition_index, "_CATCH_UP_RECORDS", catch_up)
    await fill(store)
    await store.close()
    entry = encode(offset(4_711))
    connection = sqlite3.connect(store.folder / DATABASE)
    connection.execute(
        "UPDATE log SET checksum = ?, key = ?, value = ? WHERE position = 17",
        (checksum(offsets_partition(0), 17, entry), entry.key, entry.value),
    )
    connection.commit()
    connection.close()
    assert "records are not those that were stored" in await refused(store)


@pytest.mark.parametrize("share", [0.1, 0.3, 0.5, 0.7, 0.9])
async def test_a_copy_that_is_half_of_one_moment_and_half_of_another_is_noticed(
    store: Sqlite, tmp_path: Path, share: float
) -> None:
    """Copied while pages went from the write-ahead log into the database."""
    await fill(store)
    await store.close()
    earlier = (store.folder / DATABASE).read_bytes()
    await store.start()
    epoch = await store.elect(0)
    for number in range(300):
        assert await store.append(0, epoch, offset(1_000 + number, partition=number)) is NONE
    await store.close()
    later = (store.folder / DATABASE).read_bytes()
    for name, first, second in (("one", earlier, later), ("two", later, earlier)):
        at = int(min(len(first), len(second)) * share) // 4_096 * 4_096
        copy = Sqlite(tmp_path / name)
        copy.folder.mkdir()
        (copy.folder / DATABASE).write_bytes(first[:at] + second[at:])
        if first[:at] == second[:at] or first[at:] == second[at:]:
            continue
        assert "coordinator.db" in await refused(copy)
