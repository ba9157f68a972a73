"""Replays each record of a share group on the groups of a shard, and can undo it.

After compaction only the last record of each key is left, in any order: each makes the group and the member that it
needs. Kafka: GroupMetadataManager.replay.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Final

from rejoin.coordinator.core.groups.group import Group
from rejoin.coordinator.core.groups.modern.changes import Undo, nothing_to_undo
from rejoin.coordinator.core.groups.modern.epochs import NO_EPOCH
from rejoin.coordinator.core.groups.share.model.group import ShareGroup
from rejoin.coordinator.core.groups.share.model.member import RELEASED, CurrentShare, ShareMemberMetadata
from rejoin.coordinator.core.groups.share.model.records import (
    current_of,
    metadata_of,
    partitions_of,
    state_partitions_of,
)
from rejoin.coordinator.core.step_context import StepContext
from rejoin.protocol.records.keyed import Record
from rejoin.protocol.records.share_groups import (
    ShareGroupCurrentMemberAssignmentRecord,
    ShareGroupMemberMetadataRecord,
    ShareGroupMetadataRecord,
    ShareGroupStatePartitionMetadataRecord,
    ShareGroupTargetAssignmentMemberRecord,
    ShareGroupTargetAssignmentMetadataRecord,
)
from rejoin.protocol.types import TopicPartition


class ShareReplay:
    """Replays the records of share groups."""

    def __init__(self, ctx: StepContext, partition: TopicPartition, groups: dict[str, Group]) -> None:
        self._ctx = ctx
        self._partition = partition
        self._groups = groups
        self._by_type: Final[dict[type[Any], Callable[[Any], Undo]]] = {
            ShareGroupMetadataRecord: self._epoch,
            ShareGroupMemberMetadataRecord: self._member,
            ShareGroupTargetAssignmentMetadataRecord: self._target_epoch,
            ShareGroupTargetAssignmentMemberRecord: self._target,
            ShareGroupCurrentMemberAssignmentRecord: self._current,
            ShareGroupStatePartitionMetadataRecord: self._state_partitions,
        }

    def replay(self, record: Record) -> Undo:
        """Apply a record; returns what undoes it."""
        return self._by_type[type(record)](record)

    # --- groups

    def new_group(self, group_id: str) -> ShareGroup:
        """A group that is in no record yet."""
        return ShareGroup(group_id, self._partition)

    def known(self, group_id: str) -> ShareGroup | None:
        """The share group of this id, if there is one."""
        group = self._groups.get(group_id)
        return group if isinstance(group, ShareGroup) else None

    def repair(self, group_id: str) -> None:
        """A change has failed behind which others were made: the next request has all assigned anew."""
        group = self.known(group_id)
        if group is not None:
            group.needs_epoch = True

    def _group(self, group_id: str) -> tuple[ShareGroup, Undo]:
        """The group of a record, made where it is not there; a simple group of offsets gives way."""
        group = self._groups.get(group_id)
        if isinstance(group, ShareGroup):
            return group, nothing_to_undo
        made = self._groups[group_id] = self.new_group(group_id)
        return made, partial(self._put_back, group_id, group)

    def _put_back(self, group_id: str, group: Group | None) -> None:
        if group is None:
            self._groups.pop(group_id, None)
        else:
            self._groups[group_id] = group

    def _epoch(self, record: ShareGroupMetadataRecord) -> Undo:
        group_id = record.key.data.group_id
        if record.value is None:
            known = self.known(group_id)
            if known is None:
                return nothing_to_undo
            del self._groups[group_id]
            return partial(self._put_back, group_id, known)
        group, undo = self._group(group_id)
        if undo is nothing_to_undo:
            undo = partial(group.set_epoch, group.epoch, group.metadata_hash)
        group.set_epoch(record.value.data.epoch, record.value.data.metadata_hash)
        return undo

    def _state_partitions(self, record: ShareGroupStatePartitionMetadataRecord) -> Undo:
        group_id = record.key.data.group_id
        if record.value is None:
            known = self.known(group_id)
            if known is None:
                return nothing_to_undo
            undo: Undo = partial(known.set_state_partitions, known.state_partitions)
            known.set_state_partitions(None)
            return undo
        group, undo = self._group(group_id)
        if undo is nothing_to_undo:
            undo = partial(group.set_state_partitions, group.state_partitions)
        group.set_state_partitions(state_partitions_of(record.value.data, self._ctx.now))
        return undo

    # --- targets

    def _target_epoch(self, record: ShareGroupTargetAssignmentMetadataRecord) -> Undo:
        group_id = record.key.data.group_id
        if record.value is None:
            known = self.known(group_id)
            if known is None:
                return nothing_to_undo
            undo: Undo = partial(known.set_assignment_epoch, known.assignment_epoch, known.assignment_at)
            known.set_assignment_epoch(NO_EPOCH, known.assignment_at)
            return undo
        group, undo = self._group(group_id)
        if undo is nothing_to_undo:
            undo = partial(group.set_assignment_epoch, group.assignment_epoch, group.assignment_at)
        value = record.value.data
        group.set_assignment_epoch(value.assignment_epoch, value.assignment_timestamp)
        return undo

    def _target(self, record: ShareGroupTargetAssignmentMemberRecord) -> Undo:
        key = record.key.data
        if record.value is None:
            known = self.known(key.group_id)
            if known is None or key.member_id not in known.targets:
                return nothing_to_undo
            undo: Undo = partial(known.set_target, key.member_id, known.targets[key.member_id])
            known.set_target(key.member_id, None)
            return undo
        group, undo = self._group(key.group_id)
        if undo is nothing_to_undo:
            undo = partial(group.set_target, key.member_id, group.targets.get(key.member_id))
        group.set_target(key.member_id, partitions_of(record.value.data.topic_partitions))
        return undo

    # --- members

    def _member(self, record: ShareGroupMemberMetadataRecord) -> Undo:
        key = record.key.data
        if record.value is None:
            known = self.known(key.group_id)
            member = None if known is None else known.members.get(key.member_id)
            if known is None or member is None:
                return nothing_to_undo
            undo: Undo = partial(_restore, known, key.member_id, member.metadata, member.current)
            known.set_metadata(key.member_id, None)
            return undo
        group, undo = self._group(key.group_id)
        if undo is nothing_to_undo:
            member = group.members.get(key.member_id)
            undo = partial(group.set_metadata, key.member_id, None if member is None else member.metadata)
        group.set_metadata(key.member_id, metadata_of(record.value.data))
        return undo

    def _current(self, record: ShareGroupCurrentMemberAssignmentRecord) -> Undo:
        key = record.key.data
        if record.value is None:
            known = self.known(key.group_id)
            member = None if known is None else known.members.get(key.member_id)
            if known is None or member is None:
                return nothing_to_undo
            undo: Undo = partial(known.set_current, key.member_id, member.current)
            known.set_current(key.member_id, RELEASED)
            return undo
        group, undo = self._group(key.group_id)
        if undo is nothing_to_undo:
            member = group.members.get(key.member_id)
            if member is None:
                undo = partial(group.set_metadata, key.member_id, None)
            else:
                undo = partial(group.set_current, key.member_id, member.current)
        group.set_current(key.member_id, current_of(record.value.data))
        return undo


def _restore(group: ShareGroup, member_id: str, metadata: ShareMemberMetadata, current: CurrentShare) -> None:
    """Bring a member back."""
    group.set_metadata(member_id, metadata)
    group.set_current(member_id, current)
