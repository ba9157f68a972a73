"""Events that only groups of the consumer protocol have (KIP-848): epochs, targets, and members on their way to them.

A rebalance begins with a new group epoch (``rebalance_started``) and is over when all members have reached it
(``rebalance_completed``, as for classic groups). In between each member goes on by itself: it gives up what is not its
own any more, waits for what others still hold, and is reconciled. ``generation`` is the group's epoch.
"""

from __future__ import annotations

from typing import Literal

from rejoin.journal.events.base import PartitionsByTopic
from rejoin.journal.events.coordinator import Cause, GroupEvent, GroupType, Ownership

ConversionRefusal = Literal[
    "policy", "classic-member", "size", "protocol-type", "no-protocol", "unreadable", "user-data"
]
"""Why a group keeps its protocol.

policy: ``group.consumer.migration.policy``. classic-member: the same policy is ``disabled``, and a member of the
classic protocol may not even join a group that has others. size: more members than the other protocol allows.
protocol-type: its members are no consumers. no-protocol: it has not chosen an assignor that all members support.
unreadable: a subscription or an assignment. user-data: an assignor of the users' own hands out more than partitions.
"""


class GroupEpochBumped(GroupEvent):
    """A new assignment is needed. ``generation`` is the new group epoch, ``state`` the group's state before."""

    generation: int
    metadata_hash: str
    cause: Cause
    state: str


class TargetAssignmentComputed(GroupEvent):
    """A server-side assignor ran. ``target``: what each member should have whose target differs from before."""

    generation: int
    assignor: str
    member_count: int
    target: Ownership


class RegexResolved(GroupEvent):
    """The topics of a regular expression were found, or others than before."""

    pattern: str
    topics: list[str]


class RevocationRequested(GroupEvent):
    """A member has to give up these partitions before it gets others. It gets its rebalance timeout for that."""

    member_id: str
    group_instance_id: str | None
    member_epoch: int
    partitions: PartitionsByTopic
    rebalance_timeout_ms: int


class RevocationCompleted(GroupEvent):
    """A member has given up these partitions. ``revocation_ms``: since it was asked to."""

    member_id: str
    group_instance_id: str | None
    member_epoch: int
    partitions: PartitionsByTopic
    revocation_ms: int


class PartitionsAwaited(GroupEvent):
    """A member has reached the target's epoch, and lacks partitions that others hold (UNRELEASED_PARTITIONS)."""

    member_id: str
    group_instance_id: str | None
    member_epoch: int
    holders: Ownership


class MemberReconciled(GroupEvent):
    """A member has what it should have by its epoch. ``waited_ms``: since the rebalance began."""

    member_id: str
    group_instance_id: str | None
    member_epoch: int
    partitions: PartitionsByTopic
    waited_ms: int


class MemberEpochFenced(GroupEvent):
    """A member spoke with an epoch that it does not have (FENCED_MEMBER_EPOCH). It has to join again."""

    member_id: str
    group_instance_id: str | None
    member_epoch: int
    current_epoch: int


class StaticMemberLeft(GroupEvent):
    """A static member left for a moment: until its session ends, these partitions stay its own."""

    group_instance_id: str
    member_id: str
    partitions: PartitionsByTopic


class GroupConverted(GroupEvent):
    """A group with members changed its protocol: ``group_type`` is the new one, ``member_id`` through whom."""

    group_type: GroupType
    generation: int
    member_id: str
    members: list[str]


class ConversionRefused(GroupEvent):
    """A group could not change its protocol. ``member_id`` asked for it; ``culprit`` is the member that prevents it."""

    group_type: GroupType
    member_id: str
    reason: ConversionRefusal
    culprit: str | None
