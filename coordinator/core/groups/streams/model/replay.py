"""Replay of records and fields that only streams groups have. Kafka: GroupMetadataManager.replay."""

from __future__ import annotations

from functools import partial
from typing import Any

from rejoin.coordinator.core.groups.group import Group
from rejoin.coordinator.core.groups.modern.changes import Undo, nothing_to_undo
from rejoin.coordinator.core.groups.modern.replay import ModernReplay
from rejoin.coordinator.core.groups.streams.model.group import StreamsGroup
from rejoin.coordinator.core.groups.streams.model.member import RELEASED
from rejoin.coordinator.core.groups.streams.model.memory import TaskOffsets
from rejoin.coordinator.core.groups.streams.model.records import PARTS, current_of, metadata_of, target_of
from rejoin.protocol.records.groups.streams_groups import StreamsGroupTopologyRecord
from rejoin.protocol.types import TopicPartition


class StreamsReplay(ModernReplay[StreamsGroup]):
    """Replays the records of streams groups."""

    def __init__(self, partition: TopicPartition, groups: dict[str, Group]) -> None:
        super().__init__(groups, StreamsGroup, PARTS, RELEASED)
        self._partition = partition
        self._by_type[StreamsGroupTopologyRecord] = self._topology

    def new_group(self, group_id: str) -> StreamsGroup:
        return StreamsGroup(group_id=group_id, partition=self._partition)

    def repair(self, group_id: str) -> None:
        group = self.known(group_id)
        if group is not None:
            group.repair()

    def _metadata_of(self, value: Any) -> object:
        return metadata_of(value)

    def _target_of(self, value: Any) -> object:
        return target_of(value)

    def _current_of(self, value: Any) -> object:
        return current_of(value)

    def _set_epoch(self, group: StreamsGroup, value: Any) -> Undo:
        undo_epoch = super()._set_epoch(group, value)
        before = (
            group.validated_topology_epoch,
            group.assignment_configs,
            group.stored_description_epoch,
            group.failed_description_epoch,
        )
        group.validated_topology_epoch = value.validated_topology_epoch
        group.assignment_configs = {each.key: each.value for each in value.last_assignment_configs or ()}
        group.stored_description_epoch = value.stored_description_topology_epoch
        group.failed_description_epoch = value.failed_description_topology_epoch

        def undo() -> None:
            undo_epoch()
            (
                group.validated_topology_epoch,
                group.assignment_configs,
                group.stored_description_epoch,
                group.failed_description_epoch,
            ) = before

        return undo

    def _topology(self, record: StreamsGroupTopologyRecord) -> Undo:
        group_id = record.key.data.group_id
        if record.value is None:
            known = self.known(group_id)
            return nothing_to_undo if known is None else _set_topology(known, None)
        topology = record.value.data
        return self._change(group_id, lambda group: _set_topology(group, topology))

    def _restoring(self, group: StreamsGroup, member_id: str, metadata: object | None, current: object | None) -> Undo:
        """The undoing also brings back what only the memory has of a member that was removed."""
        restore = super()._restoring(group, member_id, metadata, current)
        memory = group.memory
        offsets, end_offsets = memory.offsets.get(member_id), memory.end_offsets.get(member_id)
        return partial(_restore, restore, group, member_id, offsets, end_offsets, memory.shutdown_requested_by)


def _set_topology(group: StreamsGroup, topology: Any) -> Undo:
    undo = partial(group.set_topology, group.topology)
    group.set_topology(topology)
    return undo


def _restore(
    restore: Undo,
    group: StreamsGroup,
    member_id: str,
    offsets: TaskOffsets | None,
    end_offsets: TaskOffsets | None,
    shutdown_requested_by: str | None,
) -> None:
    restore()
    memory = group.memory
    if member_id not in group.members:
        return
    if offsets is not None:
        memory.offsets.setdefault(member_id, offsets)
    if end_offsets is not None:
        memory.end_offsets.setdefault(member_id, end_offsets)
    memory.shutdown_requested_by = memory.shutdown_requested_by or shutdown_requested_by
