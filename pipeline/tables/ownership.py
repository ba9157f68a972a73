"""Who owned which partition from when to when, and when nobody did.

Intervals come from what consumers themselves say: assigned opens, revoked and lost close. Each consumer's are built on
their own and only then compared, so that two owners at one time show as an overlap; an interval that ends where the
next owner begins could never overlap. Who dies says nothing: an interval that is still open ends with the consumer's
end if the run knows of it, else when the coordinator removed the member (a session that expired: less the session
timeout, as the last heartbeat was then), else when the same consumer comes back with empty hands, else with the
journal.

Where no consumer of a group wrote a journal, intervals are concluded from what the coordinator gave out (``inferred``):
from Stable until the next rebalance begins, or with a cooperative assignor until another gets the partition.

Gaps are found against the furthest end of *all* earlier intervals, not of the last one alone, which nested intervals
would hide; touching is neither gap nor overlap. A partition is expected to be owned since a consumer of the group first
subscribed to its topic, or since the partition was made.
"""

from __future__ import annotations

from typing import Final

from pyspark.sql import DataFrame, Window, WindowSpec
from pyspark.sql import functions as fn

from pipeline.schemas import EXACT, INFERRED, OWNERSHIP_TABLE
from pipeline.tables.common import COOPERATIVE, conform, day_of, ends_of_runs, is_one_of, logs_of_topics, of
from pipeline.tables.lives import ORDER, OWNER, RELEASES, lives

_PLACE: Final = ("run_id", "group_id", "topic", "partition")


def ownership(events: DataFrame) -> DataFrame:
    """:data:`pipeline.schemas.OWNERSHIP_TABLE` from :data:`pipeline.schemas.EVENTS`."""
    ends = ends_of_runs(events)
    owned = _by_consumers(events).unionByName(_by_coordinator(events))
    closed = owned.join(fn.broadcast(ends), "run_id").select(
        *[name for name in owned.columns if name not in {"to_ms", "end"}],
        fn.greatest("from_ms", fn.coalesce("to_ms", "ends_at_ms")).alias("to_ms"),
        fn.when(fn.col("to_ms").isNull(), "open").otherwise(fn.col("end")).alias("end"),
    )
    overlapping = _with_overlaps(closed)
    return conform(
        overlapping.unionByName(_gaps(overlapping, expected(events), ends), allowMissingColumns=True)
        .withColumn("length_ms", fn.col("to_ms") - fn.col("from_ms"))
        .withColumn("day", day_of(fn.col("from_ms"))),
        OWNERSHIP_TABLE,
    )


def expected(events: DataFrame) -> DataFrame:
    """``run_id, group_id, topic, partition, since_ms``: since when somebody in the group should own a partition."""
    wanted = (
        of(events, "subscribing", "member_joined", "member_rejoined")
        .select(
            "run_id",
            fn.coalesce("group_id", fn.lit("")).alias("group_id"),
            fn.explode("topics").alias("topic"),
            "at_ms",
        )
        .groupBy("run_id", "group_id", "topic")
        .agg(fn.min("at_ms").alias("wanted_ms"))
    )
    return wanted.join(logs_of_topics(events), ["run_id", "topic"]).select(
        *_PLACE, fn.greatest("wanted_ms", "since_ms").alias("since_ms")
    )


def _by_consumers(events: DataFrame) -> DataFrame:
    """Intervals as consumers tell them; ``to_ms`` is null where nothing ended them."""
    said = lives(events)
    backwards = Window.partitionBy(*OWNER).orderBy(*[fn.desc(name) for name in ORDER])
    ends_all = fn.col("how").isin("stopped", "crashed", "gone")
    # Looking ahead is looking back in the other order; a frame to the end would take the square in time.
    gone = fn.last(fn.when(ends_all, fn.struct(*ORDER, "at_ms", "how")), ignorenulls=True).over(
        backwards.rowsBetween(Window.unboundedPreceding, Window.currentRow)
    )
    touched = (
        said.select("*", gone.alias("gone"))
        .where(fn.col("how").isin("assigned", *RELEASES.values()))
        .select("*", fn.explode("partitions").alias("at"))
        .select("*", "at.topic", "at.partition")
        .drop("at", "partitions")
    )
    following = fn.lead(fn.struct(*ORDER, "at_ms", "how")).over(
        Window.partitionBy(*OWNER, "topic", "partition").orderBy(*ORDER)
    )
    opened = touched.select("*", following.alias("following")).where("how = 'assigned'")
    # Whatever comes first in order ended it.
    end = fn.least("following", "gone")
    found = opened.select(
        *_PLACE,
        "member_id",
        "group_instance_id",
        "client_id",
        fn.concat_ws("/", fn.nullif("place", fn.lit("")), "client_id").alias("owner"),
        "node",
        fn.col("at_ms").alias("from_ms"),
        end["at_ms"].alias("to_ms"),
        fn.when(end["how"] == "assigned", "rebalance").otherwise(end["how"]).alias("end"),
        "generation",
        "confidence",
        fn.col("source").alias("from_source"),
        fn.col("seq").alias("from_seq"),
        "file",
        "line",
    )
    return _without_the_dead(found, events)


