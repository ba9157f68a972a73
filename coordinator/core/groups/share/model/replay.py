"""Replay of what only share groups have in their records. Kafka: GroupMetadataManager.replay."""

from __future__ import annotations

from functools import partial
from typing import Any

from rejoin.coordinator.core.groups.group import Group
from rejoin.coordinator.core.groups.modern.changes import Undo, nothing_to_undo
from rejoin.coordinator.core.groups.modern.epochs import first_epoch
from rejoin.coordinator.core.groups.modern.replay import ModernReplay
from rejoin.coordinator.core.groups.share.model.group import ShareGroup
from rejoin.coordinator.core.groups.share.model.member import RELEASED
from rejoin.coordinator.core.groups.share.model.records import PARTS, current_of, metadata_of, state_partitions_of
from rejoin.coordinator.core.groups.share.model.state_partitions import StatePartitions
from rejoin.coordinator.core.step_context import StepContext
from rejoin.protocol.records.groups.group_parts import partitions_of
from rejoin.protocol.records.groups.share_groups import ShareGroupStatePartitionMetadataRecord
from rejoin.protocol.types import TopicPartition


class ShareReplay(ModernReplay[ShareGroup]):
    """Replays the records of share groups."""

    def __init__(self, ctx: StepContext, partition: TopicPartition, groups: dict[str, Group]) -> None:
        super().__init__(groups, ShareGroup, PARTS, RELEASED)
        self._ctx = ctx
        self._partition = partition
        self._by_type[ShareGroupStatePartitionMetadataRecord] = self._state_partitions

    def new_group(self, group_id: str) -> ShareGroup:
        first = first_epoch(self._ctx.settings.emulator_as_kafka)
        return ShareGroup(
            group_id=group_id, partition=self._partition, epoch=first, assignment_epoch=first, first_epoch=first
        )

    def repair(self, group_id: str) -> None:
        """A change has failed behind which others were made: the next request has all assigned anew."""
        group = self.known(group_id)
        if group is not None:
            group.needs_epoch = True

    def _metadata_of(self, value: Any) -> object:
        return metadata_of(value)

    def _target_of(self, value: Any) -> object:
        return partitions_of(value.topic_partitions)

    def _current_of(self, value: Any) -> object:
        return current_of(value)

    def _state_partitions(self, record: ShareGroupStatePartitionMetadataRecord) -> Undo:
        group_id = record.key.data.group_id
        if record.value is None:
            known = self.known(group_id)
            return nothing_to_undo if known is None else _set_state_partitions(known, None)
        found = state_partitions_of(record.value.data, self._ctx.now)
        return self._change(group_id, lambda group: _set_state_partitions(group, found))


def _set_state_partitions(group: ShareGroup, state_partitions: StatePartitions | None) -> Undo:
    undo = partial(group.set_state_partitions, group.state_partitions)
    group.set_state_partitions(state_partitions)
    return undo
