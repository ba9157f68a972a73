"""Who owned which partition from when to when, and when it had no owner.

Intervals come from the consumers' own events: assigned opens, revoked and lost close. Each consumer's are built on
their own and only then compared, so that two owners at one time show as an overlap; an interval that ends where the
next owner begins could never overlap. A crash leaves no event: an interval that is still open ends with the consumer's
end if the run reports it, else when the coordinator removed the member (a session that expired: less the session
timeout, as the last heartbeat was then), else when the same consumer rejoins without partitions, else with the
journal.

Where no consumer of a group wrote a journal, intervals are concluded from the assignments (``inferred``):
from Stable until the next rebalance begins, or with a cooperative assignor, and in consumer groups, until another gets
the partition.

Gaps are found against the furthest end of *all* earlier intervals, not of the last one alone, which nested intervals
would hide; touching is neither gap nor overlap. A partition is expected to be owned since a consumer of the group first
subscribed to its topic, or since the partition was made.
"""

from __future__ import annotations

from typing import Final

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as fn

from rejoin.pipeline.schemas import EXACT, INFERRED, OWNERSHIP_TABLE
from rejoin.pipeline.tables.common import (
    COOPERATIVE,
    conform,
    day_of,
    ends_of_runs,
    is_one_of,
    logs_of_runs,
    logs_of_topics,
    of,
)
from rejoin.pipeline.tables.incarnations import (
    INCARNATION_EVENTS,
    ORDER,
    RELEASES,
    change_of_an_incarnation,
    is_of_an_incarnation,
    order_of_incarnations,
    process_of_an_incarnation,
)

_GROUP: Final = ("run_id", "group_id")
_PARTITION: Final = ("run_id", "group_id", "topic", "partition")
_WANTS: Final = ("subscribing", "member_joined", "member_rejoined")
_GIVES: Final = ("rebalance_started", "rebalance_completed", "group_emptied")
_REMOVALS: Final = ("member_removed", "static_member_replaced")
_SPAN: Final = ("kind", "from_ms", "to_ms", "end", "confidence")
_HELP: Final = ("owns", "since_ms", "ends_at_ms")
_ROWS: Final = "array<struct<topic:string,partition:int,receiver:string,since_ms:bigint>>"
_STREAM: Final = ("run_id", "group_id", "about", "place", "client_id")
"""Events of one owner, or of the coordinator, ordered by :data:`rejoin.pipeline.tables.incarnations.ORDER`."""


def ownership(events: DataFrame) -> DataFrame:
    """:data:`rejoin.pipeline.schemas.OWNERSHIP_TABLE` from :data:`rejoin.pipeline.schemas.EVENTS`.

    All events of a group are shuffled together once: everything below is a window over them.
    """
    rows = (
        _in_order(_with_removals(_ownership_rows(events)))
        .join(fn.broadcast(ends_of_runs(events)), "run_id")
        .join(fn.broadcast(logs_of_runs(events)), "run_id", "left")
    )
    return conform(
        _with_gaps(_closed(_opened(_by_partition(rows))))
        .withColumn("length_ms", fn.col("to_ms") - fn.col("from_ms"))
        .withColumn("day", day_of(fn.col("from_ms"))),
        OWNERSHIP_TABLE,
    )


def expected(events: DataFrame) -> DataFrame:
    """``run_id, group_id, topic, partition, since_ms``: since when the group should own a partition."""
    wanted = (
        of(events, *_WANTS)
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
        *_PARTITION, fn.greatest("wanted_ms", "since_ms").alias("since_ms")
    )


