"""Which member a heartbeat is about, and how it describes itself.

Kafka: GroupMetadataManager.getOrMaybeCreateDynamicStreamsGroupMember, getOrMaybeCreateStaticStreamsGroupMember.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from rejoin.coordinator.core.groups.modern.changes import RecordChanges
from rejoin.coordinator.core.groups.modern.epochs import JOIN_EPOCH
from rejoin.coordinator.core.groups.streams.model.group import StreamsGroup
from rejoin.coordinator.core.groups.streams.model.member import (
    NEW_ASSIGNMENT,
    NEW_METADATA,
    CurrentTasks,
    StreamsMember,
    StreamsMemberMetadata,
)
from rejoin.coordinator.core.groups.streams.model.records import (
    PARTS,
    current_record,
    metadata_record,
    target_record,
)
from rejoin.coordinator.core.groups.streams.model.state import STREAMS
from rejoin.coordinator.core.groups.streams.model.tasks import OwnedTasks
from rejoin.coordinator.core.inputs import Context
from rejoin.journal.events.coordinator import StaticMemberReplaced
from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.java import utf16_key
from rejoin.protocol.messages.streams.streams_group_heartbeat import StreamsGroupHeartbeatRequest
from rejoin.protocol.streams.tasks import TaskIds


@dataclass(frozen=True, slots=True)
class Before:
    """A member before its request, and the id that it had then as a static one."""

    metadata: StreamsMemberMetadata = NEW_METADATA
    current: CurrentTasks = NEW_ASSIGNMENT
    is_new: bool = False
    replaced_id: str | None = None


def find_member(
    group: StreamsGroup, request: StreamsGroupHeartbeatRequest, owned: OwnedTasks | None, changes: RecordChanges
) -> Before | ErrorCode:
    """The state of a heartbeat's member before the request."""
    epoch = request.member_epoch
    member = group.members.get(request.member_id)
    if request.instance_id is not None:
        owner_id = group.static_members.get(request.instance_id)
        if epoch != JOIN_EPOCH:
            if owner_id is None:
                return ErrorCode.UNKNOWN_MEMBER_ID
            if owner_id != request.member_id:
                return ErrorCode.FENCED_INSTANCE_ID
        elif owner_id is not None:
            owner = group.members[owner_id]
            if not owner.is_away:
                # Kafka: that it is the same member makes no difference.
                return ErrorCode.UNRELEASED_INSTANCE_ID
            return _replace(group, owner, request.member_id, changes)
    if member is None:
        return Before(is_new=True) if epoch == JOIN_EPOCH else ErrorCode.UNKNOWN_MEMBER_ID
    error = _check_epoch(member.current, epoch, owned)
    return Before(member.metadata, member.current) if error is ErrorCode.NONE else error


def _check_epoch(current: CurrentTasks, epoch: int, owned: OwnedTasks | None) -> ErrorCode:
    """Whether a member may speak with an epoch: its own, 0, or the one before, where the last reply got lost."""
    if epoch in (JOIN_EPOCH, current.epoch):
        return ErrorCode.NONE
    is_previous = epoch < current.epoch and epoch == current.previous_epoch
    is_retry = is_previous and owned is not None and current.assigned.contains(owned)
    return ErrorCode.NONE if is_retry else ErrorCode.FENCED_MEMBER_EPOCH


def _replace(group: StreamsGroup, owner: StreamsMember, member_id: str, changes: RecordChanges) -> Before:
    """Let a static member go on under another id, with its metadata, its target and its tasks."""
    group_id = group.group_id
    changes.events.append(
        StaticMemberReplaced(
            group_id=group_id,
            group_instance_id=owner.metadata.instance_id or "",
            old_member_id=owner.member_id,
            member_id=member_id,
            state=group.state,
            rebalance=False,
            client_reason=None,
            member_type=STREAMS,
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
    return Before(metadata, current, replaced_id=owner.member_id)


def owned_by(request: StreamsGroupHeartbeatRequest) -> OwnedTasks | None:
    """The tasks that a member says it has, or none if it does not say so."""
    active, standby, warmup = request.active_tasks, request.standby_tasks, request.warmup_tasks
    if active is None or standby is None or warmup is None:
        return None
    return OwnedTasks(_sets(active), _sets(standby), _sets(warmup))


def _sets(tasks: Iterable[TaskIds]) -> dict[str, frozenset[int]]:
    found: dict[str, frozenset[int]] = {}
    for each in tasks:
        found[each.subtopology_id] = found.get(each.subtopology_id, frozenset()) | frozenset(each.partitions)
    return found


def described(
    before: StreamsMemberMetadata, request: StreamsGroupHeartbeatRequest, context: Context
) -> StreamsMemberMetadata | ErrorCode:
    """A member updated by its request; missing fields stay, but for the endpoint of one that joins."""
    tags = before.tags
    if request.client_tags is not None:
        by_key = {each.key: each.value for each in request.client_tags}
        if len(by_key) < len(request.client_tags):
            # Kafka: it makes a map of them, which fails.
            return ErrorCode.UNKNOWN_SERVER_ERROR
        tags = tuple((key, by_key[key]) for key in sorted(by_key, key=utf16_key))
    endpoint = before.endpoint
    if request.member_epoch == JOIN_EPOCH or request.user_endpoint is not None:
        endpoint = request.user_endpoint
    timeout_ms = request.rebalance_timeout_ms
    return StreamsMemberMetadata(
        instance_id=before.instance_id if request.instance_id is None else request.instance_id,
        rack_id=before.rack_id if request.rack_id is None else request.rack_id,
        client_id=context.client_id,
        client_host=context.client_host,
        rebalance_timeout_ms=before.rebalance_timeout_ms if timeout_ms == -1 else timeout_ms,
        topology_epoch=before.topology_epoch if request.topology is None else request.topology.epoch,
        process_id=before.process_id if request.process_id is None else request.process_id,
        endpoint=endpoint,
        tags=tags,
    )


def needs_target(before: StreamsMemberMetadata, after: StreamsMemberMetadata, *, is_static: bool) -> bool:
    """Whether a change of a member asks for a new target.

    Kafka: of a member whose request has no instance id any change does, also one of its timeout.
    """
    if not is_static:
        return before != after
    return (
        before.topology_epoch != after.topology_epoch
        or before.rack_id != after.rack_id
        or before.tags != after.tags
        or before.process_id != after.process_id
    )
