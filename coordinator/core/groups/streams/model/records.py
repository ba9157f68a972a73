"""Conversions between the state of a streams group and its records, in both directions.

Kafka: StreamsCoordinatorRecordHelpers.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from rejoin.coordinator.core.groups.modern.epochs import FIRST_EPOCH
from rejoin.coordinator.core.groups.modern.records import PartRecords, assignment_epoch
from rejoin.coordinator.core.groups.streams.model.group import StreamsGroup
from rejoin.coordinator.core.groups.streams.model.member import (
    NEW_ASSIGNMENT,
    NEW_METADATA,
    RELEASED,
    CurrentTasks,
    StreamsMemberMetadata,
)
from rejoin.coordinator.core.groups.streams.model.state import StreamsMemberState
from rejoin.coordinator.core.groups.streams.model.tasks import HeldTasks, TaskEpochs, Tasks, TaskSets
from rejoin.coordinator.core.inputs import Millis
from rejoin.protocol.java import utf16_sorted
from rejoin.protocol.records.groups import streams_groups as stored
from rejoin.protocol.records.groups.streams_groups import StreamsGroupRecord
from rejoin.protocol.streams.topology import StreamsKeyValue

PARTS: Final = PartRecords(
    epoch=stored.StreamsGroupMetadataRecord,
    member=stored.StreamsGroupMemberMetadataRecord,
    target_epoch=stored.StreamsGroupTargetAssignmentMetadataRecord,
    target=stored.StreamsGroupTargetAssignmentMemberRecord,
    current=stored.StreamsGroupCurrentMemberAssignmentRecord,
)

# --- to records


def epoch_record(
    group: StreamsGroup,
    epoch: int,
    metadata_hash: int | None = None,
    validated_topology_epoch: int | None = None,
    assignment_configs: Mapping[str, str] | None = None,
) -> StreamsGroupRecord:
    """Record of a group's epoch; what is not given is as it was."""
    configs = group.assignment_configs if assignment_configs is None else assignment_configs
    validated = group.validated_topology_epoch if validated_topology_epoch is None else validated_topology_epoch
    return stored.StreamsGroupMetadataRecord.of(
        group.group_id,
        stored.StreamsGroupMetadataValue(
            epoch=epoch,
            metadata_hash=group.metadata_hash if metadata_hash is None else metadata_hash,
            validated_topology_epoch=validated,
            last_assignment_configs=key_values(configs.items()),
            stored_description_topology_epoch=group.stored_description_epoch,
            failed_description_topology_epoch=group.failed_description_epoch,
        ),
    )


def key_values(pairs: Iterable[tuple[str, str]]) -> tuple[StreamsKeyValue, ...]:
    """Pairs by key."""
    by_key = dict(pairs)
    return tuple(StreamsKeyValue(key=key, value=by_key[key]) for key in utf16_sorted(by_key))


def metadata_record(group_id: str, member_id: str, metadata: StreamsMemberMetadata) -> StreamsGroupRecord:
    """Record of a member as it describes itself."""
    return stored.StreamsGroupMemberMetadataRecord.of(
        group_id,
        member_id,
        stored.StreamsGroupMemberMetadataValue(
            instance_id=metadata.instance_id,
            rack_id=metadata.rack_id,
            client_id=metadata.client_id,
            client_host=metadata.client_host,
            rebalance_timeout_ms=metadata.rebalance_timeout_ms,
            topology_epoch=metadata.topology_epoch,
            process_id=metadata.process_id,
            user_endpoint=metadata.endpoint,
            client_tags=key_values(metadata.tags),
        ),
    )


def target_epoch_record(group_id: str, epoch: int, at: Millis) -> StreamsGroupRecord:
    """Record of the target's epoch, and when it was computed."""
    return stored.StreamsGroupTargetAssignmentMetadataRecord.of(group_id, assignment_epoch(epoch, at))


def target_record(group_id: str, member_id: str, target: Tasks) -> StreamsGroupRecord:
    """Record of a member's target assignment."""
    return stored.StreamsGroupTargetAssignmentMemberRecord.of(
        group_id,
        member_id,
        stored.StreamsGroupTargetAssignmentMemberValue(
            active_tasks=_task_ids(target.active),
            standby_tasks=_task_ids(target.standby),
            warmup_tasks=_task_ids(target.warmup),
        ),
    )


def current_record(group_id: str, member_id: str, current: CurrentTasks) -> StreamsGroupRecord:
    """Record of a member's current assignment."""
    assigned, pending = current.assigned, current.pending
    return stored.StreamsGroupCurrentMemberAssignmentRecord.of(
        group_id,
        member_id,
        stored.StreamsGroupCurrentMemberAssignmentValue(
            member_epoch=current.epoch,
            previous_member_epoch=current.previous_epoch,
            state=current.state.value,
            active_tasks=_tasks_with_epochs(assigned.active),
            standby_tasks=_task_ids(assigned.standby),
            warmup_tasks=_task_ids(assigned.warmup),
            active_tasks_pending_revocation=_tasks_with_epochs(pending.active),
            standby_tasks_pending_revocation=_task_ids(pending.standby),
            warmup_tasks_pending_revocation=_task_ids(pending.warmup),
        ),
    )


