"""The states of streams groups and of their members."""

from __future__ import annotations

from enum import IntEnum, StrEnum
from typing import Final

STREAMS: Final = "streams"
"""The type of these groups, as ListGroups names it. It is the protocol type of their members as well."""

STATIC_LEAVE_EPOCH: Final = -2
"""A static member that leaves for a moment: its tasks stay reserved for its instance id."""


class StreamsGroupState(StrEnum):
    """Where a group stands. Derived from its topology, epochs and members; the value is the name that Kafka shows."""

    EMPTY = "Empty"
    NOT_READY = "NotReady"
    ASSIGNING = "Assigning"
    RECONCILING = "Reconciling"
    STABLE = "Stable"


_EMPTY, _NOT_READY, _ASSIGNING, _RECONCILING, _STABLE = StreamsGroupState

_COMPLETE: Final = "the topics of the topology are complete"
_INCOMPLETE: Final = "a topic of the topology is missing or has another number of partitions"
_LAST: Final = "the last member leaves or expires"

WHY: Final[dict[tuple[StreamsGroupState, StreamsGroupState], str]] = {
    (_EMPTY, _NOT_READY): "a member joins, and topics of its topology are missing",
    (_EMPTY, _ASSIGNING): "a member joins before the initial delay or the assignment interval has passed",
    (_EMPTY, _RECONCILING): "a member joins, and the target assignment is computed",
    (_EMPTY, _STABLE): "a member joins and gets everything at once",
    (_NOT_READY, _ASSIGNING): f"{_COMPLETE}, and the target assignment is computed later",
    (_NOT_READY, _RECONCILING): f"{_COMPLETE}, and the target assignment is computed",
    (_NOT_READY, _STABLE): f"{_COMPLETE}, and the only member gets everything at once",
    (_NOT_READY, _EMPTY): _LAST,
    (_ASSIGNING, _NOT_READY): _INCOMPLETE,
    (_ASSIGNING, _RECONCILING): "the target assignment is computed",
    (_ASSIGNING, _STABLE): "the target assignment is computed, and every member has it already",
    (_ASSIGNING, _EMPTY): _LAST,
    (_RECONCILING, _NOT_READY): _INCOMPLETE,
    (_RECONCILING, _STABLE): "the last member reaches its target",
    (_RECONCILING, _ASSIGNING): "the group epoch is bumped, and the target assignment is computed later",
    (_RECONCILING, _EMPTY): _LAST,
    (_STABLE, _NOT_READY): _INCOMPLETE,
    (_STABLE, _RECONCILING): "the group epoch is bumped and the target assignment computed, or a static member is away",
    (_STABLE, _ASSIGNING): "the group epoch is bumped, and the target assignment is computed later",
    (_STABLE, _EMPTY): _LAST,
}
"""Every transition between stored states, and its cause. States are derived, so the table describes the code."""


class StreamsMemberState(IntEnum):
    """Where a member stands on the way to its target. The value is that of its record."""

    STABLE = 1
    UNREVOKED_TASKS = 2
    UNRELEASED_TASKS = 3
    UNKNOWN = 127

    @classmethod
    def of(cls, value: int) -> StreamsMemberState:
        """The state that a record has; a newer version may have others."""
        return cls(value) if value in _KNOWN else cls.UNKNOWN


_KNOWN: Final = frozenset(StreamsMemberState)
