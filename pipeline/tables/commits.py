"""Every committed partition: how far behind its log it was, how far it went, and whether it went back.

What the coordinator stored or refused counts. Where no coordinator of a group wrote a journal, the consumers' own
events count (``inferred``: the instant is that of the answer). The end of a log is known of synthetic topics
only, which grow as a function of time.
"""

from __future__ import annotations

from typing import Final

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as fn

from rejoin.pipeline.schemas import COMMITS, INFERRED
from rejoin.pipeline.tables.common import conform, day_of, end_offset, is_one_of, logs_of_topics, of

_PARTITION: Final = ("run_id", "group_id", "topic", "partition")
_COLUMNS: Final = (
    *("run_id", "group_id", "at_ms", "source", "node", "seq", "member_id", "group_instance_id", "generation"),
    *("error", "offsets", "producer_id", "confidence"),
)


def commits(events: DataFrame) -> DataFrame:
    """:data:`rejoin.pipeline.schemas.COMMITS` from the events."""
    by_coordinator = of(events, "offsets_committed", "commit_refused")
    by_journal = by_coordinator.select("run_id", "group_id").distinct()
    by_consumers = of(events, "commit_succeeded", "commit_failed").where("group_id IS NOT NULL")
    by_consumers = by_consumers.withColumn("error", fn.col("problem")).withColumn("confidence", fn.lit(INFERRED))
    stored = is_one_of("offsets_committed", "commit_succeeded")
    rows = (
        by_coordinator.select(*_COLUMNS, stored.alias("stored"))
        .unionByName(
            by_consumers.join(fn.broadcast(by_journal), ["run_id", "group_id"], "left_anti").select(
                *_COLUMNS, stored.alias("stored")
            )
        )
        .select("*", fn.explode("offsets").alias("at"))
        .select("*", "at.*")
        .drop("offsets", "at")
    )
    before = (
        Window.partitionBy(*_PARTITION)
        .orderBy("at_ms", "source", "node", "seq")
        .rowsBetween(Window.unboundedPreceding, -1)
    )
    previous = fn.last(fn.when(fn.col("stored"), fn.struct("offset", "at_ms")), ignorenulls=True).over(before)
    logs = logs_of_topics(events).where("rate > 0")
    end = end_offset(fn.col("at_ms"))
    found = (
        rows.select("*", previous.alias("previous"))
        .join(fn.broadcast(logs), ["run_id", "topic", "partition"], "left")
        .select(
            "*",
            fn.when(fn.col("stored"), "stored").otherwise("refused").alias("outcome"),
            fn.col("previous.offset").alias("previous_offset"),
            (fn.col("offset") - fn.col("previous.offset")).alias("advanced"),
            (fn.col("at_ms") - fn.col("previous.at_ms")).alias("since_ms_"),
            fn.when(fn.col("rate").isNotNull(), end).alias("end_offset"),
            fn.when(fn.col("rate").isNotNull(), fn.greatest(end - fn.col("offset"), fn.lit(0))).alias("lag"),
            fn.col("producer_id").isNotNull().alias("transactional"),
            day_of(fn.col("at_ms")).alias("day"),
        )
        .drop("since_ms")
        .withColumnRenamed("since_ms_", "since_ms")
    )
    return conform(found, COMMITS)
