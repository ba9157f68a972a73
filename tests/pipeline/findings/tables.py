"""Findings from events alone, as a report on little data makes them: each table is made once, and kept as rows."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import to_arrow_schema

from rejoin.pipeline import schemas
from rejoin.pipeline.findings.sums import KINDS
from rejoin.pipeline.findings.table import findings
from rejoin.pipeline.report.parquet_tables import rows_in_process
from rejoin.pipeline.report.tables import KeptTable, Tables, all_tables

READS: Final = [seen.table for seen in KINDS.values() if seen.table != "events"]
MADE: Final = ("rebalances", "member_sessions", "pauses")
"""Tables of joins, leaves and the rebalances that they began. What consumers say themselves is in others."""


def findings_of(
    spark: SparkSession, events: pa.Table, folder: Path, made: tuple[str, ...] = MADE
) -> list[dict[str, Any]]:
    """The rows of the table ``findings``; of the tables that the rules read, only these have rows."""
    bronze = rows_in_process(spark, events, schemas.EVENTS, folder / "events", ())
    tables = Tables()
    for name in READS:
        schema = schemas.TABLES[name]
        tables.put(name, KeptTable(spark.createDataFrame([], schema), to_arrow_schema(schema).empty_table()))
    for name, make in all_tables(events):
        if name in made:
            table = make(bronze, tables)
            rows = table.toArrow() if isinstance(table, DataFrame) else table
            tables.put(name, KeptTable(rows_in_process(spark, rows, schemas.TABLES[name], folder / name, ()), rows))
    found: list[dict[str, Any]] = findings(tables.rows, events).to_pylist()
    return [{**row, "numbers": None if row["numbers"] is None else dict(row["numbers"])} for row in found]
