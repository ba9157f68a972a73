"""The logs of a data directory, read as one snapshot and checked."""

from __future__ import annotations

import shutil
import sqlite3
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Self

from rejoin.coordinator.commands.log.contents import (
    BatchCounts,
    LogProblem,
    LogRecord,
    LogSummary,
    StoredTopicChange,
    compact,
    entry_of,
    first_line,
    is_whole,
    problem_of,
    topic_names,
    unreadable,
)
from rejoin.coordinator.storage.base import StoreProblem
from rejoin.coordinator.storage.codec import Entry, is_entry
from rejoin.coordinator.storage.remedy import of_directory
from rejoin.coordinator.storage.sqlite.batch_reader import batch_counts, batch_findings
from rejoin.coordinator.storage.sqlite.check import (
    DatabaseLost,
    LogDefect,
    ahead_of,
    check_there,
    expected_records,
    findings,
    has_topics,
    lost,
    progress_problem,
)
from rejoin.coordinator.storage.sqlite.database import known_version, migrate, opened
from rejoin.coordinator.storage.sqlite.progress_file import (
    DATABASE,
    PROGRESS,
    DirectoryInUse,
    Progress,
    ProgressFile,
    ProgressUnreadable,
    advice,
    lock_directory,
)
from rejoin.coordinator.storage.sqlite.schema import STEPS
from rejoin.journal.file_lock import FileLock
from rejoin.protocol.records.consumer_offsets import OFFSETS_TOPIC, offsets_partition
from rejoin.protocol.types import TopicPartition


