"""Finds an assignor by its name: Kafka's four, those that packages declare, and any class by its path.

A package declares its own in its pyproject.toml:

    [project.entry-points."rejoin.assignors"]
    zoned = "my_package.zoned:ZonedAssignor"
"""

from __future__ import annotations

from typing import Final

from rejoin.client.assignors.base import Assignor
from rejoin.client.assignors.cooperative_sticky import CooperativeStickyAssignor
from rejoin.client.assignors.range import RangeAssignor
from rejoin.client.assignors.roundrobin import RoundRobinAssignor
from rejoin.client.assignors.sticky import StickyAssignor
from rejoin.protocol.plugins import Plugins

ENTRY_POINT_GROUP = "rejoin.assignors"

KAFKA_ASSIGNORS: dict[str, type[Assignor]] = {
    assignor.name: assignor
    for assignor in (RangeAssignor, RoundRobinAssignor, StickyAssignor, CooperativeStickyAssignor)
}


class UnknownAssignor(ValueError):
    """No assignor has this name, or the object of this name is not an assignor."""


_ASSIGNORS: Final = Plugins(
    "assignor", Assignor, "rejoin.client.assignors.Assignor", ENTRY_POINT_GROUP, KAFKA_ASSIGNORS, UnknownAssignor
)


def assignor_named(name: str) -> Assignor:
    """A new assignor: `sticky`, the name of an entry point, or `module:Class`.

    Raises UnknownAssignor, which says what is known, or why the class cannot be used.
    """
    return _ASSIGNORS.make(name)


def assignor_names() -> list[str]:
    """Kafka's four in the order Kafka documents them, then the declared ones by name."""
    return _ASSIGNORS.names()
