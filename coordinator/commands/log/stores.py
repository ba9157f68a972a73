"""Logs in stores: read as they are at one moment, checked, and filled where they are empty."""

from __future__ import annotations

import asyncio
import shutil
import sqlite3
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, Self

import orjson

from rejoin.coordinator.commands.log.contents import Contents, Kept, LogProblem, TopicChange, problem_of
from rejoin.coordinator.storage.base import StoreProblem
from rejoin.coordinator.storage.codec import Entry, checksum
from rejoin.coordinator.storage.postgres.database import CONNECT_SECONDS, LOST, Database, PostgresError
from rejoin.coordinator.storage.sqlite.check import DatabaseLost, ahead_of, check_there, findings, lost, mark_problem
from rejoin.coordinator.storage.sqlite.database import SqliteDatabase, known_version, migrate, opened
from rejoin.coordinator.storage.sqlite.files import DATABASE, MARK, InUse, Lock, Mark, Marked, MarkUnreadable, advice
from rejoin.coordinator.storage.sqlite.log import SqliteLog
from rejoin.coordinator.storage.sqlite.schema import STEPS

_ROWS: Final = 5_000
_WITH_TOPICS: Final = 2
"""The first version of a cluster's tables that has one for topics."""
_ALIVE: Final = """
SELECT node_id, host, port, ceil(extract(epoch FROM expires_at - clock_timestamp()))::bigint FROM nodes
WHERE expires_at > clock_timestamp() ORDER BY node_id
"""
_ALL: Final = "SELECT partition, position, epoch, producer_id, checksum, key, value FROM log"


