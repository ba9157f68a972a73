"""Finds an assignor by its name: Kafka's four, those that packages declare, and any class by its path.

A package declares its own in its pyproject.toml:

    [project.entry-points."rejoin.assignors"]
    zoned = "my_package.zoned:ZonedAssignor"
"""

from __future__ import annotations

import importlib
from difflib import get_close_matches
from importlib.metadata import EntryPoint, entry_points

from rejoin.client.assignors.base import Assignor
from rejoin.client.assignors.cooperative_sticky import CooperativeStickyAssignor
from rejoin.client.assignors.range import RangeAssignor
from rejoin.client.assignors.roundrobin import RoundRobinAssignor
from rejoin.client.assignors.sticky import StickyAssignor

ENTRY_POINT_GROUP = "rejoin.assignors"

KAFKA_ASSIGNORS: dict[str, type[Assignor]] = {
    assignor.name: assignor
    for assignor in (RangeAssignor, RoundRobinAssignor, StickyAssignor, CooperativeStickyAssignor)
}


class UnknownAssignor(ValueError):
    """No assignor of this name, or what was found under it is none."""


def assignor_named(name: str) -> Assignor:
    """A new assignor: `sticky`, the name of an entry point, or `module:Class`.

    Raises UnknownAssignor, which says what is known, or why the class cannot be used.
    """
    if name in KAFKA_ASSIGNORS:
        return KAFKA_ASSIGNORS[name]()
    declared = _declared()
    if name in declared:
        return _made(declared[name], f"entry point {name}", expected_name=name)
    if ":" in name:
        return _made(EntryPoint(name, name, ENTRY_POINT_GROUP), name, expected_name=None)
    known = ", ".join(assignor_names())
    near = get_close_matches(name, assignor_names(), n=1)
    hint = f"is it {near[0]}? " if near else ""
    raise UnknownAssignor(f"unknown assignor {name!r}; {hint}known are {known}, and any class as module:Class")


def assignor_names() -> list[str]:
    """Kafka's four in the order Kafka documents them, then the declared ones by name."""
    return [*KAFKA_ASSIGNORS, *sorted(name for name in _declared() if name not in KAFKA_ASSIGNORS)]


def _declared() -> dict[str, EntryPoint]:
    return {entry.name: entry for entry in entry_points(group=ENTRY_POINT_GROUP)}


def _made(entry: EntryPoint, where: str, expected_name: str | None) -> Assignor:
    importlib.invalidate_caches()
    what = where if where == entry.value else f"{where}: {entry.value}"
    try:
        found = entry.load()
    except (ImportError, AttributeError) as error:
        raise UnknownAssignor(f"{what} cannot be loaded: {error}") from error
    if not (isinstance(found, type) and issubclass(found, Assignor)):
        raise UnknownAssignor(f"{what} is not a subclass of rejoin.client.assignors.Assignor")
    if not isinstance(getattr(found, "name", None), str):
        raise UnknownAssignor(f"{what} has no name; give the class an attribute name = '...'")
    if expected_name is not None and found.name != expected_name:
        raise UnknownAssignor(f"{what} calls itself {found.name!r}; the two names must be equal")
    try:
        return found()
    except TypeError as error:
        raise UnknownAssignor(f"{what} cannot be made: {error}") from error
