"""Drives the functions of transactions on Spark: each producer id is a task's."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Final

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as fn
from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema

from rejoin.pipeline.tables.on_spark import conform
from rejoin.pipeline.transactions import readers
from rejoin.pipeline.transactions.audits import JUDGED_BY, is_suspicious
from rejoin.pipeline.transactions.histories import COLUMNS, IN_LOGS, READ, tables_of
from rejoin.pipeline.transactions.schemas import OF_TRANSACTIONS, STABLE_OFFSETS

MOST: Final = 10_000
"""Suspicious transactions, and producers, that rules look at; of very many the first."""


def table_of(name: str, events: DataFrame, of_readers: Sequence[str]) -> DataFrame:
    """One of the tables of transactions."""
    schema = from_arrow_schema(OF_TRANSACTIONS[name])
    if name == "readers":
        compared = events.where(fn.col("event") == readers.EVENT).select(*of_readers)
        rows = pa.Table.from_pylist(readers.rows_of(compared.toArrow().to_pylist()), OF_TRANSACTIONS[name])
        return events.sparkSession.createDataFrame(rows, schema)
    if name == "stable_offsets":
        samples = events.where(fn.col("event").isin(*IN_LOGS) & fn.col("last_stable_offset").isNotNull())
        return conform(samples, STABLE_OFFSETS)
    ends = events.groupBy("run_id").agg(fn.max("at_ms").alias("ends_at_ms"))
    of_producers = events.where(fn.col("event").isin(*READ) & fn.col("producer_id").isNotNull()).select(*COLUMNS)
    rows = of_producers.join(fn.broadcast(ends), "run_id")
    return rows.groupBy("run_id", "producer_id").applyInArrow(_made(name), schema=schema)


def _made(name: str) -> Callable[[pa.Table], pa.Table]:
    def made(table: pa.Table) -> pa.Table:
        rows = table.to_pylist()
        ends = {row["run_id"]: row["ends_at_ms"] for row in rows}
        return pa.Table.from_pylist(tables_of(rows, ends)[name], schema=OF_TRANSACTIONS[name])

    return made


def suspicious(transactions: DataFrame) -> pa.Table:
    """Transactions that rules look at."""
    return transactions.mapInArrow(_only_suspicious, transactions.schema).limit(MOST).toArrow()


def _only_suspicious(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        rows = batch.select(JUDGED_BY).to_pylist()
        yield batch.filter(pa.array(map(is_suspicious, rows), pa.bool_()))


def most_fenced(producers: DataFrame) -> pa.Table:
    """Producers that rules look at."""
    return producers.orderBy(fn.desc("fenced_requests"), "producer_id").limit(MOST).toArrow()


def distinct(table: DataFrame, columns: Sequence[str]) -> pa.Table:
    """The different values of these columns."""
    return table.select(*columns).distinct().toArrow()


def of_groups(table: DataFrame, groups: Iterable[str], columns: Sequence[str]) -> pa.Table:
    """Rows of these groups."""
    return table.where(fn.col("group_id").isin(list(groups))).select(*columns).toArrow()


def with_rows(table: DataFrame, rows: list[dict[str, Any]]) -> DataFrame:
    """A table with rows besides."""
    more = pa.Table.from_pylist(rows, to_arrow_schema(table.schema))
    return table.unionByName(table.sparkSession.createDataFrame(more, table.schema))
