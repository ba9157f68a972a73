"""What tables need that follow a group event by event: all of its rows in one place, on Spark or in this process.

Both drivers hand the rows of whole groups, one group after the other, to one function of a group's events, so that a
report on little data and one on much are made by the same lines. A row is an event or, where a table is made of
rebalances as well, one of those.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import groupby, repeat
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql import functions as fn
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from rejoin.pipeline.tables.common import GROUP, conform, ends_of_runs, ends_of_runs_in_process, is_one_of, of
from rejoin.pipeline.tables.groups.rows import TOPIC_EVENTS, WANTS, EventOfGroup, Judge, RebalanceOfGroup, RowValues

_REPORTS: Final = ("topic", "partition_count", "outside", "since_ms", "rate")
LOGS: Final = pa.list_(
    pa.struct(
        [
            ("topic", pa.string()),
            ("partition_count", pa.int32()),
            ("outside", pa.bool_()),
            ("since_ms", pa.int64()),
            ("rate", pa.float64()),
        ]
    )
)
_ROWS_AT_ONCE: Final = 4_000


def on_spark(
    judge: Judge,
    schema: StructType,
    events: DataFrame,
    reads: Mapping[str, Sequence[str]],
    rebalances: DataFrame | None = None,
) -> DataFrame:
    """A table from the events; ``reads`` says which ones are looked at, with their columns.

    Columns of another event are not sent along. Events without a group are those of the group ``""``.
    """
    names = {name for columns in reads.values() for name in columns}
    wanted = [_only(name, [event for event, columns in reads.items() if name in columns]) for name in sorted(names)]
    rows = of(events, *reads).select("run_id", fn.coalesce("group_id", fn.lit("")).alias("group_id"), *_ALWAYS, *wanted)
    rows = rows.join(fn.broadcast(ends_of_runs(events)), "run_id").drop("is_complete")
    if "topics" in names:
        rows = rows.join(fn.broadcast(reports_of_runs(events)), "run_id", "left").withColumn(
            "reports", fn.when(is_one_of(*WANTS), fn.col("reports"))
        )
    if rebalances is not None:
        rebalanced = rebalances.select(*GROUP, fn.struct(*RebalanceOfGroup._fields).alias("rebalance"))
        rows = rows.unionByName(rebalanced, allowMissingColumns=True)
    in_order = rows.repartition(*GROUP).sortWithinPartitions(*GROUP)
    return conform(in_order.mapInArrow(partial(_made, judge, schema), schema), schema)


_ALWAYS: Final = ("source", "node", "seq", "at_ms", "event")


def _only(name: str, events: Sequence[str]) -> Any:
    return fn.when(is_one_of(*events), fn.col(name)).alias(name)


def reports_of_runs(events: DataFrame) -> DataFrame:
    """``run_id``, ``reports``: how many partitions topics were reported to have, since when, and what they get."""
    return (
        of(events, *TOPIC_EVENTS)
        .groupBy("run_id", "topic", "partition_count", is_one_of("topic_written").alias("outside"))
        .agg(fn.min("at_ms").alias("since_ms"), fn.max("records_per_second").alias("rate"))
        .groupBy("run_id")
        .agg(fn.collect_list(fn.struct(*_REPORTS)).alias("reports"))
    )


def in_process(
    judge: Judge,
    schema: StructType,
    events: pa.Table,
    reads: Mapping[str, Sequence[str]],
    rebalances: pa.Table | None = None,
) -> pa.Table:
    """The same of events, and of rebalances, that are rows of this process."""
    names = sorted({name for columns in reads.values() for name in columns})
    rows = events.filter(pc.is_in(events["event"], pa.array(list(reads)))).select(
        ["run_id", "group_id", *_ALWAYS, *names]
    )
    rows = rows.set_column(1, "group_id", pc.fill_null(rows["group_id"], ""))
    ends = ends_of_runs_in_process(events)
    rows = rows.append_column("ends_at_ms", by_run(rows, ends, pa.int64()))
    if "topics" in names:
        rows = rows.append_column("reports", by_run(rows, reports_in_process(events), LOGS, WANTS))
    parts = [rows]
    if rebalances is not None:
        columns = [rebalances[name].combine_chunks() for name in RebalanceOfGroup._fields]
        rebalance = pa.StructArray.from_arrays(columns, RebalanceOfGroup._fields)
        parts.append(rebalances.select(GROUP).append_column("rebalance", rebalance))
    together = pa.concat_tables(parts, promote_options="default").sort_by([(name, "ascending") for name in GROUP])
    return pa.Table.from_batches(_made(judge, schema, together.to_batches()), to_arrow_schema(schema))


def by_run(rows: pa.Table, values: Mapping[str, Any], kind: pa.DataType, of_events: Sequence[str] = ()) -> pa.Array:
    """A column with what is known of the run of each row, or of those rows that are one of these events."""
    runs = pc.index_in(rows["run_id"], pa.array(list(values), pa.string()))
    if of_events:
        runs = pc.if_else(pc.is_in(rows["event"], pa.array(of_events)), runs, pa.scalar(None, runs.type))
    return pa.array(list(values.values()), kind).take(runs)


def reports_in_process(events: pa.Table) -> dict[str, list[dict[str, Any]]]:
    """The same of events that are rows of this process, by run."""
    reported = events.filter(pc.is_in(events["event"], pa.array(TOPIC_EVENTS)))
    reported = reported.append_column("outside", pc.equal(reported["event"], "topic_written"))
    known = reported.group_by(["run_id", "topic", "partition_count", "outside"]).aggregate(
        [("at_ms", "min"), ("records_per_second", "max")]
    )
    found: dict[str, list[dict[str, Any]]] = {}
    for run_id, *report in values_of(
        known.select(["run_id", "topic", "partition_count", "outside", "at_ms_min", "records_per_second_max"])
    ):
        found.setdefault(run_id, []).append(dict(zip(_REPORTS, report, strict=True)))
    return found


def _made(judge: Judge, schema: StructType, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Rows of the table from the rows of whole groups."""
    made: list[RowValues] = []
    for _, group in groupby((row for batch in batches for row in _rows(batch)), key=lambda row: row[1]):
        events: list[EventOfGroup] = []
        rebalances: list[RebalanceOfGroup] = []
        for row, _, rebalance in group:
            if rebalance is None:
                events.append(EventOfGroup._make(row))
            else:
                rebalances.append(RebalanceOfGroup(**rebalance))
        made += judge(events, rebalances)
        if len(made) >= _ROWS_AT_ONCE:
            yield batch_of(made, schema)
            made = []
    yield batch_of(made, schema)