class SqliteSource:
    """A data directory, read without the right to write. A coordinator may be using it, but not while it is checked.

    One that has less than was said to be stored is refused, as at a start: ``salvage`` makes a note of it instead, and
    whoever is to ``verify`` it finds it among the problems.
    """

    def __init__(self, folder: Path, *, salvage: bool = False, verify: bool = False) -> None:
        self.folder = folder
        self._salvage = salvage
        self._verify = verify
        self._incomplete: str | None = None
        self._lock: Lock | None = None
        self._aside: tempfile.TemporaryDirectory[str] | None = None
        self.path = folder / DATABASE
        self.name = str(folder)
        self.notes: list[str] = []

    def __enter__(self) -> Self:
        try:
            check_there(self.path, self._mark_of_lost())
        except DatabaseLost as problem:
            if not self._salvage or ahead_of(self.path) is None:
                raise
            self._open(self._stand_in(), problem)
            return self
        if not self.path.exists():
            raise LogProblem(f"{self.folder} has no {DATABASE}: expected a directory that --data named")
        try:
            if self._verify:
                self._lock = self._locked()
            self._open_whole()
        except BaseException:
            self._clear()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._connection.close()
        self._clear()

    def _locked(self) -> Lock:
        try:
            return Lock(self.folder)
        except InUse as problem:
            raise LogProblem(
                f"{problem.by}: expected one that nobody writes to; stop that one, or verify an export: rejoin "
                f"log export --data {self.folder} --out FILE, and then log verify FILE"
            ) from None

    def _open_whole(self) -> None:
        """Open it, and compare where it ends with the mark."""
        if not self._open_with_mark() and self._incomplete is not None and (self.folder / MARK).exists():
            # A coordinator has been started here for the first time, after the mark was looked for.
            self._connection.close()
            self._open_with_mark()
        if self._incomplete is None or self._verify:
            return
        if not self._salvage:
            self._connection.close()
            raise StoreProblem(self._incomplete + advice(self.folder))
        self.notes.append(f"{self._incomplete}; what is not there any more is not in what was saved")

    def _open_with_mark(self) -> bool:
        """Look at the mark, and then at the database, which a coordinator at work only brings further. Is there one?"""
        marked, self._incomplete = None, None
        try:
            marked = Mark(self.folder).read()
        except MarkUnreadable as problem:
            self._incomplete = problem.what
        self._open(self.path)
        if self._incomplete is not None:
            return True
        try:
            self._incomplete = mark_problem(self._connection, self.path, marked)
        except sqlite3.Error as problem:
            self._incomplete = f"{self.path}: {problem}"
        return marked is not None

    def _mark_of_lost(self) -> Marked | None:
        """What the mark says, where there is no database to say more."""
        if self.path.exists() and self.path.stat().st_size > 1:
            return None
        try:
            return Mark(self.folder).read()
        except MarkUnreadable:
            if self._salvage:
                return None
            raise

    def _open(self, path: Path, problem: DatabaseLost | None = None) -> None:
        try:
            with opened(path, read_only=True) as connection:
                self._connection = connection
                if not known_version(connection, path, len(STEPS)):
                    marked = Mark(self.folder).read()
                    if marked is not None:
                        raise lost(self.path, "has no tables", marked)
                    raise LogProblem(f"{self.path} is still empty")
                # What is read from here on is what is there now.
                connection.execute("BEGIN")
                connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()
                if problem is not None and connection.execute("SELECT name FROM store").fetchone() == ("",):
                    raise problem
        except BaseException as other:
            self._clear()
            if problem is not None and isinstance(other, StoreProblem):
                raise LogProblem(f"{problem}. There is nothing in that log that can be read") from other
            raise

    def _stand_in(self) -> Path:
        """A copy of the write-ahead log beside a new store, since SQLite takes one beside an empty file for nothing.

        It has all pages that were written since the coordinator started, each as a whole. Those that never change are
        the same in every store, and of the others a record must have its checksum.
        """
        ahead = ahead_of(self.path)
        assert ahead is not None, "there is something to save"
        self._aside = tempfile.TemporaryDirectory(prefix="coordinator-")
        path = Path(self._aside.name) / DATABASE
        with opened(path) as connection:
            migrate(connection, path, STEPS)
            connection.execute("UPDATE store SET name = ''")
            connection.close()
        shutil.copy(ahead, path.with_name(ahead.name))
        self.notes.append(f"{self.path} is lost; what could be read is from {ahead}, and may not be all")
        return path

    def _clear(self) -> None:
        if self._aside is not None:
            self._aside.cleanup()
        if self._lock is not None:
            self._lock.release()
            self._lock = None

    def contents(self) -> Contents:
        epochs: dict[int, int] = {}
        try:
            epochs.update(self._connection.execute("SELECT partition, epoch FROM partitions ORDER BY partition"))
        except sqlite3.Error as problem:
            said = f"{self.path}: the epochs cannot be read: {problem}"
            if not self._salvage:
                raise LogProblem(f"{said}; expected a whole file, or --salvage") from None
            self.notes.append(said)
        topics: list[TopicChange] = []
        try:
            found = self._connection.execute("SELECT version, record FROM topics_log ORDER BY version")
            topics = [TopicChange(version, _compact(record)) for version, record in found]
        except sqlite3.OperationalError:
            pass  # a version without topics
        except sqlite3.Error as problem:
            said = f"{self.path}: the topics cannot be read: {problem}"
            if not self._salvage:
                raise LogProblem(f"{said}; expected a whole file, or --salvage") from None
            self.notes.append(said)
        return Contents(epochs, topics)

    def records(self, wanted: frozenset[int] | None = None) -> Iterator[Kept]:
        """By partition, in order."""
        try:
            for partition, _, epoch, *entry in self._select(_ALL + " ORDER BY partition, position", wanted):
                yield Kept(partition, epoch, _entry(entry))
        except sqlite3.Error as problem:
            raise LogProblem(
                f"{self.path} cannot be read further: {problem}; expected a whole file, or --salvage"
            ) from None

    def salvaged(self, wanted: frozenset[int] | None = None) -> Iterator[Kept]:
        """Whatever can be read and has its checksum: from the front until it breaks, and from the end."""
        found: dict[int, Kept] = {}
        lost = 0
        for order in ("", " DESC"):
            try:
                for partition, position, epoch, *entry in self._select(_ALL + " ORDER BY position" + order, wanted):
                    if position in found:
                        break
                    kept = Kept(partition, epoch, _entry(entry)) if _is_whole(partition, position, entry) else None
                    if kept is None or problem_of(kept) is not None:
                        lost += 1
                    else:
                        found[position] = kept
            except sqlite3.Error as problem:
                self.notes.append(f"{self.path} cannot be read as a whole: {problem}")
            else:
                if not order:
                    break
        if lost:
            self.notes.append(f"{lost} damaged records were left out")
        in_order = [kept for _, kept in sorted(found.items())]
        return iter(sorted(in_order, key=lambda kept: kept.partition))

    def problems(self) -> Iterator[str]:
        """All that is wrong with it."""
        if self._incomplete is not None:
            yield self._incomplete
        try:
            for (said,) in self._connection.execute("PRAGMA integrity_check(20)").fetchall():
                if said != "ok":
                    yield f"{self.path}: {said}"
            for finding in findings(self._connection):
                yield finding.text
            yield from _unreadable(self.records())
        except (sqlite3.Error, LogProblem) as broken:
            yield f"{self.path}: {broken}"

    @property
    def advice(self) -> str:
        """What to do about the problems."""
        return advice(self.folder)

    def _select(self, query: str, wanted: frozenset[int] | None) -> Iterator[Any]:
        for row in self._connection.execute(query):
            if wanted is None or row[0] in wanted:
                yield row


