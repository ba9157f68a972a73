"""Transactions, producers and the ends of their logs as tables.

Of little data the events are read once, for all of them; else each producer id is a task's.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from rejoin.pipeline.tables.whole_groups import Rows as Table
from rejoin.pipeline.transactions import readers
from rejoin.pipeline.transactions.audits import is_suspicious, violations_of
from rejoin.pipeline.transactions.findings import TransactionsOfRun, findings_of
from rejoin.pipeline.transactions.histories import COLUMNS, READ, tables_of
from rejoin.pipeline.transactions.schemas import OF_TRANSACTIONS

_OF_READERS: Final = ("run_id", "source", "node", "seq", "at_ms", *readers.COLUMNS)

Rows = list[dict[str, Any]]


def transaction_tables(events: Table) -> dict[str, Table]:
    """The tables of :data:`OF_TRANSACTIONS` from the events."""
    if not isinstance(events, pa.Table):
        from rejoin.pipeline.transactions import on_spark  # noqa: PLC0415 (only where rows are Spark's)

        return {name: on_spark.table_of(name, events, _OF_READERS) for name in OF_TRANSACTIONS}
    of_producers = pc.and_(pc.is_in(events["event"], pa.array(READ)), pc.is_valid(events["producer_id"]))
    rows: Rows = events.filter(of_producers).select(COLUMNS).to_pylist()
    compared = events.filter(pc.equal(events["event"], readers.EVENT)).select(_OF_READERS).to_pylist()
    lasts = events.group_by("run_id").aggregate([("at_ms", "max")]).to_pylist() if rows else []
    ends = {row["run_id"]: row["at_ms_max"] for row in lasts}
    made = tables_of(rows, ends) | {"readers": readers.rows_of(compared)}
    return {name: pa.Table.from_pylist(made[name], schema) for name, schema in OF_TRANSACTIONS.items()}


# --- what is wrong with them


def with_violations(violations: Table, tables: Mapping[str, Table]) -> Table:
    """The table ``violations`` with those of transactions."""
    return _with(violations, list(violations_of(_suspicious(tables["transactions"]))))


def with_findings(findings: Table, tables: Mapping[str, Table]) -> Table:
    """The table ``findings`` with those about transactions."""
    found = findings_about(
        _suspicious(tables["transactions"]),
        _producers(tables["producers"]),
        _rows(tables["readers"]),
        lambda: groups_by_topic(_topics(tables["member_sessions"])),
        lambda groups: _rebalances(tables["rebalances"], groups),
    )
    return _with(findings, found)


def _rows(table: Table) -> Rows:
    found: Rows = (table if isinstance(table, pa.Table) else table.toArrow()).to_pylist()
    return found


def _suspicious(transactions: Table) -> Rows:
    if not isinstance(transactions, pa.Table):
        from rejoin.pipeline.transactions import on_spark  # noqa: PLC0415

        transactions = on_spark.suspicious(transactions)
    found = [row for row in transactions.to_pylist() if is_suspicious(row)]
    return sorted(found, key=lambda row: (row["run_id"], row["started_at_ms"] or 0, row["producer_id"]))


def _producers(producers: Table) -> Rows:
    if not isinstance(producers, pa.Table):
        from rejoin.pipeline.transactions import on_spark  # noqa: PLC0415

        producers = on_spark.most_fenced(producers)
    return _rows(producers)


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


def _with(table: Table, rows: Rows) -> Table:
    """A table with these rows besides."""
    if not rows:
        return table
    if isinstance(table, pa.Table):
        return pa.concat_tables([table, pa.Table.from_pylist(rows, table.schema)])
    from rejoin.pipeline.transactions import on_spark  # noqa: PLC0415

    return on_spark.with_rows(table, rows)


def _topics(sessions: Table) -> Rows:
    columns = ["run_id", "group_id", "topics"]
    if isinstance(sessions, pa.Table):
        return _rows(sessions.select(columns))
    from rejoin.pipeline.transactions import on_spark  # noqa: PLC0415

    return _rows(on_spark.distinct(sessions, columns))


def groups_by_topic(sessions: Iterable[Mapping[str, Any]]) -> dict[str, dict[str, list[str]]]:
    """Run to topic to the groups that read it, from the ``topics`` of sessions."""
    found: dict[str, dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    for run_id, topic, group_id in sorted(
        {(row["run_id"], topic, row["group_id"]) for row in sessions for topic in row["topics"] or ()}
    ):
        found[run_id][topic].append(group_id)
    return found


def _rebalances(rebalances: Table, groups: list[str]) -> Rows:
    columns = ["run_id", "group_id", "prepared_at_ms", "ended_at_ms"]
    if isinstance(rebalances, pa.Table):
        return _rows(rebalances.filter(pc.is_in(rebalances["group_id"], pa.array(groups))).select(columns))
    from rejoin.pipeline.transactions import on_spark  # noqa: PLC0415

    return _rows(on_spark.of_groups(rebalances, groups, columns))
