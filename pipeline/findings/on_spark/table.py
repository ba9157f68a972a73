"""Brings the rows that rules see to Spark's tasks: all rows of a group go to one of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial, reduce
from operator import and_, or_

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as fn
from pyspark.sql.pandas.types import from_arrow_schema

from rejoin.pipeline.findings import rows_of
from rejoin.pipeline.findings.reads import AnyBut, AtLeast, Condition, Where, read_events
from rejoin.pipeline.findings.rules.brokers import SHARED
from rejoin.pipeline.findings.sums import KINDS, SIGNS, RowKind, contexts_of
from rejoin.pipeline.findings.table import RunRows, history_of, joined, runs_of, schema_of_sums, summed
from rejoin.pipeline.schemas import FINDINGS
from rejoin.pipeline.tables.common import GROUP
from rejoin.pipeline.tables.whole_groups import values_of


def findings(table: Callable[[str], DataFrame], events: DataFrame) -> DataFrame:
    """The table, lazily. What holds for a run is collected before that: a few rows."""
    signs = events.groupBy(*SIGNS).agg(fn.max("at_ms").alias("at_ms")).toArrow()
    columns = ["run_id", "group_id", *KINDS["event"].columns]
    of_runs = events.where(fn.col("group_id").isNull() & _column(read_events())).select(*columns).toArrow()
    runs = runs_of(contexts_of(values_of(signs)), of_runs)
    parts = [
        _part(kind, rows_of_kind(seen, events if seen.table == "events" else table(seen.table)))
        for kind, seen in KINDS.items()
    ]
    rows = reduce(lambda some, more: some.unionByName(more, allowMissingColumns=True), parts)

    # Spark reads the kind of a function from its type hints, which a partial one has not.
    def judge(table: pa.Table) -> pa.Table:
        return _judge(runs, table)

    schema = from_arrow_schema(FINDINGS)
    found = rows.groupBy(*GROUP).applyInArrow(judge, schema=schema)
    # Findings about one event of a broker come to one task, all others stay with their group.
    key = fn.when(~fn.col("finding").isin(*SHARED), fn.col("group_id"))
    return found.withColumn("key", key).groupBy("run_id", "key").applyInArrow(_join, schema=schema)


def rows_of_kind(seen: RowKind, table: DataFrame) -> DataFrame:
    """As in :mod:`~rejoin.pipeline.findings.table`."""
    rows = table if seen.where is None else table.where(_column(seen.where))
    if seen.sums is None:
        return rows
    lengths = [
        fn.when(fn.col(name).isNotNull(), fn.size(name)).alias(name) if name in seen.lengths else fn.col(name)
        for name in seen.reads
    ]
    in_order = rows.select(*GROUP, *lengths).repartition(*GROUP).sortWithinPartitions(*GROUP)
    return in_order.mapInArrow(partial(summed, seen), from_arrow_schema(schema_of_sums(seen)))


def _part(kind: str, rows: DataFrame) -> DataFrame:
    return rows.select(*GROUP, fn.struct(*KINDS[kind].columns).alias(kind))


def _column(where: Where) -> Column:
    """Which rows are selected."""
    return reduce(
        or_,
        (
            reduce(and_, (fn.coalesce(_holds(name, condition), fn.lit(False)) for name, condition in each.items()))
            for each in where
        ),
    )


def _holds(name: str, condition: Condition) -> Column:
    column = fn.col(name)
    if isinstance(condition, AnyBut):
        return column.isNotNull() if condition.value is None else column != condition.value
    if isinstance(condition, AtLeast):
        return column >= condition.value
    return column.isin(*condition)


def _judge(runs: Mapping[str, RunRows], table: pa.Table) -> pa.Table:
    """All findings of one group, from its rows."""
    run_id, group_id = (table.column(name)[0].as_py() for name in GROUP)
    if group_id is None:
        return FINDINGS.empty_table()
    rows = {kind: table.column(kind).combine_chunks().drop_null().to_pylist() for kind in KINDS}
    return pa.Table.from_pylist(list(rows_of(history_of(runs[run_id], group_id, rows))), schema=FINDINGS)


def _join(table: pa.Table) -> pa.Table:
    return joined(table.drop_columns(["key"]).to_pylist())
