"""How long each consumer waited between losing partitions and its next assignment.

A pause begins when partitions are revoked or lost and ends with the next assignment, even an empty one: only then the
consumer goes on polling what it has. It is *stop-the-world* if the consumer owned nothing at some time of it, as with
eager assignors, else *incremental*. A consumer that never owned anything does not pause by giving up nothing; one that
did does, since it waits for the same rebalance. What it owned and for how long is :mod:`pipeline.tables.ownership`.

Where no consumer of a group wrote a journal, pauses are concluded from the coordinator's view (``inferred``): with an
eager assignor every member pauses from the beginning of a rebalance to its end, with a cooperative one none does.

In a consumer group only those stop that give something up, from when the coordinator asked them to until they had: its
coordinator reports it. What such a consumer reports itself has no length, as it is assigned in the same instant.
"""

from __future__ import annotations

from typing import Final

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as fn

from rejoin.pipeline.schemas import INFERRED, PAUSES
from rejoin.pipeline.tables.common import COOPERATIVE, conform, day_of, ends_of_runs, of
from rejoin.pipeline.tables.incarnations import ORDER, OWNER, RELEASES, ownership_events

REVOKED: Final = "need to revoke partitions and re-join"
"""How the reason begins that a consumer gives for the second half of a cooperative rebalance."""
_INCARNATION: Final = (*OWNER, "incarnation")


def pauses(events: DataFrame, rebalances: DataFrame) -> DataFrame:
    """:data:`rejoin.pipeline.schemas.PAUSES` from the events and :data:`rejoin.pipeline.schemas.REBALANCES`."""
    found = _by_consumers(events).unionByName(_by_coordinator(events, rebalances)).unionByName(_by_revocations(events))
    return conform(found.withColumn("day", day_of(fn.col("began_at_ms"))), PAUSES)


def _waits(events: DataFrame) -> DataFrame:
    """One row for each wait of a consumer: all its events from behind one assignment up to and with the next."""
    in_order = Window.partitionBy(*OWNER).orderBy(*ORDER)
    so_far = in_order.rowsBetween(Window.unboundedPreceding, Window.currentRow)
    releases = fn.col("how").isin(*RELEASES.values())
    begins = fn.col("how").isin("started", "gone")
    numbered = ownership_events(events).select("*", fn.sum(begins.cast("int")).over(so_far).alias("incarnation"))

    # Within an incarnation: what it owns after each event, and which wait it belongs to.
    incarnation = Window.partitionBy(*_INCARNATION).orderBy(*ORDER)
    all_so_far = incarnation.rowsBetween(Window.unboundedPreceding, Window.currentRow)
    size = fn.size("partitions")
    change = fn.when(fn.col("how") == "assigned", size).when(releases, -size).otherwise(0)
    waits = fn.sum((fn.col("how") == "assigned").cast("int")).over(
        incarnation.rowsBetween(Window.unboundedPreceding, -1)
    )
    counted = numbered.select(
        "*",
        fn.sum(change).over(all_so_far).alias("owned"),
        fn.coalesce(waits, fn.lit(0)).alias("wait"),
    ).select("*", (fn.max("owned").over(all_so_far) > 0).alias("had_any"))
    end = fn.col("how").isin("assigned", "stopped", "crashed", "gone")
    return (
        counted.where("how != 'started'")
        .groupBy(*_INCARNATION, "wait")
        .agg(
            fn.min(
                fn.when(releases & fn.col("had_any"), fn.struct(*ORDER, "at_ms", "how", "member_id", "generation"))
            ).alias("began"),
            fn.min(fn.when(releases & fn.col("had_any") & (fn.col("owned") <= 0), fn.col("at_ms"))).alias("stopped_at"),
            fn.min(
                fn.when(end, fn.struct(*ORDER, "at_ms", "how", "member_id", "generation", size.alias("received")))
            ).alias("ended"),
            fn.sum(fn.when(releases, size)).alias("given_up"),
            fn.min(fn.when(releases, fn.col("owned"))).alias("kept"),
            fn.max("group_instance_id").alias("group_instance_id"),
            fn.first("node").alias("node"),
            fn.min("confidence").alias("confidence"),
        )
    )


