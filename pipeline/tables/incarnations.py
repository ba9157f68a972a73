"""What consumers say of their own partitions, in an order that one can follow: the ground for ownership and pauses.

An *owner* is one consumer over all of its member ids: a ``client_id`` within a process. A simulation writes all of its
consumers into one stream, and in another one when they start, stop and crash, so there the instant comes first and the
number second; within one instant a start comes before, and an end after, whatever else is told. A process of real
consumers is one stream, and its numbers are the order, whatever its clock does.
"""

from __future__ import annotations

from typing import Final

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as fn

from rejoin.pipeline.tables.common import is_one_of, of

GONE: Final = {
    "consumer_crashed": "crashed",
    "consumer_failed": "crashed",
    "consumer_stopped": "stopped",
    "consumer_closed": "stopped",
}
"""What ends a consumer's life, and how."""

RELEASES: Final = {"partitions_revoked": "revoked", "partitions_lost": "lost"}
INCARNATION_EVENTS: Final = ("partitions_assigned", *RELEASES, *GONE, "consumer_started", "join_sent")
"""What consumers say of their lives."""

OWNER: Final = ("run_id", "group_id", "place", "client_id")
"""The columns that tell owners apart."""

ORDER: Final = ("k1", "k2", "seq")
"""The columns that order what is said of an owner."""


def ownership_events(events: DataFrame) -> DataFrame:
    """The events that open, change or end what a consumer owns, with :data:`OWNER`, :data:`ORDER` and ``how``.

    ``how``: assigned | revoked | lost | stopped | crashed | started | gone. ``gone`` is a consumer that joins with
    empty hands and no member id: by its own events it may still own something, but it had died silently before.
    """
    k1, k2 = order_of_incarnations()
    told = (
        of(events, *INCARNATION_EVENTS)
        .where(is_of_an_incarnation())
        .select(
            "run_id",
            fn.coalesce("group_id", fn.lit("")).alias("group_id"),
            process_of_an_incarnation().alias("place"),
            "client_id",
            "node",
            "source",
            k1.alias("k1"),
            k2.alias("k2"),
            "seq",
            "at_ms",
            change_of_an_incarnation().alias("how"),
            "member_id",
            "group_instance_id",
            "generation",
            fn.coalesce("partitions", fn.array().cast("array<struct<topic:string,partition:int>>")).alias("partitions"),
            "confidence",
            "file",
            "line",
        )
        .repartition("run_id", "group_id")
    )
    # Who has given everything up by its own word comes with empty hands, too.
    before = fn.lag("how").over(Window.partitionBy(*OWNER).orderBy(*ORDER))
    return told.select("*", before.alias("before")).where("how != 'gone' OR before = 'assigned'").drop("before")


def is_of_an_incarnation() -> Column:
    """Whether an event named in :data:`INCARNATION_EVENTS` is about a consumer's life: not every rejoin is."""
    empty_handed = (fn.col("member_id") == "") & (fn.size("owned") == 0) & (fn.col("source") != "simulation")
    return is_one_of(*INCARNATION_EVENTS) & (~is_one_of("join_sent") | fn.coalesce(empty_handed, fn.lit(False)))


def process_of_an_incarnation() -> Column:
    """Which process's stream it is in; a simulation has one for all."""
    return fn.when(_simulated(), fn.lit("")).otherwise(fn.col("node"))


def order_of_incarnations() -> tuple[Column, Column]:
    """``k1`` and ``k2`` of :data:`ORDER`."""
    order = (
        fn.when(is_one_of("consumer_started"), 0)
        .when(is_one_of(*[each for each in GONE if each != "consumer_closed"]), 2)
        .otherwise(1)
    )
    return fn.when(_simulated(), fn.col("at_ms")).otherwise(0), fn.when(_simulated(), order).otherwise(0)


def change_of_an_incarnation() -> Column:
    """``how`` of :func:`ownership_events`."""
    event = fn.col("event")
    how = fn.when(event == "partitions_assigned", "assigned").when(event == "consumer_started", "started")
    for name, word in {**RELEASES, **GONE}.items():
        how = how.when(event == name, word)
    return how.otherwise("gone")


def _simulated() -> Column:
    return fn.col("source") == "simulation"