def _rows(batch: pa.RecordBatch) -> Iterator[tuple[RowValues, RowValues, Mapping[str, Any] | None]]:
    have = set(batch.schema.names)
    columns = [
        values_in(batch[name]) if name in have else repeat(None, batch.num_rows) for name in EventOfGroup._fields
    ]
    keys = zip(*(batch[name].to_pylist() for name in GROUP), strict=True)
    rebalances = batch["rebalance"].to_pylist() if "rebalance" in have else repeat(None, batch.num_rows)
    return zip(zip(*columns, strict=True), keys, rebalances, strict=True)


def values_of(table: pa.Table | pa.RecordBatch) -> Iterator[RowValues]:
    """Its rows, without names."""
    return zip(*(column.to_pylist() for column in table.columns), strict=True)


def values_in(column: pa.Array) -> list[Any]:
    """The values of a column; structs within lists as tuples, which takes a fifth of the time that dicts take."""
    if not (pa.types.is_list(column.type) and pa.types.is_struct(column.type.value_type)):
        return column.to_pylist()  # type: ignore[no-any-return]
    flat = pc.list_flatten(column)
    rows = list(zip(*(part.to_pylist() for part in flat.flatten()), strict=True))
    found: list[Any] = []
    at = 0
    for length in pc.list_value_length(column).to_pylist():
        found.append(None if length is None else rows[at : at + length])
        at += length or 0
    return found


def batch_of(rows: Sequence[RowValues], schema: StructType) -> pa.RecordBatch:
    """Rows with all columns of a table."""
    arrow = to_arrow_schema(schema)
    columns = zip(*rows, strict=True) if rows else repeat((), len(arrow))
    return pa.RecordBatch.from_arrays(
        [pa.array(values, field.type) for values, field in zip(columns, arrow, strict=True)], schema=arrow
    )
