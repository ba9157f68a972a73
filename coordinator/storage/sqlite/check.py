"""Whether a data directory still has everything that was acknowledged.

What is noticed: a database that is gone or emptied (by the progress file, or by the write-ahead log), a write-ahead log
that is missing, cut short or broken (by the progress file), a database that was copied without it or while it was
written to, records that changed or vanished (by their checksums, how many there should be, and the sum of them). What
cannot be noticed: a directory that was put back as a whole to an earlier day.

Batches of topics are too many to be read for this. A partition with a damaged or missing one is left out when it is
read, see ``batch_reader.py``; all others are served.
"""

from __future__ import annotations

import sqlite3
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, NamedTuple

from rejoin.coordinator.storage.base import StoreProblem
from rejoin.coordinator.storage.codec import Row, Unreadable, checksum, is_entry
from rejoin.coordinator.storage.sqlite.progress_file import Progress, advice
from rejoin.protocol.records.consumer_offsets import OFFSETS_TOPIC, offsets_partition
from rejoin.protocol.types import TopicPartition

PARTITION_LOG: Final = "partition_log"
"""The log, for queries of one partition."""

_HAS_PARTITION_LOG: Final = f"SELECT EXISTS (SELECT 1 FROM sqlite_schema WHERE name = '{PARTITION_LOG}')"
_HAS_TAIL: Final = "SELECT EXISTS (SELECT 1 FROM pragma_table_info('store') WHERE name = 'tail_checksums')"
_HAS_BATCH_TAIL: Final = "SELECT EXISTS (SELECT 1 FROM pragma_table_info('store') WHERE name = 'tail_batches')"
_BATCH_TAIL: Final = "SELECT tail_batches, (SELECT count(*) FROM batch_tail) FROM store"
_HAS_TOPICS: Final = "SELECT EXISTS (SELECT 1 FROM pragma_table_info('partitions') WHERE name = 'topic')"
_NUMBERS: Final = " OR ".join(f"typeof({name}) != 'integer'" for name in ("epoch", "records", "checksums", "alive"))
_MISTYPED: Final = f"SELECT partition FROM partitions WHERE {_NUMBERS}"
_MISTYPED_TOPICS: Final = (
    f"SELECT id FROM partitions WHERE {_NUMBERS} OR typeof(partition) != 'integer' OR typeof(topic) != 'text'"
)
_SHOWN: Final = 3
_NO_DATABASE: Final = 1
"""Up to so many bytes SQLite takes a file for one that is still to be filled."""


_DAMAGED: Final = frozenset({sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB})


class DatabaseLost(StoreProblem):
    """There is no database any more, and something beside it says that there was one."""


class LogDefect(NamedTuple):
    """Something wrong with a partition, or with the whole file."""

    partition: TopicPartition | None
    text: str


def is_damage(problem: Exception) -> bool:
    """Whether SQLite found pages damaged. Reading them again would not help."""
    # The sqlite3 module itself finds that a text is not UTF-8, and gives no code.
    is_text = "Could not decode to UTF-8" in str(problem)
    return is_text or getattr(problem, "sqlite_errorcode", 0) & 0xFF in _DAMAGED


@contextmanager
def damage_of(partition: TopicPartition) -> Iterator[None]:
    """While a partition is read: raise :class:`Unreadable` where its pages are damaged."""
    try:
        yield
    except sqlite3.Error as problem:
        if is_damage(problem):
            raise Unreadable(f"{partition}: SQLite cannot read its pages: {problem}") from problem
        raise


def check_there(path: Path, progress: Progress | None) -> None:
    """Raise :class:`DatabaseLost` when a database that was written to is missing or empty.

    To be asked before SQLite looks: it takes the write-ahead log of an empty database for a leftover and deletes it,
    for a reader, too. What was stored last would be gone.
    """
    size = _size(path)
    if size <= _NO_DATABASE and (progress is not None or ahead_of(path) is not None):
        raise lost(path, "is missing" if size < 0 else f"is empty ({size} bytes)", progress)


