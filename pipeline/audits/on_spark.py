"""Brings the rows that audits look at to Spark's tasks: those of a group come as rows of one table."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import reduce

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql import functions as fn

from rejoin.pipeline.audits.commits import COMMIT, POSITION, SLACK_MS
from rejoin.pipeline.audits.commits import EVENTS_READ as OF_OFFSETS
from rejoin.pipeline.audits.gaps import TOLERANCE_MS
from rejoin.pipeline.schemas import VIOLATIONS
from rejoin.pipeline.tables.common import GROUP, PARTITION
from rejoin.pipeline.tables.on_spark import is_one_of, of
from rejoin.pipeline.tables.whole_groups import made_of_groups

Columns = Mapping[str, Sequence[str]]


def audited(
    parts: Mapping[str, DataFrame], columns: Columns, audit: Callable[[Mapping[str, pa.Table]], pa.RecordBatch]
) -> DataFrame:
    """The table by a function of the parts of some groups. There is a column for each part."""
    group = fn.coalesce("group_id", fn.lit("")).alias("group_id")
    rows = [table.select("run_id", group, fn.struct(*columns[name]).alias(name)) for name, table in parts.items()]

    def in_task(rows: pa.Table) -> Iterator[pa.RecordBatch]:
        yield audit({name: _rows_of(rows, name, columns[name]) for name in columns})

    united = reduce(lambda some, more: some.unionByName(more, allowMissingColumns=True), rows)
    return made_of_groups(united, in_task, VIOLATIONS)


def _rows_of(rows: pa.Table, name: str, columns: Sequence[str]) -> pa.Table:
    ours = rows.filter(pc.is_valid(rows[name])).select([*GROUP, name]).combine_chunks()
    return pa.Table.from_arrays(
        [*(ours[key] for key in GROUP), *ours[name].combine_chunks().flatten()], [*GROUP, *columns]
    )


def of_doubtful_partitions(ownership: DataFrame) -> DataFrame:
    """As in :mod:`~rejoin.pipeline.audits.violations`."""
    gap = (fn.col("kind") == "gap") & (fn.col("end") == "between") & (fn.col("length_ms") > TOLERANCE_MS)
    doubtful = ownership.where(gap | (fn.col("overlap_ms") > 0)).select(*PARTITION).distinct()
    return ownership.join(doubtful, list(PARTITION), "left_semi")


def offsets(events: DataFrame, columns: Sequence[str]) -> DataFrame:
    """As in :mod:`~rejoin.pipeline.audits.violations`.

    Many commits are compared with few positions, which takes a fraction of the time of sorting them.
    """
    outside = of(events, *OF_OFFSETS).where("producer_id IS NULL")
    each = outside.select(*GROUP, *columns, "origin", fn.explode("offsets").alias("at"))
    each = each.select("*", "at.topic", "at.partition", "at.offset")
    shown = fn.when(fn.col("origin") == "committed", fn.col("offset")).otherwise(-1)
    found = each.where(is_one_of(POSITION)).select(*PARTITION, fn.col("at_ms").alias("found_ms"), shown.alias("shown"))
    behind = (
        each.where(is_one_of(COMMIT))
        .join(fn.broadcast(found), list(PARTITION))
        .where((fn.col("at_ms") <= fn.col("found_ms") - SLACK_MS) & (fn.col("offset") > fn.col("shown")))
        .select(*PARTITION)
        .distinct()
    )
    return each.join(fn.broadcast(behind), list(PARTITION), "left_semi")
