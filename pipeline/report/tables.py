"""All tables of a report: which there are, how each is made of others, and making them, two at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from threading import Lock
from typing import Any, Final, NamedTuple

import pyarrow as pa
import pyarrow.dataset as ds
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as fn

from rejoin.pipeline import schemas
from rejoin.pipeline.audits.violations import violations
from rejoin.pipeline.findings.table import findings
from rejoin.pipeline.report.parquet_tables import (
    FOLDERS_BY,
    LONGEST_FOLDER,
    OnStep,
    as_read,
    on_disk,
    rows_in_process,
    stored,
)
from rejoin.pipeline.tables.commits import commits
from rejoin.pipeline.tables.group_tables import balance, member_sessions, ownership, pauses, rebalances
from rejoin.pipeline.tables.records import progress, ranges_by_partition, records
from rejoin.pipeline.tables.requests import requests
from rejoin.pipeline.tables.runs import runs_of
from rejoin.pipeline.tables.streams import streams
from rejoin.pipeline.transactions.tables import TransactionTables

MakeTable = Callable[[DataFrame, Mapping[str, DataFrame]], DataFrame | pa.Table]
"""A table from the events and the tables before it; where rows are in this process, perhaps as such."""

AT_ONCE: Final = 2
"""While one query is planned, another runs."""


def all_tables(rows: pa.Table | None = None) -> Iterable[tuple[str, MakeTable]]:
    """Names of tables with how each is made of the events and the tables before it.

    ``rows``: the events, if they are in this process; what is written in Python then runs here.
    """
    of_transactions = TransactionTables(rows)
    runs = _Once(runs_of)
    ranges = _Once(lambda events: _persisted(ranges_by_partition(events, runs(events))))

    def here(events: DataFrame) -> DataFrame | pa.Table:
        return events if rows is None else rows

    def made(tables: Mapping[str, DataFrame], name: str) -> DataFrame | pa.Table:
        return tables.rows(name) if rows is not None and isinstance(tables, Tables) else tables[name]

    def found(events: DataFrame, tables: Mapping[str, DataFrame]) -> DataFrame | pa.Table:
        read = (made(tables, name) for name in ("rebalances", "ownership", "member_sessions"))
        return violations(here(events), *read)

    return (
        ("streams", lambda events, _: streams(here(events))),
        ("rebalances", lambda events, _: rebalances(here(events))),
        (
            "member_sessions",
            lambda events, tables: member_sessions(here(events), made(tables, "rebalances"), runs(here(events))),
        ),
        ("pauses", lambda events, tables: pauses(here(events), made(tables, "rebalances"), runs(here(events)))),
        ("ownership", lambda events, _: ownership(here(events), runs(here(events)))),
        ("balance", lambda events, _: balance(here(events), runs(here(events)))),
        ("commits", lambda events, _: commits(here(events), runs(here(events)))),
        ("records", lambda events, _: records(ranges(here(events)))),
        ("progress", lambda events, _: progress(ranges(here(events)))),
        ("requests", lambda events, _: requests(here(events))),
        ("transactions", lambda events, _: of_transactions.make("transactions", events)),
        ("producers", lambda events, tables: of_transactions.make("producers", events, tables)),
        ("stable_offsets", lambda events, tables: of_transactions.make("stable_offsets", events, tables)),
        ("readers", lambda events, tables: of_transactions.make("readers", events, tables)),
        (
            "violations",
            lambda events, tables: of_transactions.with_violations(found(events, tables), tables),
        ),
        (
            "findings",
            lambda events, tables: of_transactions.with_findings(
                findings(lambda name: made(tables, name), here(events)), tables
            ),
        ),
    )


def folders_of(name: str) -> list[str]:
    """The columns by which a table lies in folders."""
    return [column for column in FOLDERS_BY if column in schemas.TABLES[name].fieldNames()]


def make_tables(
    events: DataFrame, folder: Path, *, rows: pa.Table | None = None, on_step: OnStep = lambda _: None
) -> Tables:
    """Every table, kept below a folder. Whatever ends this early ends what still runs on Spark.

    ``rows``: the events, if they are in this process.
    """
    pool = ThreadPoolExecutor(AT_ONCE, "tables")
    tables = Tables()

    # Tables of Spark's tasks get no folders by group where an id is too long for the name of one.
    without = ("group_id",) if rows is None and _longest_group(events) > LONGEST_FOLDER else ()

    def made(name: str, make: MakeTable) -> KeptTable:
        on_step(f"making {name.replace('_', ' ')}")
        by = [each for each in folders_of(name) if each not in without]
        return keep_table(name, make(events, tables), folder, events.sparkSession, here=rows is not None, by=by)

    try:
        for name, make in all_tables(rows):
            tables.add(name, pool.submit(made, name, make))
        for name in tables:
            assert tables[name] is not None
        return tables
    except BaseException:
        pool.shutdown(wait=False, cancel_futures=True)
        events.sparkSession.sparkContext.cancelAllJobs()
        raise
    finally:
        pool.shutdown()


def _longest_group(events: DataFrame) -> int:
    """The length of the longest group id as the name of a folder."""
    longest = fn.max(fn.octet_length(fn.url_encode("group_id")))
    return int(events.select(longest).collect()[0][0] or 0)


def keep_table(
    name: str,
    table: DataFrame | pa.Table,
    folder: Path,
    spark: SparkSession,
    *,
    here: bool,
    by: Sequence[str] | None = None,
) -> KeptTable:
    """Write one table below a folder. ``here``: its rows stay in this process as well."""
    schema, by = schemas.TABLES[name], folders_of(name) if by is None else by
    if isinstance(table, DataFrame) and not here:
        return KeptTable(on_disk(table, schema, folder / name, by), None, folder / name)
    rows = as_read(table.toArrow() if isinstance(table, DataFrame) else table, by)
    return KeptTable(rows_in_process(spark, rows, schema, folder / name, by), rows)


class _Once:
    """A function of the events, computed once for the tables that are made of it at the same time."""

    def __init__(self, function: Callable[[Any], Any]) -> None:
        self._function = function
        self._lock = Lock()
        self._made: list[Any] = []

    def __call__(self, events: DataFrame | pa.Table) -> Any:
        with self._lock:
            if not self._made:
                self._made.append(self._function(events))
            return self._made[0]


def _persisted(table: DataFrame | pa.Table) -> DataFrame | pa.Table:
    return table.persist() if isinstance(table, DataFrame) else table


class KeptTable(NamedTuple):
    """A table that is written: how Spark reads it and, of little data, its rows."""

    frame: DataFrame
    rows: pa.Table | None
    folder: Path | None = None


class Tables(Mapping[str, DataFrame]):
    """Tables by name, some of them still being made. Each is made of earlier ones, so that none waits forever."""

    def __init__(self) -> None:
        self._futures: dict[str, Future[KeptTable]] = {}

    def add(self, name: str, table: Future[KeptTable]) -> None:
        self._futures[name] = table

    def put(self, name: str, table: KeptTable) -> None:
        """Add one that is made."""
        self._futures[name] = Future()
        self._futures[name].set_result(table)

    def rows(self, name: str) -> pa.Table:
        """Its rows, which must be in this process."""
        rows = self._futures[name].result().rows
        assert rows is not None, f"the rows of {name} are with Spark"
        return rows

    def stored(self) -> dict[str, ds.Dataset]:
        """All tables for readers without Spark: rows of this process, or their folders."""
        kept = {name: future.result() for name, future in self._futures.items()}
        return {
            name: stored(schemas.TABLES[name], each.folder) if each.rows is None else ds.dataset(each.rows)
            for name, each in kept.items()
        }

    def __getitem__(self, name: str) -> DataFrame:
        return self._futures[name].result().frame

    def __iter__(self) -> Iterator[str]:
        return iter(self._futures)

    def __len__(self) -> int:
        return len(self._futures)