class SqliteSource:
    """A data directory, opened read-only. A coordinator may use it meanwhile, except during ``verify``.

    A directory that has lost acknowledged records is refused, as at startup. With ``salvage`` that becomes a note, and
    with ``verify`` one of the problems.
    """

    def __init__(self, folder: Path, *, salvage: bool = False, verify: bool = False) -> None:
        self.folder = folder
        self._salvage = salvage
        self._verify = verify
        self._incomplete: str | None = None
        self._lock: FileLock | None = None
        self._aside: tempfile.TemporaryDirectory[str] | None = None
        self.path = folder / DATABASE
        self.name = str(folder)
        self.notes: list[str] = []
        self.advice = ""
        """Advice for the problems that were found."""

    def __enter__(self) -> Self:
        try:
            check_there(self.path, self._progress_of_lost())
        except DatabaseLost as problem:
            if not self._salvage or ahead_of(self.path) is None:
                raise
            self._open(self._stand_in(), problem)
            return self
        if not self.path.exists():
            raise LogProblem(f"{self.folder} has no {DATABASE}; expected a directory that was --data of a node")
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

    def _locked(self) -> FileLock:
        try:
            return lock_directory(self.folder)
        except DirectoryInUse as problem:
            raise LogProblem(
                f"{problem.by}: expected a directory that no process writes to; stop that process, or verify an "
                f"export: rejoin log export --data {self.folder} --out FILE, and then rejoin log verify FILE"
            ) from None

    def _open_whole(self) -> None:
        """Open the database, and compare its end with the progress file."""
        if not self._open_with_progress() and self._incomplete is not None and (self.folder / PROGRESS).exists():
            # A coordinator has been started here for the first time, after the progress file was looked for.
            self._connection.close()
            self._open_with_progress()
        if self._incomplete is None or self._verify:
            return
        if not self._salvage:
            self._connection.close()
            raise StoreProblem(self._incomplete + advice(self.folder))
        self.notes.append(f"{self._incomplete}; records that were lost are missing from the output")

    def _open_with_progress(self) -> bool:
        """Read the progress file, then open the database. Returns whether there is a progress file."""
        progress, self._incomplete = None, None
        try:
            progress = ProgressFile(self.folder).read()
        except ProgressUnreadable as problem:
            self._incomplete = problem.what
        self._open(self.path)
        if self._incomplete is not None:
            return True
        try:
            self._incomplete = progress_problem(self._connection, self.path, progress)
        except sqlite3.Error as problem:
            self._incomplete = f"{self.path}: {problem}"
        return progress is not None

    def _progress_of_lost(self) -> Progress | None:
        """The progress file of a directory whose database is missing or empty."""
        if self.path.exists() and self.path.stat().st_size > 1:
            return None
        try:
            return ProgressFile(self.folder).read()
        except ProgressUnreadable:
            if self._salvage:
                return None
            raise

    def _open(self, path: Path, problem: DatabaseLost | None = None) -> None:
        try:
            with opened(path, read_only=True) as connection:
                self._connection = connection
                if not known_version(connection, path, len(STEPS)):
                    progress = ProgressFile(self.folder).read()
                    if progress is not None:
                        raise lost(self.path, "has no tables", progress)
                    raise LogProblem(f"{self.path} is still empty")
                # All reads from here on see one snapshot.
                connection.execute("BEGIN")
                connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()
                if problem is not None and connection.execute("SELECT name FROM store").fetchone() == ("",):
                    raise problem
        except BaseException as other:
            self._clear()
            if problem is not None and isinstance(other, StoreProblem):
                raise LogProblem(f"{problem}. Nothing can be read from the write-ahead log either") from other
            raise

    def _stand_in(self) -> Path:
        """A new store with a copy of the write-ahead log: SQLite ignores such a log beside an empty file.

        The log has every page that was written since the coordinator started. The other pages are the same in every
        store, or hold records, whose checksums are compared.
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
        self.notes.append(f"{self.path} is lost: records were read from {ahead}, and some may be missing")
        return path

    def _clear(self) -> None:
        if self._aside is not None:
            self._aside.cleanup()
        if self._lock is not None:
            self._lock.release()
            self._lock = None

    def contents(self) -> LogSummary:
        epochs: dict[TopicPartition, int] = {}
        columns = "topic, partition, epoch" if has_topics(self._connection) else f"'{OFFSETS_TOPIC}', partition, epoch"
        try:
            for topic, partition, epoch in self._connection.execute(f"SELECT {columns} FROM partitions ORDER BY 1, 2"):
                if not isinstance(topic, str) or not isinstance(partition, int) or not isinstance(epoch, int):
                    raise ValueError(f"expected a topic and two numbers, found {topic!r}, {partition!r} and {epoch!r}")
                epochs[TopicPartition(topic, partition)] = epoch
        except (sqlite3.Error, ValueError) as problem:
            self._unreadable("the epochs", problem)
        topics: list[StoredTopicChange] = []
        try:
            topics = self._topics()
        except (sqlite3.Error, ValueError) as problem:
            self._unreadable("the topics", problem)
        return LogSummary(epochs, topics)

    def _topics(self) -> list[StoredTopicChange]:
        """The entries of the log of topics; none in versions without topics."""
        if not self._connection.execute("SELECT count(*) FROM sqlite_schema WHERE name = 'topics_log'").fetchone()[0]:
            return []
        found = self._connection.execute("SELECT version, record FROM topics_log ORDER BY version")
        return [StoredTopicChange(version, compact(record)) for version, record in found]

    def _unreadable(self, what: str, problem: Exception) -> None:
        """A note when what is left is to be saved; else the end."""
        text = f"{self.path}: {what} cannot be read: {problem}"
        if not self._salvage:
            raise LogProblem(f"{text}; expected a whole file, or --salvage") from None
        self.notes.append(text)

    def records(self, wanted: frozenset[TopicPartition] | None = None) -> Iterator[LogRecord]:
        """The records by partition, in order."""
        try:
            for partition, position, epoch, producer_id, _, key, value in self._select("1, 2", wanted):
                if not isinstance(epoch, int) or not is_entry(producer_id, key, value):
                    raise ValueError(f"position {position} holds no record")
                yield LogRecord(partition, epoch, Entry(producer_id, key, value))
        except (sqlite3.Error, ValueError) as problem:
            raise LogProblem(
                f"{self.path} cannot be read further: {problem}; expected a whole file, or --salvage"
            ) from None

    def salvaged(self, wanted: frozenset[TopicPartition] | None = None) -> Iterator[LogRecord]:
        """The records that can be read and have their checksums. Reads forwards up to the damage, then backwards."""
        found: dict[int, LogRecord] = {}
        lost = 0
        for order in ("2", "2 DESC"):
            try:
                for partition, position, epoch, *row in self._select(order, wanted):
                    if position in found:
                        break
                    kept = LogRecord(partition, epoch, entry_of(row)) if is_whole(partition, position, row) else None
                    if kept is None or problem_of(kept) is not None:
                        lost += 1
                    else:
                        found[position] = kept
            except sqlite3.Error as problem:
                self.notes.append(f"{self.path} cannot be read as a whole: {problem}")
            else:
                if order == "2":
                    break
        if lost:
            self.notes.append(f"{lost} damaged records were left out")
        in_order = [kept for _, kept in sorted(found.items())]
        return iter(sorted(in_order, key=lambda kept: kept.partition))

    def batch_counts(self) -> BatchCounts:
        """How many batches the topics have, where there are no problems."""
        return BatchCounts(*batch_counts(self._connection))

    def problems(self) -> Iterator[str]:
        """Every problem of the directory."""
        is_refused = False
        for problem in self._problems_of_logs():
            is_refused = True
            yield problem
        for defect in self._defects_of_batches():
            is_refused |= defect.partition is None
            yield defect.text
        self.advice = advice(self.folder) if is_refused else of_directory(self.folder).for_data_partitions()

    def _problems_of_logs(self) -> Iterator[str]:
        """Every problem but the batches of topics."""
        if self._incomplete is not None:
            yield self._incomplete
        try:
            for (finding,) in self._connection.execute("PRAGMA integrity_check(20)").fetchall():
                if finding != "ok":
                    yield f"{self.path}: {finding}"
            for finding in findings(self._connection):
                yield finding.text
            yield from unreadable(self.records())
        except (sqlite3.Error, LogProblem) as broken:
            yield f"{self.path}: {broken}"
        try:
            topic_names(self._topics())
        except (sqlite3.Error, ValueError, KeyError, TypeError) as broken:
            yield f"{self.path}: the topics cannot be read: {first_line(broken)}"

    def _defects_of_batches(self) -> Iterator[LogDefect]:
        """Every partition of a topic that a start would leave out, and what cannot be read of all."""
        try:
            topics = topic_names(self._topics())
        except (sqlite3.Error, ValueError, KeyError, TypeError):
            topics = {}  # one of the problems of the logs
        try:
            yield from batch_findings(self._connection, topics)
        except sqlite3.Error as broken:
            yield LogDefect(None, f"{self.path}: {broken}")

    def _select(self, order: str, wanted: frozenset[TopicPartition] | None) -> Iterator[Any]:
        """Partition, position, epoch, producer id, checksum, key and value of each record."""
        number = "partition_id" if has_topics(self._connection) else "partition"
        query = f"SELECT {number}, position, epoch, producer_id, checksum, key, value FROM log ORDER BY {order}"
        try:
            names, _ = expected_records(self._connection)
        except sqlite3.Error:
            names = {}
        for found, *row in self._connection.execute(query):
            partition = names.get(found) or offsets_partition(found)
            if wanted is None or partition in wanted:
                yield partition, *row