def _without_the_dead(found: DataFrame, events: DataFrame) -> DataFrame:
    """Intervals that no fact of their consumer ended in good order, closed by what the coordinator knew."""
    removed = (
        of(events, "member_removed", "static_member_replaced", "member_joined")
        .select(
            "run_id",
            "group_id",
            fn.when(is_one_of("static_member_replaced"), fn.col("other_member_id"))
            .otherwise(fn.col("member_id"))
            .alias("member_id"),
            fn.when(
                ~is_one_of("member_joined"), fn.struct("at_ms", fn.coalesce("cause", fn.lit("replaced")).alias("cause"))
            ).alias("removed"),
            "session_timeout_ms",
        )
        .groupBy("run_id", "group_id", "member_id")
        .agg(fn.min("removed").alias("removed"), fn.max("session_timeout_ms").alias("session_timeout_ms"))
        .where("removed IS NOT NULL")
    )
    # A simulation knows who died; whoever did not still holds on to what it has, whatever the coordinator thinks.
    doubtful = (fn.col("end").isNull() | (fn.col("end") == "gone")) & (fn.col("from_source") != "simulation")
    expired = fn.col("removed.cause") == "session-expiry"
    died = fn.col("removed.at_ms") - fn.when(expired, fn.coalesce("session_timeout_ms", fn.lit(0))).otherwise(0)
    known = doubtful & fn.col("removed").isNotNull() & (fn.col("removed.at_ms") >= fn.col("from_ms"))
    joined = found.join(removed, ["run_id", "group_id", "member_id"], "left")
    return joined.select(
        *[name for name in found.columns if name not in {"to_ms", "end", "confidence"}],
        fn.when(known, fn.greatest(fn.least(died, fn.coalesce("to_ms", died)), "from_ms"))
        .otherwise(fn.col("to_ms"))
        .alias("to_ms"),
        fn.when(known, "expired").otherwise(fn.col("end")).alias("end"),
        fn.when(known | (fn.col("end") == "gone"), INFERRED).otherwise(fn.col("confidence")).alias("confidence"),
    )


