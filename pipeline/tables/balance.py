"""How evenly each generation's partitions are spread, and what was left over."""

from __future__ import annotations

from typing import Final

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as fn

from rejoin.pipeline.schemas import BALANCE
from rejoin.pipeline.tables.common import conform, day_of, of
from rejoin.pipeline.tables.ownership import expected

_KEY: Final = ("run_id", "group_id", "source", "node", "seq")
_SAID: Final = ("at_ms", "generation", "protocol", "confidence")
"""What the event says itself: the same wherever the key is."""


def balance(events: DataFrame) -> DataFrame:
    """:data:`rejoin.pipeline.schemas.BALANCE` from the events.

    ``unowned`` counts the partitions, at that time, of all topics that any member ever subscribed to; it says too much
    where members go over to other topics.
    """
    done = (
        of(events, "rebalance_completed")
        .where("owned_after IS NOT NULL AND members IS NOT NULL")
        .select(*_KEY, *_SAID, "members", "owned_after")
        .hint("repartition", "run_id", "group_id")
    )
    none = fn.transform("members", lambda member: fn.struct(member.alias("member_id"), fn.lit(0).alias("one")))
    some = fn.transform(
        "owned_after", lambda own: fn.struct(own["member_id"].alias("member_id"), fn.lit(1).alias("one"))
    )
    each = (
        done.select(*_KEY, *_SAID, fn.explode(fn.concat(none, some)).alias("share"))
        .groupBy(*_KEY, *_SAID, "share.member_id")
        .agg(fn.sum("share.one").alias("count"))
        .groupBy(*_KEY, *_SAID)
        .agg(
            fn.count("*").alias("member_count"),
            fn.sum("count").alias("partitions"),
            fn.min("count").alias("least"),
            fn.max("count").alias("most"),
            fn.stddev_pop("count").alias("deviation"),
            fn.count(fn.when(fn.col("count") == 0, 1)).alias("idle_members"),
            fn.max_by("member_id", fn.struct("count", "member_id")).alias("most_member_id"),
        )
    )
    wanted = (
        expected(events).groupBy("run_id", "group_id").agg(fn.array_sort(fn.collect_list("since_ms")).alias("wanted"))
    )
    until = fn.lead("at_ms").over(Window.partitionBy("run_id", "group_id").orderBy("at_ms", "node", "seq"))
    there = fn.size(fn.filter("wanted", lambda since: since <= fn.col("at_ms")))
    found = (
        each.select("*", until.alias("until_ms"))
        .join(fn.broadcast(wanted), ["run_id", "group_id"], "left")
        .select(
            "*",
            fn.col("member_count").alias("members"),
            (fn.col("most") - fn.col("least")).alias("spread"),
            fn.greatest(there - fn.col("partitions"), fn.lit(0)).alias("short"),
            day_of(fn.col("at_ms")).alias("day"),
        )
    )
    return conform(found.withColumn("unowned", fn.when(fn.col("wanted").isNotNull(), fn.col("short"))), BALANCE)
