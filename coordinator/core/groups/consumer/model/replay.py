"""Replay of what only consumer groups have in their records. Kafka: GroupMetadataManager.replay."""

from __future__ import annotations

from functools import partial
from typing import Any

from rejoin.coordinator.core.groups.classic.group import ClassicGroup
from rejoin.coordinator.core.groups.consumer.model.group import ConsumerGroup
from rejoin.coordinator.core.groups.consumer.model.member import RELEASED
from rejoin.coordinator.core.groups.consumer.model.records import PARTS, current_of, metadata_of, resolved_of
from rejoin.coordinator.core.groups.consumer.model.rules import NEWEST_RULES, ConsumerGroupRules
from rejoin.coordinator.core.groups.consumer.model.subscriptions import ResolvedRegex
from rejoin.coordinator.core.groups.group import Group
from rejoin.coordinator.core.groups.modern.changes import Undo, nothing_to_undo
from rejoin.coordinator.core.groups.modern.metadata import TopicsMetadata
from rejoin.coordinator.core.groups.modern.replay import ModernReplay
from rejoin.protocol.records.consumer_offsets import GroupRecord
from rejoin.protocol.records.groups.consumer_groups import (
    ConsumerGroupPartitionMetadataRecord,
    ConsumerGroupRegularExpressionRecord,
)
from rejoin.protocol.records.groups.group_parts import partitions_of
from rejoin.protocol.types import TopicPartition


class ConsumerReplay(ModernReplay[ConsumerGroup]):
    """Replays the records of consumer groups, and tombstones of classic groups that they take the place of."""

    def __init__(
        self,
        partition: TopicPartition,
        groups: dict[str, Group],
        topics: TopicsMetadata,
        rules: ConsumerGroupRules = NEWEST_RULES,
    ) -> None:
        super().__init__(groups, ConsumerGroup, PARTS, RELEASED)
        self._partition = partition
        self._topics = topics
        self._rules = rules
        self._by_type[ConsumerGroupPartitionMetadataRecord] = self._partition_metadata
        self._by_type[ConsumerGroupRegularExpressionRecord] = self._regex
        self._by_type[GroupRecord] = self._classic_tombstone

    # --- groups

    def new_group(self, group_id: str) -> ConsumerGroup:
        first = self._rules.first_epoch
        return ConsumerGroup(
            group_id=group_id,
            partition=self._partition,
            topics=self._topics,
            epoch=first,
            assignment_epoch=first,
            rules=self._rules,
        )

    def repair(self, group_id: str) -> None:
        """A change has failed behind which others were made."""
        group = self.known(group_id)
        if group is not None:
            group.repair()

    def _classic_tombstone(self, record: GroupRecord) -> Undo:
        group_id = record.key.data.group
        assert record.value is None, "only the end of a classic group is replayed here"
        group = self._groups.get(group_id)
        if not isinstance(group, ClassicGroup):
            return nothing_to_undo
        del self._groups[group_id]
        return partial(self._put_back, group_id, group)

    def _partition_metadata(self, record: ConsumerGroupPartitionMetadataRecord) -> Undo:
        group_id, has = record.key.data.group_id, record.value is not None
        if not has and self.known(group_id) is None:
            return nothing_to_undo
        return self._change(group_id, lambda group: _set_partition_metadata(group, has))

    # --- members

    def _metadata_of(self, value: Any) -> object:
        return metadata_of(value)

    def _target_of(self, value: Any) -> object:
        return partitions_of(value.topic_partitions)

    def _current_of(self, value: Any) -> object:
        return current_of(value)

    def _restoring(self, group: ConsumerGroup, member_id: str, metadata: object | None, current: object | None) -> Undo:
        """The type of the subscriptions is kept, as it may have been behind them."""
        restore, kind = super()._restoring(group, member_id, metadata, current), group.subscription_type

        def undo() -> None:
            restore()
            group.subscription_type = kind

        return undo

    # --- expressions

    def _regex(self, record: ConsumerGroupRegularExpressionRecord) -> Undo:
        key = record.key.data
        if record.value is None:
            known = self.known(key.group_id)
            return nothing_to_undo if known is None else _resolve(known, key.regular_expression, None)
        found = resolved_of(record.value.data)
        return self._change(key.group_id, lambda group: _resolve(group, key.regular_expression, found))


def _set_partition_metadata(group: ConsumerGroup, has: bool) -> Undo:
    undo = partial(setattr, group, "has_partition_metadata", group.has_partition_metadata)
    group.has_partition_metadata = has
    return undo


def _resolve(group: ConsumerGroup, expression: str, found: ResolvedRegex | None) -> Undo:
    return partial(group.subscriptions.resolve, expression, group.subscriptions.resolve(expression, found))
