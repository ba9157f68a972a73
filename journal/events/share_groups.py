"""Events of the membership of share groups (KIP-932) that other groups do not have.

A share group has the events of groups with epochs: members join and are removed, the epoch is bumped, a target is
computed, members reach it. It has no rebalances. Here is what comes before its partitions can be shared.
"""

from __future__ import annotations

from rejoin.journal.events.base import PartitionsByTopic
from rejoin.journal.events.coordinator import GroupEvent


class SharePartitionsInitializing(GroupEvent):
    """The coordinators of these share-partitions are asked to keep their state, by the group epoch as state epoch."""

    generation: int
    partitions: PartitionsByTopic


class SharePartitionsInitialized(GroupEvent):
    """These share-partitions can be assigned from now on; or not, with the error of their coordinators."""

    partitions: PartitionsByTopic
    error: str | None


class SharePartitionsDeleted(GroupEvent):
    """The group's state of these topics is deleted; or not, with the error of their coordinators."""

    topics: list[str]
    error: str | None