def _ownership_rows(events: DataFrame) -> DataFrame:
    """Events of incarnations and subscriptions, and the coordinator's of members and assignments.

    ``about``: incarnation | given | wanted; null for what only removes a member.
    """
    k1, k2 = order_of_incarnations()
    replaced = is_one_of("static_member_replaced")
    rows = of(events, *INCARNATION_EVENTS, *_WANTS, *_GIVES, *_REMOVALS).where(
        ~is_one_of("join_sent") | is_of_an_incarnation()
    )
    incarnation = is_one_of(*INCARNATION_EVENTS)
    return rows.select(
        "run_id",
        fn.coalesce("group_id", fn.lit("")).alias("group_id"),
        fn.when(incarnation, "incarnation")
        .when(is_one_of(*_GIVES), "given")
        .when(is_one_of(*_WANTS) & fn.col("topics").isNotNull(), "wanted")
        .alias("about"),
        # Of equal subscriptions in a group the first one counts, so each needs its own key.
        fn.when(incarnation, process_of_an_incarnation())
        .otherwise(fn.coalesce(fn.array_join("topics", "\0"), fn.lit("")))
        .alias("place"),
        fn.when(incarnation, fn.col("client_id")).alias("client_id"),
        fn.when(incarnation, k1).otherwise(fn.col("at_ms")).alias("k1"),
        fn.when(incarnation, k2).otherwise(0).alias("k2"),
        "seq",
        "at_ms",
        fn.when(incarnation, change_of_an_incarnation()).otherwise(fn.col("event")).alias("how"),
        "member_id",
        fn.when(replaced, fn.col("other_member_id")).otherwise(fn.col("member_id")).alias("whom"),
        fn.when(
            is_one_of(*_REMOVALS), fn.struct("at_ms", fn.coalesce("cause", fn.lit("replaced")).alias("cause"))
        ).alias("removal"),
        fn.when(is_one_of(*_REMOVALS, "member_joined"), fn.col("session_timeout_ms")).alias("session_timeout_ms"),
        "group_instance_id",
        "node",
        "source",
        "generation",
        "partitions",
        "owned_after",
        "topics",
        (fn.col("protocol").isin(*COOPERATIVE) | fn.coalesce(fn.col("group_type") == "consumer", fn.lit(False))).alias(
            "cooperative"
        ),
        "confidence",
        "file",
        "line",
    ).hint("repartition", *_GROUP)


def _with_removals(events: DataFrame) -> DataFrame:
    """With when the coordinator removed the member, and only with the source that knows the group's owners."""
    same = Window.partitionBy(*_GROUP, "whom")
    by_consumers = fn.max(fn.col("how") == "assigned").over(Window.partitionBy(*_GROUP))
    known = fn.col("whom").isNotNull()
    return (
        events.select(
            "*",
            fn.when(known, fn.min("removal").over(same)).alias("removed"),
            fn.when(known, fn.max("session_timeout_ms").over(same)).alias("session_ms"),
            by_consumers.alias("by_consumers"),
        )
        .where("about IS NOT NULL AND NOT (about = 'given' AND by_consumers)")
        .drop("whom", "removal", "session_timeout_ms", "by_consumers")
    )


def _in_order(events: DataFrame) -> DataFrame:
    """With the next event of the owner, or of the group."""
    stream = Window.partitionBy(*_STREAM)
    in_order = stream.orderBy(*ORDER)
    # Looking ahead is looking back in the other order; a frame to the end would take the square in time.
    backwards = stream.orderBy(*[fn.desc(name) for name in ORDER])
    before = fn.lag("how").over(in_order)
    ends_all = fn.col("how").isin("stopped", "crashed", "gone")
    gone = fn.last(fn.when(ends_all, fn.struct(*ORDER, "at_ms", "how")), ignorenulls=True)
    ended = fn.last(fn.when(fn.col("how").isin("rebalance_completed", "group_emptied"), fn.col("at_ms")), True)
    next_start = fn.lead("at_ms").over(in_order)
    next_end = ended.over(backwards.rowsBetween(Window.unboundedPreceding, -1))
    return (
        events.select("*", before.alias("before"), next_start.alias("next_start"))
        # A consumer that has revoked everything also joins without partitions.
        .where("how != 'gone' OR before = 'assigned'")
        .where("about != 'wanted' OR before IS NULL")
        .select(
            "*",
            gone.over(backwards.rowsBetween(Window.unboundedPreceding, Window.currentRow)).alias("gone"),
            fn.when(fn.col("cooperative"), next_end).otherwise(fn.col("next_start")).alias("until"),
        )
        .drop("before", "next_start", "cooperative")
    )


