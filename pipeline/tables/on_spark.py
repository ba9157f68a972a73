"""Drives the functions of tables on Spark: its tasks call them with whole groups, or with any rows.

Imported with the first table that is a DataFrame: where all rows are in this process, Spark is not loaded.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as fn
from pyspark.sql.pandas.types import from_arrow_schema

from rejoin.pipeline.tables.common import GROUP, some_groups

Columns = Callable[[pa.Table], Iterable[pa.RecordBatch]]


def conform(table: DataFrame, schema: pa.Schema) -> DataFrame:
    """The columns of a schema, in its order, with its types and comments; columns that are missing become null."""
    have = set(table.columns)
    return table.select(
        *[
            (fn.col(field.name) if field.name in have else fn.lit(None))
            .cast(field.dataType)
            .alias(field.name, metadata=field.metadata)
            for field in from_arrow_schema(schema).fields
        ]
    )


def of(events: DataFrame, *names: str) -> DataFrame:
    """The events with these names."""
    return events.where(fn.col("event").isin(*names))


def is_one_of(*names: str) -> Column:
    """Whether a row is one of these events."""
    return fn.col("event").isin(*names)


def events_of_groups(events: DataFrame, names: Iterable[str], columns: Sequence[str]) -> DataFrame:
    """As in :mod:`~rejoin.pipeline.tables.whole_groups`."""
    group = fn.coalesce("group_id", fn.lit("")).alias("group_id")
    return of(events, *names).select("run_id", group, *columns)


def in_groups_of_clients(events: DataFrame, reported: str, joins: Iterable[str]) -> DataFrame:
    """As :func:`rejoin.pipeline.tables.client_metrics.in_their_groups`."""
    is_alone = is_one_of(reported) & fn.col("group_id").isNull()
    known = of(events, *joins).select("run_id", "group_id", "client_id").dropna().distinct()
    placed = events.where(is_alone).drop("group_id").join(known, ["run_id", "client_id"], how="inner")
    return events.where(~is_alone).unionByName(placed.select(*events.columns))


def made_of_groups(rows: DataFrame, make: Columns, schema: pa.Schema, at_once: int | None) -> DataFrame:
    """As in :mod:`~rejoin.pipeline.tables.whole_groups`: all rows of a group go to one task."""
    in_order = rows.repartition(*GROUP).sortWithinPartitions(*GROUP)
    return made_in_tasks(in_order, partial(_of_some_groups, make, at_once), schema)


def _of_some_groups(make: Columns, at_once: int | None, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for rows in some_groups(batches) if at_once is None else some_groups(batches, at_once):
        yield from make(rows)


def made_of_streams(
    rows: DataFrame,
    key: Sequence[str],
    order: Sequence[str],
    make: Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]],
    schema: pa.Schema,
) -> DataFrame:
    """As in :mod:`~rejoin.pipeline.tables.whole_groups`."""
    return made_in_tasks(rows.repartition(*key).sortWithinPartitions(*key, *order), make, schema)


def made_in_tasks(
    rows: DataFrame, make: Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]], schema: pa.Schema
) -> DataFrame:
    """A table by a function of the rows of each task."""
    return conform(rows.mapInArrow(make, from_arrow_schema(schema)), schema)


def events_as_read(
    events: DataFrame, readers: Mapping[str, Sequence[str]], names: Iterable[str], columns: Sequence[str]
) -> DataFrame:
    """Events of a table that follows groups: a column comes only with the events of which it is read."""
    names = list(names)
    rows = events_of_groups(events, names, columns)
    some = {name: of_these for name, of_these in readers.items() if len(of_these) < len(names)}
    return rows.withColumns({name: fn.when(is_one_of(*of_these), fn.col(name)) for name, of_these in some.items()})


def with_rebalances(events: DataFrame, rebalances: DataFrame, columns: Sequence[str]) -> DataFrame:
    """Rows of events, and of rebalances as structs in a column ``of_rebalance``."""
    rebalanced = rebalances.select(*GROUP, fn.struct(*GROUP, *columns).alias("of_rebalance"))
    return events.unionByName(rebalanced, allowMissingColumns=True)


def sums_of_runs(
    events: DataFrame, key: Sequence[str], named: Sequence[str], sums: Iterable[tuple[str, str]]
) -> pa.Table:
    """Sums by run and, of events with these names, by the other columns of the key."""
    is_named, sums = fn.col("event").isin(*named), list(sums)
    columns = dict.fromkeys([*key, *(name for name, _ in sums)])
    plain = ("run_id", "at_ms")
    rows = events.select(*(name if name in plain else fn.when(is_named, fn.col(name)).alias(name) for name in columns))
    return rows.groupBy(*key).agg(*(getattr(fn, how)(name).alias(f"{name}_{how}") for name, how in sums)).toArrow()
