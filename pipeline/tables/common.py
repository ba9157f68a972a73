"""What several tables need: places in time, ends of runs, topics."""

from __future__ import annotations

from datetime import date, timedelta

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as fn
from pyspark.sql.types import StructType

MS_A_DAY = 86_400_000
_EPOCH = date(1970, 1, 1)

_TOPICS = ("topic_created", "topic_grown", "topic_written")

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


def logs_of_runs(events: DataFrame) -> DataFrame:
    """``run_id``, ``logs``: what :func:`logs_of_topics` is made of, in one row for each run.

    A log is ``topic``, ``partition_count`` and since when it has so many; one topic may have several.
    """
    log = fn.struct("topic", "partition_count", "outside", "since_ms")
    reported = (
        of(events, *_TOPICS)
        .groupBy("run_id", "topic", "partition_count", is_one_of("topic_written").alias("outside"))
        .agg(fn.min("at_ms").alias("since_ms"))
        .groupBy("run_id")
        .agg(fn.collect_list(log).alias("reported"))
    )
    # Both as SQL: a Python lambda has a new name each time, so Spark would compile it each time.
    better = fn.expr("transform(filter(reported, log -> log.outside), log -> log.topic)")
    logs = fn.expr(
        "filter(reported, log -> log.partition_count > 0 AND (log.outside OR NOT array_contains(better, log.topic)))"
    )
    return reported.select("*", better.alias("better")).select("run_id", logs.alias("logs"))


def logs_of_topics(events: DataFrame) -> DataFrame:
    """``run_id``, ``topic``, ``partition``, ``since_ms``, ``rate``: since when a partition exists, and what it gets.

    Partitions of synthetic topics grow by ``rate`` records a second from their creation; the rate is null where no
    event has it. A topic counts from its first creation: nodes report it again after a restart.
    """
    reported = of(events, *_TOPICS).select(
        "run_id", "topic", "at_ms", "partition_count", is_one_of("topic_written").alias("outside"), "records_per_second"
    )
    # A simulation's nodes do not know the rate and learn late of growth; the change from outside is the truth.
    known = fn.max("outside").over(Window.partitionBy("run_id", "topic"))
    return (
        reported.select("*", known.alias("known"))
        .where((~fn.col("known") | fn.col("outside")) & (fn.col("partition_count") > 0))
        .select("*", fn.explode(fn.sequence(fn.lit(0), fn.col("partition_count") - 1)).alias("partition"))
        .groupBy("run_id", "topic", "partition")
        .agg(fn.min("at_ms").alias("since_ms"), fn.max("records_per_second").alias("rate"))
    )


def end_offset(at_ms: Column) -> Column:
    """The end of a synthetic partition at an instant, as ``coordinator.core.topics.topics.SyntheticLog`` counts it."""
    grown = fn.floor((at_ms - fn.col("since_ms")).cast("double") * fn.col("rate") / fn.lit(1000.0))
    return fn.greatest(fn.lit(0), grown).cast("long")
