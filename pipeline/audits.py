"""Audits of the tables: what must never happen, each violation with the rows that prove it.

Every audit is a function of the events and of tables made from them, and gives :data:`pipeline.schemas.VIOLATIONS`.
What is unwise but allowed is a finding. One thing that Kafka allows is shown beside violations, by a kind of its own:
a member that was removed, and has not noticed yet, goes on with its partitions together with its successor.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from functools import reduce
from typing import Final

from pyspark.sql import Column, DataFrame, Window, WindowSpec
from pyspark.sql import functions as fn

from rejoin.pipeline.audit_rows import PARTITION, interval_of, violation_rows
from rejoin.pipeline.audits_of_owners import TWO_OWNERS, two_owners
from rejoin.pipeline.schemas import VIOLATIONS
from rejoin.pipeline.tables.common import is_one_of, of

TOLERANCE_MS: Final = 5_000
"""A gap may be longer than its rebalances by so much: answers travel, and metadata of a new topic takes a while."""

SLACK_MS: Final = 60_000
"""A read may have been served so long before the consumer reports what it read: its requests and pauses take time."""

_EVIDENCE: Final = ("source", "node", "seq", "at_ms", "event", "file", "line")


UNEXPLAINED_GAPS: Final = "unexplained-gap"
GENERATIONS_BACK: Final = "generation-went-back"
COMMITS_NOT_SEEN: Final = "commit-not-seen"
STATIC_MEMBERS: Final = "static-member-rebalanced"
KINDS: Final = (TWO_OWNERS, UNEXPLAINED_GAPS, GENERATIONS_BACK, COMMITS_NOT_SEEN, STATIC_MEMBERS)


def violations(
    events: DataFrame,
    rebalances: DataFrame,
    ownership: DataFrame,
    member_sessions: DataFrame,
    kinds: Collection[str] = KINDS,
) -> DataFrame:
    """The audits of these kinds together; that of two owners finds those that Kafka allows as well."""
    audits: dict[str, Callable[[], DataFrame]] = {
        TWO_OWNERS: lambda: two_owners(events, ownership, member_sessions),
        UNEXPLAINED_GAPS: lambda: unexplained_gaps(ownership, rebalances, member_sessions),
        GENERATIONS_BACK: lambda: generations_that_went_back(events),
        COMMITS_NOT_SEEN: lambda: commits_not_seen(events),
        STATIC_MEMBERS: lambda: static_members_that_rebalanced(rebalances, member_sessions),
    }
    found = [audits[kind]() for kind in KINDS if kind in kinds]
    return reduce(DataFrame.unionByName, found) if found else events.sparkSession.createDataFrame([], VIOLATIONS)


def unexplained_gaps(
    ownership: DataFrame, rebalances: DataFrame, member_sessions: DataFrame, tolerance_ms: int = TOLERANCE_MS
) -> DataFrame:
    """A partition without an owner for longer than rebalances and a dead owner's session explain.

    ``expected``: ms that they explain; ``found``: ms without an owner. A gap after an owner that died, or stopped
    without leaving the group, is explained for its session timeout as well.
    """
    gaps = ownership.where("kind = 'gap' AND end = 'between'").where(fn.col("length_ms") > tolerance_ms)
    spans = rebalances.where("ended_at_ms IS NOT NULL").select(
        "run_id", "group_id", "prepared_at_ms", "ended_at_ms", "rebalance_id", "source", "node", "file", "line"
    )
    covered = fn.least("ended_at_ms", "to_ms") - fn.greatest("prepared_at_ms", "from_ms")
    explained = (
        gaps.select(*PARTITION, "from_ms", "to_ms")
        .join(spans, ["run_id", "group_id"])
        .where("prepared_at_ms < to_ms AND ended_at_ms > from_ms")
        .groupBy(*PARTITION, "from_ms", "to_ms")
        .agg(fn.sum(covered).alias("rebalancing_ms"))
    )
    last = _last_owners(ownership, gaps, member_sessions)
    silent = fn.col("last.how").isin("crashed", "gone", "expired", "stopped") | fn.col("last.session_end").isin(
        "session-expiry", "replaced"
    )
    allowed = fn.coalesce("rebalancing_ms", fn.lit(0)) + fn.when(silent, fn.col("last.session_ms")).otherwise(0)
    judged = (
        gaps.join(explained, [*PARTITION, "from_ms", "to_ms"], "left")
        .join(last, [*PARTITION, "from_ms"], "left")
        .select("*", allowed.alias("allowed"))
        .where(fn.col("length_ms") > fn.col("allowed") + tolerance_ms)
    )
    return violation_rows(
        judged.select(
            *PARTITION,
            "generation",
            fn.col("from_ms").alias("at_ms"),
            "to_ms",
            fn.array("last.member_id").alias("members"),
            fn.col("allowed").alias("expected"),
            fn.col("length_ms").alias("found"),
            fn.format_string(
                "%s-%d had no owner for %d ms, of which rebalances and sessions explain %d",
                "topic",
                "partition",
                "length_ms",
                "allowed",
            ).alias("text"),
            fn.array("last.before").alias("evidence"),
            "confidence",
        ),
        UNEXPLAINED_GAPS,
    )


def _last_owners(ownership: DataFrame, gaps: DataFrame, member_sessions: DataFrame) -> DataFrame:
    """Who had a partition until a gap began (``from_ms``), how that ended, and the interval that ended."""
    sessions = member_sessions.select(
        "run_id", "group_id", "member_id", "session_timeout_ms", fn.col("end").alias("session_end")
    )
    # Gaps are few: what is joined and compared after that is little.
    begins = gaps.select(*PARTITION, fn.col("from_ms").alias("to_ms"))
    return (
        ownership.where("kind = 'owned'")
        .join(begins, [*PARTITION, "to_ms"], "left_semi")
        .join(sessions, ["run_id", "group_id", "member_id"], "left")
        .select(
            *PARTITION,
            fn.col("to_ms").alias("from_ms"),
            "member_id",
            fn.col("end").alias("how"),
            "session_end",
            fn.coalesce("session_timeout_ms", fn.lit(0)).alias("session_ms"),
            interval_of("from_source", "node", "from_seq", "from_ms", fn.lit("partitions_assigned")).alias("before"),
        )
        .groupBy(*PARTITION, "from_ms")
        .agg(fn.max(fn.struct("session_ms", "how", "session_end", "member_id", "before")).alias("last"))
    )


_OF_GENERATIONS: Final = (
    *("rebalance_completed", "join_phase_ended", "group_epoch_bumped"),
    *("group_created", "group_loaded", "group_deleted"),
)
MEMBER_EPOCHS: Final = ("member_reconciled", "partitions_awaited")


def generations_that_went_back(events: DataFrame) -> DataFrame:
    """A generation that is not greater than one before. ``expected``: at least this; ``found``: the generation.

    What counts is what was stored: after a failover in mid rebalance the new coordinator knows the last stable
    generation only, and numbers that were handed out but never synced may come again. So generations that became Stable
    must rise over all coordinators, and those of a join phase only within one coordinator's time with the group.

    All epochs of a consumer group are stored: new ones must rise over all coordinators, and those of a member may not
    fall.
    """
    of_member = fn.when(is_one_of(*MEMBER_EPOCHS), fn.col("member_epoch"))
    rows = (
        of(events, *_OF_GENERATIONS, *MEMBER_EPOCHS)
        .withColumn("generation", fn.coalesce(of_member, "generation"))
        .select("run_id", "group_id", "member_id", "generation", "confidence", *_EVIDENCE)
        .hint("repartition", "run_id", "group_id")
    )
    in_time = Window.partitionBy("run_id", "group_id").orderBy("at_ms", "source", "node", "seq")
    so_far = in_time.rowsBetween(Window.unboundedPreceding, Window.currentRow)
    anew = fn.sum(is_one_of("group_created", "group_deleted").cast("int")).over(so_far)
    node = Window.partitionBy("run_id", "group_id", "source", "node").orderBy("seq")
    loads = fn.sum(is_one_of("group_created", "group_loaded").cast("int")).over(
        node.rowsBetween(Window.unboundedPreceding, Window.currentRow)
    )
    lived = rows.select("*", fn.coalesce(anew, fn.lit(0)).alias("life"), fn.coalesce(loads, fn.lit(0)).alias("load"))
    stored = lived.where("event = 'rebalance_completed'")
    joined = lived.where("event = 'join_phase_ended'")
    over_all = Window.partitionBy("run_id", "group_id", "life").orderBy("at_ms", "source", "node", "seq")
    in_one = Window.partitionBy("run_id", "group_id", "source", "node", "load").orderBy("seq")
    in_member = Window.partitionBy("run_id", "group_id", "life", "member_id").orderBy("at_ms", "source", "node", "seq")
    bumped = lived.where("event = 'group_epoch_bumped'")
    reached = lived.where(is_one_of(*MEMBER_EPOCHS))
    return (
        _fell(stored, over_all, "became Stable")
        .unionByName(_fell(joined, in_one, "began"))
        .unionByName(_fell(bumped, over_all, "began"))
        .unionByName(_fell(reached, in_member, "was reached by a member", may_stay=1))
    )


def _fell(rows: DataFrame, order: WindowSpec, what: str, may_stay: int = 0) -> DataFrame:
    before = order.rowsBetween(Window.unboundedPreceding, -1)
    highest = fn.max(fn.struct("generation", *_EVIDENCE)).over(before)
    least = fn.col("highest.generation") + 1 - may_stay
    back = rows.select("*", highest.alias("highest")).where(fn.col("generation") < least)
    return violation_rows(
        back.select(
            "run_id",
            "group_id",
            fn.lit(None).cast("string").alias("topic"),
            fn.lit(None).cast("int").alias("partition"),
            "generation",
            "at_ms",
            fn.lit(None).cast("long").alias("to_ms"),
            fn.array_compact(fn.array("member_id")).alias("members"),
            least.cast("long").alias("expected"),
            fn.col("generation").alias("found"),
            fn.format_string(f"generation %d {what} after generation %d", "generation", "highest.generation").alias(
                "text"
            ),
            fn.array(fn.struct(*[fn.col(f"highest.{name}") for name in _EVIDENCE]), fn.struct(*_EVIDENCE)).alias(
                "evidence"
            ),
            "confidence",
        ),
        GENERATIONS_BACK,
    )


def commits_not_seen(events: DataFrame, slack_ms: int = SLACK_MS) -> DataFrame:
    """A consumer that starts behind a commit that was stored long before, or as if there were none.

    ``expected``: the smallest offset that a read could have shown in the ``slack_ms`` before; ``found``: what it
    showed, -1 if nothing. Offsets that were deleted or expired, or belong to a deleted group, are not missed.
    """
    # Within a transaction they count from its end, which is another event.
    rows = of(events, "offsets_committed", "positions_found", "offsets_deleted").where("producer_id IS NULL")
    by_partition = rows.select(
        *("run_id", "group_id", "generation", "member_id", "origin", "confidence", *_EVIDENCE),
        fn.explode("offsets").alias("at"),
    ).select("*", "at.topic", "at.partition", "at.offset")
    by_partition = _with_a_position_behind(by_partition, slack_ms)
    suspects = _behind_a_commit(by_partition, slack_ms)
    deleted = of(events, "group_deleted").select("run_id", "group_id", fn.col("at_ms").alias("deleted_ms"))
    kept = (
        _with_least_since(suspects, by_partition)
        .select("*", fn.least("settled.offset", "lately").alias("least"))
        .where("shown < least")
        .join(deleted, ["run_id", "group_id"], "left")
        .where("deleted_ms IS NULL OR deleted_ms > at_ms OR deleted_ms < settled.at_ms")
        .dropDuplicates([*PARTITION, "source", "node", "seq"])
    )
    return violation_rows(
        kept.select(
            *PARTITION,
            "generation",
            "at_ms",
            fn.lit(None).cast("long").alias("to_ms"),
            fn.array("member_id").alias("members"),
            fn.col("least").alias("expected"),
            fn.col("shown").alias("found"),
            fn.format_string(
                "%s-%d was committed at %d, %d ms before it was read as %d (-1: as if there were no commit)",
                "topic",
                "partition",
                "settled.offset",
                fn.col("at_ms") - fn.col("settled.at_ms"),
                "shown",
            ).alias("text"),
            fn.array(fn.struct(*[fn.col(f"settled.{name}") for name in _EVIDENCE]), fn.struct(*_EVIDENCE)).alias(
                "evidence"
            ),
            "confidence",
        ),
        COMMITS_NOT_SEEN,
    )


def _shown() -> Column:
    """The offset that a position shows; -1: as if there were no commit."""
    return fn.when(fn.col("origin") == "committed", fn.col("offset")).otherwise(-1)


def _with_a_position_behind(by_partition: DataFrame, slack_ms: int) -> DataFrame:
    """The partitions of which any position is behind any commit of ``slack_ms`` before: of most runs none.

    There are many commits and few positions: to compare them takes a fraction of the time of putting them in order.
    """
    found = by_partition.where(is_one_of("positions_found")).select(
        *PARTITION, fn.col("at_ms").alias("found_ms"), _shown().alias("shown")
    )
    behind = (
        by_partition.where(is_one_of("offsets_committed"))
        .join(fn.broadcast(found), list(PARTITION))
        .where((fn.col("at_ms") <= fn.col("found_ms") - slack_ms) & (fn.col("offset") > fn.col("shown")))
        .select(*PARTITION)
        .distinct()
    )
    return by_partition.join(fn.broadcast(behind), list(PARTITION), "left_semi")


def _behind_a_commit(by_partition: DataFrame, slack_ms: int) -> DataFrame:
    """Positions that are ``shown`` behind the last commit of ``slack_ms`` before, which is ``settled``."""
    commits = is_one_of("offsets_committed")
    stored = fn.when(commits, fn.struct("at_ms", "seq", "offset", *[f for f in _EVIDENCE if f not in {"at_ms", "seq"}]))
    gone = fn.when(is_one_of("offsets_deleted"), fn.col("at_ms"))
    settled_by = Window.partitionBy(*PARTITION).orderBy("at_ms").rangeBetween(Window.unboundedPreceding, -slack_ms)
    return (
        by_partition.select(
            "*", fn.max(stored).over(settled_by).alias("settled"), fn.max(gone).over(settled_by).alias("gone_ms")
        )
        .where("event = 'positions_found' AND settled IS NOT NULL")
        .where("gone_ms IS NULL OR gone_ms < settled.at_ms")
        .select("*", _shown().alias("shown"))
        .where("shown < settled.offset")
    )


def _with_least_since(suspects: DataFrame, by_partition: DataFrame) -> DataFrame:
    """The smallest offset since the settled commit as ``lately``.

    Few or none: only what was never to be seen within all that time is missed. Each finds its settled commit itself.
    """
    since = by_partition.where("event != 'positions_found'").select(
        *PARTITION,
        fn.col("at_ms").alias("then_ms"),
        fn.when(is_one_of("offsets_committed"), fn.col("offset")).otherwise(-1).alias("then_offset"),
    )
    in_between = (fn.col("then_ms") > fn.col("settled.at_ms")) & (fn.col("then_ms") <= fn.col("at_ms"))
    return (
        since.join(fn.broadcast(suspects), list(PARTITION))
        .withColumn("then_offset", fn.when(in_between, fn.col("then_offset")))
        .groupBy(*PARTITION, "generation", "member_id", "confidence", *_EVIDENCE, "settled", "shown")
        .agg(fn.min("then_offset").alias("lately"))
    )


def static_members_that_rebalanced(rebalances: DataFrame, member_sessions: DataFrame) -> DataFrame:
    """A static member that made a Stable group rebalance though it need not have.

    Kafka: a static member never sends LeaveGroup (KIP-345), and a member that is back in time with the same instance id
    takes over the assignment without a rebalance. Found are those that left all the same, and those that were taken out
    by LeaveGroup, if only by an administrator, and were back within their session timeout. Not found are sessions that
    expired, and other subscriptions. ``expected``: the session timeout in ms; ``found``: how long it was away, -1 where
    it left by itself.
    """
    sessions = member_sessions.where("group_instance_id IS NOT NULL").select(
        "run_id",
        "group_id",
        fn.col("member_id").alias("cause_member_id"),
        "session_timeout_ms",
        "away_ms",
        "previous_end",
    )
    in_time = (fn.col("previous_end") == "left") & (fn.col("away_ms") <= fn.col("session_timeout_ms"))
    came = (fn.col("cause") == "join-new") & in_time
    left = (fn.col("cause") == "leave") & ~fn.coalesce(fn.col("client_reason").contains("admin"), fn.lit(False))
    found = (
        rebalances.where("cause_group_instance_id IS NOT NULL AND previous_state = 'Stable'")
        .join(sessions, ["run_id", "group_id", "cause_member_id"], "left")
        .where(came | left)
    )
    return violation_rows(
        found.select(
            "run_id",
            "group_id",
            fn.lit(None).cast("string").alias("topic"),
            fn.lit(None).cast("int").alias("partition"),
            fn.col("generation_from").alias("generation"),
            fn.col("prepared_at_ms").alias("at_ms"),
            fn.col("ended_at_ms").alias("to_ms"),
            fn.array("cause_member_id").alias("members"),
            fn.col("session_timeout_ms").alias("expected"),
            fn.when(came, fn.col("away_ms")).otherwise(-1).alias("found"),
            fn.when(
                came,
                fn.format_string(
                    "static member %s was away for %d ms of its session timeout of %d ms, and the group rebalanced",
                    "cause_group_instance_id",
                    "away_ms",
                    "session_timeout_ms",
                ),
            )
            .otherwise(fn.format_string("static member %s left the group by LeaveGroup", "cause_group_instance_id"))
            .alias("text"),
            fn.array(_rebalance_started()).alias("evidence"),
            "confidence",
        ),
        STATIC_MEMBERS,
    )


def _rebalance_started() -> Column:
    """The event that a rebalance began with, as evidence."""
    return fn.struct(
        "source",
        "node",
        fn.element_at(fn.split("rebalance_id", "/"), -1).cast("long").alias("seq"),
        fn.col("prepared_at_ms").alias("at_ms"),
        fn.lit("rebalance_started").alias("event"),
        "file",
        "line",
    )
