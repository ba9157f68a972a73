"""ConsumerGroupHeartbeat: joining, staying, taking over assignments and leaving.

Kafka: GroupCoordinatorService.consumerGroupHeartbeat, GroupMetadataManager.consumerGroupHeartbeat.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import TypeAlias

from rejoin.coordinator.core.groups.classic.group import ClassicGroup
from rejoin.coordinator.core.groups.consumer.group_settings import GroupSettings
from rejoin.coordinator.core.groups.consumer.members.reconciliation import Owned
from rejoin.coordinator.core.groups.consumer.members.removal import Removals
from rejoin.coordinator.core.groups.consumer.members.subscribing import (
    Before,
    find_member,
    lacks_target,
    own_assignment,
)
from rejoin.coordinator.core.groups.consumer.members.timers import MemberTimers
from rejoin.coordinator.core.groups.consumer.members.updating import Update, Updates
from rejoin.coordinator.core.groups.consumer.model.changes import Changes, Writes
from rejoin.coordinator.core.groups.consumer.model.group import ConsumerGroup
from rejoin.coordinator.core.groups.consumer.model.member import ConsumerMember, ConsumerMemberMetadata, PartitionEpochs
from rejoin.coordinator.core.groups.consumer.model.replay import ConsumerReplay
from rejoin.coordinator.core.groups.consumer.model.state import STATIC_LEAVE_EPOCH
from rejoin.coordinator.core.groups.group import Group, emit_fenced
from rejoin.coordinator.core.groups.modern.admission import check_room
from rejoin.coordinator.core.groups.modern.epochs import JOIN_EPOCH
from rejoin.coordinator.core.groups.modern.member_order import converted
from rejoin.coordinator.core.groups.quiet_session import QuietSession
from rejoin.coordinator.core.inputs import Context, Token
from rejoin.coordinator.core.step_context import StepContext
from rejoin.journal.events.consumer_groups import MemberEpochFenced
from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.java import random_uuid
from rejoin.protocol.messages.groups.consumer_group_heartbeat import (
    AssignedTopicPartitions,
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    HeartbeatAssignment,
    refused,
)
from rejoin.protocol.records.consumer_offsets import group_record

Upgrade: TypeAlias = Callable[[ClassicGroup, str, Changes], ConsumerGroup | ErrorCode]
"""Makes a consumer group of a classic one with members, for a member that joins, or says why not."""


class ConsumerHeartbeats:
    """Handles the heartbeats of members for one shard's groups."""

    def __init__(
        self,
        ctx: StepContext,
        groups: dict[str, Group],
        replay: ConsumerReplay,
        writes: Writes,
        updates: Updates,
        removals: Removals,
        timers: MemberTimers,
        settings: GroupSettings,
        upgrade: Upgrade,
    ) -> None:
        self._ctx = ctx
        self._groups = groups
        self._replay = replay
        self._writes = writes
        self._updates = updates
        self._removals = removals
        self._timers = timers
        self._settings = settings
        self._upgrade = upgrade

    def heartbeat(self, token: Token, request: ConsumerGroupHeartbeatRequest, context: Context) -> None:
        """Handle a request that is valid in itself."""
        leaves = request.member_epoch < JOIN_EPOCH
        error = self._leave(token, request) if leaves else self._progress(token, request, context)
        if error is not ErrorCode.NONE:
            self._ctx.reply(token, refused(error))

    # --- without change

    def answer_unchanged(self, token: Token, request: ConsumerGroupHeartbeatRequest, context: Context) -> bool:
        """Answer a heartbeat that only says that its member is there, if there is nothing to say to it."""
        group = self._groups.get(request.group_id)
        if type(group) is not ConsumerGroup:
            return False
        member = group.members.get(request.member_id)
        if member is None or request.member_epoch != group.assignment_epoch:
            return False
        if not _says_nothing_new(member, request, context):
            return False
        ctx = self._ctx
        if ctx.now >= group.quiet_until and not self._is_quiet(group):
            return False
        reply = member.unchanged
        if reply is None:
            if not member.current.is_reconciled_to(group.assignment_epoch):
                return False
            interval_ms = self._settings.heartbeat_interval_ms(group.group_id)
            reply = member.unchanged = accepted(member, interval_ms, with_assignment=False)
        ctx.deadlines.set(member.session_key, ctx.now + self._settings.session_timeout_ms(group.group_id))
        ctx.reply(token, reply)
        return True

    def quiet_session(
        self, group: ConsumerGroup, member_id: str, instance_id: str | None, member_epoch: int
    ) -> QuietSession | None:
        """The session of a member that has reached the target: ``answer_unchanged`` answers until something changes."""
        member = group.members.get(member_id)
        expires_at = None if member is None else self._ctx.deadlines.at(member.session_key)
        if (
            member is None
            or expires_at is None
            or member.is_classic
            or not 0 < member_epoch == member.current.epoch
            or instance_id != member.metadata.instance_id
            or not member.current.is_reconciled_to(group.assignment_epoch)
            or not self._is_quiet(group)
        ):
            return None
        timeout_ms = self._settings.session_timeout_ms(group.group_id)
        answer = accepted(member, self._settings.heartbeat_interval_ms(group.group_id), with_assignment=False)
        return QuietSession(
            member.session_key, expires_at, timeout_ms, answer, commits_restart=False, until=group.quiet_until
        )

    def _is_quiet(self, group: ConsumerGroup) -> bool:
        """Whether a heartbeat that says nothing new changes nothing, as long as nothing else does."""
        is_quiet = (
            group.epoch == group.assignment_epoch
            and not group.refresh.is_due(group.epoch, self._ctx.now)
            and not group.subscriptions.regexes
            and not group.needs_epoch
            and len(group.subscriptions.server_assignors) < 2
            and not self._writes.is_writing(group.group_id)
        )
        if is_quiet:
            group.quiet_until = group.refresh.at
        return is_quiet

    # --- joining and moving on

    def _progress(self, token: Token, request: ConsumerGroupHeartbeatRequest, context: Context) -> ErrorCode:
        changes = self._writes.begin()
        member = self._update(request, context, changes)
        if isinstance(member, ErrorCode):
            changes.undo()
            return member
        self._finish(token, request, *member, changes)
        return ErrorCode.NONE

    def _update(
        self, request: ConsumerGroupHeartbeatRequest, context: Context, changes: Changes
    ) -> tuple[ConsumerMember, Before] | ErrorCode:
        is_new_group = not isinstance(self._groups.get(request.group_id), ConsumerGroup)
        group = self._group_of(request, changes)
        if isinstance(group, ErrorCode):
            return group
        max_size = self._ctx.settings.group_consumer_max_size
        error = check_room(group, request.member_id, request.instance_id, max_size)
        if error is not ErrorCode.NONE:
            return error
        member_id = request.member_id or random_uuid(self._ctx.new_id)
        owned = owned_by(request)
        is_converted = changes.upgraded_from is not None
        known = (converted if is_converted else group.member_order.known)(group.members, member_id)
        lacked_target = lacks_target(group, request.instance_id)
        own = own_assignment(group, member_id, request.instance_id)
        before = find_member(group, member_id, request.instance_id, request.member_epoch, owned, changes)
        if isinstance(before, ErrorCode):
            emit_fenced(self._ctx, group, before, member_id, request.instance_id, "ConsumerGroupHeartbeat")
            self._report_epoch(group, before, member_id, request)
            return before
        metadata = described(before[0], request, context)
        rejoins = request.member_epoch == JOIN_EPOCH
        update = Update(
            member_id, before, metadata, owned, context, known, lacked_target, is_new_group, rejoins, own=own
        )
        member = self._updates.apply(group, update, changes)
        return member if isinstance(member, ErrorCode) else (member, before)

    def _report_epoch(
        self, group: ConsumerGroup, error: ErrorCode, member_id: str, request: ConsumerGroupHeartbeatRequest
    ) -> None:
        member = group.members.get(member_id)
        if error is not ErrorCode.FENCED_MEMBER_EPOCH or member is None:
            return
        self._ctx.emit(
            MemberEpochFenced(
                group_id=group.group_id,
                member_id=member_id,
                group_instance_id=member.metadata.instance_id,
                member_epoch=request.member_epoch,
                current_epoch=member.current.epoch,
            )
        )

    def _group_of(self, request: ConsumerGroupHeartbeatRequest, changes: Changes) -> ConsumerGroup | ErrorCode:
        """The group of a request. A member that joins makes one, or makes a classic one its own kind."""
        group_id = request.group_id
        group = self._groups.get(group_id)
        if isinstance(group, ConsumerGroup):
            return group
        if request.member_epoch != JOIN_EPOCH:
            return ErrorCode.GROUP_ID_NOT_FOUND
        if isinstance(group, ClassicGroup):
            if not group.is_empty:
                return self._upgrade(group, request.member_id, changes)
            changes.write(group_record(group_id, None))
        elif group is not None:
            return ErrorCode.GROUP_ID_NOT_FOUND
        return self._replay.new_group(group_id)

    def _finish(
        self,
        token: Token,
        request: ConsumerGroupHeartbeatRequest,
        member: ConsumerMember,
        before: Before,
        changes: Changes,
    ) -> None:
        group = self._groups[request.group_id]
        assert isinstance(group, ConsumerGroup), "a member that was updated has a group"
        group_id = request.group_id
        self._timers.restart_session(member, self._settings.session_timeout_ms(group_id))
        is_full = (
            request.rebalance_timeout_ms != -1
            and (request.subscribed_topic_names is not None or request.subscribed_topic_regex is not None)
            and request.topic_partitions is not None
        )
        with_assignment = request.member_epoch == JOIN_EPOCH or is_full or member.current.assigned != before[1].assigned
        interval_ms = self._settings.heartbeat_interval_ms(group_id)
        response = accepted(member, interval_ms, with_assignment=with_assignment)
        self._writes.commit(group_id, changes, partial(self._reply, token, response))

    def _reply(self, token: Token, response: ConsumerGroupHeartbeatResponse, error: ErrorCode) -> None:
        self._ctx.reply(token, response if error is ErrorCode.NONE else refused(error))

    # --- leaving

    def _leave(self, token: Token, request: ConsumerGroupHeartbeatRequest) -> ErrorCode:
        """Remove a member; its epoch is not looked at."""
        group = self._groups.get(request.group_id)
        if not isinstance(group, ConsumerGroup):
            return ErrorCode.GROUP_ID_NOT_FOUND
        member_id = request.member_id
        if request.instance_id is not None:
            owner_id = group.static_members.get(request.instance_id)
            if owner_id is None:
                return ErrorCode.UNKNOWN_MEMBER_ID
            if owner_id != member_id:
                error = ErrorCode.FENCED_INSTANCE_ID
                emit_fenced(self._ctx, group, error, member_id, request.instance_id, "ConsumerGroupHeartbeat")
                return error
        member = group.members.get(member_id)
        if member is None:
            return ErrorCode.UNKNOWN_MEMBER_ID
        response = ConsumerGroupHeartbeatResponse(member_id=member_id, member_epoch=request.member_epoch)
        reply = partial(self._reply, token, response)
        if request.member_epoch == STATIC_LEAVE_EPOCH and request.instance_id is not None:
            self._removals.leave_for_a_moment(group, member, reply)
        else:
            self._removals.remove(group, [member_id], "left", reply)
        return ErrorCode.NONE


