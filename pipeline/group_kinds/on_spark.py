"""Drives the functions of a kind of groups on Spark: each group is a task's."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Final

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as fn
from pyspark.sql.pandas.types import from_arrow_schema

if TYPE_CHECKING:
    from rejoin.pipeline.group_kinds.tables import KindOfGroups

MOST: Final = 100_000
"""Rows of a table that rules look at; of very many the first."""


def table_of(kind: KindOfGroups, name: str, events: DataFrame) -> DataFrame:
    """One of the tables of a kind of groups."""
    ends = events.groupBy("run_id").agg(fn.max("at_ms").alias("ends_at_ms"))
    ours = events.where(fn.col("event").isin(*kind.reads) & fn.col("group_id").isNotNull()).select(*kind.columns)
    rows = ours.join(fn.broadcast(ends), "run_id")
    schema = from_arrow_schema(kind.schemas[name])
    return rows.groupBy("run_id", "group_id").applyInArrow(_made(kind, name), schema=schema)


def _made(kind: KindOfGroups, name: str) -> Callable[[pa.Table], pa.Table]:
    def made(table: pa.Table) -> pa.Table:
        rows = table.to_pylist()
        ends = {row["run_id"]: row["ends_at_ms"] for row in rows}
        return pa.Table.from_pylist(kind.make(rows, ends)[name], schema=kind.schemas[name])

    return made


def suspicious(kind: KindOfGroups, name: str, table: DataFrame) -> pa.Table:
    """Rows of a table that rules look at."""

    def only(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            yield batch.filter(pa.array([kind.is_suspicious(name, row) for row in batch.to_pylist()], pa.bool_()))

    return table.mapInArrow(only, table.schema).limit(MOST).toArrow()
