"""The states of consumer groups and of their members, and the epochs that stand for something else than a number."""

from __future__ import annotations

from enum import IntEnum, StrEnum
from typing import Final

CONSUMER: Final = "consumer"
"""The type of these groups, as ListGroups names it. It is the protocol type of their members as well."""

STATIC_LEAVE_EPOCH: Final = -2
"""A static member that goes for a moment: its partitions stay reserved for its instance id."""


class ConsumerGroupState(StrEnum):
    """Where a group stands. Derived from its epochs and members; the value is the name that Kafka shows."""

    EMPTY = "Empty"
    ASSIGNING = "Assigning"
    RECONCILING = "Reconciling"
    STABLE = "Stable"
    DEAD = "Dead"


EMPTY: Final = ConsumerGroupState.EMPTY
ASSIGNING: Final = ConsumerGroupState.ASSIGNING
RECONCILING: Final = ConsumerGroupState.RECONCILING
STABLE: Final = ConsumerGroupState.STABLE

WHY: Final[dict[tuple[ConsumerGroupState, ConsumerGroupState], str]] = {
    (EMPTY, ASSIGNING): "a member joins before the assignment interval has passed",
    (EMPTY, STABLE): "a member joins and gets everything at once",
    (ASSIGNING, RECONCILING): "the target assignment is computed",
    (ASSIGNING, STABLE): "the target assignment is computed, and every member has it already",
    (ASSIGNING, EMPTY): "the last member leaves or expires",
    (RECONCILING, STABLE): "the last member reaches its target",
    (RECONCILING, ASSIGNING): "the group epoch is bumped, and the target assignment is computed later",
    (RECONCILING, EMPTY): "the last member leaves or expires",
    (STABLE, RECONCILING): "the group epoch is bumped and the target assignment computed, or a static member is away",
    (STABLE, ASSIGNING): "the group epoch is bumped, and the target assignment is computed later",
    (STABLE, EMPTY): "the last member leaves or expires",
}
"""Every transition between stored states, and what causes it. The state follows from members and epochs, so the table
describes the code and does not drive it; tests hold it against the gallery and recorded journals."""


def derived_state(members: int, epoch: int, assignment_epoch: int, reconciled: int) -> ConsumerGroupState:
    """The state of a group by how many members it has, and how many of them have reached the target."""
    if not members:
        return ConsumerGroupState.EMPTY
    if epoch > assignment_epoch:
        return ConsumerGroupState.ASSIGNING
    return ConsumerGroupState.RECONCILING if reconciled < members else ConsumerGroupState.STABLE


class ConsumerMemberState(IntEnum):
    """Where a member stands on the way to its target. The value is that of its record."""

    STABLE = 0
    UNREVOKED_PARTITIONS = 1
    UNRELEASED_PARTITIONS = 2
    UNKNOWN = 127

    @classmethod
    def of(cls, value: int) -> ConsumerMemberState:
        """The state that a record has; a newer version may have others."""
        return cls(value) if value in _KNOWN else cls.UNKNOWN


_KNOWN: Final = frozenset(ConsumerMemberState)
