"""The states of consumer groups and of their members, and the epochs that stand for something else than a number."""

from __future__ import annotations

from enum import IntEnum, StrEnum
from typing import Final

CONSUMER: Final = "consumer"
"""The type of these groups, as ListGroups names it. It is the protocol type of their members as well."""

JOIN_EPOCH: Final = 0
LEAVE_EPOCH: Final = -1
STATIC_LEAVE_EPOCH: Final = -2
"""A static member that goes for a moment: its partitions stay reserved for its instance id."""

FIRST_EPOCH: Final = 1
"""The epochs of a group that is not written yet. The first that is written is 2."""

NO_EPOCH: Final = -1


class ConsumerGroupState(StrEnum):
    """Where a group stands. Derived from its epochs and members; the value is the name that Kafka shows."""

    EMPTY = "Empty"
    ASSIGNING = "Assigning"
    RECONCILING = "Reconciling"
    STABLE = "Stable"
    DEAD = "Dead"


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
