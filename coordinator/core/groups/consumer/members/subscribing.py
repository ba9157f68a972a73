"""Which member a request is about: one that is there, a new one, or a static one that comes back under a new id.

Kafka: GroupMetadataManager.getOrMaybeSubscribeDynamicConsumerGroupMember and ...StaticConsumerGroupMember.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from typing import TypeAlias

from rejoin.coordinator.core.groups.consumer.members.reconciliation import Owned
from rejoin.coordinator.core.groups.consumer.model.changes import Changes
from rejoin.coordinator.core.groups.consumer.model.group import ConsumerGroup
from rejoin.coordinator.core.groups.consumer.model.member import (
    NEW_ASSIGNMENT,
    NEW_METADATA,
    ConsumerMember,
    ConsumerMemberMetadata,
    CurrentAssignment,
)
from rejoin.coordinator.core.groups.consumer.model.records import (
    PARTS,
    current_record,
    metadata_record,
    target_record,
)
from rejoin.coordinator.core.groups.consumer.model.state import CONSUMER
from rejoin.coordinator.core.groups.modern.epochs import JOIN_EPOCH
from rejoin.journal.events.coordinator import GroupType, StaticMemberReplaced
from rejoin.protocol.errors import ErrorCode

Before: TypeAlias = tuple[ConsumerMemberMetadata, CurrentAssignment]
"""A member before its request; ``NEW_MEMBER`` if it is new."""

NEW_MEMBER: Before = (NEW_METADATA, NEW_ASSIGNMENT)


def find_member(
    group: ConsumerGroup, member_id: str, instance_id: str | None, epoch: int, owned: Owned, changes: Changes
) -> Before | ErrorCode:
    """The state of a heartbeat's member before the request."""
    if instance_id is not None:
        return _find_static(group, member_id, instance_id, epoch, owned, changes)
    member = group.members.get(member_id)
    if member is None:
        return NEW_MEMBER if epoch == JOIN_EPOCH else ErrorCode.UNKNOWN_MEMBER_ID
    if epoch != JOIN_EPOCH or not group.rules.readmits_at_epoch_0:
        error = check_epoch(member.current, epoch, owned)
        if error is not ErrorCode.NONE:
            return error
    return member.metadata, member.current


def _find_static(
    group: ConsumerGroup, member_id: str, instance_id: str, epoch: int, owned: Owned, changes: Changes
) -> Before | ErrorCode:
    owner_id = group.static_members.get(instance_id)
    if epoch != JOIN_EPOCH:
        if owner_id is None:
            return ErrorCode.UNKNOWN_MEMBER_ID
        if owner_id != member_id:
            return ErrorCode.FENCED_INSTANCE_ID
        owner = group.members[owner_id]
        error = check_epoch(owner.current, epoch, owned)
        return (owner.metadata, owner.current) if error is ErrorCode.NONE else error
    if owner_id is None:
        member = group.members.get(member_id)
        return NEW_MEMBER if member is None else (member.metadata, member.current)
    owner = group.members[owner_id]
    if not owner.is_away and not owner.is_classic:
        # Kafka: that it is the same member makes no difference.
        return ErrorCode.UNRELEASED_INSTANCE_ID
    return replace_static(group, owner, member_id, changes)


def lacks_target(group: ConsumerGroup, instance_id: str | None) -> bool:
    """Whether a static member is known that has no target yet."""
    owner_id = None if instance_id is None else group.static_members.get(instance_id)
    return owner_id is not None and owner_id not in group.targets


def own_assignment(group: ConsumerGroup, member_id: str, instance_id: str | None) -> CurrentAssignment | None:
    """A member's assignment, if it is about to speak for an instance id that is not its own yet; none otherwise."""
    member = None if instance_id is None else group.members.get(member_id)
    return None if member is None or member.metadata.instance_id == instance_id else member.current


def replace_static(
    group: ConsumerGroup,
    owner: ConsumerMember,
    member_id: str,
    changes: Changes,
    member_type: GroupType = CONSUMER,
    reason: str | None = None,
) -> Before:
    """Let a static member go on under another id, with its subscription, its target and its current assignment."""
    group_id = group.group_id
    changes.events.append(
        StaticMemberReplaced(
            group_id=group_id,
            group_instance_id=owner.metadata.instance_id or "",
            old_member_id=owner.member_id,
            member_id=member_id,
            state=group.state,
            rebalance=False,
            client_reason=reason,
            member_type=member_type,
        )
    )
    metadata, target = owner.metadata, group.target_of(owner.member_id)
    current = replace(owner.current, epoch=JOIN_EPOCH, previous_epoch=JOIN_EPOCH)
    changes.write(*PARTS.member_tombstones(group_id, [owner.member_id]))
    changes.write(
        metadata_record(group_id, member_id, metadata),
        target_record(group_id, member_id, target),
        current_record(group_id, member_id, current),
    )
    return metadata, current


def check_epoch(current: CurrentAssignment, epoch: int, owned: Owned) -> ErrorCode:
    """Whether a member may speak with an epoch: its own, or the one before, where the last reply got lost."""
    if epoch == current.epoch:
        return ErrorCode.NONE
    is_retry = epoch < current.epoch and epoch == current.previous_epoch and _is_within(owned, current)
    return ErrorCode.NONE if is_retry else ErrorCode.FENCED_MEMBER_EPOCH


def _is_within(owned: Owned, current: CurrentAssignment) -> bool:
    """Whether a member owns only its assigned partitions. One without a report may own more."""
    if owned is None:
        return False
    nothing: Collection[int] = ()
    return all(
        partition in current.assigned.get(topic_id, nothing)
        for topic_id, partitions in owned.items()
        for partition in partitions
    )
