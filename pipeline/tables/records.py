"""What became of the records, by the ranges that consumers processed: once, again, or never.

A commit says where somebody is, not what was processed, so duplicates and losses come from ``records_processed`` alone.
Ranges are half open. In order of their beginning, a range that begins before the furthest end of all earlier ones is a
duplicate up to that end; one that begins behind it leaves records lost in between. Committed past the last processed
record is lost, too. The log is counted from the first position that any consumer of the group began at. Records that a
consumer has in hand at the end of a simulation are neither.
"""

from __future__ import annotations

from typing import Final

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as fn

from pipeline.schemas import EXACT, INFERRED, PROGRESS, RECORDS
from pipeline.tables.common import conform, day_of, ends_of_runs, is_one_of, of

_PLACE: Final = ("run_id", "group_id", "topic", "partition")
_WHO: Final = ("at_ms", "member_id", "client_id", "generation")


def records(events: DataFrame) -> DataFrame:
    """:data:`pipeline.schemas.RECORDS` from the facts."""
    swept = _swept(events)
    begun, reached, again = fn.col("start"), fn.col("reached"), fn.col("again.end")
    repeated = swept.where(fn.col("done") & (begun < again)).select(
        *_PLACE,
        fn.lit("duplicate").alias("kind"),
        begun.alias("start"),
        fn.least("end", again).alias("end"),
        # Whoever did it later did it again.
        fn.greatest(fn.struct(*_WHO), fn.struct(*[fn.col(f"again.{name}") for name in _WHO])).alias("who"),
    )
    skipped = swept.where(begun > reached).select(
        *_PLACE, fn.lit("lost").alias("kind"), reached.alias("start"), begun.alias("end"), fn.struct(*_WHO).alias("who")
    )
    progressed = _places(swept, events)
    tail = progressed.where("committed > reached").select(
        *_PLACE,
        fn.when(fn.col("told"), "lost").otherwise("in-hand").alias("kind"),
        fn.col("reached").alias("start"),
        fn.col("committed").alias("end"),
        fn.col("committer").alias("who"),
    )
    found = repeated.unionByName(skipped).unionByName(tail)
    return conform(
        found.select(
            *_PLACE,
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


def progress(events: DataFrame) -> DataFrame:
    """:data:`pipeline.schemas.PROGRESS` from the facts."""
    found = _places(_swept(events), events)
    past = fn.greatest(fn.coalesce("committed", "reached") - fn.col("reached"), fn.lit(0))
    return conform(
        found.select(
            *_PLACE,
            day_of(fn.col("first_at_ms")).alias("day"),
            "first_offset",
            fn.coalesce("done_to", "first_offset").alias("reached"),
            "committed",
            (fn.col("handled") - fn.col("twice")).alias("processed"),
            "twice",
            (fn.col("skipped") + fn.when(fn.col("told"), past).otherwise(0)).alias("lost"),
            fn.when(fn.col("told"), 0).otherwise(past).alias("in_hand"),
            fn.lit(EXACT).alias("confidence"),
        ),
        PROGRESS,
    )


def _group() -> Column:
    return fn.coalesce("group_id", fn.lit("")).alias("group_id")


def _starts(events: DataFrame) -> DataFrame:
    return (
        _positions(events, "positions_found")
        .groupBy(*_PLACE)
        .agg(fn.min("offset").alias("first_offset"), fn.min("at_ms").alias("began_at_ms"))
    )


def _positions(events: DataFrame, name: str) -> DataFrame:
    return (
        of(events, name)
        .select("run_id", _group(), *_WHO, fn.explode("offsets").alias("at"))
        .select("*", "at.topic", "at.partition", "at.offset")
    )


def _swept(events: DataFrame) -> DataFrame:
    """Ranges with the furthest end before each: ``reached`` by anybody, ``again`` by somebody who was done with it."""
    done = is_one_of("records_processed")
    ranges = (
        of(events, "records_processed", "records_in_hand")
        .select("run_id", _group(), *_WHO, "seq", done.alias("done"), fn.explode("ranges").alias("at"))
        .select("run_id", "group_id", *_WHO, "seq", "done", "at.topic", "at.partition", "at.start", "at.end")
        .join(fn.broadcast(_starts(events)), list(_PLACE), "left")
    )
    before = Window.partitionBy(*_PLACE).orderBy("start", "at_ms", "seq").rowsBetween(Window.unboundedPreceding, -1)
    first = fn.least("first_offset", fn.min("start").over(Window.partitionBy(*_PLACE).orderBy("start", "at_ms", "seq")))
    return ranges.select(
        "*",
        fn.max(fn.when(fn.col("done"), fn.struct("end", *_WHO))).over(before).alias("again"),
        fn.coalesce(fn.max("end").over(before), first).alias("reached_"),
        first.alias("log_begins"),
    ).select("*", fn.greatest("reached_", "log_begins").alias("reached"))


def _places(swept: DataFrame, events: DataFrame) -> DataFrame:
    """One row for each partition: sums of its ranges, and the furthest commit."""
    length = fn.col("end") - fn.col("start")
    twice = fn.greatest(fn.least("end", "again.end") - fn.col("start"), fn.lit(0))
    sums = swept.groupBy(*_PLACE).agg(
        fn.sum(fn.when(fn.col("done"), length)).alias("handled"),
        fn.sum(fn.when(fn.col("done") & fn.col("again").isNotNull(), twice)).alias("twice_"),
        fn.sum(fn.greatest(fn.col("start") - fn.col("reached"), fn.lit(0))).alias("skipped_"),
        fn.max("end").alias("furthest"),
        fn.max(fn.when(fn.col("done"), fn.col("end"))).alias("done_to"),
        fn.min("log_begins").alias("log_begins"),
        fn.min("at_ms").alias("done_at_ms"),
    )
    committed = (
        _positions(events, "commit_succeeded")
        .groupBy(*_PLACE)
        .agg(
            fn.max("offset").alias("committed"),
            fn.max(fn.struct("offset", fn.struct(*_WHO).alias("who")))["who"].alias("committer"),
            fn.min("at_ms").alias("committed_at_ms"),
        )
    )
    return (
        sums.join(_starts(events), list(_PLACE), "full")
        .join(committed, list(_PLACE), "full")
        .join(fn.broadcast(ends_of_runs(events)), "run_id")
        .select(
            *_PLACE,
            fn.coalesce("log_begins", "first_offset", fn.lit(0)).alias("first_offset"),
            fn.coalesce("furthest", "first_offset", fn.lit(0)).alias("reached"),
            "done_to",
            "committed",
            "committer",
            fn.coalesce("handled", fn.lit(0)).alias("handled"),
            fn.coalesce("twice_", fn.lit(0)).alias("twice"),
            fn.coalesce("skipped_", fn.lit(0)).alias("skipped"),
            fn.least("done_at_ms", "began_at_ms", "committed_at_ms").alias("first_at_ms"),
            "told",
        )
    )
