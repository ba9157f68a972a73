"""Share groups as tables, and the findings about them.

Of little data the events are read once, for all tables; else each group is a task's.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from rejoin.pipeline.share_groups.findings import share_findings
from rejoin.pipeline.share_groups.histories import COLUMNS, READ, tables_of
from rejoin.pipeline.share_groups.schemas import OF_SHARE_GROUPS
from rejoin.pipeline.tables.whole_groups import Rows as Table

Rows = list[dict[str, Any]]


def share_tables(events: Table) -> dict[str, Table]:
    """The tables of :data:`OF_SHARE_GROUPS` from the events."""
    if not isinstance(events, pa.Table):
        from rejoin.pipeline.share_groups import on_spark  # noqa: PLC0415 (only where rows are Spark's)

        return {name: on_spark.table_of(name, events) for name in OF_SHARE_GROUPS}
    rows: Rows = events.filter(are_of_share_groups(events)).select(COLUMNS).to_pylist()
    lasts = events.group_by("run_id").aggregate([("at_ms", "max")]).to_pylist() if rows else []
    made = tables_of(rows, {row["run_id"]: row["at_ms_max"] for row in lasts})
    return {name: pa.Table.from_pylist(made[name], schema) for name, schema in OF_SHARE_GROUPS.items()}


def are_of_share_groups(events: pa.Table) -> pa.ChunkedArray:
    """A mask of the events that tables of share groups are made from."""
    return pc.and_(pc.is_in(events["event"], pa.array(READ)), pc.is_valid(events["group_id"]))


def with_share_findings(findings: Table, tables: Mapping[str, Table]) -> Table:
    """The table ``findings`` with those about share groups."""
    rows = share_findings({name: _judged(name, tables[name]) for name in OF_SHARE_GROUPS})
    if not rows:
        return findings
    if isinstance(findings, pa.Table):
        return pa.concat_tables([findings, pa.Table.from_pylist(rows, findings.schema)])
    from rejoin.pipeline.transactions import on_spark  # noqa: PLC0415

    return on_spark.with_rows(findings, rows)


def _judged(name: str, table: Table) -> Rows:
    """The rows of a table that rules look at."""
    if not isinstance(table, pa.Table):
        from rejoin.pipeline.share_groups import on_spark  # noqa: PLC0415

        table = on_spark.suspicious(name, table)
    rows: Rows = table.to_pylist()
    return rows
