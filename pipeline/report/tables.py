"""All tables of a report: which there are, how each is made of others, and making them, two at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from threading import Lock
from typing import Any, Final, NamedTuple

import pyarrow as pa
import pyarrow.dataset as ds

from rejoin.pipeline import schemas
from rejoin.pipeline.audits.violations import violations
from rejoin.pipeline.findings.table import findings
from rejoin.pipeline.report.parquet_tables import (
    FOLDERS_BY,
    LONGEST_FOLDER,
    OnStep,
    as_read,
    stored,
    write_rows,
)
from rejoin.pipeline.share_groups.tables import SHARE_GROUPS
from rejoin.pipeline.streams_groups.tables import STREAMS_GROUPS
from rejoin.pipeline.tables.client_metrics import client_metrics
from rejoin.pipeline.tables.commits import commits
from rejoin.pipeline.tables.group_tables import balance, member_sessions, ownership, pauses, rebalances
from rejoin.pipeline.tables.records import progress, ranges_by_partition, records
from rejoin.pipeline.tables.requests import requests
from rejoin.pipeline.tables.runs import runs_of
from rejoin.pipeline.tables.streams import streams
from rejoin.pipeline.tables.whole_groups import Rows
from rejoin.pipeline.transactions.tables import transaction_tables, with_findings, with_violations

MakeTable = Callable[[Rows, Mapping[str, Rows]], Rows]
"""A table from the events and the tables before it."""

AT_ONCE: Final = 2
"""While one query is planned, another runs."""


def all_tables() -> Iterable[tuple[str, MakeTable]]:
    """Names of tables with how each is made of the events and the tables before it."""
    runs, of_transactions = _Once(runs_of), _Once(transaction_tables)
    of_share_groups, of_streams_groups = _Once(SHARE_GROUPS.tables), _Once(STREAMS_GROUPS.tables)
    ranges = _Once(lambda events: _persisted(ranges_by_partition(events, runs(events))))

    def all_violations(events: Rows, tables: Mapping[str, Rows]) -> Rows:
        found = violations(events, *(tables[name] for name in ("rebalances", "ownership", "member_sessions")))
        return with_violations(found, tables)

    def all_findings(events: Rows, tables: Mapping[str, Rows]) -> Rows:
        found = SHARE_GROUPS.with_findings(with_findings(findings(tables.__getitem__, events), tables), tables)
        return STREAMS_GROUPS.with_findings(found, tables)

    return (
        ("streams", lambda events, _: streams(events)),
        ("rebalances", lambda events, _: rebalances(events)),
        ("member_sessions", lambda events, tables: member_sessions(events, tables["rebalances"], runs(events))),
        ("pauses", lambda events, tables: pauses(events, tables["rebalances"], runs(events))),
        ("ownership", lambda events, _: ownership(events, runs(events))),
        ("balance", lambda events, _: balance(events, runs(events))),
        ("client_metrics", lambda events, tables: client_metrics(events, tables["rebalances"], runs(events))),
        ("commits", lambda events, _: commits(events, runs(events))),
        ("records", lambda events, _: records(ranges(events))),
        ("progress", lambda events, _: progress(ranges(events))),
        ("requests", lambda events, _: requests(events)),
        ("transactions", lambda events, _: of_transactions(events)["transactions"]),
        ("producers", lambda events, _: of_transactions(events)["producers"]),
        ("stable_offsets", lambda events, _: of_transactions(events)["stable_offsets"]),
        ("readers", lambda events, _: of_transactions(events)["readers"]),
        ("share_deliveries", lambda events, _: of_share_groups(events)["share_deliveries"]),
        ("share_archived", lambda events, _: of_share_groups(events)["share_archived"]),
        ("share_windows", lambda events, _: of_share_groups(events)["share_windows"]),
        ("share_partitions", lambda events, _: of_share_groups(events)["share_partitions"]),
        ("tasks", lambda events, _: of_streams_groups(events)["tasks"]),
        ("task_moves", lambda events, _: of_streams_groups(events)["task_moves"]),
        ("task_restores", lambda events, _: of_streams_groups(events)["task_restores"]),
        ("streams_changes", lambda events, _: of_streams_groups(events)["streams_changes"]),
        ("violations", all_violations),
        ("findings", all_findings),
    )


def folders_of(name: str) -> list[str]:
    """The columns by which a table lies in folders."""
    return [column for column in FOLDERS_BY if column in schemas.TABLES[name].names]


def make_tables(events: Rows, folder: Path, *, on_step: OnStep = lambda _: None) -> Tables:
    """Every table, kept below a folder. Whatever ends this early ends what still runs on Spark."""
    pool = ThreadPoolExecutor(1 if isinstance(events, pa.Table) else AT_ONCE, "tables")
    tables = Tables()

    # Tables of Spark's tasks get no folders by group where an id is too long for the name of one.
    without = () if isinstance(events, pa.Table) else _not_in_folders(events)

    def made(name: str, make: MakeTable) -> KeptTable:
        on_step(f"making {name.replace('_', ' ')}")
        by = [each for each in folders_of(name) if each not in without]
        return keep_table(name, make(events, tables), folder, by)

    try:
        for name, make in all_tables():
            tables.add(name, pool.submit(made, name, make))
        for name in tables:
            assert tables[name] is not None
        return tables
    except BaseException:
        pool.shutdown(wait=False, cancel_futures=True)
        if not isinstance(events, pa.Table):
            events.sparkSession.sparkContext.cancelAllJobs()
        raise
    finally:
        pool.shutdown()


def _not_in_folders(events: Rows) -> Sequence[str]:
    from rejoin.pipeline.report import on_spark  # noqa: PLC0415

    return ("group_id",) if on_spark.longest_group(events) > LONGEST_FOLDER else ()


def keep_table(name: str, table: Rows, folder: Path, by: Sequence[str] | None = None) -> KeptTable:
    """Write one table below a folder. Rows of this process stay in it as well."""
    schema, by = schemas.TABLES[name], folders_of(name) if by is None else by
    if isinstance(table, pa.Table):
        rows = as_read(table, by)
        write_rows(rows, schema, folder / name, by)
        return KeptTable(rows, None)
    from rejoin.pipeline.report import on_spark  # noqa: PLC0415 (only where rows are Spark's)

    return KeptTable(on_spark.on_disk(table, schema, folder / name, by), folder / name)


class _Once:
    """A function of the events, computed once for the tables that are made of it at the same time."""

    def __init__(self, function: Callable[[Any], Any]) -> None:
        self._function = function
        self._lock = Lock()
        self._made: list[Any] = []

    def __call__(self, events: Rows) -> Any:
        with self._lock:
            if not self._made:
                self._made.append(self._function(events))
            return self._made[0]


def _persisted(table: Rows) -> Rows:
    return table if isinstance(table, pa.Table) else table.persist()


class KeptTable(NamedTuple):
    """A table that is written: its rows and, where they are not in this process, its folder."""

    rows: Rows
    folder: Path | None = None


class Tables(Mapping[str, Rows]):
    """Tables by name, some of them still being made. Each is made of earlier ones, so that none waits forever."""

    def __init__(self) -> None:
        self._futures: dict[str, Future[KeptTable]] = {}

    def add(self, name: str, table: Future[KeptTable]) -> None:
        self._futures[name] = table

    def stored(self) -> dict[str, ds.Dataset]:
        """All tables for readers without Spark: rows of this process, or their folders."""
        kept = {name: future.result() for name, future in self._futures.items()}
        return {
            name: ds.dataset(each.rows) if each.folder is None else stored(schemas.TABLES[name], each.folder)
            for name, each in kept.items()
        }

    def __getitem__(self, name: str) -> Rows:
        return self._futures[name].result().rows

    def __iter__(self) -> Iterator[str]:
        return iter(self._futures)

    def __len__(self) -> int:
        return len(self._futures)
