"""Findings from events alone, as a report on little data makes them: each table is made once."""

from __future__ import annotations

from typing import Any, Final

import pyarrow as pa

from rejoin.pipeline import schemas
from rejoin.pipeline.findings.sums import KINDS
from rejoin.pipeline.findings.table import findings
from rejoin.pipeline.report.tables import all_tables

READS: Final = [seen.table for seen in KINDS.values() if seen.table != "events"]
MADE: Final = ("rebalances", "member_sessions", "pauses")
"""Tables of joins, leaves and the rebalances that they began. What consumers say themselves is in others."""


def findings_of(events: pa.Table, made: tuple[str, ...] = MADE) -> list[dict[str, Any]]:
    """The rows of the table ``findings``; of the tables that the rules read, only these have rows."""
    tables: dict[str, Any] = {name: schemas.TABLES[name].empty_table() for name in READS}
    for name, make in all_tables():
        if name in made:
            tables[name] = make(events, tables)
    found: list[dict[str, Any]] = findings(tables.__getitem__, events).to_pylist()
    return [{**row, "numbers": None if row["numbers"] is None else dict(row["numbers"])} for row in found]
