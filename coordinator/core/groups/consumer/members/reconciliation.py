"""Reconciliation: one step of one member from its current towards its target assignment.

Runs in the member's own heartbeats and for no other member. What must be given up comes first: as long as the member
holds any of it, it gets nothing new, and its epoch stays. Kafka: CurrentAssignmentBuilder.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from rejoin.coordinator.core.groups.consumer.model.member import CurrentAssignment, PartitionEpochs
from rejoin.coordinator.core.groups.consumer.model.state import ConsumerMemberState
from rejoin.coordinator.core.groups.modern.epochs import PartitionsByTopicId
from rejoin.coordinator.core.groups.modern.group import UnknownStateError
from rejoin.protocol.java import put_first

Owned: TypeAlias = Mapping[str, Collection[int]] | None
"""Partitions that a member reports as owned, by topic id; none without a report: then it owns its assignment."""

HasOwner: TypeAlias = Callable[[str, int], bool]
"""Whether any member has a partition, as assigned or pending."""


@dataclass(frozen=True, slots=True)
class Goal:
    """Where a member is to go: a target and its epoch, as far as it is subscribed to the topics."""

    epoch: int
    partitions: PartitionsByTopicId
    subscribed: Collection[str]
    """Ids of the topics that it is subscribed to now."""
    names_topics: bool
    """Whether the subscription names any topic, whether or not the topic exists."""
    has_owner: HasOwner
    follows_subscription: bool = True
    """Whether a topic is given up as soon as the member unsubscribes; see ``ConsumerGroupRules``."""


def reconcile(current: CurrentAssignment, goal: Goal, owned: Owned, *, subscription_changed: bool) -> CurrentAssignment:
    """The member's assignment after this heartbeat; the given object if nothing changes."""
    subscription_changed = subscription_changed and goal.follows_subscription
    if not subscription_changed and current.is_reconciled_to(goal.epoch):
        return current
    match current.state:
        case ConsumerMemberState.STABLE:
            if current.epoch != goal.epoch:
                return _advance(current, goal, owned, current.epoch)
            return _trim(current, goal, owned) if subscription_changed else current
        case ConsumerMemberState.UNREVOKED_PARTITIONS:
            if not _still_owns(owned, current.pending):
                return _advance(current, goal, owned, current.epoch + (not goal.follows_subscription))
            return _trim(current, goal, owned) if subscription_changed else current
        case ConsumerMemberState.UNRELEASED_PARTITIONS:
            return _advance(current, goal, owned, current.epoch)
        case _:
            if owned is None or owned:
                raise UnknownStateError
            return _advance(current, goal, owned, goal.epoch)


def _advance(current: CurrentAssignment, goal: Goal, owned: Owned, epoch: int) -> CurrentAssignment:
    """Revoke partitions outside the target; with none left to revoke, take free partitions of the target."""
    keep: dict[str, Mapping[int, int]] = {}
    revoke: dict[str, Mapping[int, int]] = {}
    add: dict[str, dict[int, int]] = {}
    is_unreleased = False
    for topic_id in dict.fromkeys((*goal.partitions, *current.assigned)):
        target: Collection[int] = goal.partitions.get(topic_id, ()) if topic_id in goal.subscribed else ()
        assigned = current.assigned.get(topic_id, {})
        kept = {partition: at for partition, at in assigned.items() if partition in target}
        if kept:
            keep[topic_id] = kept
        if len(kept) < len(assigned):
            revoke[topic_id] = {partition: at for partition, at in assigned.items() if partition not in target}
        pending = current.pending.get(topic_id, ())
        for partition in sorted(target):
            if partition in kept:
                continue
            if partition in pending or not goal.has_owner(topic_id, partition):
                add.setdefault(topic_id, {})[partition] = goal.epoch
            else:
                is_unreleased = True
    if revoke and _still_owns(owned, revoke):
        return CurrentAssignment(
            epoch=epoch,
            previous_epoch=current.epoch,
            state=ConsumerMemberState.UNREVOKED_PARTITIONS,
            assigned=keep,
            pending=revoke,
        )
    for topic_id in add.keys() & keep.keys():
        keep[topic_id] = {**keep[topic_id], **add.pop(topic_id)}
    # Kafka: computeIfAbsent. The order decides how a classic member's assignment is written.
    put_first(keep, add)
    return CurrentAssignment(
        epoch=goal.epoch,
        previous_epoch=current.epoch,
        state=ConsumerMemberState.UNRELEASED_PARTITIONS if is_unreleased else ConsumerMemberState.STABLE,
        assigned=keep,
    )


def _trim(current: CurrentAssignment, goal: Goal, owned: Owned) -> CurrentAssignment:
    """Give up topics that the member has unsubscribed from, while it otherwise stands still."""
    gone = {topic: epochs for topic, epochs in current.assigned.items() if topic not in goal.subscribed}
    # Kafka: of a member that names no topic all is moved, also where there is nothing to move.
    if not gone and (goal.names_topics or current.pending):
        return current
    assigned = {topic: epochs for topic, epochs in current.assigned.items() if topic not in gone}
    newly = {topic: {**current.pending.get(topic, {}), **epochs} for topic, epochs in gone.items()}
    pending = {**current.pending, **newly}
    if pending and _still_owns(owned, pending):
        return CurrentAssignment(
            epoch=current.epoch,
            previous_epoch=current.epoch,
            state=ConsumerMemberState.UNREVOKED_PARTITIONS,
            assigned=assigned,
            pending=pending,
        )
    return CurrentAssignment(
        epoch=current.epoch,
        previous_epoch=current.epoch,
        state=current.state,
        assigned=assigned,
        pending=current.pending,
    )


def _still_owns(owned: Owned, pending: PartitionEpochs) -> bool:
    """Whether the member has not given up all of this. Silence means that it still owns everything."""
    if owned is None:
        return True
    return any(not pending[topic].keys().isdisjoint(owned[topic]) for topic in pending if topic in owned)