def _by_partition(events: DataFrame) -> DataFrame:
    """A row for each partition of an event; what is wanted has ``since_ms``, since when it should be owned."""
    # As SQL: a Python lambda has a new name each time, so Spark would compile it each time.
    theirs = fn.expr("transform(partitions, at -> (at.topic, at.partition, NULL, NULL))")
    given = fn.expr("transform(owned_after, at -> (at.topic, at.partition, at.member_id, NULL))")
    wanted = fn.expr("""
        flatten(transform(
            filter(logs, log -> array_contains(topics, log.topic)),
            log -> transform(
                sequence(0, log.partition_count - 1),
                partition -> (log.topic, partition, NULL, greatest(at_ms, log.since_ms))
            )
        ))
    """)
    about = fn.col("about")
    theirs, given, wanted = (rows.cast(_ROWS) for rows in (theirs, given, wanted))
    rows = fn.when(about == "wanted", wanted).when(about == "given", given).otherwise(theirs)
    return (
        events.where(
            fn.col("how").isin("assigned", *RELEASES.values(), "rebalance_completed") | (fn.col("about") == "wanted")
        )
        .select("*", fn.inline(rows))
        .drop("partitions", "owned_after", "topics", "logs")
    )


def _opened(touched: DataFrame) -> DataFrame:
    """Intervals with the events that ended them; and what is wanted, as it is."""
    by_owner = Window.partitionBy(*_STREAM, "topic", "partition").orderBy(*ORDER)
    following = fn.lead(fn.struct(*ORDER, "at_ms", "how")).over(by_owner)
    before, after = (side(fn.struct("until", "at_ms", "receiver")).over(by_owner) for side in (fn.lag, fn.lead))
    # The coordinator assigns everything in each generation; what a member keeps is one interval.
    goes_on = (before["until"] == fn.col("at_ms")) & (before["receiver"] == fn.col("receiver"))
    kept = (after["at_ms"] == fn.col("until")) & (after["receiver"] == fn.col("receiver"))
    given = fn.col("about") == "given"
    opened = (
        touched.select(
            "*",
            following.alias("following"),
            (given & fn.coalesce(goes_on, fn.lit(False))).alias("goes_on"),
            (given & fn.coalesce(kept, fn.lit(False))).alias("kept"),
        )
        .where("about != 'incarnation' OR how = 'assigned'")
        .where("NOT (goes_on AND kept)")
    )
    return opened.select("*", fn.lead("until").over(by_owner).alias("until_last")).where("NOT goes_on")


def _closed(opened: DataFrame) -> DataFrame:
    """Intervals from ``from_ms`` to ``to_ms``; those that no consumer ended end as the coordinator saw it."""
    incarnation, given = (fn.col("about") == about for about in ("incarnation", "given"))
    # The first in order ended it.
    end = fn.least("following", "gone")
    how = fn.when(end["how"] == "assigned", "rebalance").otherwise(end["how"])
    # A simulation knows which consumers died; all others still own what they had, removed or not.
    doubtful = incarnation & (how.isNull() | (how == "gone")) & (fn.col("source") != "simulation")
    known = doubtful & (fn.col("removed.at_ms") >= fn.col("at_ms"))
    expired = fn.col("removed.cause") == "session-expiry"
    died = fn.col("removed.at_ms") - fn.when(expired, fn.coalesce("session_ms", fn.lit(0))).otherwise(0)
    to_ms = (
        fn.when(given, fn.when(fn.col("kept"), fn.col("until_last")).otherwise(fn.col("until")))
        .when(known, fn.greatest(fn.least(died, fn.coalesce(end["at_ms"], died)), "at_ms"))
        .otherwise(end["at_ms"])
    )
    owner = fn.concat_ws("/", fn.nullif("place", fn.lit("")), "client_id")
    return opened.select(
        *_PARTITION,
        (fn.col("about") != "wanted").alias("owns"),
        "since_ms",
        "ends_at_ms",
        fn.when(given, fn.col("receiver")).otherwise(fn.col("member_id")).alias("member_id"),
        fn.when(incarnation, fn.col("group_instance_id")).alias("group_instance_id"),
        "client_id",
        fn.when(given, fn.col("receiver")).otherwise(owner).alias("owner"),
        "node",
        fn.col("at_ms").alias("from_ms"),
        fn.greatest("at_ms", fn.coalesce(to_ms, "ends_at_ms")).alias("to_ms"),
        fn.when(to_ms.isNull(), "open").when(given, "rebalance").when(known, "expired").otherwise(how).alias("end"),
        "generation",
        fn.when(given | known | (how == "gone"), INFERRED).otherwise(fn.col("confidence")).alias("confidence"),
        fn.col("source").alias("from_source"),
        fn.col("seq").alias("from_seq"),
        "file",
        "line",
    )


