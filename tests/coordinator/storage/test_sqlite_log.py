"""The log of a data directory: when the store breaks, where records are found, and what is compacted."""

from __future__ import annotations

import asyncio
import sqlite3
import threading
from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path

import pytest

from rejoin.coordinator.storage.codec import Entry, encode
from rejoin.coordinator.storage.memory import compacted
from rejoin.coordinator.storage.sqlite import compaction, partition_index
from rejoin.coordinator.storage.sqlite import database as database_module
from rejoin.coordinator.storage.sqlite import log as sqlite
from rejoin.coordinator.storage.sqlite.database import Done, SqliteDatabase, Work
from rejoin.coordinator.storage.sqlite.log import SqliteLog
from rejoin.coordinator.storage.sqlite.progress_file import DATABASE
from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.records.keyed import Record
from rejoin.protocol.types import TopicPartition
from tests.coordinator.storage.directories import BROKEN, NONE, RECORDS, UNKNOWN, copied, fill, refused
from tests.coordinator.storage.helpers import PATIENCE, Sqlite, gone, group, marker, offset


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[Sqlite]:
    kept = Sqlite(tmp_path / "data")
    await kept.start()
    yield kept
    await kept.close()


# --- a store that breaks while it is used


async def limited(store: Sqlite, pages: int) -> None:
    """Let the file grow to so many pages, and no further: a full disk."""
    done: asyncio.Future[object] = asyncio.get_running_loop().create_future()
    log = store.log
    assert isinstance(log, SqliteLog)
    log.database.submit(
        lambda connection: connection.execute(f"PRAGMA max_page_count = {pages}").fetchone(), done.set_result
    )
    await asyncio.wait_for(done, PATIENCE)


async def test_a_full_disk_fails_appends_until_there_is_room(store: Sqlite) -> None:
    await fill(store)
    epoch = await store.elect(0)
    await limited(store, 1)
    big = [group(number, group_id=f"g-{number}", members=200) for number in range(20)]
    ends = await asyncio.gather(*(store.begin(0, epoch, each) for each in big))
    assert set(ends) == {BROKEN}
    assert await store.read(0, epoch) == RECORDS, "reading goes on"
    assert store.watching.failures == [BROKEN] * 20
    await limited(store, 1_000_000)
    assert await store.append(0, epoch, offset(7)) is NONE
    assert await store.read(0, epoch) == [*RECORDS, offset(7)]
    await store.restart()
    assert await store.read(0) == [*RECORDS, offset(7)]


async def test_what_went_to_a_removed_file_is_not_said_to_be_stored(store: Sqlite) -> None:
    await fill(store)
    epoch = await store.elect(0)
    path = store.folder / DATABASE
    aside = path.with_name("aside")
    path.rename(aside)
    assert await store.append(0, epoch, offset(7)) is BROKEN
    path.write_bytes(aside.read_bytes())
    assert await store.append(0, epoch, offset(7)) is BROKEN
    path.unlink()
    aside.rename(path)
    assert await store.append(0, epoch, offset(8)) is NONE
    await store.restart()
    assert await store.read(0) == [*RECORDS, offset(8)]


async def test_what_one_piece_of_work_spoils_the_others_do_not_feel(store: Sqlite) -> None:
    epoch = await store.elect(0)
    log = store.log
    assert isinstance(log, SqliteLog)
    failed: asyncio.Future[object] = asyncio.get_running_loop().create_future()
    before = store.begin(0, epoch, offset(1))
    log.database.submit(
        lambda connection: connection.execute("INSERT INTO topics_log VALUES (1, NULL)"), failed.set_result
    )
    after = store.begin(0, epoch, offset(2))
    assert [await before, await after] == [NONE, NONE]
    assert isinstance(await failed, sqlite3.IntegrityError)
    assert await store.read(0) == [offset(1), offset(2)]


async def test_a_partition_that_was_not_stored_is_added_again(store: Sqlite) -> None:
    """Its id goes with the transaction that failed."""
    log = store.log
    assert isinstance(log, SqliteLog)
    other = TopicPartition("__transaction_state", 0)
    failed: asyncio.Future[object] = asyncio.get_running_loop().create_future()

    def spoil(connection: sqlite3.Connection) -> None:
        log.fill([(other, 7, None)], connection)
        connection.execute("INSERT INTO topics_log VALUES (1, NULL)")

    log.database.submit(spoil, failed.set_result)
    assert isinstance(await failed, sqlite3.IntegrityError)
    stored: asyncio.Future[ErrorCode] = asyncio.get_running_loop().create_future()
    log.append(other, log.elect(other), (offset(1),), stored.set_result)
    assert await stored is NONE
    await store.restart()
    restarted = store.log
    assert isinstance(restarted, SqliteLog)
    assert restarted.elect(other) == 1, "the epoch that failed was never there"


