"""StreamsGroupHeartbeat: joining, staying, taking over tasks and leaving.

Kafka: GroupCoordinatorService.streamsGroupHeartbeat, GroupMetadataManager.streamsGroupHeartbeat.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import NamedTuple

from rejoin.coordinator.core.groups.classic.group import ClassicGroup
from rejoin.coordinator.core.groups.group import Group, emit_fenced
from rejoin.coordinator.core.groups.modern.admission import check_room
from rejoin.coordinator.core.groups.modern.changes import RecordChanges, Writes
from rejoin.coordinator.core.groups.modern.epochs import JOIN_EPOCH
from rejoin.coordinator.core.groups.modern.session_timers import RebalanceTimers
from rejoin.coordinator.core.groups.streams.group_events import coming
from rejoin.coordinator.core.groups.streams.group_settings import StreamsSettings
from rejoin.coordinator.core.groups.streams.internal_topics import InternalTopics
from rejoin.coordinator.core.groups.streams.members.finding import described, find_member, owned_by
from rejoin.coordinator.core.groups.streams.members.removal import StreamsRemovals
from rejoin.coordinator.core.groups.streams.members.responses import StreamsResponses
from rejoin.coordinator.core.groups.streams.members.target import move_refined
from rejoin.coordinator.core.groups.streams.members.updating import MemberUpdate, StreamsUpdates
from rejoin.coordinator.core.groups.streams.model.group import StreamsGroup
from rejoin.coordinator.core.groups.streams.model.memory import GroupMemory
from rejoin.coordinator.core.groups.streams.model.replay import StreamsReplay
from rejoin.coordinator.core.groups.streams.model.state import STATIC_LEAVE_EPOCH
from rejoin.coordinator.core.groups.streams.topology.configured import MissingTopic
from rejoin.coordinator.core.inputs import Context, Token
from rejoin.coordinator.core.step_context import StepContext
from rejoin.journal.events.consumer_groups import MemberEpochFenced
from rejoin.journal.events.streams_groups import (
    Refusal,
    StreamsHeartbeatRefused,
    StreamsShutdownRequested,
    StreamsTopologyConfigured,
)
from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.messages.streams.streams_group_heartbeat import (
    StreamsGroupHeartbeatRequest,
    StreamsGroupHeartbeatResponse,
    refused,
)
from rejoin.protocol.records.consumer_offsets import group_record

_API = "StreamsGroupHeartbeat"


class Refused(NamedTuple):
    """The error for a member; ``reason`` where it is none that members live through."""

    error: ErrorCode
    reason: Refusal | None = None


class StreamsHeartbeats:
    """Handles the heartbeats of members for one shard's groups."""

    def __init__(
        self,
        ctx: StepContext,
        groups: dict[str, Group],
        replay: StreamsReplay,
        writes: Writes[RecordChanges],
        updates: StreamsUpdates,
        removals: StreamsRemovals,
        responses: StreamsResponses,
        timers: RebalanceTimers,
        settings: StreamsSettings,
    ) -> None:
        self._ctx = ctx
        self._groups = groups
        self._replay = replay
        self._writes = writes
        self._updates = updates
        self._removals = removals
        self._responses = responses
        self._timers = timers
        self._settings = settings

    def heartbeat(
        self, token: Token, request: StreamsGroupHeartbeatRequest, context: Context, internal: InternalTopics
    ) -> None:
        """Handle a request that is valid in itself. ``internal`` makes topics that are missing."""
        leaves = request.member_epoch < JOIN_EPOCH
        error = self._leave(token, request) if leaves else self._progress(token, request, context, internal)
        if error is not ErrorCode.NONE:
            self._ctx.reply(token, refused(error))
        group = self._groups.get(request.group_id)
        if isinstance(group, StreamsGroup):
            # What only the memory of a group has may have changed, for all of its members.
            group.look_again()

    # --- joining and moving on

    def _progress(
        self, token: Token, request: StreamsGroupHeartbeatRequest, context: Context, internal: InternalTopics
    ) -> ErrorCode:
        changes = self._writes.begin()
        answer = self._update(request, context, changes)
        if isinstance(answer, Refused):
            changes.undo()
            self._emit_refused(answer, request, context, changes)
            return answer.error
        response, missing = answer

        def reply(error: ErrorCode) -> None:
            is_answered = missing and error is ErrorCode.NONE
            self._reply(
                token,
                internal.answered(request.group_id, response, missing, context) if is_answered else response,
                error,
            )

        self._writes.commit(request.group_id, changes, reply)
        return ErrorCode.NONE

    def _update(
        self, request: StreamsGroupHeartbeatRequest, context: Context, changes: RecordChanges
    ) -> tuple[StreamsGroupHeartbeatResponse, Mapping[str, MissingTopic]] | Refused:
        """The answer to a member, and the internal topics that its group lacks; or why it is refused."""
        group_id, member_id, instance_id = request.group_id, request.member_id, request.instance_id
        is_new_group = not isinstance(self._groups.get(group_id), StreamsGroup)
        group = self._group_of(request, changes)
        if isinstance(group, ErrorCode):
            return Refused(group, "other-type" if group_id in self._groups else None)
        memory, state = group.memory, group.state
        owner_id = None if instance_id is None else group.static_members.get(instance_id)
        if owner_id is not None and owner_id != member_id:
            move_refined(memory, owner_id, member_id)
        max_size = self._ctx.settings.group_streams_max_size
        error = check_room(group, member_id, instance_id, max_size)
        if error is not ErrorCode.NONE and request.member_epoch == JOIN_EPOCH:
            return Refused(error, "size")
        known = group.member_order.known(group.members, member_id)
        owned = owned_by(request)
        before = find_member(group, request, owned, changes)
        if isinstance(before, ErrorCode):
            self._report(group, before, request)
            return Refused(before)
        if before.replaced_id is not None:
            known = known._replace(newcomer=member_id)
        metadata = described(before.metadata, request, context)
        if isinstance(metadata, ErrorCode):
            return Refused(metadata)
        update = MemberUpdate(request, before, metadata, owned, known, memory, is_new_group, state)
        changes.events += coming(group, update, self._settings.session_timeout_ms(group_id))
        member = self._updates.apply(group, update, changes)
        if isinstance(member, ErrorCode):
            return Refused(member, _why(member, request))
        made = self._groups[group_id]
        assert isinstance(made, StreamsGroup), "a member that was updated has a group"
        self._timers.restart_session(member, self._settings.session_timeout_ms(group_id))
        if request.shutdown_application:
            self._request_shutdown(group_id, memory, request)
        response = self._responses.accepted(made, member, update, context.api_version)
        if isinstance(response, ErrorCode):
            return Refused(response, "endpoints")
        return response, {} if memory.configured is None else memory.configured.to_create

    def _group_of(self, request: StreamsGroupHeartbeatRequest, changes: RecordChanges) -> StreamsGroup | ErrorCode:
        """The group of a request. A member that joins makes one, also of an Empty classic one."""
        group = self._groups.get(request.group_id)
        if isinstance(group, StreamsGroup):
            return group
        if request.member_epoch != JOIN_EPOCH:
            return ErrorCode.GROUP_ID_NOT_FOUND
        if group is not None:
            if not isinstance(group, ClassicGroup) or not group.is_empty:
                return ErrorCode.GROUP_ID_NOT_FOUND
            changes.write(group_record(request.group_id, None))
        return self._replay.new_group(request.group_id)

    def _report(self, group: StreamsGroup, error: ErrorCode, request: StreamsGroupHeartbeatRequest) -> None:
        emit_fenced(self._ctx, group, error, request.member_id, request.instance_id, _API)
        member = group.members.get(request.member_id)
        if error is not ErrorCode.FENCED_MEMBER_EPOCH or member is None:
            return
        self._ctx.emit(
            MemberEpochFenced(
                group_id=group.group_id,
                member_id=member.member_id,
                group_instance_id=member.metadata.instance_id,
                member_epoch=request.member_epoch,
                current_epoch=member.current.epoch,
            )
        )

    def _reply(self, token: Token, response: StreamsGroupHeartbeatResponse, error: ErrorCode) -> None:
        self._ctx.reply(token, response if error is ErrorCode.NONE else refused(error))

    # --- leaving

    def _leave(self, token: Token, request: StreamsGroupHeartbeatRequest) -> ErrorCode:
        """Remove a member; its epoch is not looked at."""
        group = self._groups.get(request.group_id)
        if not isinstance(group, StreamsGroup):
            return ErrorCode.GROUP_ID_NOT_FOUND
        member_id, instance_id = request.member_id, request.instance_id
        if request.shutdown_application:
            self._request_shutdown(group.group_id, group.memory, request)
        if instance_id is not None:
            owner_id = group.static_members.get(instance_id)
            if owner_id is None:
                return ErrorCode.UNKNOWN_MEMBER_ID
            if owner_id != member_id:
                self._report(group, ErrorCode.FENCED_INSTANCE_ID, request)
                return ErrorCode.FENCED_INSTANCE_ID
        member = group.members.get(member_id)
        if member is None:
            return ErrorCode.UNKNOWN_MEMBER_ID
        response = StreamsGroupHeartbeatResponse(member_id=member_id, member_epoch=request.member_epoch)
        reply = partial(self._reply, token, response)
        if request.member_epoch == STATIC_LEAVE_EPOCH:
            self._removals.leave_for_a_moment(group, member, reply)
        else:
            self._removals.remove(group, member, "left", reply)
        return ErrorCode.NONE

    # --- events that are in no record

    def _request_shutdown(self, group_id: str, memory: GroupMemory, request: StreamsGroupHeartbeatRequest) -> None:
        """A member wants the whole application to end. The first one is remembered."""
        if memory.shutdown_requested_by is not None:
            return
        memory.shutdown_requested_by = request.member_id
        self._ctx.emit(
            StreamsShutdownRequested(
                group_id=group_id, member_id=request.member_id, group_instance_id=request.instance_id
            )
        )

    def _emit_refused(
        self, refused: Refused, request: StreamsGroupHeartbeatRequest, context: Context, changes: RecordChanges
    ) -> None:
        if refused.reason is None:
            return
        for event in changes.events:
            # What was found out about topics stays true, and is often why the member is refused.
            if isinstance(event, StreamsTopologyConfigured):
                self._ctx.emit(event)
        self._ctx.emit(
            StreamsHeartbeatRefused(
                group_id=request.group_id,
                member_id=request.member_id,
                group_instance_id=request.instance_id,
                client_id=context.client_id,
                client_host=context.client_host,
                error=refused.error.name,
                reason=refused.reason,
            )
        )


def _why(error: ErrorCode, request: StreamsGroupHeartbeatRequest) -> Refusal | None:
    """The reason of an error in the steps of a heartbeat."""
    if error is ErrorCode.INVALID_REQUEST:
        return "unknown-task" if request.topology is None else "other-topology"
    return "invalid-topology" if error is ErrorCode.STREAMS_INVALID_TOPOLOGY else None