def _says_nothing_new(member: ConsumerMember, request: ConsumerGroupHeartbeatRequest, context: Context) -> bool:
    """Whether a heartbeat only says that the member is there."""
    metadata = member.metadata
    return (
        0 < request.member_epoch == member.current.epoch
        and request.topic_partitions is None
        and request.subscribed_topic_names is None
        and request.subscribed_topic_regex is None
        and request.rebalance_timeout_ms == -1
        and request.server_assignor is None
        and request.rack_id is None
        and request.instance_id == metadata.instance_id
        and context.client_id == metadata.client_id
        and context.client_host == metadata.client_host
        and metadata.classic is None
    )


def described(
    before: ConsumerMemberMetadata, request: ConsumerGroupHeartbeatRequest, context: Context
) -> ConsumerMemberMetadata:
    """A member updated by its request; missing fields stay. It speaks the consumer protocol from now on."""
    names, regex = request.subscribed_topic_names, request.subscribed_topic_regex
    timeout_ms = request.rebalance_timeout_ms
    return replace(
        before,
        instance_id=before.instance_id if request.instance_id is None else request.instance_id,
        rack_id=before.rack_id if request.rack_id is None else request.rack_id,
        client_id=context.client_id,
        client_host=context.client_host,
        rebalance_timeout_ms=before.rebalance_timeout_ms if timeout_ms == -1 else timeout_ms,
        topic_names=before.topic_names if names is None else frozenset(names),
        topic_regex=before.topic_regex if regex is None else regex,
        server_assignor=before.server_assignor if request.server_assignor is None else request.server_assignor,
        classic=None,
    )


def owned_by(request: ConsumerGroupHeartbeatRequest) -> Owned:
    """The partitions that a member says it owns."""
    if request.topic_partitions is None:
        return None
    owned: dict[str, set[int]] = {}
    for topic in request.topic_partitions:
        owned.setdefault(topic.topic_id, set()).update(topic.partitions)
    return owned


def accepted(member: ConsumerMember, interval_ms: int, *, with_assignment: bool) -> ConsumerGroupHeartbeatResponse:
    """The answer to a heartbeat. Without an assignment it is as before; with an empty one it has nothing."""
    return ConsumerGroupHeartbeatResponse(
        member_id=member.member_id,
        member_epoch=member.current.epoch,
        heartbeat_interval_ms=interval_ms,
        assignment=_assignment(member.current.assigned) if with_assignment else None,
    )


def _assignment(assigned: PartitionEpochs) -> HeartbeatAssignment:
    return HeartbeatAssignment(
        topic_partitions=tuple(
            AssignedTopicPartitions(topic_id=topic_id, partitions=tuple(sorted(partitions)))
            for topic_id, partitions in assigned.items()
            if partitions
        )
    )
