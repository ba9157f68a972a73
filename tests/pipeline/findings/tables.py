"""Findings from events alone, as a report on little data makes them: each table is made once, and kept as rows."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import pyarrow as pa
from pyspark.sql import SparkSession

from rejoin.pipeline import schemas
from rejoin.pipeline.findings import READS
from rejoin.pipeline.findings.in_process import findings_in_process
from rejoin.pipeline.report.parquet_tables import rows_in_process
from rejoin.pipeline.report.tables import all_tables

MADE: Final = ("rebalances", "member_sessions", "pauses")
"""Tables of joins, leaves and the rebalances that they began. What consumers say themselves is in others."""


def findings_of(
    spark: SparkSession, events: pa.Table, folder: Path, made: tuple[str, ...] = MADE
) -> list[dict[str, Any]]:
    """The rows of the table ``findings``; of the tables that the rules read, only these have rows."""
    bronze = rows_in_process(spark, events, schemas.EVENTS, folder / "events", ())
    tables = {name: spark.createDataFrame([], schemas.TABLES[name]) for name in READS}
    for name, make in all_tables():
        if name in made:
            rows = make(bronze, tables).toArrow()
            tables[name] = rows_in_process(spark, rows, schemas.TABLES[name], folder / name, ())
    return [row.asDict(recursive=True) for row in findings_in_process(tables, bronze).collect()]