def _task_ids(tasks: TaskSets) -> tuple[stored.StoredTaskIds, ...]:
    return tuple(
        stored.StoredTaskIds(subtopology_id=each, partitions=tuple(sorted(tasks[each]))) for each in utf16_sorted(tasks)
    )


def _tasks_with_epochs(tasks: TaskEpochs) -> tuple[stored.CurrentTaskIds, ...]:
    return tuple(
        stored.CurrentTaskIds(
            subtopology_id=each,
            partitions=tuple(sorted(tasks[each])),
            assignment_epochs=tuple(epoch for _, epoch in sorted(tasks[each].items())),
        )
        for each in utf16_sorted(tasks)
    )


def group_records(group: StreamsGroup) -> list[StreamsGroupRecord]:
    """Everything that a group has in the log."""
    group_id, members = group.group_id, group.members.values()
    # A compacted log may have one record of a member and not yet the other.
    records = [
        metadata_record(group_id, each.member_id, each.metadata)
        for each in members
        if each.metadata is not NEW_METADATA
    ]
    if group.topology is not None:
        records.append(stored.StreamsGroupTopologyRecord.of(group_id, group.topology))
    if group.epoch > FIRST_EPOCH:
        records.append(epoch_record(group, group.epoch))
    records += [target_record(group_id, member_id, target) for member_id, target in group.targets.items()]
    if group.targets or group.assignment_epoch > FIRST_EPOCH:
        records.append(target_epoch_record(group_id, group.assignment_epoch, group.assignment_at))
    records += [
        current_record(group_id, each.member_id, each.current)
        for each in members
        if each.current is not NEW_ASSIGNMENT and each.current is not RELEASED
    ]
    return records


def group_tombstones(group: StreamsGroup) -> list[StreamsGroupRecord]:
    """The end of everything that a group without members has in the log.

    Kafka: the topology goes last. At replay there is no group any more that it could be taken from.
    """
    group_id = group.group_id
    return [
        stored.StreamsGroupTargetAssignmentMetadataRecord.of(group_id, None),
        stored.StreamsGroupMetadataRecord.of(group_id, None),
        stored.StreamsGroupTopologyRecord.of(group_id, None),
    ]


# --- from records


def metadata_of(value: stored.StreamsGroupMemberMetadataValue) -> StreamsMemberMetadata:
    """A member as its record describes it."""
    return StreamsMemberMetadata(
        instance_id=value.instance_id,
        rack_id=value.rack_id,
        client_id=value.client_id,
        client_host=value.client_host,
        rebalance_timeout_ms=value.rebalance_timeout_ms,
        topology_epoch=value.topology_epoch,
        process_id=value.process_id,
        endpoint=value.user_endpoint,
        tags=tuple((each.key, each.value) for each in value.client_tags),
    )


def target_of(value: stored.StreamsGroupTargetAssignmentMemberValue) -> Tasks:
    """A member's target assignment, from its record."""
    return Tasks(_sets(value.active_tasks), _sets(value.standby_tasks), _sets(value.warmup_tasks))


def current_of(value: stored.StreamsGroupCurrentMemberAssignmentValue) -> CurrentTasks:
    """A member's current assignment, from its record."""
    epoch = value.member_epoch
    return CurrentTasks(
        epoch=epoch,
        previous_epoch=value.previous_member_epoch,
        state=StreamsMemberState.of(value.state),
        assigned=HeldTasks(_epochs(value.active_tasks, epoch), _sets(value.standby_tasks), _sets(value.warmup_tasks)),
        pending=HeldTasks(
            _epochs(value.active_tasks_pending_revocation, epoch),
            _sets(value.standby_tasks_pending_revocation),
            _sets(value.warmup_tasks_pending_revocation),
        ),
    )


def _sets(tasks: Iterable[stored.StoredTaskIds]) -> dict[str, frozenset[int]]:
    return {each.subtopology_id: frozenset(each.partitions) for each in tasks}


def _epochs(tasks: Iterable[stored.CurrentTaskIds], member_epoch: int) -> dict[str, dict[int, int]]:
    """Active tasks with their assignment epochs. Without as many as there are tasks, each has the member's epoch."""
    found = {}
    for each in tasks:
        epochs = each.assignment_epochs
        if epochs is None or len(epochs) != len(each.partitions):
            found[each.subtopology_id] = dict.fromkeys(each.partitions, member_epoch)
        else:
            found[each.subtopology_id] = dict(zip(each.partitions, epochs, strict=True))
    return found