def _by_coordinator(events: DataFrame) -> DataFrame:
    """Intervals as the coordinator gave partitions out, for groups none of whose consumers wrote anything."""
    told = of(events, "partitions_assigned").select("run_id", "group_id").distinct()
    stream = Window.partitionBy("run_id", "group_id").orderBy("at_ms", "seq")
    facts = of(events, "rebalance_started", "rebalance_completed", "group_emptied").join(
        fn.broadcast(told), ["run_id", "group_id"], "left_anti"
    )
    cooperative = fn.col("protocol").isin(*COOPERATIVE)
    next_end = fn.last(
        fn.when(is_one_of("rebalance_completed", "group_emptied"), fn.col("at_ms")), ignorenulls=True
    ).over(_backwards())
    given = (
        facts.select("*", next_end.alias("next_end"), fn.lead("at_ms").over(stream).alias("next_start"))
        .where("event = 'rebalance_completed'")
        .select("*", fn.when(cooperative, fn.col("next_end")).otherwise(fn.col("next_start")).alias("until"))
        .select("*", fn.explode("owned_after").alias("own"))
        .select(
            *["run_id", "group_id", "node", "source", "seq", "at_ms", "until", "generation", "file", "line"], "own.*"
        )
    )
    place = Window.partitionBy(*_PLACE).orderBy("at_ms", "seq")
    before = fn.lag(fn.struct("until", "member_id")).over(place)
    fresh = fn.coalesce(
        (before["until"] != fn.col("at_ms")) | (before["member_id"] != fn.col("member_id")), fn.lit(True)
    )
    island = fn.sum(fn.col("fresh").cast("int")).over(place.rowsBetween(Window.unboundedPreceding, Window.currentRow))
    return (
        given.select("*", fresh.alias("fresh"))
        .select("*", island.alias("island"))
        .groupBy(*_PLACE, "island", "member_id")
        .agg(
            fn.min(fn.struct("at_ms", "seq", "node", "source", "generation", "file", "line")).alias("first"),
            fn.max(fn.struct("at_ms", fn.col("until").alias("until"))).alias("last"),
        )
        .select(
            *_PLACE,
            "member_id",
            fn.lit(None).cast("string").alias("group_instance_id"),
            fn.lit(None).cast("string").alias("client_id"),
            fn.col("member_id").alias("owner"),
            fn.col("first.node").alias("node"),
            fn.col("first.at_ms").alias("from_ms"),
            fn.col("last.until").alias("to_ms"),
            fn.lit("rebalance").alias("end"),
            fn.col("first.generation").alias("generation"),
            fn.lit(INFERRED).alias("confidence"),
            fn.col("first.source").alias("from_source"),
            fn.col("first.seq").alias("from_seq"),
            fn.col("first.file").alias("file"),
            fn.col("first.line").alias("line"),
        )
    )


def _backwards() -> WindowSpec:
    return (
        Window.partitionBy("run_id", "group_id")
        .orderBy(fn.desc("at_ms"), fn.desc("seq"))
        .rowsBetween(Window.unboundedPreceding, -1)
    )


def _with_overlaps(owned: DataFrame) -> DataFrame:
    """With how long somebody who got the partition earlier owned it, too."""
    earlier = (
        Window.partitionBy(*_PLACE)
        .orderBy("from_ms", "to_ms", "owner", "from_seq")
        .rowsBetween(Window.unboundedPreceding, -1)
    )
    furthest = fn.max(fn.struct("to_ms", "owner")).over(earlier)
    common = fn.when(fn.col("furthest").isNotNull(), fn.least("furthest.to_ms", "to_ms") - fn.col("from_ms"))
    return owned.select("*", fn.lit("owned").alias("kind"), furthest.alias("furthest")).select(
        "*",
        fn.greatest(fn.lit(0).cast("long"), fn.coalesce(common, fn.lit(0))).alias("overlap_ms"),
        fn.when(common > 0, fn.col("furthest.owner")).alias("overlaps_owner"),
    )


def _gaps(owned: DataFrame, wanted: DataFrame, ends: DataFrame) -> DataFrame:
    """Where nobody owned a partition that somebody should have owned."""
    between = owned.where(fn.col("furthest.to_ms") < fn.col("from_ms")).select(
        *_PLACE,
        fn.col("furthest.to_ms").alias("from_ms"),
        fn.col("from_ms").alias("to_ms"),
        fn.lit("between").alias("end"),
        "confidence",
    )
    whole = (
        owned.groupBy(*_PLACE)
        .agg(
            fn.min("from_ms").alias("first_ms"),
            fn.max("to_ms").alias("last_ms"),
            fn.min("confidence").alias("confidence"),
        )
        .join(wanted, list(_PLACE), "full")
        .join(fn.broadcast(ends), "run_id")
        .select(
            "*",
            fn.coalesce("first_ms", "ends_at_ms").alias("got_ms"),
            fn.coalesce("confidence", fn.lit(EXACT)).alias("sure"),
        )
    )
    initial = whole.where("since_ms < got_ms").select(
        *_PLACE,
        fn.col("since_ms").alias("from_ms"),
        fn.col("got_ms").alias("to_ms"),
        fn.lit("initial").alias("end"),
        fn.col("sure").alias("confidence"),
    )
    final = whole.where("last_ms < ends_at_ms").select(
        *_PLACE,
        fn.col("last_ms").alias("from_ms"),
        fn.col("ends_at_ms").alias("to_ms"),
        fn.lit("final").alias("end"),
        fn.col("sure").alias("confidence"),
    )
    return between.unionByName(initial).unionByName(final).withColumn("kind", fn.lit("gap"))
