"""Replays each record of a consumer group on the groups of a shard, and can undo it.

Records are replayed at once when they are written, and at load. After compaction only the last record of each key is
left, in any order: each makes the group and the member that it needs. Kafka: GroupMetadataManager.replay.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Final

from rejoin.coordinator.core.groups.classic.group import ClassicGroup
from rejoin.coordinator.core.groups.consumer.model.group import ConsumerGroup
from rejoin.coordinator.core.groups.consumer.model.member import RELEASED
from rejoin.coordinator.core.groups.consumer.model.records import current_of, metadata_of, resolved_of, target_of
from rejoin.coordinator.core.groups.consumer.model.rules import NEWEST_RULES, ConsumerGroupRules
from rejoin.coordinator.core.groups.group import Group
from rejoin.coordinator.core.groups.modern.changes import Undo, nothing_to_undo
from rejoin.coordinator.core.groups.modern.epochs import NO_EPOCH
from rejoin.coordinator.core.groups.modern.metadata import TopicsMetadata
from rejoin.protocol.records.consumer_groups import (
    ConsumerGroupCurrentMemberAssignmentRecord,
    ConsumerGroupMemberMetadataRecord,
    ConsumerGroupMetadataRecord,
    ConsumerGroupPartitionMetadataRecord,
    ConsumerGroupRegularExpressionRecord,
    ConsumerGroupTargetAssignmentMemberRecord,
    ConsumerGroupTargetAssignmentMetadataRecord,
)
from rejoin.protocol.records.consumer_offsets import GroupRecord
from rejoin.protocol.records.keyed import Record
from rejoin.protocol.types import TopicPartition


class ConsumerReplay:
    """Replays the records of consumer groups, and tombstones of classic groups that they take the place of."""

    def __init__(
        self,
        partition: TopicPartition,
        groups: dict[str, Group],
        topics: TopicsMetadata,
        rules: ConsumerGroupRules = NEWEST_RULES,
    ) -> None:
        self._partition = partition
        self._topics = topics
        self._rules = rules
        self._groups = groups
        self._by_type: Final[dict[type[Any], Callable[[Any], Undo]]] = {
            ConsumerGroupMetadataRecord: self._epoch,
            ConsumerGroupPartitionMetadataRecord: self._partition_metadata,
            ConsumerGroupMemberMetadataRecord: self._member,
            ConsumerGroupTargetAssignmentMetadataRecord: self._target_epoch,
            ConsumerGroupTargetAssignmentMemberRecord: self._target,
            ConsumerGroupCurrentMemberAssignmentRecord: self._current,
            ConsumerGroupRegularExpressionRecord: self._regex,
            GroupRecord: self._classic_tombstone,
        }

    def replay(self, record: Record) -> Undo:
        """Apply a record; returns what undoes it."""
        replay = self._by_type.get(type(record))
        return nothing_to_undo if replay is None else replay(record)

    # --- groups

    def new_group(self, group_id: str) -> ConsumerGroup:
        """A group that is in no record yet."""
        first = self._rules.first_epoch
        return ConsumerGroup(
            group_id, self._partition, self._topics, epoch=first, assignment_epoch=first, rules=self._rules
        )

    def known(self, group_id: str) -> ConsumerGroup | None:
        """The consumer group of this id, if there is one."""
        group = self._groups.get(group_id)
        return group if isinstance(group, ConsumerGroup) else None

    def repair(self, group_id: str) -> None:
        """A change has failed behind which others were made."""
        group = self.known(group_id)
        if group is not None:
            group.repair()

    def _group(self, group_id: str) -> tuple[ConsumerGroup, Undo]:
        """The group of a record, made where it is not there; a simple group of offsets gives way."""
        group = self._groups.get(group_id)
        if isinstance(group, ConsumerGroup):
            return group, nothing_to_undo
        made = self._groups[group_id] = self.new_group(group_id)
        return made, partial(self._put_back, group_id, group)

    def _put_back(self, group_id: str, group: Group | None) -> None:
        if group is None:
            self._groups.pop(group_id, None)
        else:
            self._groups[group_id] = group

    def _classic_tombstone(self, record: GroupRecord) -> Undo:
        group_id = record.key.data.group
        assert record.value is None, "only the end of a classic group is replayed here"
        group = self._groups.get(group_id)
        if not isinstance(group, ClassicGroup):
            return nothing_to_undo
        del self._groups[group_id]
        return partial(self._put_back, group_id, group)

    def _epoch(self, record: ConsumerGroupMetadataRecord) -> Undo:
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
        value = record.value.data
        group.set_epoch(value.epoch, value.metadata_hash)
        return undo

    def _partition_metadata(self, record: ConsumerGroupPartitionMetadataRecord) -> Undo:
        group_id = record.key.data.group_id
        known = self.known(group_id)
        if record.value is None and known is None:
            return nothing_to_undo
        group, undo = self._group(group_id)
        if undo is nothing_to_undo:
            undo = partial(setattr, group, "has_partition_metadata", group.has_partition_metadata)
        group.has_partition_metadata = record.value is not None
        return undo

    # --- targets

    def _target_epoch(self, record: ConsumerGroupTargetAssignmentMetadataRecord) -> Undo:
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

    def _target(self, record: ConsumerGroupTargetAssignmentMemberRecord) -> Undo:
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
        group.set_target(key.member_id, target_of(record.value.data))
        return undo

    # --- members

    def _member(self, record: ConsumerGroupMemberMetadataRecord) -> Undo:
        key = record.key.data
        if record.value is None:
            known = self.known(key.group_id)
            member = None if known is None else known.members.get(key.member_id)
            if known is None or member is None:
                return nothing_to_undo
            before, current, kind = member.metadata, member.current, known.subscription_type
            known.set_metadata(key.member_id, None)
            return partial(_restore, known, key.member_id, before, kind, current)
        group, undo = self._group(key.group_id)
        if undo is nothing_to_undo:
            member = group.members.get(key.member_id)
            known_as = None if member is None else member.metadata
            undo = partial(_restore, group, key.member_id, known_as, group.subscription_type)
        group.set_metadata(key.member_id, metadata_of(record.value.data))
        return undo

    def _current(self, record: ConsumerGroupCurrentMemberAssignmentRecord) -> Undo:
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

    # --- expressions

    def _regex(self, record: ConsumerGroupRegularExpressionRecord) -> Undo:
        key = record.key.data
        if record.value is None:
            known = self.known(key.group_id)
            if known is None:
                return nothing_to_undo
            before = known.subscriptions.resolve(key.regular_expression, None)
            return partial(known.subscriptions.resolve, key.regular_expression, before)
        group, undo = self._group(key.group_id)
        before = group.subscriptions.resolve(key.regular_expression, resolved_of(record.value.data))
        if undo is nothing_to_undo:
            undo = partial(group.subscriptions.resolve, key.regular_expression, before)
        return undo


def _restore(group: ConsumerGroup, member_id: str, metadata: Any, kind: Any, current: Any = None) -> None:
    """Restore a member; the type of the subscriptions is kept, as it may have been behind them."""
    group.set_metadata(member_id, metadata)
    if current is not None:
        group.set_current(member_id, current)
    group.subscription_type = kind
