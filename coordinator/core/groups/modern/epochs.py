"""Epochs of groups and members, and the deadline at which subscribed topics are looked at again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, TypeAlias

from rejoin.coordinator.core.inputs import Millis
from rejoin.protocol.brokers.releases import has_reached

JOIN_EPOCH: Final = 0
LEAVE_EPOCH: Final = -1

FIRST_EPOCH: Final = 1
"""The epochs of a group that is not written yet. The first that a member's request writes is 2."""
FORMER_FIRST_EPOCH: Final = 0

NO_EPOCH: Final = -1

REFRESH_MS: Final = 2**31 - 1
"""How long subscribed topics are not looked at again, unless they change."""

PartitionsByTopicId: TypeAlias = Mapping[str, frozenset[int]]
"""Partitions by topic id."""


def first_epoch(release: str) -> int:
    """The epochs of an unwritten group in a release; empty: the newest. Kafka: 1 since 4.3 (KAFKA-20268)."""
    return FIRST_EPOCH if has_reached(release, "4.3") else FORMER_FIRST_EPOCH


class SubscriptionKind(StrEnum):
    """Whether all members subscribe alike. It selects the branch of an assignor."""

    HOMOGENEOUS = "Homogeneous"
    HETEROGENEOUS = "Heterogeneous"


@dataclass(slots=True)
class RefreshDeadline:
    """When the subscribed topics are looked at again, and the group epoch that this was decided for."""

    at: Millis = 0
    group_epoch: int = 0

    def is_due(self, epoch: int, now: Millis) -> bool:
        """Whether the topics have to be looked at: the time has come, or the epoch was decided and not stored."""
        return now >= self.at or self.group_epoch > epoch


def is_target_due(epoch: int, assignment_epoch: int, assignment_at: Millis, interval_ms: Millis, now: Millis) -> bool:
    """Whether a new target is wanted, and may be computed now: the assignment interval has passed since the last."""
    if assignment_epoch >= epoch:
        return False
    return assignment_at == 0 or interval_ms == 0 or now >= assignment_at + interval_ms
