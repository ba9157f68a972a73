"""Finds server-side assignors by the names in ``group.consumer.assignors``.

A package declares its own in its pyproject.toml:

    [project.entry-points."rejoin.server_assignors"]
    zoned = "my_package.zoned:ZonedAssignor"
"""

from __future__ import annotations

from typing import Final

from rejoin.coordinator.core.groups.consumer.assignors.base import ServerAssignor
from rejoin.coordinator.core.groups.consumer.assignors.range import ServerRangeAssignor
from rejoin.coordinator.core.groups.consumer.assignors.uniform import UniformAssignor
from rejoin.protocol.plugins import Plugins

ENTRY_POINT_GROUP: Final = "rejoin.server_assignors"

KAFKA_ASSIGNORS: Final[dict[str, type[ServerAssignor]]] = {
    assignor.name: assignor for assignor in (UniformAssignor, ServerRangeAssignor)
}


class UnknownServerAssignor(ValueError):
    """No server-side assignor has this name, or the object of this name is not an assignor."""


_ASSIGNORS: Final = Plugins(
    "server-side assignor",
    ServerAssignor,
    "rejoin.coordinator.core.groups.consumer.assignors.ServerAssignor",
    ENTRY_POINT_GROUP,
    KAFKA_ASSIGNORS,
    UnknownServerAssignor,
)


def assignors_of(names: str) -> dict[str, ServerAssignor]:
    """The assignors of a list such as ``uniform,range``, by their own names; the first is the default of groups.

    Raises UnknownServerAssignor, which says what is known, or why a class cannot be used.
    """
    made = [_ASSIGNORS.make(name.strip()) for name in names.split(",") if name.strip()]
    if not made:
        raise UnknownServerAssignor(f"no server-side assignor is named; known are {', '.join(_ASSIGNORS.names())}")
    return {assignor.name: assignor for assignor in made}
