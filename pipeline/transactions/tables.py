"""Transactions, producers and the ends of their logs as tables.

Of little data the events are collected once, for all three tables; else each producer id is a task's.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping
from typing import Any, Final

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as fn
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from rejoin.pipeline.schemas import FINDINGS, VIOLATIONS
from rejoin.pipeline.transactions import readers
from rejoin.pipeline.transactions.audits import CLEANUP_MS, is_suspicious, violations_of
from rejoin.pipeline.transactions.findings import TransactionsOfRun, findings_of
from rejoin.pipeline.transactions.histories import COLUMNS, IN_LOGS, READ, tables_of
from rejoin.pipeline.transactions.schemas import OF_TRANSACTIONS, STABLE_OFFSETS

MOST: Final = 10_000
"""Suspicious transactions, and producers, that rules look at; of very many the first."""

_OF_READERS: Final = ("run_id", "source", "node", "seq", "at_ms", *readers.COLUMNS)

Rows = list[dict[str, Any]]


class TransactionTables:
    """Makes the tables of :data:`OF_TRANSACTIONS` from the events. ``here``: in this process."""

    def __init__(self, *, here: bool) -> None:
        self._here = here
        self._rows: dict[str, list[dict[str, Any]]] | None = None

    def make(self, name: str, events: DataFrame, tables: Mapping[str, DataFrame] | None = None) -> DataFrame:
        """One of them. All but ``transactions`` wait for that one, so that events are read once."""
        if self._here:
            if tables is not None:
                assert tables["transactions"] is not None
            if self._rows is None:
                self._rows = _rows_here(events)
            return _frame(events, self._rows[name], OF_TRANSACTIONS[name])
        if name == "readers":
            compared = events.where(fn.col("event") == readers.EVENT).select(*_OF_READERS)
            return _frame(events, readers.rows_of(compared.toArrow().to_pylist()), OF_TRANSACTIONS[name])
        if name == "stable_offsets":
            samples = events.where(fn.col("event").isin(*IN_LOGS) & fn.col("last_stable_offset").isNotNull())
            return samples.select(*[fn.col(each.name).cast(each.dataType) for each in STABLE_OFFSETS.fields])
        ends = events.groupBy("run_id").agg(fn.max("at_ms").alias("ends_at_ms"))
        rows = _wanted(events).join(fn.broadcast(ends), "run_id")
        return rows.groupBy("run_id", "producer_id").applyInArrow(_made(name), schema=OF_TRANSACTIONS[name])

    # --- what is wrong with them

    def with_violations(self, violations: DataFrame, tables: Mapping[str, DataFrame]) -> DataFrame:
        """The table ``violations`` with those of transactions."""
        found = list(violations_of(self._suspicious(tables)))
        return violations.unionByName(_frame(violations, found, VIOLATIONS)) if found else violations

    def with_findings(self, findings: DataFrame, tables: Mapping[str, DataFrame]) -> DataFrame:
        """The table ``findings`` with those about transactions."""
        suspicious, producers = self._suspicious(tables), self._producers(tables)
        found = readers.reader_findings(self._compared(tables))
        if suspicious or any(row["fenced_requests"] for row in producers):
            groups = _groups_by_topic(tables["member_sessions"])
            rebalances = _rebalances(tables["rebalances"], producers)
            for run_id in dict.fromkeys(row["run_id"] for row in producers):
                late, ours, waits = (
                    [row for row in rows if row["run_id"] == run_id] for rows in (suspicious, producers, rebalances)
                )
                found += findings_of(TransactionsOfRun(run_id, late, ours, groups.get(run_id, {}), waits))
        return findings.unionByName(_frame(findings, found, FINDINGS)) if found else findings

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
            decided = fn.col("outcome").isin("committed", "aborted") & fn.coalesce("coordinated", fn.lit(True))
            usual = fn.coalesce(fn.col("ended_by") == "client", fn.lit(True))
            quick = fn.greatest("open_ms", "held_ms") <= CLEANUP_MS
            found = table.where(~(decided & usual & fn.coalesce(quick, fn.lit(True)))).limit(MOST).toArrow().to_pylist()
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


def _frame(like: DataFrame, rows: Rows, schema: StructType) -> DataFrame:
    return like.sparkSession.createDataFrame(pa.Table.from_pylist(rows, schema=to_arrow_schema(schema)), schema)


def _groups_by_topic(sessions: DataFrame) -> dict[str, dict[str, list[str]]]:
    """Run to topic to the groups that read it."""
    found: dict[str, dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    for row in sessions.select("run_id", "group_id", fn.explode("topics").alias("topic")).distinct().collect():
        found[row.run_id][row.topic].append(row.group_id)
    return found


def _rebalances(rebalances: DataFrame, producers: Rows) -> Rows:
    groups = sorted({group for row in producers for group in row["groups"] or ()})
    if not groups:
        return []
    columns = ("run_id", "group_id", "prepared_at_ms", "ended_at_ms")
    found: Rows = rebalances.where(fn.col("group_id").isin(groups)).select(*columns).toArrow().to_pylist()
    return found


def _wanted(events: DataFrame) -> DataFrame:
    return events.where(fn.col("event").isin(*READ) & fn.col("producer_id").isNotNull()).select(*COLUMNS)


def _rows_here(events: DataFrame) -> dict[str, list[dict[str, Any]]]:
    of_producers = fn.col("event").isin(*READ) & fn.col("producer_id").isNotNull()
    wanted = events.where(of_producers | (fn.col("event") == readers.EVENT))
    found = wanted.select(*dict.fromkeys((*COLUMNS, *_OF_READERS))).toArrow().to_pylist()
    rows = [row for row in found if row["event"] != readers.EVENT]
    compared = readers.rows_of(row for row in found if row["event"] == readers.EVENT)
    ends: Mapping[str, int] = {}
    if rows:
        found = events.groupBy("run_id").agg(fn.max("at_ms").alias("ends_at_ms")).collect()
        ends = {row.run_id: row.ends_at_ms for row in found}
    return tables_of(rows, ends) | {"readers": compared}


def _made(name: str) -> Callable[[pa.Table], pa.Table]:
    schema = to_arrow_schema(OF_TRANSACTIONS[name])

    def made(table: pa.Table) -> pa.Table:
        rows = table.to_pylist()
        ends = {row["run_id"]: row["ends_at_ms"] for row in rows}
        return pa.Table.from_pylist(tables_of(rows, ends)[name], schema=schema)

    return made
