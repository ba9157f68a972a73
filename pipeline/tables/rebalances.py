"""Every rebalance: why it began, how it went, how it ended.

A row is one beginning of a join phase, or of a consumer group's way to a new epoch (``rebalance_started``). One
coordinator's events of one group are read as they were written, and all events up to the next beginning belong to the
rebalance. Members that join, leave or rejoin while the group is not in a join phase make the *next* one begin (Kafka:
GroupCoordinator's ``maybePrepareRebalance``), so they belong to that; the event has the group's state before it, which
separates the two.

Outcomes: **completed** by ``rebalance_completed``; **emptied** by ``group_emptied``; **superseded** when the next one
begins before it was completed; **aborted** when the coordinator resigned, crashed or loaded the group anew, or the
group was deleted; **open** when the journal ends first. Lengths of attempts add up to the length of the whole.

Instants of different coordinators of one group are compared only to count rebalances and to find storms.
"""

from __future__ import annotations

from typing import Final

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as fn

from rejoin.pipeline.schemas import EXACT, INFERRED, REBALANCES
from rejoin.pipeline.tables.common import conform, day_of, is_one_of, of

CHAIN_GAP_MS: Final = 60_000
"""Rebalances of a group that begin within this after the one before ended belong to one storm."""

_ENDS: Final = ("rebalance_completed", "group_emptied", "group_loaded", "group_deleted", "group_state_changed")
_JOINS: Final = ("member_joined", "member_rejoined", "static_member_replaced")
_MEMBERSHIP: Final = (*_JOINS, "member_removed")
_OF_MEMBERS: Final = ("member_reconciled", "revocation_completed")
"""What the members of a consumer group do for a rebalance."""
_EVENTS: Final = (
    *("rebalance_started", "join_phase_ended", "target_assignment_computed", "assignment_received"),
    *_ENDS,
    *_MEMBERSHIP,
    *_OF_MEMBERS,
)
_TURNS: Final = ("rebalance_started", "rebalance_completed", "group_emptied")
_GATHERING: Final = ("PreparingRebalance", "Assigning")
"""States in which members that come and go belong to the rebalance that goes on."""
_HANDING_OUT: Final = ("CompletingRebalance", "Reconciling")
"""States of a group that is not yet done with a rebalance when the next one begins."""
_OF_THE_START: Final = (
    *("seq", "at_ms", "generation", "previous_state", "cause", "cause_member_id", "cause_group_instance_id"),
    *("client_reason", "initial", "members", "group_type", "file", "line"),
)
_OF_THE_JOIN_PHASE: Final = ("at_ms", "generation", "leader", "protocol", "members", "absent", "join_ms")
_OF_THE_COMPLETION: Final = (
    *("at_ms", "generation", "leader", "previous_leader", "protocol", "members", "members_before"),
    *("owned_before", "owned_after", "moved", "regained", "join_ms", "sync_ms"),
)
_STREAM: Final = ("run_id", "group_id", "source", "node")
_CLIENT: Final = r"^(.+)-[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$"
"""Kafka: a dynamic member's id is its client.id with a UUID behind it."""


def rebalances(events: DataFrame, chain_gap_ms: int = CHAIN_GAP_MS) -> DataFrame:
    """:data:`rejoin.pipeline.schemas.REBALANCES` from :data:`rejoin.pipeline.schemas.EVENTS`."""
    one_by_one = _gathered(_numbered(events))
    return conform(_chained(_described(_ended(one_by_one, events)), chain_gap_ms), REBALANCES)


