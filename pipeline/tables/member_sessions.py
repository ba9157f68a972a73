"""Every session of a member in a group: how long, how it ended, what it cost.

A member id is handed out once, so a session is all events about one id, from any coordinator; in the consumer protocol
a member that was removed joins again with the same id (KIP-848), and that is another session. A static member that
restarts has another id and so another session, which names the one it ``replaces``. If that could not be stored, the
old one goes on (``static_member_restored``).
"""

from __future__ import annotations

from typing import Final

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as fn

from rejoin.pipeline.schemas import MEMBER_SESSIONS
from rejoin.pipeline.tables.common import conform, day_of, ends_of_runs, is_one_of, of

_CHANGES: Final = (
    *("member_joined", "member_rejoined", "member_removed", "static_member_replaced", "static_member_restored"),
    "group_deleted",
)
_OF_THE_NEW_ONE: Final = (
    *("client_id", "client_host", "client_reason", "session_timeout_ms", "rebalance_timeout_ms", "protocols", "topics"),
    *("software", "kind", "member_type"),
)
"""Columns of a replacement that are about the member that came, and not about the one that it replaces."""
_COLUMNS: Final = (
    *("run_id", "group_id", "member_id", "group_instance_id", "node", "at_ms", "seq", "event", "cause", "confidence"),
    *_OF_THE_NEW_ONE,
)
_KEY: Final = ("run_id", "group_id", "member_id")


def member_sessions(events: DataFrame, rebalances: DataFrame) -> DataFrame:
    """:data:`rejoin.pipeline.schemas.MEMBER_SESSIONS` from events and :data:`rejoin.pipeline.schemas.REBALANCES`."""
    sessions = (
        _sessions(events)
        .join(_generations(rebalances), list(_KEY), "left")
        .join(_caused(rebalances), list(_KEY), "left")
        .join(fn.broadcast(ends_of_runs(events)), "run_id")
    )
    ended = fn.when(~fn.coalesce(fn.col("restored_at_ms") >= fn.col("over.at_ms"), fn.lit(False)), fn.col("over"))
    from_ms = fn.coalesce("joined_at_ms", "seen_at_ms")
    known = sessions.select("*", ended.alias("ended")).select(
        "*",
        fn.col("ended.at_ms").alias("ended_at_ms"),
        fn.coalesce("ended.end", fn.lit("open")).alias("end"),
        fn.col("ended.other").alias("replaced_by"),
        fn.col("ended.client_reason").alias("leave_reason"),
        (fn.coalesce("ended.at_ms", "ends_at_ms") - from_ms).alias("session_ms"),
        fn.coalesce("caused_rebalances", fn.lit(0)).alias("caused"),
        day_of(from_ms).alias("day"),
        # The same consumer over its incarnations: by what is configured, not by the member id.
        fn.coalesce("group_instance_id", fn.concat_ws("@", "client_id", "client_host")).alias("who"),
    )
    before = Window.partitionBy("run_id", "group_id", "who").orderBy("seen_at_ms", "member_id")
    last = fn.lag(fn.struct("ended_at_ms", "end")).over(before)

    def inherited(name: str) -> Column:
        # The replacement of a static member has the same settings, but no event repeats them.
        so_far = before.rowsBetween(Window.unboundedPreceding, Window.currentRow)
        return fn.coalesce(
            name, fn.last(fn.when(fn.col("group_instance_id").isNotNull(), fn.col(name)), True).over(so_far)
        )

    settings = (
        "client_id",
        "client_host",
        "session_timeout_ms",
        "rebalance_timeout_ms",
        "protocols",
        "topics",
        "software",
        "group_protocol",
    )
    kept = [name for name in known.columns if name not in {*settings, "generations"}]
    return conform(
        known.select(
            *kept, *[inherited(name).alias(name) for name in settings], "generations", last.alias("last")
        ).select(
            *kept,
            *settings,
            fn.coalesce("generations", fn.lit(0)).alias("generations"),
            fn.col("last.end").alias("previous_end"),
            fn.when(
                fn.col("joined_at_ms") >= fn.col("last.ended_at_ms"),
                fn.col("joined_at_ms") - fn.col("last.ended_at_ms"),
            ).alias("away_ms"),
        ),
        MEMBER_SESSIONS,
    )


