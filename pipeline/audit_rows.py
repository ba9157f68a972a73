"""How audits make rows of :data:`rejoin.pipeline.schemas.VIOLATIONS`."""

from __future__ import annotations

from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as fn

from rejoin.pipeline.schemas import VIOLATIONS
from rejoin.pipeline.tables.common import conform, day_of
from rejoin.pipeline.vocabulary import INFERRED

PARTITION: Final = ("run_id", "group_id", "topic", "partition")


def interval(alias: str) -> Column:
    """The row that an interval of ownership began with, as evidence."""
    return interval_of(
        f"{alias}.from_source",
        f"{alias}.node",
        f"{alias}.from_seq",
        f"{alias}.from_ms",
        fn.when(fn.col(f"{alias}.confidence") == INFERRED, "rebalance_completed").otherwise("partitions_assigned"),
        alias,
    )


def interval_of(source: str, node: str, seq: str, at: str, event: Column, alias: str | None = None) -> Column:
    prefix = "" if alias is None else f"{alias}."
    return fn.struct(
        fn.col(source).alias("source"),
        fn.col(node).alias("node"),
        fn.col(seq).alias("seq"),
        fn.col(at).alias("at_ms"),
        event.alias("event"),
        fn.col(f"{prefix}file").alias("file"),
        fn.col(f"{prefix}line").alias("line"),
    )


def violation_rows(found: DataFrame, kind: str | None = None) -> DataFrame:
    """Rows of the table; ``kind`` of those that do not have one."""
    kinds = [] if kind is None else [fn.lit(kind).alias("kind")]
    return conform(found.select("*", *kinds, day_of(fn.col("at_ms")).alias("day")), VIOLATIONS)