def _by_consumers(events: DataFrame) -> DataFrame:
    real = _waits(events).where("began IS NOT NULL").join(fn.broadcast(ends_of_runs(events)), "run_id")
    over = fn.greatest(fn.coalesce("ended.at_ms", "ends_at_ms"), "began.at_ms")
    stopped = fn.col("stopped_at").isNotNull()
    return real.select(
        "run_id",
        "group_id",
        fn.coalesce(fn.nullif("began.member_id", fn.lit("")), "ended.member_id").alias("member_id"),
        "group_instance_id",
        "client_id",
        "node",
        fn.when(stopped, "stop-the-world").otherwise("incremental").alias("kind"),
        fn.col("began.how").alias("how"),
        fn.col("began.at_ms").alias("began_at_ms"),
        over.alias("ended_at_ms"),
        (over - fn.col("began.at_ms")).alias("pause_ms"),
        fn.when(stopped, fn.greatest(over - fn.col("stopped_at"), fn.lit(0))).otherwise(0).alias("stopped_ms"),
        fn.when(fn.col("ended").isNull(), "open")
        .when(fn.col("ended.how") == "assigned", "assigned")
        .otherwise("gone")
        .alias("end"),
        fn.col("began.generation").alias("generation_from"),
        fn.col("ended.generation").alias("generation_to"),
        "given_up",
        fn.greatest("kept", fn.lit(0)).alias("kept"),
        fn.when(fn.col("ended.how") == "assigned", fn.col("ended.received")).alias("received"),
        "confidence",
    )


def _by_coordinator(events: DataFrame, rebalances: DataFrame) -> DataFrame:
    reported = of(events, "partitions_assigned").select("run_id", "group_id").distinct()
    # A log alone has no assignor, but its members may say that they came back to give up partitions (KIP-429).
    says_so = fn.coalesce(fn.col("client_reason").startswith(REVOKED), fn.lit(False))
    revokes = fn.max(says_so).over(Window.partitionBy("run_id", "group_id"))
    known = rebalances.select("*", revokes.alias("revokes"))
    cooperative = fn.coalesce(fn.col("protocol").isin(*COOPERATIVE), fn.col("revokes"))
    classic = fn.coalesce(fn.col("group_type") == "classic", fn.lit(True))
    eager = known.where(fn.col("ended_at_ms").isNotNull() & ~cooperative & classic).join(
        fn.broadcast(reported), ["run_id", "group_id"], "left_anti"
    )
    # Members that were in both generations: one that left does not wait, a new one has nothing to lose.
    remaining = fn.array_intersect("members_before", "members_after")
    episodes = (
        eager.select("*", fn.explode(remaining).alias("member_id"))
        .groupBy("run_id", "group_id", "node", "source", "episode", "member_id")
        .agg(
            fn.min("prepared_at_ms").alias("began_at_ms"),
            fn.max("ended_at_ms").alias("ended_at_ms"),
            fn.min("generation_from").alias("generation_from"),
            fn.max("generation_to").alias("generation_to"),
            fn.max(fn.struct("prepared_at_ms", "outcome"))["outcome"].alias("outcome"),
        )
    )
    length = fn.col("ended_at_ms") - fn.col("began_at_ms")
    return episodes.select(
        "run_id",
        "group_id",
        "member_id",
        fn.lit(None).cast("string").alias("group_instance_id"),
        fn.lit(None).cast("string").alias("client_id"),
        "node",
        fn.lit("stop-the-world").alias("kind"),
        fn.lit("revoked").alias("how"),
        "began_at_ms",
        "ended_at_ms",
        length.alias("pause_ms"),
        length.alias("stopped_ms"),
        fn.when(fn.col("outcome") == "completed", "assigned").otherwise("gone").alias("end"),
        "generation_from",
        "generation_to",
        fn.lit(None).cast("int").alias("given_up"),
        fn.lit(None).cast("int").alias("kept"),
        fn.lit(None).cast("int").alias("received"),
        fn.lit(INFERRED).alias("confidence"),
    )


def _by_revocations(events: DataFrame) -> DataFrame:
    rows = of(events, "revocation_completed").where("revocation_ms IS NOT NULL")
    return rows.select(
        "run_id",
        "group_id",
        "member_id",
        "group_instance_id",
        fn.lit(None).cast("string").alias("client_id"),
        "node",
        fn.lit("incremental").alias("kind"),
        fn.lit("revoked").alias("how"),
        (fn.col("at_ms") - fn.col("revocation_ms")).alias("began_at_ms"),
        fn.col("at_ms").alias("ended_at_ms"),
        fn.col("revocation_ms").alias("pause_ms"),
        fn.col("revocation_ms").alias("stopped_ms"),
        fn.lit("assigned").alias("end"),
        fn.lit(None).cast("int").alias("generation_from"),
        fn.col("member_epoch").alias("generation_to"),
        fn.size("partitions").alias("given_up"),
        fn.lit(None).cast("int").alias("kept"),
        fn.lit(None).cast("int").alias("received"),
        "confidence",
    )
