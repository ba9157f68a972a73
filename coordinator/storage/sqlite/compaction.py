"""Compaction of a data directory: what does not count any more goes, in slices between the appends.

A partition is compacted when it has twice the records that were left the last time, and with it all others that are
halfway there. Records of all partitions lie side by side, in the order in which they came: taken out together, oldest
first, they cost a write for each page that they are on, and one partition after the other would cost one for each of
them.
"""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final

import orjson
import structlog

from rejoin.coordinator.storage.base import Observer
from rejoin.coordinator.storage.compaction import doomed_query_sqlite, doomed_with_transactions_query, listed
from rejoin.coordinator.storage.sqlite.check import PARTITION_LOG
from rejoin.coordinator.storage.sqlite.database import SqliteDatabase
from rejoin.coordinator.storage.sqlite.partition_index import Doomed, PartitionIndex, PartitionStats
from rejoin.protocol.types import TopicPartition

_SLICE_RECORDS: Final = 500
_LARGEST_SLICE: Final = 5_000
_SLICES: Final = 16
_VACUUM_PAGES: Final = 100
_FEW: Final = 4
_COLUMNS: Final = "position, partition_id, checksum"


@dataclass(slots=True)
class _Run:
    """Partitions that are compacted together, by id, with the records that each will have about.

    ``doomed`` has the others, ``removed`` how many the slice at work takes out.
    """

    alive: dict[int, int]
    doomed: list[Doomed] = field(default_factory=list)
    begin: int = 0
    removed: Counter[int] = field(default_factory=Counter)


class Compactor:
    """Compacts due partitions, one run after the other.

    No partition while it is read: a reader that has taken in a record must see the tombstone that ends it.
    """

    def __init__(
        self,
        database: SqliteDatabase,
        index: PartitionIndex,
        observer: Observer,
        is_read: Callable[[TopicPartition], bool],
    ) -> None:
        self.is_busy = False
        self._database = database
        self._index = index
        self._observer = observer
        self._is_read = is_read
        self._stopped = False
        self._looked_at: Mapping[TopicPartition, PartitionStats] | None = None
        self._logger: Any = structlog.get_logger("coordinator").bind()

    def stop(self) -> None:
        """Begin nothing more."""
        self._stopped = True

    def look_after(self) -> None:
        """Compact if it is due. Called after each write: partitions that are being read are tried again then."""
        known = self._index.durable
        if known is self._looked_at or self.is_busy or self._stopped:
            return
        due = [partition for partition, kept in known.items() if kept.is_due]
        if any(not self._is_read(partition) for partition in due):
            self.is_busy = True
            self._database.submit(self._index.catch_up, self._look)
        if not due:
            self._looked_at = known

    def _look(self, outcome: object) -> None:
        """Find out what does not count."""
        known = self._index.durable
        is_due = {each: kept for each, kept in known.items() if kept.is_half_due and not self._is_read(each)}
        run = _Run({kept.id: kept.records for kept in is_due.values()})
        if isinstance(outcome, BaseException):
            self._failed(run, outcome)
            return
        is_few = sum(run.alive.values()) * _FEW < sum(kept.records for kept in known.values())
        assert isinstance(outcome, int), "the index says how far it goes"
        work = partial(_find_doomed, list(run.alive), outcome, PARTITION_LOG if is_few else "log")
        self._database.read(work, partial(self._doomed_found, run))

    def _doomed_found(self, run: _Run, outcome: Any) -> None:
        if isinstance(outcome, BaseException):
            self._failed(run, outcome)
            return
        run.doomed = outcome
        for number, doomed in Counter(number for _, number, _ in run.doomed).items():
            run.alive[number] = max(0, run.alive[number] - doomed)
        self._remove_slice(run, None)

    def _remove_slice(self, run: _Run, outcome: object) -> None:
        """Take the next few out, oldest first, and come back when that is durable."""
        if isinstance(outcome, BaseException):
            self._failed(run, outcome)
            return
        self._report(run)
        for number in [each for each in run.alive if self._is_read(self._index.by_id[each])]:
            del run.alive[number]
        if self._stopped:
            self.is_busy = False
            return
        end = run.begin + min(max(_SLICE_RECORDS, len(run.doomed) // _SLICES), _LARGEST_SLICE)
        some = [each for each in run.doomed[run.begin : end] if each[1] in run.alive]
        run.begin = end
        run.removed.update(number for _, number, _ in some)
        is_last = end >= len(run.doomed)
        alive = run.alive if is_last else {}

        def remove(connection: sqlite3.Connection) -> None:
            self._index.remove(connection, some)
            self._index.compacted(connection, alive)
            give_back_pages(connection, _VACUUM_PAGES + len(some) // 10)

        self._database.submit(remove, partial(self._ended if is_last else self._remove_slice, run))

    def _ended(self, run: _Run, outcome: object) -> None:
        if isinstance(outcome, BaseException):
            self._failed(run, outcome)
            return
        self._report(run)
        self.is_busy = False
        self.look_after()

    def _report(self, run: _Run) -> None:
        """A slice is removed: it counts, whatever stops the rest."""
        for number, removed in run.removed.items():
            self._observer.compacted(self._index.by_id[number], removed)
        run.removed.clear()

    def _failed(self, run: _Run, problem: BaseException) -> None:
        self.is_busy = False
        self._looked_at = self._index.durable
        problem_text = f"{type(problem).__name__}: {problem}"
        partitions = [str(self._index.by_id[number]) for number in run.alive]
        self._logger.error("compaction_failed", partitions=partitions, problem=problem_text)


def give_back_pages(connection: sqlite3.Connection, most: int) -> None:
    """Make the file smaller by pages that are not used. Through this interface each call gives back one."""
    (free,) = connection.execute("PRAGMA freelist_count").fetchone()
    for _ in range(min(free, most)):
        connection.execute("PRAGMA incremental_vacuum(1)")


def _find_doomed(ids: list[int], until: int, log: str, connection: sqlite3.Connection) -> list[Doomed]:
    """The records up to a position that do not count, oldest first.

    Those behind it are not in the index yet, and may be gone before they ever are.
    """
    connection.execute("BEGIN")
    try:
        wrote = f"SELECT DISTINCT partition_id FROM {log} WHERE producer_id >= 0 AND partition_id IN ({listed(ids)})"
        with_transactions = {number for (number,) in connection.execute(wrote)}
        plain = [number for number in ids if number not in with_transactions]
        doomed = _all_at_once(connection, doomed_query_sqlite(plain, log))
        for number in sorted(with_transactions):
            query = doomed_with_transactions_query(f"partition_id = {int(number)}", _COLUMNS, PARTITION_LOG)
            doomed += _all_at_once(connection, query)
        return sorted(each for each in doomed if each[0] <= until)
    finally:
        connection.execute("ROLLBACK")


def _all_at_once(connection: sqlite3.Connection, query: str) -> list[Doomed]:
    """The rows of a query, fetched as one. Row by row, threads that have better things to do would wait for each."""
    as_one = f"SELECT json_group_array(json_array({_COLUMNS})) FROM ({query})"
    found: list[Doomed] = orjson.loads(connection.execute(as_one).fetchone()[0])
    return found
