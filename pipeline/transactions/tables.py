"""Transactions, producers and the ends of their logs as tables.

Of little data the events are collected once, for all three tables; else each producer id is a task's.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql import functions as fn
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from rejoin.pipeline.schemas import FINDINGS, VIOLATIONS
from rejoin.pipeline.transactions import readers
from rejoin.pipeline.transactions.audits import JUDGED_BY, is_suspicious, violations_of
from rejoin.pipeline.transactions.findings import TransactionsOfRun, findings_of
from rejoin.pipeline.transactions.histories import COLUMNS, IN_LOGS, READ, tables_of
from rejoin.pipeline.transactions.schemas import OF_TRANSACTIONS, STABLE_OFFSETS

MOST: Final = 10_000
"""Suspicious transactions, and producers, that rules look at; of very many the first."""

_OF_READERS: Final = ("run_id", "source", "node", "seq", "at_ms", *readers.COLUMNS)

Rows = list[dict[str, Any]]
Table: TypeAlias = "DataFrame | pa.Table"
"""With Spark, or in this process."""


class TransactionTables:
    """Makes the tables of :data:`OF_TRANSACTIONS` from the events.

    ``rows``: the events, if they are in this process.
    """

    def __init__(self, rows: pa.Table | None) -> None:
        self._events = rows
        self._rows: dict[str, list[dict[str, Any]]] | None = None

    def make(self, name: str, events: DataFrame, tables: Mapping[str, DataFrame] | None = None) -> DataFrame | pa.Table:
        """One of them. All but ``transactions`` wait for that one, so that events are read once."""
        if self._events is not None:
            if tables is not None:
                assert tables["transactions"] is not None
            if self._rows is None:
                self._rows = _all_rows(self._events)
            return _arrow(self._rows[name], OF_TRANSACTIONS[name])
        if name == "readers":
            compared = events.where(fn.col("event") == readers.EVENT).select(*_OF_READERS)
            found = readers.rows_of(compared.toArrow().to_pylist())
            return events.sparkSession.createDataFrame(_arrow(found, OF_TRANSACTIONS[name]), OF_TRANSACTIONS[name])
        if name == "stable_offsets":
            samples = events.where(fn.col("event").isin(*IN_LOGS) & fn.col("last_stable_offset").isNotNull())
            return samples.select(*[fn.col(each.name).cast(each.dataType) for each in STABLE_OFFSETS.fields])
        ends = events.groupBy("run_id").agg(fn.max("at_ms").alias("ends_at_ms"))
        rows = _wanted(events).join(fn.broadcast(ends), "run_id")
        return rows.groupBy("run_id", "producer_id").applyInArrow(_made(name), schema=OF_TRANSACTIONS[name])

    # --- what is wrong with them

    def with_violations(self, violations: Table, tables: Mapping[str, DataFrame]) -> Table:
        """The table ``violations`` with those of transactions."""
        found = list(violations_of(self._suspicious(tables)))
        return _with(violations, found, VIOLATIONS)

    def with_findings(self, findings: Table, tables: Mapping[str, DataFrame]) -> Table:
        """The table ``findings`` with those about transactions."""
        found = findings_about(
            self._suspicious(tables),
            self._producers(tables),
            self._compared(tables),
            lambda: _groups_by_topic(tables["member_sessions"]),
            lambda groups: _rebalances(tables["rebalances"], groups),
        )
        return _with(findings, found, FINDINGS)

    def _compared(self, tables: Mapping[str, DataFrame]) -> Rows:
        if "readers" not in tables:
            return []
        if self._rows is not None:
            return self._rows["readers"]
        found: Rows = tables["readers"].toArrow().to_pylist()
        return found

    def _suspicious(self, tables: Mapping[str, DataFrame]) -> Rows:
        if "transactions" not in tables:
            # Where only some tables are made, there is nothing to look at.
            return []
        table = tables["transactions"]
        if self._rows is not None:
            found = [row for row in self._rows["transactions"] if is_suspicious(row)]
        else:
            found = table.mapInArrow(_only_suspicious, table.schema).limit(MOST).toArrow().to_pylist()
        return sorted(found, key=lambda row: (row["run_id"], row["started_at_ms"] or 0, row["producer_id"]))

    def _producers(self, tables: Mapping[str, DataFrame]) -> Rows:
        if "producers" not in tables:
            return []
        if self._rows is not None:
            return self._rows["producers"]
        found: Rows = (
            tables["producers"].orderBy(fn.desc("fenced_requests"), "producer_id").limit(MOST).toArrow().to_pylist()
        )
        return found


def findings_about(
    suspicious: Rows,
    producers: Rows,
    compared: Rows,
    readers_of: Callable[[], dict[str, dict[str, list[str]]]],
    rebalances_of: Callable[[list[str]], Rows],
) -> Rows:
    """Rows of the table ``findings`` about transactions, and about what verifying readers got.

    ``readers_of``: run to topic to the groups that read it; ``rebalances_of``: those of some groups. Both are asked
    only if they matter.
    """
    found = readers.reader_findings(compared)
    if suspicious or any(row["fenced_requests"] for row in producers):
        groups = readers_of()
        committing = sorted({group for row in producers for group in row["groups"] or ()})
        rebalances = rebalances_of(committing) if committing else []
        for run_id in dict.fromkeys(row["run_id"] for row in producers):
            late, ours, waits = (
                [row for row in rows if row["run_id"] == run_id] for rows in (suspicious, producers, rebalances)
            )
            found += findings_of(TransactionsOfRun(run_id, late, ours, groups.get(run_id, {}), waits))
    return found


def _with(table: Table, rows: Rows, schema: StructType) -> Table:
    """A table with these rows besides."""
    if not rows:
        return table
    more = _arrow(rows, schema)
    if not isinstance(table, DataFrame):
        return pa.concat_tables([table, more])
    return table.unionByName(table.sparkSession.createDataFrame(more, schema))


def _arrow(rows: Rows, schema: StructType) -> pa.Table:
    return pa.Table.from_pylist(rows, schema=to_arrow_schema(schema))


def _groups_by_topic(sessions: DataFrame) -> dict[str, dict[str, list[str]]]:
    rows = sessions.select("run_id", "group_id", "topics").distinct().collect()
    return groups_by_topic(row.asDict() for row in rows)


def groups_by_topic(sessions: Iterable[Mapping[str, Any]]) -> dict[str, dict[str, list[str]]]:
    """Run to topic to the groups that read it, from the ``topics`` of sessions."""
    found: dict[str, dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    for run_id, topic, group_id in sorted(
        {(row["run_id"], topic, row["group_id"]) for row in sessions for topic in row["topics"] or ()}
    ):
        found[run_id][topic].append(group_id)
    return found


def _rebalances(rebalances: DataFrame, groups: list[str]) -> Rows:
    columns = ("run_id", "group_id", "prepared_at_ms", "ended_at_ms")
    found: Rows = rebalances.where(fn.col("group_id").isin(groups)).select(*columns).toArrow().to_pylist()
    return found


def _wanted(events: DataFrame) -> DataFrame:
    return events.where(fn.col("event").isin(*READ) & fn.col("producer_id").isNotNull()).select(*COLUMNS)


def _only_suspicious(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        rows = batch.select(JUDGED_BY).to_pylist()
        yield batch.filter(pa.array(map(is_suspicious, rows), pa.bool_()))


def _all_rows(events: pa.Table) -> dict[str, list[dict[str, Any]]]:
    of_producers = pc.and_(pc.is_in(events["event"], pa.array(READ)), pc.is_valid(events["producer_id"]))
    rows: Rows = events.filter(of_producers).select(COLUMNS).to_pylist()
    compared = events.filter(pc.equal(events["event"], readers.EVENT)).select(_OF_READERS).to_pylist()
    lasts = events.group_by("run_id").aggregate([("at_ms", "max")]).to_pylist() if rows else []
    ends = {row["run_id"]: row["at_ms_max"] for row in lasts}
    return tables_of(rows, ends) | {"readers": readers.rows_of(compared)}


def _made(name: str) -> Callable[[pa.Table], pa.Table]:
    schema = to_arrow_schema(OF_TRANSACTIONS[name])

    def made(table: pa.Table) -> pa.Table:
        rows = table.to_pylist()
        ends = {row["run_id"]: row["ends_at_ms"] for row in rows}
        return pa.Table.from_pylist(tables_of(rows, ends)[name], schema=schema)

    return made
