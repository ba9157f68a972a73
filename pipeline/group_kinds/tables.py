"""A kind of groups as tables, and the findings about them.

Of little data the events are read once, for all tables; else each group is a task's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from rejoin.pipeline.tables.whole_groups import Rows as Table

Rows = list[dict[str, Any]]


@dataclass(frozen=True, slots=True)
class KindOfGroups:
    """Tables of a kind of groups, the events they are made from, and rules about them."""

    schemas: Mapping[str, pa.Schema]
    reads: tuple[str, ...]
    """Names of events."""
    columns: tuple[str, ...]
    """Columns of these events that are read."""
    make: Callable[[Iterable[Mapping[str, Any]], Mapping[str, int]], dict[str, Rows]]
    """All tables, as rows, from the events and the end of each run."""
    is_suspicious: Callable[[str, Mapping[str, Any]], bool]
    """True for rows of a table that rules look at."""
    judge: Callable[[Mapping[str, Iterable[Mapping[str, Any]]]], Rows]
    """Rows of the table ``findings``, from the rows that rules look at."""

    def tables(self, events: Table) -> dict[str, Table]:
        """The tables of this kind from the events."""
        if not isinstance(events, pa.Table):
            from rejoin.pipeline.group_kinds import on_spark  # noqa: PLC0415 (only where rows are Spark's)

            return {name: on_spark.table_of(self, name, events) for name in self.schemas}
        rows: Rows = events.filter(self.are_read(events)).select(self.columns).to_pylist()
        lasts = events.group_by("run_id").aggregate([("at_ms", "max")]).to_pylist() if rows else []
        made = self.make(rows, {row["run_id"]: row["at_ms_max"] for row in lasts})
        return {name: pa.Table.from_pylist(made[name], schema) for name, schema in self.schemas.items()}

    def are_read(self, events: pa.Table) -> pa.ChunkedArray:
        """A mask of the events that the tables are made from."""
        return pc.and_(pc.is_in(events["event"], pa.array(self.reads)), pc.is_valid(events["group_id"]))

    def with_findings(self, findings: Table, tables: Mapping[str, Table]) -> Table:
        """The table ``findings`` with those about groups of this kind."""
        rows = self.judge({name: self._judged(name, tables[name]) for name in self.schemas})
        if not rows:
            return findings
        if isinstance(findings, pa.Table):
            return pa.concat_tables([findings, pa.Table.from_pylist(rows, findings.schema)])
        from rejoin.pipeline.transactions import on_spark  # noqa: PLC0415

        return on_spark.with_rows(findings, rows)

    def _judged(self, name: str, table: Table) -> Rows:
        """The rows of a table that rules look at."""
        if not isinstance(table, pa.Table):
            from rejoin.pipeline.group_kinds import on_spark  # noqa: PLC0415

            table = on_spark.suspicious(self, name, table)
        rows: Rows = table.to_pylist()
        return rows