async def test_a_record_that_cannot_be_stored_fails_alone(store: Sqlite, monkeypatch: pytest.MonkeyPatch) -> None:
    """As in PostgreSQL: its writer gets the error, the others are stored, and the log goes on."""
    impossible = offset(2)

    def refuse(record: Record) -> Entry:
        if record is impossible:
            raise ValueError("this has no JSON")
        return encode(record)

    monkeypatch.setattr(sqlite, "encode", refuse)
    epoch = await store.elect(0)
    ends = [store.begin(0, epoch, record) for record in (offset(1), impossible, offset(3))]
    ends.append(store.begin(0, epoch, offset(4), impossible))
    assert [await end for end in ends] == [NONE, UNKNOWN, NONE, UNKNOWN]
    assert store.watching.failures == [UNKNOWN, UNKNOWN]
    assert await store.append(0, epoch, offset(5)) is NONE
    await store.restart()
    assert await store.read(0) == [offset(1), offset(3), offset(5)]


# --- where the records of a partition are


async def test_a_partition_is_found_among_many_whether_it_is_indexed_yet_or_not(
    store: Sqlite, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(partition_index, "_CATCH_UP_RECORDS", 25)
    epochs = [await store.elect(partition) for partition in range(3)]
    expected: list[list[Record]] = [[], [], []]
    for number in range(120):
        partition = number * number % 3
        records = [offset(number, partition=4 * number + place) for place in range(number % 4)]
        assert await store.append(partition, epochs[partition], *records) is NONE
        expected[partition] += records
        if number % 10 == 0:
            assert [await store.read(each, epochs[each]) for each in range(3)] == expected
    await store.restart()
    assert [await store.read(partition) for partition in range(3)] == expected


async def test_an_index_that_misses_a_record_or_has_it_elsewhere_is_noticed(
    store: Sqlite, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(partition_index, "_CATCH_UP_RECORDS", 25)
    await fill(store)
    await store.close()
    for name, statement, said in (
        ("gone", "DELETE FROM positions WHERE position = 17", "its index has 299 records, its table 300"),
        (
            "moved",
            "UPDATE positions SET partition_id = 1 WHERE position = 17",
            "its index has 299 records, its table 300",
        ),
    ):
        copy = copied(store, tmp_path / name)
        connection = sqlite3.connect(copy.folder / DATABASE)
        assert connection.execute(statement).rowcount == 1
        connection.commit()
        connection.close()
        assert said in await refused(copy)


async def test_a_record_that_vanishes_from_a_running_log_is_noticed_when_the_index_catches_up(
    log_lines: list[dict[str, object]], store: Sqlite, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is left must not be counted as all that there was: appends fail, and the next start is refused."""
    monkeypatch.setattr(partition_index, "_CATCH_UP_RECORDS", 25)
    epoch = await store.elect(0)
    assert await store.append(0, epoch, *RECORDS[:10]) is NONE
    with sqlite3.connect(store.folder / DATABASE) as connection:
        connection.execute("DELETE FROM log WHERE position = 7")
    connection.close()
    assert await store.append(0, epoch, *RECORDS[10:20]) is NONE
    assert await store.append(0, epoch, *RECORDS[20:30]) is BROKEN
    assert [line["problem"] for line in log_lines if line["event"] == "append_failed"] == [
        "StoreProblem: after position 0: expected 30 records, found 29"
    ]
    await store.close()
    assert "after position 0: expected 20 records, found 19" in await refused(store)


async def test_a_compaction_counts_what_it_removed_before_a_reader_stopped_it(
    store: Sqlite, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(partition_index, "_COMPACT_FROM", 100)
    monkeypatch.setattr(compaction, "_SLICE_RECORDS", 30)
    log = store.log
    assert isinstance(log, SqliteLog)
    epoch = await store.elect(0)
    removed: list[int] = []

    def read_from_now_on(partition: TopicPartition, count: int) -> None:
        removed.append(count)
        log._reading[partition] += 1

    monkeypatch.setattr(store.watching, "compacted", read_from_now_on)
    monkeypatch.setattr(log.index, "_is_any_read", lambda: True)
    for _ in range(2):
        assert await store.append(0, epoch, *RECORDS[:100]) is NONE
    log.database.submit(log.index.catch_up, lambda _: log.compactor.look_after())
    await store.until(lambda: bool(removed) and not log.compactor.is_busy)
    assert removed == [30]


async def test_partitions_are_compacted_together(store: Sqlite, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those that are due, and those that are halfway there; the rest, and what transactions need, stays as it is."""
    monkeypatch.setattr(partition_index, "_CATCH_UP_RECORDS", 100)
    epochs = [await store.elect(partition) for partition in range(4)]

    async def write(partition: int, records: int) -> None:
        for begin in range(0, records, 100):
            some = [offset(begin + number, partition=number) for number in range(100)]
            assert await store.append(partition, epochs[partition], *some) is NONE

    for partition, records in ((1, 700), (2, 100), (3, 800)):
        await write(partition, records)
    held: list[Record] = [offset(1, producer_id=9), offset(2, partition=1, producer_id=8), marker(8)]
    assert await store.append(3, epochs[3], *held) is NONE
    assert store.watching.removed == 0
    await write(0, 1_000)
    await store.until(lambda: store.watching.removed >= 900 + 600 + 701)
    await store.restart()
    assert await store.read(0) == [offset(900 + number, partition=number) for number in range(100)]
    assert await store.read(1) == [offset(600 + number, partition=number) for number in range(100)]
    assert len(await store.read(2)) == 100
    assert await store.read(3) == [*(offset(700 + each, partition=each) for each in range(100) if each != 1), *held]


async def test_what_is_soon_written_over_is_gone_before_it_is_counted(
    store: Sqlite, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(partition_index, "_CATCH_UP_RECORDS", 100)
    epoch = await store.elect(0)
    plain = [offset(number, partition=number % 3) for number in range(96)]
    open_ones = [offset(0, producer_id=9), offset(1, producer_id=9)]
    assert await store.append(0, epoch, *plain[:50], *open_ones, *plain[50:], gone(), gone()) is NONE
    assert store.watching.removed == 96 - 2
    # Nothing of a transaction, and no tombstone: it also ends what transactions hold.
    left = [*open_ones, offset(94, partition=1), offset(95, partition=2), gone(), gone()]
    assert await store.read(0, epoch) == left
    await store.restart()
    assert await store.read(0) == left


async def test_what_a_compaction_finds_may_be_gone_when_it_comes_to_remove_it(
    store: Sqlite, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is counted once, and the directory is as whole as it was."""
    monkeypatch.setattr(partition_index, "_CATCH_UP_RECORDS", 50)
    monkeypatch.setattr(partition_index, "_COMPACT_FROM", 100)
    log = store.log
    assert isinstance(log, SqliteLog)
    read = log.database.read
    asked: asyncio.Queue[tuple[Work, Done]] = asyncio.Queue()
    monkeypatch.setattr(log.database, "read", lambda work, done: asked.put_nowait((work, done)))
    epoch = await store.elect(0)
    assert await store.append(0, epoch, *(offset(number, partition=number) for number in range(100))) is NONE
    find, remove = await asyncio.wait_for(asked.get(), PATIENCE)
    assert await store.append(0, epoch, *(offset(number) for number in range(30))) is NONE
    found: asyncio.Future[object] = asyncio.get_running_loop().create_future()
    read(find, found.set_result)
    await found
    assert await store.append(0, epoch, *(offset(number) for number in range(30, 60))) is NONE
    assert store.watching.removed == 59
    remove(found.result())
    await store.until(lambda: not log.compactor.is_busy)
    await store.restart()
    expected = [*(offset(number, partition=number) for number in range(1, 100)), offset(59)]
    assert await store.read(0) == expected


async def test_what_is_about_to_be_read_is_not_removed_meanwhile(
    store: Sqlite, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(partition_index, "_CATCH_UP_RECORDS", 100)
    epoch = await store.elect(0)
    records = [offset(number) for number in range(100)]
    reading = asyncio.create_task(store.read(0, epoch))
    await asyncio.sleep(0)
    assert await store.append(0, epoch, *records) is NONE
    await reading
    assert store.watching.removed == 0
    assert await store.read(0, epoch) == records
    assert await store.append(0, epoch, *records) is NONE
    assert await store.read(0, epoch) == [*records, offset(99)], "those that were counted wait for the compaction"


# --- size


async def test_appends_that_wait_share_a_transaction(store: Sqlite) -> None:
    epochs = [await store.elect(partition) for partition in range(8)]
    await store.append(0, epochs[0], offset(0))
    del store.watching.batches[:]
    await asyncio.gather(*(store.begin(number % 8, epochs[number % 8], offset(number)) for number in range(64)))
    assert store.watching.batches == [64]


async def test_the_files_grow_with_what_is_alive(store: Sqlite) -> None:
    epoch = await store.elect(0)
    written = 0
    for number in range(60):
        records = [offset(number, partition=partition) for partition in range(50)]
        await asyncio.gather(*(store.begin(0, epoch, *records) for _ in range(20)))
        written += 20 * sum(len(encode(record).value or "") for record in records)
    assert isinstance(store.log, SqliteLog)
    compactor = store.log.compactor
    await store.until(lambda: not compactor.is_busy)
    assert store.watching.removed > 20_000
    await store.restart()
    assert (store.folder / DATABASE).stat().st_size < written / 10
    assert len(await store.read(0)) < 1_100


async def test_removing_survives_restarts_in_between(store: Sqlite) -> None:
    for number in range(6):
        epoch = await store.elect(0)
        ends = [store.begin(0, epoch, *(offset(number, partition=p % 300) for p in range(650))) for _ in range(2)]
        assert await asyncio.gather(*ends) == [NONE, NONE]
        await store.restart()
        found = await store.read(0)
        assert compacted(found) == [offset(number, partition=p) for p in [*range(50, 300), *range(50)]]


def _set(future: asyncio.Future[None], _: object) -> None:
    future.set_result(None)


async def test_what_comes_while_a_transaction_is_written_shares_the_next(tmp_path: Path) -> None:
    database = SqliteDatabase(tmp_path / "data")
    await database.start()
    written: list[int] = []
    database.on_batch = lambda jobs, _: written.append(jobs)
    may_end = threading.Event()
    ended: list[asyncio.Future[None]] = [asyncio.get_running_loop().create_future() for _ in range(3)]
    database.submit(lambda _: may_end.wait(), lambda _: None)
    for future in ended:
        await asyncio.sleep(0)  # each in its own iteration of the loop
        database.submit(lambda _: None, partial(_set, future))
    may_end.set()
    await asyncio.gather(*ended)
    assert written == [1, 3]
    database.submit(lambda _: None, lambda _: None)
    await database.close()
    assert written == [1, 3, 1]


@pytest.mark.parametrize(("quick_ms", "written"), [(float("inf"), [1, 1, 1]), (0.0, [1, 2])])
async def test_a_quick_disk_writes_what_waits_while_ends_are_handled_and_a_slow_one_waits_for_company(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, quick_ms: float, written: list[int]
) -> None:
    monkeypatch.setattr(database_module, "QUICK_MS", quick_ms)
    database = SqliteDatabase(tmp_path / "data")
    await database.start()
    transactions: list[int] = []
    database.on_batch = lambda jobs, _: transactions.append(jobs)
    may_end, has_begun = threading.Event(), threading.Event()
    ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def on_first(_: object) -> None:
        if quick_ms:
            assert has_begun.wait(PATIENCE), "the second transaction has begun"
        database.submit(lambda _: None, partial(_set, ended))

    database.submit(lambda _: may_end.wait(), on_first)
    await asyncio.sleep(0)  # the writer has it
    database.submit(lambda _: has_begun.set(), lambda _: None)
    may_end.set()
    await asyncio.wait_for(ended, PATIENCE)
    assert transactions == written
    await database.close()


async def test_an_end_that_raises_keeps_no_other_from_its_own(tmp_path: Path) -> None:
    loop = asyncio.get_running_loop()
    problems: list[object] = []
    loop.set_exception_handler(lambda _, context: problems.append(context["exception"]))
    database = SqliteDatabase(tmp_path / "data")
    await database.start()
    ended: asyncio.Future[None] = loop.create_future()
    problem = RuntimeError("on purpose")

    def fail(_: object) -> None:
        raise problem

    database.submit(lambda _: None, fail)
    database.submit(lambda _: None, partial(_set, ended))
    await asyncio.wait_for(ended, PATIENCE)
    await database.close()
    assert problems == [problem]