def _numbered(events: DataFrame) -> DataFrame:
    """The events with the number ``n`` of the rebalance, in its stream, that they belong to."""
    rows = (
        of(events, *_EVENTS)
        .where(~is_one_of("group_state_changed") | (fn.col("state") == "Dead"))
        .where(~is_one_of("static_member_replaced") | fn.col("rebalance") | fn.col("state").isin(*_GATHERING))
    )
    so_far = Window.partitionBy(*_STREAM).orderBy("seq").rowsBetween(Window.unboundedPreceding, Window.currentRow)
    begun = fn.sum(is_one_of("rebalance_started").cast("int")).over(so_far)
    newest = fn.last(fn.when(is_one_of(*_TURNS), fn.col("event")), ignorenulls=True).over(so_far)
    # A log without states: a member that joins or leaves with no rebalance open makes the next one begin.
    makes_it_begin = is_one_of(*_MEMBERSHIP) & ~fn.col("state").isin(*_GATHERING)
    number = begun + fn.coalesce(makes_it_begin.cast("int"), fn.lit(0))
    # By run and group alone: everything below is then on one side of the shuffle.
    numbered = rows.hint("repartition", "run_id", "group_id").select("*", number.alias("n"), newest.alias("newest"))
    # What members do after it, as a static one that is back, belongs to none.
    return numbered.where(~is_one_of(*_OF_MEMBERS) | (fn.col("newest") == "rebalance_started")).drop("newest")


def _gathered(events: DataFrame) -> DataFrame:
    """One row for each rebalance, with the rows of its turning points."""

    def the(names: tuple[str, ...], *columns: str) -> Column:
        return fn.first(fn.when(is_one_of(*names), fn.struct(*columns)), ignorenulls=True)

    def who(condition: Column) -> Column:
        # In the order in which it happened.
        found = fn.array_sort(fn.collect_list(fn.when(condition, fn.struct("seq", "member_id"))))
        return fn.array_distinct(fn.transform(found, lambda each: each["member_id"]))

    removed, given_up = is_one_of("member_removed"), is_one_of("revocation_completed")
    moved_on = is_one_of(*_JOINS, "member_reconciled")
    return (
        events.groupBy(*_STREAM, "n")
        .agg(
            the(("rebalance_started",), *_OF_THE_START).alias("began"),
            the(("join_phase_ended", "target_assignment_computed"), *_OF_THE_JOIN_PHASE).alias("met"),
            the(("assignment_received",), "at_ms", "leader").alias("given"),
            the(("rebalance_completed",), *_OF_THE_COMPLETION).alias("done"),
            fn.min(fn.when(is_one_of(*_ENDS), fn.struct("seq", "event", "at_ms"))).alias("end"),
            who(is_one_of("member_joined")).alias("joined"),
            who(removed & (fn.col("cause") == "left")).alias("left"),
            who(removed & (fn.col("cause") != "left")).alias("evicted"),
            who(is_one_of("static_member_replaced")).alias("replaced"),
            fn.max(fn.when(moved_on, fn.struct("at_ms", "seq", "member_id"))).alias("slowest"),
            fn.sum(fn.when(given_up, fn.size("partitions"))).alias("given_up"),
            fn.sum(fn.when(given_up, fn.col("revocation_ms"))).alias("revocation_ms"),
            fn.sum(fn.when(is_one_of(*_JOINS), fn.col("at_ms"))).alias("joins_at_ms"),
            fn.count(fn.when(is_one_of(*_JOINS), 1)).alias("joins"),
            fn.max(fn.col("confidence") != EXACT).alias("guessed"),
        )
        .where("began IS NOT NULL")
    )


