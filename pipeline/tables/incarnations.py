"""Incarnations of consumers: their own events about partitions, in order, which ownership and pauses are made from.

An *owner* is one consumer over all of its member ids: a ``client_id`` within a process. A simulation writes all of its
consumers into one stream, and their starts, stops and crashes into another, so there the instant comes first and the
number second; within one instant a start comes before, and an end after, all other events. A process of real consumers
is one stream, ordered by its numbers, whatever its clock does.
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
"""What ends an incarnation, and how."""

RELEASES: Final = {"partitions_revoked": "revoked", "partitions_lost": "lost"}
INCARNATION_EVENTS: Final = ("partitions_assigned", *RELEASES, *GONE, "consumer_started", "join_sent")
"""The events that an incarnation consists of."""

OWNER: Final = ("run_id", "group_id", "place", "client_id")
"""The key of an owner."""

ORDER: Final = ("k1", "k2", "seq")
"""The order of an owner's events."""


def ownership_events(events: DataFrame) -> DataFrame:
    """The events that open, change or end what a consumer owns, with :data:`OWNER`, :data:`ORDER` and ``how``.

    ``how``: assigned | revoked | lost | stopped | crashed | started | gone. ``gone`` is a consumer that joins
    without partitions and member id: by its own events it may still own some, but it died silently before.
    """
    k1, k2 = order_of_incarnations()
    changes = (
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
        .hint("repartition", "run_id", "group_id")
    )
    # A consumer that has revoked everything also joins without partitions.
    before = fn.lag("how").over(Window.partitionBy(*OWNER).orderBy(*ORDER))
    return changes.select("*", before.alias("before")).where("how != 'gone' OR before = 'assigned'").drop("before")


def is_of_an_incarnation() -> Column:
    """Whether an event of :data:`INCARNATION_EVENTS` belongs to an incarnation: not every rejoin does."""
    empty_handed = (fn.col("member_id") == "") & (fn.size("owned") == 0) & (fn.col("source") != "simulation")
    return is_one_of(*INCARNATION_EVENTS) & (~is_one_of("join_sent") | fn.coalesce(empty_handed, fn.lit(False)))


def process_of_an_incarnation() -> Column:
    """The process whose stream it is in; a simulation has one for all."""
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
