"""Which records were processed once, again, or never, by the ranges that consumers processed.

A commit is a position, not what was processed, so duplicates and losses come from ``records_processed`` alone. Ranges
are half open. By their beginning: a range that begins before the furthest end of all earlier ones is a duplicate up to
that end; one that begins behind it leaves lost records in between. Committed past the last processed record is lost,
too. The log counts from the first position of any consumer of the group. Records that a
consumer has in hand at the end of a simulation are neither.
"""

from __future__ import annotations

from typing import Final

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as fn

from rejoin.pipeline.schemas import EXACT, INFERRED, PROGRESS, RECORDS
from rejoin.pipeline.tables.common import conform, day_of, ends_of_runs, is_one_of, of

_PARTITION: Final = ("run_id", "group_id", "topic", "partition")
_POSITIONS: Final = ("first_offset", "began_at_ms", "committed", "committer", "committed_at_ms")
_WHO: Final = ("at_ms", "member_id", "client_id", "generation")


def records(ranges: DataFrame) -> DataFrame:
    """:data:`rejoin.pipeline.schemas.RECORDS` from :func:`ranges_by_partition`."""
    tail = fn.when(fn.col("is_complete"), "lost").otherwise("in-hand")
    past = fn.when(
        fn.col("committed") > fn.col("reached"),
        _range(tail, fn.col("reached"), fn.col("committed"), fn.col("committer")),
    )
    found = ranges.select(*_PARTITION, fn.inline(fn.array_compact(fn.concat("again", "missed", fn.array(past)))))
    return conform(
        found.select(
            *_PARTITION,
            "kind",
            "start",
            "end",
            (fn.col("end") - fn.col("start")).alias("records"),
            "who.*",
            day_of(fn.col("who.at_ms")).alias("day"),
            fn.when(fn.col("kind") == "in-hand", INFERRED).otherwise(EXACT).alias("confidence"),
        ),
        RECORDS,
    )


def progress(ranges: DataFrame) -> DataFrame:
    """:data:`rejoin.pipeline.schemas.PROGRESS` from :func:`ranges_by_partition`."""
    past = fn.greatest(fn.coalesce("committed", "reached") - fn.col("reached"), fn.lit(0))
    return conform(
        ranges.select(
            *_PARTITION,
            day_of(fn.col("first_at_ms")).alias("day"),
            "first_offset",
            fn.coalesce("done_to", "first_offset").alias("reached"),
            "committed",
            (fn.col("handled") - fn.col("twice")).alias("processed"),
            "twice",
            (fn.col("skipped") + fn.when(fn.col("is_complete"), past).otherwise(0)).alias("lost"),
            fn.when(fn.col("is_complete"), 0).otherwise(past).alias("in_hand"),
            fn.lit(EXACT).alias("confidence"),
        ),
        PROGRESS,
    )


def ranges_by_partition(events: DataFrame) -> DataFrame:
    """One row for each partition that was read, which both tables are made of.

    Sums of its ranges; those processed ``again`` and those ``missed``; its first position and furthest commit.
    """
    start, reached, again = fn.col("start"), fn.col("reached"), fn.col("again.end")
    done, length = fn.col("done"), fn.col("end") - fn.col("start")
    twice = fn.greatest(fn.least("end", again) - start, fn.lit(0))
    who = fn.struct(*_WHO)
    # The later of the two processed it again.
    later = fn.greatest(who, fn.struct(*[fn.col(f"again.{name}") for name in _WHO]))
    duplicate = fn.when(done & (start < again), _range(fn.lit("duplicate"), start, fn.least("end", again), later))
    missed = fn.when(start > reached, _range(fn.lit("lost"), reached, start, who))
    return (
        _swept(events)
        .groupBy(*_PARTITION)
        .agg(
            fn.sum(fn.when(done, length)).alias("handled"),
            fn.sum(fn.when(done & again.isNotNull(), twice)).alias("twice"),
            fn.sum(fn.greatest(start - reached, fn.lit(0))).alias("skipped"),
            fn.max("end").alias("furthest"),
            fn.max(fn.when(done, fn.col("end"))).alias("done_to"),
            fn.min("log_begins").alias("log_begins"),
            fn.min("at_ms").alias("done_at_ms"),
            fn.collect_list(duplicate).alias("again"),
            fn.collect_list(missed).alias("missed"),
            *[fn.max(name).alias(name) for name in _POSITIONS],
        )
        .join(fn.broadcast(ends_of_runs(events)), "run_id")
        .select(
            *_PARTITION,
            fn.coalesce("log_begins", "first_offset", fn.lit(0)).alias("first_offset"),
            fn.coalesce("furthest", "first_offset", fn.lit(0)).alias("reached"),
            "done_to",
            "committed",
            "committer",
            fn.coalesce("handled", fn.lit(0)).alias("handled"),
            fn.coalesce("twice", fn.lit(0)).alias("twice"),
            fn.coalesce("skipped", fn.lit(0)).alias("skipped"),
            fn.least("done_at_ms", "began_at_ms", "committed_at_ms").alias("first_at_ms"),
            "again",
            "missed",
            "is_complete",
        )
    )