class PostgresSource:
    """The tables of a cluster, as they are in one transaction; older ones stay so. Nothing is made or changed."""

    def __init__(self, url: str) -> None:
        self._database = Database(url)
        self.name = self._database.shown
        self.notes: list[str] = []
        self.advice = ""
        self._connection: Any = None
        self._version = 0
        self._loop = asyncio.new_event_loop()

    def __enter__(self) -> Self:
        try:
            self._loop.run_until_complete(self._begin())
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        with suppress(*LOST):
            self._loop.run_until_complete(self._end())
        self._loop.close()

    async def _begin(self) -> None:
        self._connection = await self._database.reach()
        try:
            await self._connection.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
            # It has no locks that anybody waits for, and what it says may go to somebody who reads page by page.
            await self._connection.execute("SET LOCAL idle_in_transaction_session_timeout = '1h'")
            self._version = await self._database.version(self._connection)
        except (*LOST, PostgresError) as problem:
            raise LogProblem(
                f"{self.name} cannot be read: {_said(problem)}; expected tables that this user may read"
            ) from problem
        if not self._version:
            raise LogProblem(
                f"{self.name} has no tables of a coordinator; expected a database, and in its URL a search_path, that "
                "a coordinator's --store named"
            )

    async def _end(self) -> None:
        if self._connection is not None:
            await self._connection.close(timeout=CONNECT_SECONDS)

    def _fetch(self, query: str, *arguments: object) -> list[Any]:
        try:
            found: list[Any] = self._loop.run_until_complete(self._connection.fetch(query, *arguments))
        except (*LOST, PostgresError) as problem:
            raise LogProblem(
                f"{self.name} cannot be read further: {_said(problem)}; expected a server that stays"
            ) from problem
        return found

    def contents(self) -> Contents:
        epochs = {int(row[0]): int(row[1]) for row in self._fetch("SELECT partition, epoch FROM leases ORDER BY 1")}
        found = []
        if self._version >= _WITH_TOPICS:
            found = self._fetch("SELECT version, record::text FROM topics_log ORDER BY version")
        return Contents(epochs, [TopicChange(version, _compact(record)) for version, record in found])

    def records(self, wanted: frozenset[int] | None = None) -> Iterator[Kept]:
        """By partition, in order."""
        for partition, _, epoch, *entry in self._rows(wanted):
            yield Kept(partition, epoch, _entry(entry))

    def salvaged(self, wanted: frozenset[int] | None = None) -> Iterator[Kept]:
        """Whatever has its checksum."""
        lost = 0
        for partition, _, epoch, *entry in self._rows(wanted):
            kept = Kept(partition, epoch, _entry(entry))
            if _is_whole(partition, 0, entry) and problem_of(kept) is None:
                yield kept
            else:
                lost += 1
        if lost:
            self.notes.append(f"{lost} damaged records were left out")

    def problems(self) -> Iterator[str]:
        """All that is wrong with it."""
        newest = self.contents().epochs
        last: tuple[int, int] = (-1, -1)
        for partition, position, epoch, *entry in self._rows(None):
            where = f"partition {partition}, position {position}"
            if not _is_whole(partition, 0, entry):
                yield f"{where}: the checksum does not fit the record"
            else:
                found = problem_of(Kept(partition, epoch, _entry(entry)))
                if found is not None:
                    yield found
            if last[0] == partition and epoch < last[1]:
                yield f"{where}: of epoch {epoch}, behind one of epoch {last[1]}"
            if epoch > newest.get(partition, -1):
                yield f"{where}: of epoch {epoch}, which nobody ever had: the lease has {newest.get(partition, 'none')}"
            last = (partition, epoch)

    def _rows(self, wanted: frozenset[int] | None) -> Iterator[Any]:
        partitions = [partition for (partition,) in self._fetch("SELECT DISTINCT partition FROM log ORDER BY 1")]
        for partition in partitions:
            if wanted is not None and partition not in wanted:
                continue
            after = 0
            query = f"{_ALL} WHERE partition = $1 AND position > $2 ORDER BY position LIMIT {_ROWS}"
            while rows := self._fetch(query, partition, after):
                yield from rows
                after = rows[-1][1]