def _ended(found: DataFrame, events: DataFrame) -> DataFrame:
    """With outcome and end."""
    stream = Window.partitionBy(*_STREAM).orderBy("n")
    following = fn.lead("began").over(stream)
    # A coordinator that loads a group ends what the one before had open, even if that one crashed.
    loads = (
        of(events, "group_loaded", "group_created")
        .select("run_id", "group_id", fn.struct("at_ms", "node").alias("load"))
        .groupBy("run_id", "group_id")
        .agg(fn.array_sort(fn.collect_set("load")).alias("loads"))
    )
    marked = found.select("*", following.alias("following")).join(fn.broadcast(loads), ["run_id", "group_id"], "left")
    taken_over = fn.expr("get(filter(loads, x -> x.at_ms >= began.at_ms AND x.node != node), 0).at_ms")
    superseded = fn.col("following").isNotNull() & fn.coalesce(
        fn.col("following.previous_state").isin(*_HANDING_OUT), fn.lit(True)
    )
    event = fn.col("end.event")
    outcome = (
        fn.when(event == "rebalance_completed", "completed")
        .when(event == "group_emptied", "emptied")
        .when(event.isNotNull(), "aborted")
        .when(superseded, "superseded")
        .when(fn.col("following").isNotNull() | taken_over.isNotNull(), "aborted")
        .otherwise("open")
    )
    ended = fn.coalesce(
        fn.col("end.at_ms"), fn.when(superseded, fn.col("following.at_ms")), taken_over, fn.col("following.at_ms")
    )
    return marked.select("*", outcome.alias("outcome"), ended.alias("ended_at_ms")).drop("loads", "following", "end")


def _described(found: DataFrame) -> DataFrame:
    """With everything that the rows say by themselves."""
    began, met, done = fn.col("began"), fn.col("met"), fn.col("done")
    owned_before, owned_after = done["owned_before"], done["owned_after"]
    leader = fn.coalesce(done["leader"], met["leader"], fn.col("given.leader"))
    before = fn.last(leader, ignorenulls=True).over(
        Window.partitionBy(*_STREAM).orderBy("n").rowsBetween(Window.unboundedPreceding, -1)
    )
    previous_leader = fn.coalesce(done["previous_leader"], fn.when(fn.col("guessed"), before))
    after = fn.coalesce(done["members"], met["members"])
    moved = fn.coalesce(done["moved"], _changed_hands(owned_before, owned_after, after, remains=True))
    regained = fn.coalesce(done["regained"], _changed_hands(owned_before, owned_after, after, remains=False))
    kept = fn.size(owned_after) - moved - regained
    return found.select(
        *_STREAM,
        *_of_the_start(began),
        fn.coalesce(done["generation"], met["generation"]).alias("generation_to"),
        met["at_ms"].alias("joined_at_ms"),
        fn.col("given.at_ms").alias("assigned_at_ms"),
        done["at_ms"].alias("stable_at_ms"),
        "ended_at_ms",
        "outcome",
        fn.coalesce(done["members_before"], fn.array_except(began["members"], "joined")).alias("members_before"),
        after.alias("members_after"),
        "joined",
        "left",
        "evicted",
        "replaced",
        met["absent"].alias("absent"),
        leader.alias("leader"),
        previous_leader.alias("previous_leader"),
        (previous_leader != leader).alias("leader_changed"),
        fn.coalesce(done["protocol"], met["protocol"]).alias("protocol"),
        fn.size(owned_before).alias("owned_before"),
        fn.size(owned_after).alias("owned_after"),
        fn.when(began["group_type"] == "consumer", fn.coalesce("given_up", fn.lit(0))).alias("given_up"),
        fn.when(began["group_type"] == "consumer", fn.coalesce("revocation_ms", fn.lit(0))).alias("revocation_ms"),
        moved.alias("moved"),
        regained.alias("regained"),
        fn.when(kept + moved > 0, kept / (kept + moved)).alias("stickiness"),
        *_lengths(began["at_ms"], met, done),
        fn.when(fn.col("guessed"), INFERRED).otherwise(EXACT).alias("confidence"),
    )


def _of_the_start(began: Column) -> list[Column]:
    """What its first event says."""
    member, instance = began["cause_member_id"], began["cause_group_instance_id"]
    client = fn.when(instance.isNull(), fn.nullif(fn.regexp_extract(member, _CLIENT, 1), fn.lit("")))
    return [
        fn.concat_ws("/", "run_id", "group_id", "node", began["seq"]).alias("rebalance_id"),
        day_of(began["at_ms"]).alias("day"),
        began["generation"].alias("generation_from"),
        began["at_ms"].alias("prepared_at_ms"),
        fn.coalesce(began["cause"], fn.lit("unknown")).alias("cause"),
        member.alias("cause_member_id"),
        instance.alias("cause_group_instance_id"),
        client.alias("cause_client_id"),
        *[began[name].alias(name) for name in ("seq", "client_reason", "previous_state", "initial", "group_type")],
        *[began[name].alias(name) for name in ("file", "line")],
    ]