def _with_gaps(closed: DataFrame) -> DataFrame:
    """With the overlap with earlier owners, and with rows for the time without an owner."""
    in_order = Window.partitionBy(*_PARTITION).orderBy("owns", "from_ms", "to_ms", "owner", "from_seq")
    earlier = in_order.rowsBetween(Window.unboundedPreceding, -1)
    so_far = in_order.rowsBetween(Window.unboundedPreceding, Window.currentRow)
    owns = fn.col("owns")
    seen = closed.select(
        "*",
        fn.max(fn.when(owns, fn.struct("to_ms", "owner"))).over(earlier).alias("furthest"),
        fn.min(fn.when(owns, fn.col("from_ms"))).over(so_far).alias("first_ms"),
        fn.max(fn.when(owns, fn.col("to_ms"))).over(so_far).alias("last_ms"),
        fn.min(fn.when(owns, fn.col("confidence"))).over(so_far).alias("surest"),
        fn.min("since_ms").over(so_far).alias("wanted_ms"),
        fn.lead("owns").over(in_order).isNull().alias("is_last"),
    )
    first_ms = fn.coalesce("first_ms", "ends_at_ms")
    sure = fn.coalesce("surest", fn.lit(EXACT))
    is_last = fn.col("is_last")
    furthest_ms, from_ms, to_ms = fn.col("furthest.to_ms"), fn.col("from_ms"), fn.col("to_ms")
    spans = fn.array_compact(
        fn.array(
            fn.when(owns, _span("owned", from_ms, to_ms, fn.col("end"), fn.col("confidence"))),
            fn.when(
                owns & (furthest_ms < from_ms),
                _span("gap", furthest_ms, from_ms, fn.lit("between"), fn.col("confidence")),
            ),
            fn.when(
                is_last & (fn.col("wanted_ms") < first_ms),
                _span("gap", fn.col("wanted_ms"), first_ms, fn.lit("initial"), sure),
            ),
            fn.when(
                is_last & (fn.col("last_ms") < fn.col("ends_at_ms")),
                _span("gap", fn.col("last_ms"), fn.col("ends_at_ms"), fn.lit("final"), sure),
            ),
        )
    )
    common = fn.when(furthest_ms.isNotNull(), fn.least(furthest_ms, to_ms) - from_ms)
    overlap_ms = fn.greatest(fn.lit(0).cast("long"), fn.coalesce(common, fn.lit(0)))
    # Columns about an owner are null for a time without one.
    owners = [name for name in closed.columns if name not in {*_PARTITION, *_HELP, *_SPAN}]
    owned = fn.col("kind") == "owned"
    return seen.select(
        *_PARTITION,
        *owners,
        overlap_ms.alias("overlap_ms"),
        fn.when(common > 0, fn.col("furthest.owner")).alias("overlaps_owner"),
        fn.inline(spans),
    ).select(
        *_PARTITION,
        *_SPAN,
        *[fn.when(owned, fn.col(name)).alias(name) for name in (*owners, "overlap_ms", "overlaps_owner")],
    )


def _span(kind: str, from_ms: Column, to_ms: Column, end: Column, confidence: Column) -> Column:
    values = (fn.lit(kind), from_ms, to_ms, end, confidence)
    return fn.struct(*[value.alias(name) for value, name in zip(values, _SPAN, strict=True)])
