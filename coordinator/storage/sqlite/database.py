"""A data directory: one SQLite file, one thread that writes to it, one that reads.

Everything that waits to be written goes into one transaction: one sync for all of it. Ends are reported on the event
loop's thread, in the order of submission, and never before the transaction is durable.
"""

from __future__ import annotations

import asyncio
import os
import sqlite3
import threading
import time
import uuid
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any, Final, NamedTuple, Protocol, TypeAlias

import structlog

from rejoin.coordinator.storage.base import StoreProblem
from rejoin.coordinator.storage.sqlite.check import check_progress, check_records, check_there, is_damage, lost
from rejoin.coordinator.storage.sqlite.progress_file import DATABASE, ProgressFile, advice, lock_directory
from rejoin.coordinator.storage.sqlite.schema import STEPS, set_columns
from rejoin.journal.file_lock import FileLock

Work: TypeAlias = Callable[[sqlite3.Connection], Any]
"""Something to do with the database, inside of a transaction that is not its own."""

Done: TypeAlias = Callable[[Any], None]
"""Called with the work's result, or with the exception that the work or the commit raised."""

BROKEN: Final = frozenset(
    {
        sqlite3.SQLITE_FULL,
        sqlite3.SQLITE_IOERR,
        sqlite3.SQLITE_READONLY,
        sqlite3.SQLITE_CANTOPEN,
        sqlite3.SQLITE_CORRUPT,
        sqlite3.SQLITE_NOTADB,
        sqlite3.SQLITE_BUSY,
        sqlite3.SQLITE_LOCKED,
        sqlite3.SQLITE_NOMEM,
        sqlite3.SQLITE_PERM,
    }
)
"""Errors of the store itself, which everything else in the transaction would meet as well."""

_HELD: Final = frozenset({sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED})
_A_USABLE_DISK: Final = "a disk that works and has room, and the right to write to the directory and the files in it"
_WAL_PAGES: Final = 2_000
_READ_BUSY_MS: Final = 10_000
QUICK_MS: Final = 1.0
"""The longest duration of a transaction after which the next one does not wait for more work to join it."""
_RECENT: Final = 8


class TransactionHook(Protocol):
    """Keeps in memory what its work changes in the database. Called on the writer's thread."""

    def opened(self, connection: sqlite3.Connection) -> None:
        """The database is open, and nothing has been written to it yet."""

    def before_commit(self, connection: sqlite3.Connection) -> Mapping[str, int]:
        """All work of a transaction is done, and it is about to be committed. Returns columns to set in ``store``."""

    def committed(self) -> None:
        """It is durable."""

    def rolled_back(self) -> None:
        """Nothing of it is."""

    def closing(self, connection: sqlite3.Connection) -> None:
        """Nothing more is written, except what this writes. What fails is left to the next start."""


class Bulk(NamedTuple):
    """Something to do for many items in one go, and what to do when that is durable."""

    work: Callable[[list[Any], sqlite3.Connection], Any]
    done: Callable[[list[Any], Any], None]


@dataclass(slots=True)
class _Job:
    work: Work | None
    done: Done
    bulk: Bulk | None = None
    items: list[Any] = field(default_factory=list)

    @property
    def size(self) -> int:
        return len(self.items) if self.bulk else 1