def _lengths(prepared: Column, met: Column, done: Column) -> list[Column]:
    """How long its parts took, and who took longest to join."""
    joined_at, slowest = met["at_ms"], fn.col("slowest")
    came = slowest["at_ms"] >= prepared
    return [
        fn.coalesce(done["join_ms"], met["join_ms"], joined_at - prepared).alias("join_ms"),
        fn.coalesce(done["sync_ms"], done["at_ms"] - joined_at).alias("sync_ms"),
        (fn.col("ended_at_ms") - prepared).alias("unavailable_ms"),
        fn.when(fn.col("joins") > 0, joined_at * fn.col("joins") - fn.col("joins_at_ms")).alias("members_waiting_ms"),
        fn.when(came, slowest["member_id"]).alias("slowest_member_id"),
        fn.when(came, slowest["at_ms"] - prepared).alias("slowest_ms"),
    ]


def _changed_hands(before: Column, after: Column, members: Column, *, remains: bool) -> Column:
    """How many partitions have another owner, while the one before remains a member (or does not).

    For sources that have the owners, but not what moved.
    """
    owners = fn.map_from_entries(
        fn.transform(
            before,
            lambda each: fn.struct(
                fn.struct(each["topic"].alias("topic"), each["partition"].alias("partition")), each["member_id"]
            ),
        )
    )

    def changed(each: Column) -> Column:
        owner = owners[fn.struct(each["topic"].alias("topic"), each["partition"].alias("partition"))]
        is_member = fn.coalesce(fn.array_contains(members, owner), fn.lit(False))
        return (owner != each["member_id"]) & is_member if remains else ~is_member

    return fn.when(before.isNotNull() & after.isNotNull(), fn.size(fn.filter(after, changed)))


def _chained(found: DataFrame, chain_gap_ms: int) -> DataFrame:
    """With numbers, attempts and chains."""
    group = Window.partitionBy("run_id", "group_id").orderBy("prepared_at_ms", "source", "node", "seq")
    stream = Window.partitionBy(*_STREAM).orderBy("seq")
    numbered = found.select(
        "*",
        fn.row_number().over(group).alias("number"),
        (
            fn.col("prepared_at_ms")
            - fn.max(fn.coalesce("ended_at_ms", "prepared_at_ms")).over(
                group.rowsBetween(Window.unboundedPreceding, -1)
            )
        ).alias("quiet_ms"),
    )
    goes_on = fn.coalesce(fn.lag("outcome").over(stream) == "superseded", fn.lit(False))
    storms = fn.coalesce(fn.col("quiet_ms") <= chain_gap_ms, fn.lit(False))
    so_far_stream = stream.rowsBetween(Window.unboundedPreceding, Window.currentRow)
    so_far_group = group.rowsBetween(Window.unboundedPreceding, Window.currentRow)
    chained = (
        numbered.select("*", goes_on.alias("goes_on"), fn.row_number().over(stream).alias("place"))
        .select(
            "*",
            fn.last(fn.when(~fn.col("goes_on"), fn.struct("number", "place")), ignorenulls=True)
            .over(so_far_stream)
            .alias("first"),
        )
        .select(
            "*",
            fn.col("first.number").alias("episode"),
            (fn.col("place") - fn.col("first.place") + 1).alias("attempt"),
            fn.last(fn.when(~storms, fn.col("number")), ignorenulls=True).over(so_far_group).alias("chain"),
        )
    )
    return chained.select(
        "*", fn.count("*").over(Window.partitionBy("run_id", "group_id", "chain")).alias("chain_length")
    )