def fill_directory(folder: Path, contents: Contents, records: Iterable[Kept]) -> int:
    """Put a log into a data directory that has none. Returns how many records; all are there or none."""

    async def fill() -> int:
        log = SqliteLog(SqliteDatabase(folder))
        await log.start()
        try:
            if log.holds_anything():
                raise LogProblem(
                    f"{folder} has a log already: expected an empty directory, or one that is not there yet"
                )
            entries = list(_entries(contents, records))

            def write(connection: sqlite3.Connection) -> int:
                connection.executemany("INSERT INTO topics_log VALUES (?, ?)", contents.topics)
                return log.fill(entries, connection)

            done: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
            log.database.submit(write, done.set_result)
            written = await done
            if isinstance(written, sqlite3.Error):
                raise LogProblem(
                    f"{folder} cannot be filled: {written}; nothing of the log is in it, expected room and the right "
                    "to write"
                ) from written
            if isinstance(written, BaseException):
                raise written
            return int(written)
        finally:
            await log.close()

    return asyncio.run(fill())


def fill_database(url: str, contents: Contents, records: Iterable[Kept]) -> int:
    """The same for the tables of a cluster."""

    async def fill() -> int:
        database = Database(url)
        await database.start()
        try:
            async with database.acquire() as connection, connection.transaction():
                await _refuse_used(connection, database.shown)
                # So that nobody comes before this is done. Who is there already must not be held up for a refusal.
                await connection.execute("LOCK TABLE nodes, leases IN EXCLUSIVE MODE")
                await _refuse_used(connection, database.shown)
                there = await connection.fetchval("SELECT count(*) FROM leases")
                count, partitions = await _copy(connection, contents, records)
                if there not in (0, partitions):
                    raise LogProblem(
                        f"{database.shown} was made for {there} offsets partitions, and this log has {partitions}: "
                        "expected as many, or another search_path, whose tables are made"
                    )
                return count
        except (*LOST, PostgresError) as problem:
            raise LogProblem(
                f"{database.shown} cannot be filled: {_said(problem)}; nothing of the log is in it, "
                "expected a server that stays and tables of this program"
            ) from problem
        finally:
            await database.close()

    return asyncio.run(fill())


