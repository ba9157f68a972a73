"""ShareGroupHeartbeat: joining, staying, taking over assignments and leaving.

Kafka: GroupMetadataManager.shareGroupHeartbeat.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from rejoin.coordinator.core.groups.group import Group
from rejoin.coordinator.core.groups.modern.changes import RecordChanges, Writes
from rejoin.coordinator.core.groups.modern.epochs import (
    JOIN_EPOCH,
    LEAVE_EPOCH,
    REFRESH_MS,
    RefreshDeadline,
    is_target_due,
)
from rejoin.coordinator.core.groups.modern.metadata import TopicsMetadata, ids_of, metadata_hash
from rejoin.coordinator.core.groups.modern.session_timers import SessionTimers
from rejoin.coordinator.core.groups.share.group_events import coming
from rejoin.coordinator.core.groups.share.group_settings import ShareSettings
from rejoin.coordinator.core.groups.share.initializing import Initializing
from rejoin.coordinator.core.groups.share.model.group import ShareGroup
from rejoin.coordinator.core.groups.share.model.member import (
    NEW_ASSIGNMENT,
    NEW_METADATA,
    CurrentShare,
    ShareMember,
    ShareMemberMetadata,
)
from rejoin.coordinator.core.groups.share.model.records import current_record, epoch_record, metadata_record
from rejoin.coordinator.core.groups.share.model.replay import ShareReplay
from rejoin.coordinator.core.groups.share.removal import ShareRemovals
from rejoin.coordinator.core.groups.share.target import compute_target, lacks_initialized
from rejoin.coordinator.core.inputs import Context, Token
from rejoin.coordinator.core.step_context import StepContext
from rejoin.journal.events.consumer_groups import MemberEpochFenced
from rejoin.journal.events.coordinator import Cause, CauseClass
from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.messages.share.share_group_heartbeat import (
    ShareAssignment,
    SharedTopicPartitions,
    ShareGroupHeartbeatRequest,
    ShareGroupHeartbeatResponse,
    refused,
)
from rejoin.protocol.messages.share.share_group_state import InitializeShareGroupStateRequest


class ShareHeartbeats:
    """Handles the heartbeats of members for one shard's groups."""

    def __init__(
        self,
        ctx: StepContext,
        groups: dict[str, Group],
        topics: TopicsMetadata,
        replay: ShareReplay,
        writes: Writes[RecordChanges],
        removals: ShareRemovals,
        initializing: Initializing,
        timers: SessionTimers,
        settings: ShareSettings,
    ) -> None:
        self._ctx = ctx
        self._groups = groups
        self._topics = topics
        self._replay = replay
        self._writes = writes
        self._removals = removals
        self._initializing = initializing
        self._timers = timers
        self._settings = settings

    def heartbeat(self, token: Token, request: ShareGroupHeartbeatRequest, context: Context) -> None:
        """Handle a request that is valid in itself."""
        leaves = request.member_epoch < JOIN_EPOCH
        error = self._leave(token, request) if leaves else self._progress(token, request, context)
        if error is not ErrorCode.NONE:
            self._ctx.reply(token, refused(error))

    # --- joining and moving on

    def _progress(self, token: Token, request: ShareGroupHeartbeatRequest, context: Context) -> ErrorCode:
        group = self._group_of(request)
        if isinstance(group, ErrorCode):
            return group
        member = group.members.get(request.member_id)
        error = self._check_member(group, member, request)
        if error is not ErrorCode.NONE:
            return error
        before = (NEW_METADATA, NEW_ASSIGNMENT) if member is None else (member.metadata, member.current)
        changes = self._writes.begin()
        group, has_other_topics = self._update(group, request, context, changes)
        member = self._assign(group, request.member_id, has_other_topics, changes)
        self._finish(token, request, group, member, before[1], changes)
        return ErrorCode.NONE

    def _group_of(self, request: ShareGroupHeartbeatRequest) -> ShareGroup | ErrorCode:
        """The group of a request. A member that joins makes one where there is none of any kind."""
        group = self._groups.get(request.group_id)
        if isinstance(group, ShareGroup):
            return group
        if group is not None or request.member_epoch != JOIN_EPOCH:
            return ErrorCode.GROUP_ID_NOT_FOUND
        return self._replay.new_group(request.group_id)

    def _check_member(
        self, group: ShareGroup, member: ShareMember | None, request: ShareGroupHeartbeatRequest
    ) -> ErrorCode:
        """Whether the group has room, and whether the member may speak with this epoch."""
        if member is None:
            if len(group.members) >= self._ctx.settings.group_share_max_size:
                return ErrorCode.GROUP_MAX_SIZE_REACHED
            return ErrorCode.NONE if request.member_epoch == JOIN_EPOCH else ErrorCode.UNKNOWN_MEMBER_ID
        epoch, current = request.member_epoch, member.current
        if epoch in (JOIN_EPOCH, current.epoch) or (epoch < current.epoch and epoch == current.previous_epoch):
            return ErrorCode.NONE
        self._ctx.emit(
            MemberEpochFenced(
                group_id=group.group_id,
                member_id=member.member_id,
                group_instance_id=None,
                member_epoch=epoch,
                current_epoch=current.epoch,
            )
        )
        return ErrorCode.FENCED_MEMBER_EPOCH

    def _update(
        self, group: ShareGroup, request: ShareGroupHeartbeatRequest, context: Context, changes: RecordChanges
    ) -> tuple[ShareGroup, bool]:
        """Take in what the member says, bump the group's epoch, and compute a target where it may be.

        Returns the group, and whether the member is to be assigned to again whatever its epoch.
        """
        group_id, member_id = group.group_id, request.member_id
        is_new_group = group_id not in self._groups
        member = group.members.get(member_id)
        before = NEW_METADATA if member is None else member.metadata
        after = _described(before, request, context)
        bump = before.topic_names != after.topic_names
        if bump:
            why: CauseClass = "join-new" if member is None else "rejoin-metadata"
            changes.cause = Cause(cause=why, member_id=member_id)
        if group.assignment_epoch >= group.epoch and lacks_initialized(group, self._topics):
            bump = True
            changes.cause = changes.cause or Cause(cause="partitions-initialized", member_id=member_id)
        changes.events += coming(
            group,
            member,
            member_id,
            after,
            self._settings.session_timeout_ms(group_id),
            rejoins=not request.member_epoch,
        )
        if before != after or member is None:
            changes.write(metadata_record(group_id, member_id, after))
        made = self._groups[group_id]
        assert isinstance(made, ShareGroup), "the record of the member makes its group"
        bump = self._update_epoch(made, changes, is_new_group, bump or made.needs_epoch)
        interval_ms, now = self._settings.assignment_interval_ms(group_id), self._ctx.now
        if is_target_due(made.epoch, made.assignment_epoch, made.assignment_at, interval_ms, now):
            compute_target(made, self._topics, changes, now)
        return made, bump

    def _update_epoch(self, group: ShareGroup, changes: RecordChanges, is_new_group: bool, bump: bool) -> bool:
        """A new group epoch, if a new assignment is needed; returns whether it is."""
        now = self._ctx.now
        if not bump and not group.refresh.is_due(group.epoch, now):
            return False
        new_hash = metadata_hash(group.topics, self._topics)
        bump = bump or new_hash != group.metadata_hash
        if bump:
            changes.write(epoch_record(group.group_id, group.next_epoch, new_hash))
            changes.make((), group.repaired)
        if not is_new_group:
            # Kafka: a group that is new is made by its records, and what was kept beside them is lost.
            group.refresh = RefreshDeadline(now + REFRESH_MS, group.epoch)
        return bump

    def _assign(self, group: ShareGroup, member_id: str, bump: bool, changes: RecordChanges) -> ShareMember:
        """Let a member take its target at once, as far as it is subscribed to the topics."""
        member = group.members[member_id]
        before = member.current
        if not bump and before.epoch == group.assignment_epoch:
            return member
        subscribed = ids_of(member.metadata.topic_names, self._topics)
        target = group.targets.get(member_id, {})
        epoch = group.assignment_epoch
        after = CurrentShare(
            epoch=epoch,
            previous_epoch=before.previous_epoch if before.epoch == epoch else before.epoch,
            assigned={topic_id: indexes for topic_id, indexes in target.items() if topic_id in subscribed},
        )
        if after != before:
            changes.write(current_record(group.group_id, member_id, after))
        return member

    def _finish(
        self,
        token: Token,
        request: ShareGroupHeartbeatRequest,
        group: ShareGroup,
        member: ShareMember,
        before: CurrentShare,
        changes: RecordChanges,
    ) -> None:
        group_id = group.group_id
        self._timers.restart_session(member, self._settings.session_timeout_ms(group_id))
        with_assignment = (
            request.member_epoch == JOIN_EPOCH
            or request.subscribed_topic_names is not None
            or member.current.assigned != before.assigned
        )
        response = ShareGroupHeartbeatResponse(
            member_id=member.member_id,
            member_epoch=member.current.epoch,
            heartbeat_interval_ms=self._settings.heartbeat_interval_ms(group_id),
            assignment=_assignment(member.current) if with_assignment else None,
        )
        initialize = self._initializing.begin(group, changes)
        self._writes.commit(group_id, changes, partial(self._reply, token, response, initialize))

    def _reply(
        self,
        token: Token,
        response: ShareGroupHeartbeatResponse,
        initialize: InitializeShareGroupStateRequest | None,
        error: ErrorCode,
    ) -> None:
        self._ctx.reply(token, response if error is ErrorCode.NONE else refused(error))
        if initialize is not None and error is ErrorCode.NONE:
            self._initializing.send(initialize)

    # --- leaving

    def _leave(self, token: Token, request: ShareGroupHeartbeatRequest) -> ErrorCode:
        """Remove a member. What it holds of share-partitions stays with it."""
        group = self._groups.get(request.group_id)
        if not isinstance(group, ShareGroup):
            return ErrorCode.GROUP_ID_NOT_FOUND
        if request.member_id not in group.members:
            return ErrorCode.UNKNOWN_MEMBER_ID
        response = ShareGroupHeartbeatResponse(member_id=request.member_id, member_epoch=LEAVE_EPOCH)
        self._removals.remove(group, request.member_id, "left", partial(self._reply, token, response, None))
        return ErrorCode.NONE


def _described(
    before: ShareMemberMetadata, request: ShareGroupHeartbeatRequest, context: Context
) -> ShareMemberMetadata:
    """A member updated by its request; missing fields stay."""
    names = request.subscribed_topic_names
    return replace(
        before,
        rack_id=before.rack_id if request.rack_id is None else request.rack_id,
        client_id=context.client_id,
        client_host=context.client_host,
        topic_names=before.topic_names if names is None else frozenset(names),
    )


def _assignment(current: CurrentShare) -> ShareAssignment:
    return ShareAssignment(
        topic_partitions=tuple(
            SharedTopicPartitions(topic_id=topic_id, partitions=tuple(sorted(indexes)))
            for topic_id, indexes in current.assigned.items()
        )
    )
