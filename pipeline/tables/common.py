"""What several tables need: places in time, ends of runs, topics."""

from __future__ import annotations

from datetime import date, timedelta

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as fn
from pyspark.sql.types import StructType

MS_A_DAY = 86_400_000
_EPOCH = date(1970, 1, 1)

TOPIC_EVENTS = ("topic_created", "topic_grown", "topic_written")
"""Events that say how many partitions a topic has."""

COOPERATIVE = ("cooperative-sticky",)
"""Assignors whose consumers keep their partitions during a rebalance; with all others they give up all."""


def day_of(at_ms: Column) -> Column:
    """The day of an instant, in UTC."""
    return fn.date_from_unix_date(fn.floor(at_ms / MS_A_DAY).cast("int"))


def date_of(at_ms: int) -> date:
    """The same of one instant."""
    return _EPOCH + timedelta(days=at_ms // MS_A_DAY)


def conform(table: DataFrame, schema: StructType) -> DataFrame:
    """The columns of a schema, in its order, with its types and comments; columns that are missing become null."""
    have = set(table.columns)
    return table.select(
        *[
            (fn.col(field.name) if field.name in have else fn.lit(None))
            .cast(field.dataType)
            .alias(field.name, metadata=field.metadata)
            for field in schema.fields
        ]
    )


def of(events: DataFrame, *names: str) -> DataFrame:
    """The events with these names."""
    return events.where(fn.col("event").isin(*names))


def is_one_of(*names: str) -> Column:
    """Whether a row is one of these events."""
    return fn.col("event").isin(*names)


def ends_of_runs(events: DataFrame) -> DataFrame:
    """``run_id``, ``ends_at_ms``: when a run's journals end; ``is_complete``: the run reported its end."""
    return events.groupBy("run_id").agg(
        fn.coalesce(fn.max(fn.when(is_one_of("run_ended"), fn.col("at_ms"))), fn.max("at_ms")).alias("ends_at_ms"),
        fn.max(is_one_of("run_ended")).alias("is_complete"),
    )


def ends_of_runs_in_process(events: pa.Table) -> dict[str, int]:
    """``run_id`` to ``ends_at_ms`` of events that are rows of this process."""
    ends: dict[str, int] = {}
    for rows in (events, events.filter(pc.equal(events["event"], "run_ended"))):
        lasts = rows.group_by("run_id").aggregate([("at_ms", "max")])
        ends |= dict(zip(lasts["run_id"].to_pylist(), lasts["at_ms_max"].to_pylist(), strict=True))
    return ends