async def _refuse_used(connection: Any, shown: str) -> None:
    """Nobody may use the tables: nodes that have loaded them would go on with what was there before."""
    alive = await connection.fetch(_ALIVE)
    if alive:
        nodes = ", ".join(f"node {node_id} ({host}:{port}, for {left} s)" for node_id, host, port, left in alive)
        raise LogProblem(
            f"{shown} is in use: {nodes}. Expected no node that is alive: stop them first; one that was killed counts "
            "until its time has run out"
        )
    for table, what in (("log", "a log"), ("topics_log", "topics")):
        if await connection.fetchval(f"SELECT EXISTS (SELECT FROM {table})"):
            raise LogProblem(
                f"{shown} has {what} already: expected tables without records and topics, or another search_path, "
                "whose tables are made"
            )


async def _copy(connection: Any, contents: Contents, records: Iterable[Kept]) -> tuple[int, int]:
    """How many records there are now, and how many partitions the log has."""
    count = 0
    ends: dict[int, int] = {}
    epochs = dict(contents.epochs)
    rows: list[tuple[Any, ...]] = []
    columns = ["partition", "position", "epoch", "producer_id", "checksum", "key", "value"]
    for kept in records:
        position = ends[kept.partition] = ends.get(kept.partition, 0) + 1
        epochs[kept.partition] = max(epochs.get(kept.partition, 0), kept.epoch)
        rows.append((kept.partition, position, kept.epoch, kept.entry.producer_id, checksum(kept.partition, 0, kept.entry), kept.entry.key, kept.entry.value))  # fmt: skip  # noqa: E501
        if len(rows) == _ROWS:
            await connection.copy_records_to_table("log", records=rows, columns=columns)
            count += len(rows)
            rows.clear()
    if rows:
        await connection.copy_records_to_table("log", records=rows, columns=columns)
    # Whoever had a lease, and does not know that it has run out, must not write with an epoch that the log had, too.
    await connection.execute("UPDATE leases SET node_id = NULL, incarnation = NULL, expires_at = NULL")
    await connection.executemany(
        "INSERT INTO leases AS l (partition, epoch) VALUES ($1, $2) "
        "ON CONFLICT (partition) DO UPDATE SET epoch = greatest(l.epoch, excluded.epoch)",
        sorted(epochs.items()),
    )
    await connection.executemany("INSERT INTO topics_log VALUES ($1, $2::jsonb)", contents.topics)
    return count + len(rows), len(epochs)


def _entries(contents: Contents, records: Iterable[Kept]) -> Iterator[tuple[int, int, Entry | None]]:
    for partition, epoch in sorted(contents.epochs.items()):
        yield partition, epoch, None
    for kept in records:
        yield kept.partition, kept.epoch, kept.entry


def _unreadable(records: Iterator[Kept]) -> Iterator[str]:
    for kept in records:
        found = problem_of(kept)
        if found is not None:
            yield found


def _entry(row: list[Any]) -> Entry:
    producer_id, _, key, value = row
    return Entry(producer_id, key, value)


def _is_whole(partition: Any, position: int, row: list[Any]) -> bool:
    producer_id, kept, key, value = row
    are_right = isinstance(partition, int) and isinstance(producer_id, int) and isinstance(kept, int)
    if not are_right or not isinstance(key, str | None) or not isinstance(value, str | None):
        return False
    return bool(checksum(partition, position, (producer_id, key, value)) == kept)


def _said(problem: BaseException) -> str:
    """What a server says takes several lines."""
    return " ".join(str(problem).split()) or type(problem).__name__


def _compact(record: str) -> str:
    return orjson.dumps(orjson.loads(record)).decode()