def lost(path: Path, what: str, progress: Progress | None) -> DatabaseLost:
    """The problem of a database that is not there, with all that is known about it."""
    text = f"{path} {what}, and "
    if progress is None:
        text += "the write-ahead log beside it is not: expected both, or neither"
    else:
        text += f"{progress.batch} batches had been written to it, as the progress file mark beside it says"
    ahead = ahead_of(path)
    if ahead is None:
        return DatabaseLost(f"{text}. Put a complete copy of the directory back, or give an empty one")
    kept = f". What was stored last is still in {ahead} ({_size(ahead)} bytes): leave it where it is"
    return DatabaseLost(text + kept + advice(path.parent))


def ahead_of(path: Path) -> Path | None:
    """The write-ahead log of a database, if it has anything in it."""
    ahead = path.with_name(path.name + "-wal")
    return ahead if _size(ahead) > 0 else None


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return -1


def check_progress(connection: sqlite3.Connection, path: Path, progress: Progress | None) -> None:
    """Raise :class:`StoreProblem` when batches are missing that were acknowledged, or may have been."""
    problem = progress_problem(connection, path, progress)
    if problem is not None:
        raise StoreProblem(problem + advice(path.parent))


def progress_problem(connection: sqlite3.Connection, path: Path, progress: Progress | None) -> str | None:
    """The problem with the end of the database; none if there is none."""
    # No row at all: killed in the first moment of the first start, before there was a progress file.
    name, batch, in_use = connection.execute("SELECT name, batch, in_use FROM store").fetchone() or ("", 0, 0)
    if progress is None:
        if not in_use:
            return None
        return (
            f"{path} was in use, and the progress file mark beside it is missing: it was copied while a coordinator "
            "used it, without the files that belong to it, so what was stored last may be lost"
        )
    if progress.store != name:
        return f"{path} and the progress file mark beside it are of different stores"
    if not isinstance(batch, int):
        return f"{path} does not say what its newest batch is: expected a number, found {batch!r}"
    if progress.batch > batch:
        return (
            f"{path} ends with batch {batch}, but batch {progress.batch} was stored: its write-ahead log "
            f"{path.name}-wal is missing, cut short or damaged, or an older copy was put in its place"
        )
    return None


def check_records(connection: sqlite3.Connection, path: Path) -> None:
    """Raise :class:`StoreProblem` when records were changed or lost."""
    found = [finding for _, finding in zip(range(_SHOWN), findings(connection), strict=False)]
    if found:
        raise StoreProblem(f"{path} is damaged: " + "; ".join(finding.text for finding in found) + advice(path.parent))


def has_topics(connection: sqlite3.Connection) -> bool:
    """Whether the tables name the topics of their partitions; those of an older version have the offsets topic only."""
    return bool(connection.execute(_HAS_TOPICS).fetchone()[0])