def _range(kind: Column, start: Column, end: Column, who: Column) -> Column:
    return fn.struct(kind.alias("kind"), start.alias("start"), end.alias("end"), who.alias("who"))


def _swept(events: DataFrame) -> DataFrame:
    """Ranges with the furthest end before each: ``reached`` by any consumer, ``again`` by one that processed it.

    If a consumer found or committed a position in a partition, a row without a range comes first, with these.
    """
    together = _ranges(events).unionByName(_positions(events), allowMissingColumns=True)
    in_order = Window.partitionBy(*_PARTITION).orderBy(fn.col("start").asc_nulls_first(), "at_ms", "seq")
    before = in_order.rowsBetween(Window.unboundedPreceding, -1)
    so_far = in_order.rowsBetween(Window.unboundedPreceding, Window.currentRow)
    known = together.select(
        "*",
        fn.first("first_offset", ignorenulls=True).over(so_far).alias("found"),
        fn.max(fn.when(fn.col("done"), fn.struct("end", *_WHO))).over(before).alias("again"),
        fn.max("end").over(before).alias("end_before"),
        fn.min("start").over(so_far).alias("least"),
    )
    begins = fn.when(fn.col("start").isNotNull(), fn.least("found", "least"))
    return known.select(
        "*",
        begins.alias("log_begins"),
        fn.greatest(fn.coalesce("end_before", begins), begins).alias("reached"),
    )


def _ranges(events: DataFrame) -> DataFrame:
    done = is_one_of("records_processed")
    return (
        of(events, "records_processed", "records_in_hand")
        .select("run_id", _group(), *_WHO, "seq", done.alias("done"), fn.explode("ranges").alias("at"))
        .select("run_id", "group_id", *_WHO, "seq", "done", "at.topic", "at.partition", "at.start", "at.end")
    )


def _positions(events: DataFrame) -> DataFrame:
    """One row for each partition: the first position read, and the furthest commit."""
    found, committed = is_one_of("positions_found"), is_one_of("commit_succeeded")
    offset, at_ms = fn.col("offset"), fn.col("at_ms")
    return (
        of(events, "positions_found", "commit_succeeded")
        .select("run_id", _group(), *_WHO, "event", fn.explode("offsets").alias("at"))
        .select("*", "at.topic", "at.partition", "at.offset")
        .groupBy(*_PARTITION)
        .agg(
            fn.min(fn.when(found, offset)).alias("first_offset"),
            fn.min(fn.when(found, at_ms)).alias("began_at_ms"),
            fn.max(fn.when(committed, offset)).alias("committed"),
            fn.max(fn.when(committed, fn.struct("offset", fn.struct(*_WHO).alias("who"))))["who"].alias("committer"),
            fn.min(fn.when(committed, at_ms)).alias("committed_at_ms"),
        )
    )


def _group() -> Column:
    return fn.coalesce("group_id", fn.lit("")).alias("group_id")