class SqliteDatabase:
    """The owner of a data directory. ``start`` and ``close`` once each."""

    def __init__(self, folder: Path, *, steps: Sequence[str] = STEPS) -> None:
        self.folder = folder
        self.path = folder / DATABASE
        self._file = str(self.path)
        self._steps = steps
        self._hooks: list[TransactionHook] = []
        self._progress = ProgressFile(folder)
        self._batch = 0
        self._identity: tuple[int, int] | None = None
        self._jobs: SimpleQueue[list[_Job] | None] = SimpleQueue()
        self._waiting: list[_Job] = []
        self._is_writing = False
        """Whether the writer has work whose ends are not reported yet."""
        self._recent_ms: deque[float] = deque(maxlen=_RECENT)
        """How long the last transactions took."""
        self._reads: SimpleQueue[_Job | None] = SimpleQueue()
        self._threads: list[threading.Thread] = []
        self._connections: list[sqlite3.Connection] = []
        self._lock: FileLock | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self.on_batch: Callable[[int, float], None] = lambda jobs, millis: None
        """Called on the loop's thread with how much one transaction had to do, and the ms that it took."""

    def add_hook(self, hook: TransactionHook) -> None:
        """Have it called in every transaction. Before ``start``."""
        self._hooks.append(hook)

    async def start(self) -> None:
        """Open the directory, made where there is none. Raises :class:`StoreProblem` where it cannot be used."""
        self._loop = asyncio.get_running_loop()
        writer = await asyncio.to_thread(self._open)
        reader = connect(self.path, read_only=True)
        self._connections = [writer, reader]
        self._threads = [
            threading.Thread(target=self._write_on, args=(writer,), name="store-writer", daemon=True),
            threading.Thread(target=self._read_on, args=(reader,), name="store-reader", daemon=True),
        ]
        for thread in self._threads:
            thread.start()

    async def close(self) -> None:
        """Write all submitted work, report its ends, and leave one whole file behind."""
        if not self._threads:
            return
        self._is_writing = False
        self._hand_over()
        self._jobs.put(None)
        self._reads.put(None)
        threads, self._threads = self._threads, []
        for thread in threads:
            await asyncio.to_thread(thread.join)
        # What the threads have reported is still to be taken in by the loop.
        await asyncio.sleep(0)
        await asyncio.to_thread(self._shut)

    def submit_item(self, bulk: Bulk, item: Any) -> None:
        """Do something for one of many items: those that wait in a row are one piece of work, and end together."""
        waiting = self._waiting
        if waiting and waiting[-1].bulk is bulk:
            waiting[-1].items.append(item)
            return
        items = [item]
        self._submit(_Job(partial(bulk.work, items), partial(bulk.done, items), bulk, items))

    def submit(self, work: Work | None, done: Done) -> None:
        """Do something in the next transaction; on the loop's thread. Without work: when all before is durable.

        Whatever is submitted in one iteration of the loop goes together. ``work`` runs on the writer's thread, perhaps
        twice: first with all others, and if one of them fails once more alone. What it raises undoes what it did, and
        nothing else.
        """
        self._submit(_Job(work, done))

    def read(self, work: Work, done: Done) -> None:
        """Do something on the reader's thread, with a connection that cannot write."""
        self._reads.put(_Job(work, done))

    def _submit(self, job: _Job) -> None:
        if not self._waiting and not self._is_writing:
            assert self._loop is not None, "the database was started"
            self._loop.call_soon(self._hand_over)
        self._waiting.append(job)

    def _hand_over(self) -> None:
        """Give the writer all that waits. While it writes, more of that comes together: a sync for all of it."""
        if self._waiting and not self._is_writing:
            self._is_writing = True
            waiting, self._waiting = self._waiting, []
            self._jobs.put(waiting)

    def _wrote(self) -> None:
        """The writer has nothing to do: it gets whatever waits, at the end of this loop iteration at the latest."""
        self._is_writing = False
        if self._waiting:
            assert self._loop is not None, "the database was started"
            self._loop.call_soon(self._hand_over)

    # --- opening and closing

    def _open(self) -> sqlite3.Connection:
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            self._lock = lock_directory(self.folder)
        except OSError as problem:
            raise StoreProblem(
                f"the data directory {self.folder} cannot be used: {problem.strerror}; expected one to write to"
            ) from problem
        try:
            return self._open_alone()
        except BaseException as problem:
            self._lock.release()
            self._lock = None
            if isinstance(problem, OSError):
                why = problem.strerror or problem
                raise StoreProblem(
                    f"the data directory {self.folder} cannot be used: {why}; expected {_A_USABLE_DISK}"
                ) from problem
            raise

    def _open_alone(self) -> sqlite3.Connection:
        progress = self._progress.read()
        check_there(self.path, progress)
        if self.path.exists():
            # Looked at without the right to write, so that a refusal leaves everything as it was.
            with opened(self.path, read_only=True) as connection:
                version = known_version(connection, self.path, len(self._steps))
                if version:
                    check_progress(connection, self.path, progress)
                    check_records(connection, self.path)
                elif progress is not None:
                    raise lost(self.path, "has no tables", progress)
                connection.close()
        with opened(self.path) as connection:
            migrate(connection, self.path, self._steps)
            name, self._batch = connection.execute("SELECT name, batch FROM store").fetchone()
            self._progress.open(name, self._batch)
            # In the file itself, so that a copy of it without the rest is known for what it is.
            connection.execute("UPDATE store SET in_use = 1")
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            _sync_folder(self.folder)
            _sync_folder(self.folder.parent)
            for hook in self._hooks:
                hook.opened(connection)
            self._identity = _identity(self._file)
        return connection

    def _shut(self) -> None:
        writer, reader = self._connections
        reader.close()
        with suppress(sqlite3.Error, StoreProblem):
            writer.execute("BEGIN IMMEDIATE")
            for hook in self._hooks:
                hook.closing(writer)
            writer.execute("COMMIT")
        with suppress(sqlite3.Error):
            writer.rollback()
            writer.execute("UPDATE store SET in_use = 0")
            writer.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        writer.close()
        with suppress(OSError):
            self._progress.close()
        assert self._lock is not None, "an open directory is locked"
        self._lock.release()

    # --- the writer's thread

    def _write_on(self, connection: sqlite3.Connection) -> None:
        ended = False
        while not ended:
            batch = [self._jobs.get()]
            with suppress(Empty):
                while True:
                    batch.append(self._jobs.get_nowait())
            ended = None in batch
            jobs = [job for some in batch if some is not None for job in some]
            if jobs:
                began = time.perf_counter()
                ends = self._commit(connection, jobs)
                took = (time.perf_counter() - began) * 1_000
                self._report(ends, sum(job.size for job in jobs if job.work), took, has_written=True)

    def _commit(self, connection: sqlite3.Connection, jobs: list[_Job]) -> list[tuple[Done, Any]]:
        """Do the work of all in one transaction; where one spoils it for the others, each in one of its own."""
        if not any(job.work for job in jobs):
            return [(job.done, None) for job in jobs]
        try:
            return self._transaction(connection, jobs)
        except Exception as problem:
            if len(jobs) == 1 or is_broken(problem):
                return [(job.done, problem if job.work else None) for job in jobs]
        return [end for job in jobs for end in self._commit(connection, [job])]

    def _transaction(self, connection: sqlite3.Connection, jobs: list[_Job]) -> list[tuple[Done, Any]]:
        try:
            connection.execute("BEGIN IMMEDIATE")
            results = [(job.done, job.work(connection) if job.work else None) for job in jobs]
            columns: dict[str, int] = {"batch": self._batch + 1}
            for hook in self._hooks:
                columns.update(hook.before_commit(connection))
            set_columns(connection, columns)
            self._check_identity()
            connection.execute("COMMIT")
        except BaseException:
            with suppress(sqlite3.Error):
                connection.rollback()
            for hook in self._hooks:
                hook.rolled_back()
            raise
        self._batch += 1
        for hook in self._hooks:
            hook.committed()
        with suppress(OSError):
            # A progress file that is behind says less than it could; what is durable is durable.
            self._progress.write(self._batch)
        return results

    def _check_identity(self) -> None:
        """Raise OSError if the file was deleted or replaced: later writes would be lost."""
        if _identity(self._file) != self._identity:
            raise OSError(f"{self.path} is not the file that was opened: it was removed or replaced")

    # --- the reader's thread

    def _read_on(self, connection: sqlite3.Connection) -> None:
        while (job := self._reads.get()) is not None:
            assert job.work is not None, "a read does something"
            try:
                result = job.work(connection)
            except Exception as problem:
                result = problem
            self._report([(job.done, result)])

    def _report(
        self, ends: list[tuple[Done, Any]], written: int = 0, took: float = 0.0, *, has_written: bool = False
    ) -> None:
        loop = self._loop
        assert loop is not None, "the database was started"

        def report() -> None:
            is_quick = has_written and self._is_quick(took)
            if is_quick:
                self._is_writing = False
                self._hand_over()
            if written:
                self.on_batch(written, took)
            for done, result in ends:
                try:
                    done(result)
                except Exception as problem:
                    # The others get their ends all the same, before those of what is written meanwhile.
                    loop.call_exception_handler({"message": "the end of a write raised", "exception": problem})
            if has_written and not is_quick:
                self._wrote()

        with suppress(RuntimeError):  # the loop is closed
            loop.call_soon_threadsafe(report)

    def _is_quick(self, took: float) -> bool:
        """Whether a transaction takes less time than the work after it, so that overlapping the two pays.

        Otherwise what they cause is waited for, and shares the next sync.
        """
        # A disk that others use is quick now and then: half of the last few must have been.
        self._recent_ms.append(took)
        return sorted(self._recent_ms)[len(self._recent_ms) // 2] < QUICK_MS


def is_broken(problem: BaseException) -> bool:
    """Whether the store failed, rather than the operation."""
    if isinstance(problem, sqlite3.Error):
        return getattr(problem, "sqlite_errorcode", 0) & 0xFF in BROKEN
    return isinstance(problem, OSError)


def connect(path: Path, *, read_only: bool = False) -> sqlite3.Connection:
    """A connection that begins its transactions itself, and may be used by one thread after the other."""
    address = f"{path.resolve().as_uri()}?mode={'ro' if read_only else 'rwc'}"
    connection = sqlite3.connect(
        address, uri=True, isolation_level=None, check_same_thread=False, timeout=_READ_BUSY_MS / 1_000
    )
    if not read_only:
        connection.execute("PRAGMA auto_vacuum = INCREMENTAL")
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute("PRAGMA fullfsync = 1")
        connection.execute("PRAGMA checkpoint_fullfsync = 1")
        connection.execute(f"PRAGMA wal_autocheckpoint = {_WAL_PAGES}")
        connection.execute(f"PRAGMA journal_size_limit = {64 * 2**20}")
    return connection


@contextmanager
def opened(path: Path, *, read_only: bool = False) -> Iterator[sqlite3.Connection]:
    """A connection that is closed if anything goes wrong; what SQLite says becomes a problem with what to do."""
    connection = None
    try:
        connection = connect(path, read_only=read_only)
        yield connection
    except BaseException as problem:
        if connection is not None:
            connection.close()
        # In a damaged file an error may quote bytes that are no text.
        if isinstance(problem, sqlite3.Error | UnicodeDecodeError):
            raise _not_opened(path, problem) from problem
        raise


def _not_opened(path: Path, problem: sqlite3.Error | UnicodeDecodeError) -> StoreProblem:
    """A file that is whole and cannot be used now needs no copy, and a damaged one no room."""
    code = getattr(problem, "sqlite_errorcode", 0) & 0xFF
    if is_damage(problem) or code not in BROKEN:
        text = f"{path} cannot be read: {problem}. It is damaged, or not made by this program"
        return StoreProblem(text + advice(path.parent))
    expected = "no other process to have it locked" if code in _HELD else _A_USABLE_DISK
    name = getattr(problem, "sqlite_errorname", "")
    return StoreProblem(f"{path} cannot be opened: {problem}{name and f' ({name})'}; expected {expected}")


def known_version(connection: sqlite3.Connection, path: Path, known: int) -> int:
    """The version of a database, 0 for an empty one. Raises :class:`StoreProblem` if it is another program's."""
    version: int = connection.execute("PRAGMA user_version").fetchone()[0]
    if version > known:
        raise StoreProblem(
            f"{path} is of version {version}, made by a newer program; this one knows version {known} and older: "
            "run the newer one, or give another directory"
        )
    if version == 0 and connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()[0]:
        raise StoreProblem(f"{path} is a database of some other program: give another directory")
    return version


def migrate(connection: sqlite3.Connection, path: Path, steps: Sequence[str]) -> None:
    """Make the tables of the newest version out of those that are there, or of none."""
    version = known_version(connection, path, len(steps))
    for number in range(version, len(steps)):
        connection.executescript(f"BEGIN IMMEDIATE;{steps[number]};PRAGMA user_version = {number + 1};COMMIT")
    if 0 < version < len(steps):
        logger: Any = structlog.get_logger("coordinator")
        logger.info("schema_migrated", store=str(path), from_version=version, to_version=len(steps))
    if connection.execute("SELECT count(*) FROM store").fetchone()[0] == 0:
        made = "INSERT INTO store (id, name, batch, next_position, in_use) VALUES (1, ?, 0, 1, 0)"
        connection.execute(made, (uuid.uuid4().hex,))


def _identity(path: str) -> tuple[int, int] | None:
    try:
        found = os.stat(path)
    except FileNotFoundError:
        return None
    return found.st_dev, found.st_ino


def _sync_folder(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