def findings(connection: sqlite3.Connection) -> Iterator[LogDefect]:
    """All that is wrong with the records."""
    with_topics = has_topics(connection)
    for (number,) in connection.execute(_MISTYPED_TOPICS if with_topics else _MISTYPED):
        yield LogDefect(None, f"the table partitions, id {number}: expected numbers and a topic's name")
        return
    names, expected = expected_records(connection)
    tail = _tail(connection)
    if not all(isinstance(each, int) for each in tail):
        yield LogDefect(None, f"the table store: expected numbers for where the log ends, found {tail}")
        return
    caught_up, tail_records, tail_checksums = tail
    counts: Counter[int] = Counter()
    sums: Counter[int] = Counter()
    in_tail: Counter[int] = Counter()
    number_column = "partition_id" if with_topics else "partition"
    query = f"SELECT {number_column}, position, epoch, producer_id, checksum, key, value FROM log ORDER BY position"
    for number, position, epoch, producer_id, kept, key, value in connection.execute(query):
        if not isinstance(number, int) or not isinstance(kept, int) or not isinstance(epoch, int):
            yield LogDefect(None, f"position {position}: there is no record in its place")
            continue
        if with_topics and number not in names:
            yield LogDefect(None, f"position {position}: expected a partition of the table, found id {number}")
            continue
        partition = names.setdefault(number, offsets_partition(number))
        if position <= caught_up:
            counts[number] += 1
            sums[number] += kept
        else:
            in_tail[number] += 1
            tail_checksums -= kept
        if not _fits(partition, position, (producer_id, key, value), kept):
            yield LogDefect(partition, f"{partition}, position {position}: the checksum does not match the record")
    by_partition = PARTITION_LOG if connection.execute(_HAS_PARTITION_LOG).fetchone()[0] else "log"
    listed = dict(connection.execute(f"SELECT {number_column}, count(*) FROM {by_partition} GROUP BY 1"))
    if in_tail.total() != tail_records:
        found = f"expected {tail_records} records, found {in_tail.total()}"
        yield LogDefect(None, f"after position {caught_up}: {found}")
    elif tail_checksums:
        yield LogDefect(None, f"after position {caught_up}: the records are not those that were stored")
    for number in sorted(expected.keys() | counts.keys() | in_tail.keys()):
        partition = names[number]
        records, checksums = expected.get(number, (0, 0))
        count = counts[number]
        if count != records:
            yield LogDefect(partition, f"{partition}: expected {records} records, found {count}")
        elif sums[number] != checksums:
            yield LogDefect(partition, f"{partition}: its records are not those that were stored")
        count += in_tail[number]
        if listed.get(number, 0) != count:
            text = f"{partition}: its index has {listed.get(number, 0)} records, its table {count}"
            yield LogDefect(partition, text)
    if connection.execute(_HAS_BATCH_TAIL).fetchone()[0]:
        appended, present = connection.execute(_BATCH_TAIL).fetchone() or (0, 0)
        if appended != present:
            yield LogDefect(None, f"the table batch_tail: expected {appended} batches, found {present}")


def expected_records(
    connection: sqlite3.Connection,
) -> tuple[dict[int, TopicPartition], dict[int, tuple[int, int]]]:
    """Which partition each id is, and how many records it has, with the sum of their checksums."""
    columns = "id, topic, partition" if has_topics(connection) else f"partition, '{OFFSETS_TOPIC}', partition"
    names: dict[int, TopicPartition] = {}
    expected: dict[int, tuple[int, int]] = {}
    for number, topic, partition, records, checksums in connection.execute(
        f"SELECT {columns}, records, checksums FROM partitions"
    ):
        names[number] = TopicPartition(topic, partition)
        expected[number] = (records, checksums)
    return names, expected


def _tail(connection: sqlite3.Connection) -> tuple[int, int, int]:
    """Up to where the table ``partitions`` counts, how many records came after, and the sum of their checksums."""
    if not connection.execute(_HAS_TAIL).fetchone()[0]:
        return sys.maxsize, 0, 0
    query = "SELECT indexed, next_position - 1 - indexed, tail_checksums FROM store"
    found: tuple[int, int, int] | None = connection.execute(query).fetchone()
    return found or (0, 0, 0)


def _fits(partition: TopicPartition, position: int, entry: tuple[Any, Any, Any], kept: int) -> bool:
    """Whether an entry has its checksum."""
    return is_entry(*entry) and checksum(partition, position, entry) == kept


def rows(connection: sqlite3.Connection, number: int, after: int, until: int, limit: int) -> list[Row]:
    """A piece of the partition with this id: what comes after a position, up to and including another."""
    return connection.execute(
        f"SELECT position, producer_id, checksum, key, value FROM {PARTITION_LOG} "
        "WHERE partition_id = ? AND position > ? AND position <= ? ORDER BY position LIMIT ?",
        (number, after, until, limit),
    ).fetchall()
