"""The events of streams groups: epochs, topologies, targets, and members on their way to them.

They are made from the records of a change when it is stored, so an event never says what the log does not have.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import fields
from typing import Final

from rejoin.coordinator.core.groups.modern.changes import RecordChanges
from rejoin.coordinator.core.groups.modern.epochs import JOIN_EPOCH
from rejoin.coordinator.core.groups.streams.members.updating import MemberUpdate
from rejoin.coordinator.core.groups.streams.model.group import StreamsGroup
from rejoin.coordinator.core.groups.streams.model.state import STREAMS, StreamsMemberState
from rejoin.coordinator.core.inputs import Millis
from rejoin.coordinator.core.step_context import StepContext
from rejoin.journal.events.base import Event
from rejoin.journal.events.consumer_groups import GroupEpochBumped
from rejoin.journal.events.coordinator import (
    Cause,
    GroupCreated,
    GroupLoaded,
    GroupStateChanged,
    MemberJoined,
    MemberRejoined,
)
from rejoin.journal.events.streams_groups import (
    StreamsMemberAssigned,
    StreamsMemberDescribed,
    StreamsTargetComputed,
    StreamsTopologyConfigured,
    StreamsTopologyInitialized,
    TasksBySubtopology,
)
from rejoin.protocol.records.groups.streams_groups import (
    CurrentTaskIds,
    StoredTaskIds,
    StreamsGroupCurrentMemberAssignmentRecord,
    StreamsGroupMetadataRecord,
    StreamsGroupTargetAssignmentMemberRecord,
    StreamsGroupTargetAssignmentMetadataRecord,
    StreamsGroupTopologyRecord,
)

_TOPICS_CHANGED: Final = Cause(cause="topic-metadata")


class StreamsGroupEvents:
    """Emits what becomes of the groups of one shard."""

    def __init__(self, ctx: StepContext, offsets_partition: int) -> None:
        self._ctx = ctx
        self._offsets_partition = offsets_partition

    def loaded(self, group: StreamsGroup, offset_count: int) -> None:
        """A group was read from the log."""
        self._ctx.emit(
            GroupLoaded(
                group_id=group.group_id,
                offsets_partition=self._offsets_partition,
                state=group.state,
                generation=group.epoch,
                members=list(group.members),
                offset_count=offset_count,
                group_type=STREAMS,
            )
        )

    def stored(self, group: StreamsGroup, changes: RecordChanges) -> None:
        """A change is in the log."""
        group_id = group.group_id
        if not group.persisted:
            group.persisted = True
            group.state_since = self._ctx.now
            partition = self._offsets_partition
            self._ctx.emit(
                GroupCreated(group_id=group_id, offsets_partition=partition, simple=False, group_type=STREAMS)
            )
        # A topology is there before it is configured, and that comes before the epoch.
        configured = [each for each in changes.events if isinstance(each, StreamsTopologyConfigured)]
        for event in changes.events:
            if not isinstance(event, StreamsTopologyConfigured):
                self._ctx.emit(event)
        active: dict[str, TasksBySubtopology] = {}
        standby: dict[str, TasksBySubtopology] = {}
        for record in changes.records:
            match record:
                case StreamsGroupMetadataRecord() if record.value is not None:
                    while configured:
                        self._ctx.emit(configured.pop(0))
                    self._ctx.emit(
                        GroupEpochBumped(
                            group_id=group_id,
                            generation=record.value.data.epoch,
                            metadata_hash=str(record.value.data.metadata_hash),
                            cause=changes.cause or _TOPICS_CHANGED,
                            state=group.shown_state,
                        )
                    )
                case StreamsGroupTopologyRecord() if record.value is not None:
                    topology = record.value.data
                    ids = [each.subtopology_id for each in topology.subtopologies]
                    self._ctx.emit(
                        StreamsTopologyInitialized(group_id=group_id, topology_epoch=topology.epoch, subtopologies=ids)
                    )
                case StreamsGroupTargetAssignmentMemberRecord() if record.value is not None:
                    member_id = record.key.data.member_id
                    active[member_id] = _tasks(record.value.data.active_tasks)
                    standby[member_id] = _tasks(record.value.data.standby_tasks)
                case StreamsGroupTargetAssignmentMetadataRecord() if record.value is not None and changes.assignor:
                    self._ctx.emit(
                        StreamsTargetComputed(
                            group_id=group_id,
                            generation=record.value.data.assignment_epoch,
                            assignor=changes.assignor,
                            member_count=len(group.members),
                            active_targets=active,
                            standby_targets=standby,
                        )
                    )
                case StreamsGroupCurrentMemberAssignmentRecord() if record.value is not None:
                    self._assigned(group, record)
        for event in configured:
            self._ctx.emit(event)
        self._show_state(group)

    def _assigned(self, group: StreamsGroup, record: StreamsGroupCurrentMemberAssignmentRecord) -> None:
        member_id = record.key.data.member_id
        member = group.members.get(member_id)
        if member is None or record.value is None:
            return
        value = record.value.data
        self._ctx.emit(
            StreamsMemberAssigned(
                group_id=group.group_id,
                member_id=member_id,
                group_instance_id=member.metadata.instance_id,
                process_id=member.metadata.process_id,
                member_epoch=value.member_epoch,
                member_state=StreamsMemberState.of(value.state).name,
                active=_tasks(value.active_tasks),
                standby=_tasks(value.standby_tasks),
                revoking_active=_tasks(value.active_tasks_pending_revocation),
                revoking_standby=_tasks(value.standby_tasks_pending_revocation),
                warmup=_tasks(value.warmup_tasks),
                previous_member_epoch=value.previous_member_epoch,
            )
        )

    def _show_state(self, group: StreamsGroup) -> None:
        before, after = group.shown_state, group.state
        if before is not after:
            group.shown_state, group.previous_state, group.state_since = after, before, self._ctx.now
            self._ctx.emit(
                GroupStateChanged(group_id=group.group_id, previous_state=before, state=after, generation=group.epoch)
            )


def _tasks(tasks: Iterable[StoredTaskIds | CurrentTaskIds]) -> TasksBySubtopology:
    return {each.subtopology_id: list(each.partitions) for each in tasks}


def coming(group: StreamsGroup, update: MemberUpdate, session_timeout_ms: Millis) -> list[Event]:
    """Events of a member's request: the member is new, rejoins, or changes its metadata."""
    request, before, after = update.request, update.before, update.metadata
    protocols: list[str] = []
    if before.is_new:
        joined = MemberJoined(
            group_id=group.group_id,
            member_id=request.member_id,
            group_instance_id=after.instance_id,
            client_id=after.client_id,
            client_host=after.client_host,
            session_timeout_ms=session_timeout_ms,
            rebalance_timeout_ms=after.rebalance_timeout_ms,
            protocols=protocols,
            topics=None,
            state=update.state,
            client_reason=None,
            member_type=STREAMS,
        )
        return [joined, _described(group, update)]
    changed = before.metadata != after
    described = [_described(group, update)] if changed else []
    if before.replaced_id is not None or (not changed and request.member_epoch != JOIN_EPOCH):
        return [*described]
    rejoined = MemberRejoined(
        group_id=group.group_id,
        member_id=request.member_id,
        group_instance_id=after.instance_id,
        protocols=protocols,
        topics=None,
        state=update.state,
        changed=changed,
        client_reason=None,
        member_type=STREAMS,
    )
    return [rejoined, *described]


def _described(group: StreamsGroup, update: MemberUpdate) -> StreamsMemberDescribed:
    """The member as it describes itself, with what differs from before."""
    before, after = update.before, update.metadata
    names = (each.name for each in fields(after))
    endpoint = after.endpoint
    return StreamsMemberDescribed(
        group_id=group.group_id,
        member_id=update.request.member_id,
        group_instance_id=after.instance_id,
        client_id=after.client_id,
        client_host=after.client_host,
        process_id=after.process_id,
        rack_id=after.rack_id,
        topology_epoch=after.topology_epoch,
        rebalance_timeout_ms=after.rebalance_timeout_ms,
        user_endpoint=None if endpoint is None else f"{endpoint.host}:{endpoint.port}",
        client_tags=[f"{key}={value}" for key, value in after.tags],
        changed_fields=[]
        if before.is_new
        else [each for each in names if getattr(before.metadata, each) != getattr(after, each)],
    )
