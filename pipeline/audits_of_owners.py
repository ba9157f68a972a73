"""Partitions that two consumers owned at one time: what Kafka allows, and what must never happen.

A member that was removed and has not noticed yet, since its process paused or its handler is stuck, goes on with its
partitions while the coordinator has given them to others. What it processes meanwhile is processed twice, and its
commits are refused.
"""

from __future__ import annotations

from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as fn

from rejoin.pipeline.audit_rows import PARTITION, interval, violation_rows
from rejoin.pipeline.tables.common import of
from rejoin.pipeline.vocabulary import AFTER_REMOVAL

TWO_OWNERS: Final = "two-owners"
POLL_TIMEOUT: Final = "poll_timeout_exceeded"
_REMOVALS: Final = {
    "session-expiry": "its session ended",
    "did-not-rejoin": "it did not rejoin in time",
    "rebalance-expiry": "it did not give up partitions in time",
    "sync-expiry": "it sent no SyncGroup in time",
    "replaced": "another process took its group.instance.id",
    POLL_TIMEOUT: "it did not poll in time",
}
"""How a member goes without its application: the end of its session, with its text. After a poll that was too late the
thread of its heartbeats left."""
_MEMBER: Final = ("run_id", "group_id", "member_id")
SKEW_MS: Final = 1_000
"""Clocks of consumers and of coordinators differ by so much."""


def two_owners(events: DataFrame, ownership: DataFrame, member_sessions: DataFrame) -> DataFrame:
    """A partition that two consumers owned at one time. ``found``: for how many ms; ``expected``: 0.

    Where the first was removed before the second got the partition, the kind is :data:`AFTER_REMOVAL`.
    """
    owned = ownership.where("kind = 'owned'")
    second = owned.where("overlap_ms > 0").alias("b")
    first = owned.alias("a")
    same = [fn.col(f"a.{name}") == fn.col(f"b.{name}") for name in PARTITION]
    meet = (
        (fn.col("a.owner") == fn.col("b.overlaps_owner"))
        & (fn.col("a.from_ms") <= fn.col("b.from_ms"))
        & (fn.col("a.to_ms") > fn.col("b.from_ms"))
    )
    pairs = _with_removals(second.join(first, [*same, meet]), _removals_of_members(events, member_sessions))
    names = [fn.col(name) for name in ("a.owner", "b.owner", "b.topic", "b.partition", "b.overlap_ms")]
    both = fn.format_string("%s and %s both owned %s-%d for %d ms", *names)
    removed = fn.when(
        fn.col("removed").isNotNull(),
        fn.format_string(
            "%s had been removed (%s) and went on with %s-%d for %d ms beside %s",
            *(names[0], _words(fn.col("removed")), *names[2:], names[1]),
        ),
    )
    return violation_rows(
        pairs.select(
            *[fn.col(f"b.{name}") for name in (*PARTITION, "generation")],
            fn.col("b.from_ms").alias("at_ms"),
            fn.least("a.to_ms", "b.to_ms").alias("to_ms"),
            fn.array("a.member_id", "b.member_id").alias("members"),
            fn.lit(0).alias("expected"),
            fn.col("b.overlap_ms").alias("found"),
            fn.coalesce(removed, both).alias("text"),
            fn.array(interval("a"), interval("b")).alias("evidence"),
            fn.greatest("a.confidence", "b.confidence").alias("confidence"),
            fn.when(fn.col("removed").isNull(), TWO_OWNERS).otherwise(AFTER_REMOVAL).alias("kind"),
        )
    )


def _removals_of_members(events: DataFrame, member_sessions: DataFrame) -> DataFrame:
    """When each member was removed without its application, and why."""
    late = of(events, POLL_TIMEOUT).select(*_MEMBER, "at_ms", fn.lit(POLL_TIMEOUT).alias("why"))
    left_late = (fn.col("end") == "left") & fn.col("leave_reason").startswith("consumer poll timeout")
    why = fn.when(left_late, POLL_TIMEOUT).otherwise(fn.col("end"))
    ended = member_sessions.select(*_MEMBER, fn.col("ended_at_ms").alias("at_ms"), why.alias("why"))
    return (
        ended.unionByName(late)
        .where(fn.col("why").isin(*_REMOVALS) & fn.col("at_ms").isNotNull())
        .groupBy(*_MEMBER)
        .agg(fn.array_sort(fn.collect_list(fn.struct("at_ms", "why"))).alias("removals"))
    )


def _words(removed: Column) -> Column:
    texts = fn.create_map(*(fn.lit(text) for pair in _REMOVALS.items() for text in pair))
    return texts[removed]


def _with_removals(pairs: DataFrame, removals: DataFrame) -> DataFrame:
    """With ``removed``: why the first owner of a pair was removed before the second came; null if it was not."""
    same = [fn.col(f"a.{name}") == fn.col(f"r.{name}") for name in _MEMBER]

    def between(removal: Column) -> Column:
        at_ms = removal["at_ms"]
        return (at_ms >= fn.col("a.from_ms")) & (at_ms <= fn.col("b.from_ms") + SKEW_MS)

    before = fn.filter("r.removals", between)
    why = fn.try_element_at(before, fn.lit(1))["why"]
    return pairs.join(removals.alias("r"), same, "left").withColumn("removed", why)
