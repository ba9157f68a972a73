"""The states of a group, and the answers that depend on the state alone. The code runs on these tables.

Kafka: ClassicGroupState. Its own comment says that heartbeats while a rebalance completes are answered
REBALANCE_IN_PROGRESS; the code behind it answers NONE, and so does the table.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final

from rejoin.protocol.errors import ErrorCode


class GroupState(StrEnum):
    """Where a group stands. The value is the name that Kafka shows."""

    EMPTY = "Empty"
    PREPARING_REBALANCE = "PreparingRebalance"
    COMPLETING_REBALANCE = "CompletingRebalance"
    STABLE = "Stable"
    DEAD = "Dead"


EMPTY: Final = GroupState.EMPTY
PREPARING_REBALANCE: Final = GroupState.PREPARING_REBALANCE
COMPLETING_REBALANCE: Final = GroupState.COMPLETING_REBALANCE
STABLE: Final = GroupState.STABLE
DEAD: Final = GroupState.DEAD

WHY: Final[dict[tuple[GroupState, GroupState], str]] = {
    (EMPTY, PREPARING_REBALANCE): "a member is added",
    (PREPARING_REBALANCE, COMPLETING_REBALANCE): "the join phase ends with members",
    (PREPARING_REBALANCE, EMPTY): "the join phase ends without members",
    (COMPLETING_REBALANCE, STABLE): "the leader's assignment is stored",
    (COMPLETING_REBALANCE, PREPARING_REBALANCE): "a member joins, changes, restarts, leaves or expires",
    (STABLE, PREPARING_REBALANCE): "a member joins, changes, leaves or expires, or the leader rejoins",
    (EMPTY, DEAD): "unloaded, deleted, expired or never stored",
    (PREPARING_REBALANCE, DEAD): "unloaded, or never stored",
    (COMPLETING_REBALANCE, DEAD): "unloaded",
    (STABLE, DEAD): "unloaded",
    (DEAD, DEAD): "unloaded again",
}
"""Every legal transition, and what causes it. Any other is a bug."""

CAN_REBALANCE: Final = frozenset(before for before, after in WHY if after is PREPARING_REBALANCE)
"""States from which a rebalance may begin."""

ON_HEARTBEAT: Final = {
    EMPTY: ErrorCode.UNKNOWN_MEMBER_ID,
    PREPARING_REBALANCE: ErrorCode.REBALANCE_IN_PROGRESS,
    COMPLETING_REBALANCE: ErrorCode.NONE,
    STABLE: ErrorCode.NONE,
    DEAD: ErrorCode.COORDINATOR_NOT_AVAILABLE,
}
"""The answer to a heartbeat of a member in the current generation."""

BEFORE_SYNC: Final = {
    EMPTY: ErrorCode.UNKNOWN_MEMBER_ID,
    DEAD: ErrorCode.COORDINATOR_NOT_AVAILABLE,
}
"""States that answer a SyncGroup without looking at who sent it."""

ON_SYNC: Final = {PREPARING_REBALANCE: ErrorCode.REBALANCE_IN_PROGRESS}
"""States that answer a member's SyncGroup alike for all; elsewhere it parks or fetches."""

ON_COMMIT: Final = {COMPLETING_REBALANCE: ErrorCode.REBALANCE_IN_PROGRESS}
"""States that refuse a commit of a member in the current generation."""

ON_DELETE_GROUP: Final = {
    EMPTY: ErrorCode.NONE,
    PREPARING_REBALANCE: ErrorCode.NON_EMPTY_GROUP,
    COMPLETING_REBALANCE: ErrorCode.NON_EMPTY_GROUP,
    STABLE: ErrorCode.NON_EMPTY_GROUP,
    DEAD: ErrorCode.GROUP_ID_NOT_FOUND,
}
"""The answer to DeleteGroups."""