def _changes(events: DataFrame) -> DataFrame:
    """What happened to members; a replacement happened to the replaced one, too."""
    rows = of(events, *_CHANGES).where("member_id IS NOT NULL")
    replaced = (
        of(events, "static_member_replaced")
        .withColumns({name: fn.lit(None).cast(rows.schema[name].dataType) for name in _OF_THE_NEW_ONE})
        .withColumns({"event": fn.lit("replaced"), "cause": fn.lit("replaced")})
    )
    return rows.select(*_COLUMNS, fn.col("other_member_id").alias("other")).unionByName(
        replaced.select(
            *[fn.col("other_member_id" if name == "member_id" else name).alias(name) for name in _COLUMNS],
            fn.col("member_id").alias("other"),
        )
    )


def _sessions(events: DataFrame) -> DataFrame:
    def last(name: str) -> Column:
        return fn.max(fn.when(fn.col(name).isNotNull(), fn.struct("at_ms", "seq", name)))[name].alias(name)

    joined = is_one_of("member_joined")
    modern = fn.nullif("member_type", fn.lit("classic"))
    joins = is_one_of("member_joined", "static_member_replaced")
    over = is_one_of("member_removed", "replaced")
    so_far = Window.partitionBy(*_KEY).orderBy("at_ms", "seq").rowsBetween(Window.unboundedPreceding, -1)
    removed = is_one_of("member_removed")
    was_removed = fn.last(fn.when(joined | removed, removed), ignorenulls=True).over(so_far)
    again = joined & fn.coalesce(was_removed, fn.lit(False))
    return (
        _changes(events)
        .select("*", again.cast("int").alias("again"))
        .select("*", fn.sum("again").over(so_far.rowsBetween(Window.unboundedPreceding, 0)).alias("life"))
        .groupBy(*_KEY, "life")
        .agg(
            fn.max("group_instance_id").alias("group_instance_id"),
            fn.max("client_id").alias("client_id"),
            fn.max("client_host").alias("client_host"),
            fn.min(fn.when(joins, fn.struct("at_ms", "seq", "node", "client_reason"))).alias("came"),
            fn.min("at_ms").alias("seen_at_ms"),
            fn.min(
                fn.when(over, fn.struct("at_ms", "seq", fn.col("cause").alias("end"), "client_reason", "other"))
            ).alias("over"),
            fn.max(fn.when(is_one_of("static_member_restored"), fn.col("at_ms"))).alias("restored_at_ms"),
            fn.max(fn.when(is_one_of("static_member_replaced"), fn.col("other"))).alias("replaces"),
            fn.count(fn.when(is_one_of("member_rejoined"), 1)).alias("rejoins"),
            fn.max("session_timeout_ms").alias("session_timeout_ms"),
            fn.max("rebalance_timeout_ms").alias("rebalance_timeout_ms"),
            last("protocols"),
            last("topics"),
            fn.max("software").alias("software"),
            fn.max(fn.coalesce(fn.when(joined, fn.col("kind")), fn.when(joins, modern))).alias("group_protocol"),
            fn.max(fn.when(joined, fn.col("other"))).alias("same_process_as"),
            fn.min("confidence").alias("sure"),
        )
        .select(
            "*",
            fn.col("came.at_ms").alias("joined_at_ms"),
            fn.col("came.node").alias("node"),
            fn.col("came.client_reason").alias("join_reason"),
            # "exact" sorts before everything else.
            fn.when(fn.col("sure") == "exact", "exact").otherwise("inferred").alias("confidence"),
        )
    )


def _generations(rebalances: DataFrame) -> DataFrame:
    return (
        rebalances.where("generation_to IS NOT NULL")
        .select("run_id", "group_id", fn.explode("members_after").alias("member_id"), "generation_to")
        .groupBy(*_KEY)
        .agg(
            fn.min("generation_to").alias("first_generation"),
            fn.max("generation_to").alias("last_generation"),
            fn.count_distinct("generation_to").alias("generations"),
        )
    )


def _caused(rebalances: DataFrame) -> DataFrame:
    return (
        rebalances.where("cause_member_id IS NOT NULL")
        .groupBy("run_id", "group_id", fn.col("cause_member_id").alias("member_id"))
        .agg(fn.count("*").alias("caused_rebalances"))
    )
