"""Incarnations of consumers: their own events about partitions, in order, which ownership and pauses are made from.

An *owner* is one consumer over all of its member ids: a ``client_id`` within a process. A simulation writes all of its
consumers into one stream, and their starts, stops and crashes into another, so there the instant comes first and the
number second; within one instant a start comes before, and an end after, all other events. A process of real consumers
is one stream, ordered by its numbers, whatever its clock does.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from operator import attrgetter
from typing import Final, NamedTuple, TypeAlias

from rejoin.pipeline.tables.groups.rows import EventOfGroup, TopicPartition
from rejoin.pipeline.vocabulary import CLIENT_LOG

GONE: Final = {
    "consumer_crashed": "crashed",
    "consumer_failed": "crashed",
    "consumer_stopped": "stopped",
    "consumer_closed": "stopped",
}
"""Events that end an incarnation, and how."""

RELEASES: Final = {"partitions_revoked": "revoked", "partitions_lost": "lost"}
_CHANGES: Final = {"partitions_assigned": "assigned", **RELEASES, **GONE, "consumer_started": "started"}
INCARNATION_EVENTS: Final = (*_CHANGES, "join_sent")
"""The events that an incarnation consists of."""

_ABOUT_PARTITIONS: Final = ("client_id", "member_id", "group_instance_id", "generation", "confidence", "file", "line")
READS: Final = {
    **dict.fromkeys(GONE, _ABOUT_PARTITIONS),
    "consumer_started": ("client_id",),
    "join_sent": (*_ABOUT_PARTITIONS, "owned"),
    **dict.fromkeys(("partitions_assigned", *RELEASES), (*_ABOUT_PARTITIONS, "partitions")),
}
"""Their columns that are looked at."""

Owner: TypeAlias = tuple[str, str | None]
"""A process, ``""`` for all that are simulated, and a client id."""


class Change(NamedTuple):
    """An event that opens, changes or ends what a consumer owns.

    ``how``: assigned | revoked | lost | stopped | crashed | started | gone. ``gone`` is a consumer that joins
    without partitions and member id: by its own events it may still own some, but it died silently before.
    """

    order: tuple[int, int, int]
    how: str
    event: EventOfGroup

    @property
    def ends_all(self) -> bool:
        """Whether the consumer owns nothing any more."""
        return self.how in ("stopped", "crashed", "gone")


def incarnations(events: Iterable[EventOfGroup]) -> dict[Owner, list[Change]]:
    """The changes of each owner in a group, in order."""
    owners: dict[Owner, list[Change]] = defaultdict(list)
    for event in events:
        how = _how(event)
        if how is not None:
            simulated = event.source == "simulation"
            owners["" if simulated else event.node, event.client_id].append(Change(_order(event), how, event))
    return {owner: _without_rejoins(sorted(changes, key=attrgetter("order"))) for owner, changes in owners.items()}


def _how(event: EventOfGroup) -> str | None:
    if event.event != "join_sent":
        return _CHANGES.get(event.event)
    empty_handed = event.member_id == "" and event.owned == [] and event.source != "simulation"
    return "gone" if empty_handed else None


def _order(event: EventOfGroup) -> tuple[int, int, int]:
    if event.source != "simulation":
        return 0, 0, event.seq
    if event.event == "consumer_started":
        return event.at_ms, 0, event.seq
    return event.at_ms, 2 if event.event in GONE and event.event != "consumer_closed" else 1, event.seq


def _without_rejoins(changes: list[Change]) -> list[Change]:
    """A consumer that has revoked everything also joins without partitions."""
    if changes and changes[0].event.source == CLIENT_LOG:
        return _without_rejoins_of_logs(changes)
    befores = [None, *(change.how for change in changes)]
    return [
        change for change, before in zip(changes, befores, strict=False) if change.how != "gone" or before == "assigned"
    ]


def _without_rejoins_of_logs(changes: Iterable[Change]) -> list[Change]:
    """A consumer's log has an assignment for each rebalance, with what is new in it: what it owns is the sum."""
    owned: set[TopicPartition] = set()
    found: list[Change] = []
    for change in changes:
        if change.how == "gone" and not owned:
            continue
        if change.how == "assigned":
            owned.update(change.event.partitions or ())
        elif change.how in RELEASES.values():
            owned.difference_update(change.event.partitions or ())
        elif change.ends_all:
            owned.clear()
        found.append(change)
    return found
