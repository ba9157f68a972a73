"""Members of a consumer group that speak the classic protocol: JoinGroup, SyncGroup, Heartbeat and LeaveGroup.

Nothing is parked and there is no leader: the coordinator computes their assignments, and the generation is the member's
own epoch. Kafka: the methods of GroupMetadataManager whose names end with ToConsumerGroup.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Final

from rejoin.coordinator.core.groups.classic.group import CLASSIC
from rejoin.coordinator.core.groups.classic.member import ParkedJoin, rebalance_timeout_of
from rejoin.coordinator.core.groups.classic.member_requests import (
    HEARTBEAT_RESPONSES,
    leave_result,
    leaving_members,
)
from rejoin.coordinator.core.groups.classic.responses import join_refused, sync_refused
from rejoin.coordinator.core.groups.consumer.members.reconciliation import Owned
from rejoin.coordinator.core.groups.consumer.members.removal import Removals
from rejoin.coordinator.core.groups.consumer.members.subscribing import (
    NEW_MEMBER,
    Before,
    lacks_target,
    replace_static,
)
from rejoin.coordinator.core.groups.consumer.members.timers import MemberTimers
from rejoin.coordinator.core.groups.consumer.members.updating import Update, Updates
from rejoin.coordinator.core.groups.consumer.migration import Migration
from rejoin.coordinator.core.groups.consumer.model.changes import Changes, Writes
from rejoin.coordinator.core.groups.consumer.model.group import ConsumerGroup
from rejoin.coordinator.core.groups.consumer.model.member import (
    ClassicMetadata,
    ConsumerMember,
    ConsumerMemberMetadata,
    SupportedProtocol,
)
from rejoin.coordinator.core.groups.consumer.model.state import CONSUMER, ConsumerMemberState
from rejoin.coordinator.core.groups.group import emit_fenced
from rejoin.coordinator.core.groups.modern.admission import check_room
from rejoin.coordinator.core.groups.modern.metadata import TopicsMetadata, embedded_assignment
from rejoin.coordinator.core.inputs import Context, Token
from rejoin.coordinator.core.step_context import StepContext
from rejoin.journal.events.coordinator import MemberIdHandedOut
from rejoin.protocol.embedded.consumer_protocol import Subscription, decode_subscription
from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.java import random_uuid
from rejoin.protocol.messages.groups.heartbeat import HeartbeatRequest, HeartbeatResponse
from rejoin.protocol.messages.groups.join_group import JoinGroupRequest, JoinGroupResponse
from rejoin.protocol.messages.groups.leave_group import LeaveGroupRequest, LeaveGroupResponse, MemberIdentity
from rejoin.protocol.messages.groups.sync_group import SyncGroupRequest, SyncGroupResponse

FIRST_WITH_MEMBER_ID_REQUIRED: Final = 4
FIRST_WITH_SEVERAL_LEAVING: Final = 3


class ClassicMembers:
    """Handles the requests of classic members for one shard's consumer groups."""

    def __init__(
        self,
        ctx: StepContext,
        topics: TopicsMetadata,
        writes: Writes,
        updates: Updates,
        removals: Removals,
        migration: Migration,
        timers: MemberTimers,
    ) -> None:
        self._ctx = ctx
        self._topics = topics
        self._writes = writes
        self._updates = updates
        self._removals = removals
        self._migration = migration
        self._timers = timers

    # --- JoinGroup

    def join(self, group: ConsumerGroup, token: Token, request: JoinGroupRequest, context: Context) -> None:
        """Make it a member, or bring it forward, and answer at once."""
        parked = ParkedJoin(token, context.api_version)
        error = self._check_join(group, request)
        member_id = request.member_id
        if error is ErrorCode.NONE and not member_id:
            member_id = random_uuid(self._ctx.new_id)
        is_first = not request.member_id and request.group_instance_id is None
        if error is ErrorCode.NONE and is_first and context.api_version >= FIRST_WITH_MEMBER_ID_REQUIRED:
            # Kafka: KIP-394. The id is not remembered: any id that is not known makes a member.
            self._ctx.emit(
                MemberIdHandedOut(
                    group_id=group.group_id,
                    member_id=member_id,
                    client_id=context.client_id,
                    client_host=context.client_host,
                    session_timeout_ms=request.session_timeout_ms,
                    client_reason=request.reason,
                )
            )
            self._ctx.reply(token, join_refused(parked, ErrorCode.MEMBER_ID_REQUIRED, member_id))
            return
        if error is ErrorCode.NONE:
            changes = self._writes.begin()
            error = self._progress(group, parked, request, context, member_id, changes)
            if error is not ErrorCode.NONE:
                changes.undo()
        if error is not ErrorCode.NONE:
            emit_fenced(self._ctx, group, error, member_id, request.group_instance_id, "JoinGroup")
            self._ctx.reply(token, join_refused(parked, error))

    def _check_join(self, group: ConsumerGroup, request: JoinGroupRequest) -> ErrorCode:
        settings = self._ctx.settings
        if settings.group_consumer_migration_policy == "disabled":
            self._migration.refused(group.group_id, CLASSIC, request.member_id, "classic-member")
            return ErrorCode.INCONSISTENT_GROUP_PROTOCOL
        error = check_room(group, request.member_id, request.group_instance_id, settings.group_consumer_max_size)
        if error is not ErrorCode.NONE:
            return error
        names = [protocol.name for protocol in request.protocols]
        if request.protocol_type != CONSUMER or not group.subscriptions.supports_classic(names):
            return ErrorCode.INCONSISTENT_GROUP_PROTOCOL
        return ErrorCode.NONE

    def _progress(
        self,
        group: ConsumerGroup,
        parked: ParkedJoin,
        request: JoinGroupRequest,
        context: Context,
        member_id: str,
        changes: Changes,
    ) -> ErrorCode:
        epoch = group.epoch
        downgrades = self._takes_last_modern_place(group, request.group_instance_id)
        known = group.member_order.known(group.members, member_id)
        lacked_target = lacks_target(group, request.group_instance_id)
        before = self._find(group, request, member_id, changes)
        if isinstance(before, ErrorCode):
            return before
        try:
            subscription = decode_subscription(request.protocols[0].metadata)
        except ValueError:
            # Kafka: GroupMetadataManager.deserializeSubscription fails the request as an unknown error.
            return ErrorCode.UNKNOWN_SERVER_ERROR
        metadata = described(before[0], request, context, subscription)
        update = Update(
            member_id,
            before,
            metadata,
            self._owned(subscription),
            context,
            known,
            lacked_target,
            rejoins=True,
            reason=request.reason,
            downgrades=downgrades,
        )
        member = self._updates.apply(group, update, changes)
        if isinstance(member, ErrorCode):
            return member
        response = JoinGroupResponse(
            generation_id=member.current.epoch,
            protocol_type=CONSUMER,
            protocol_name=request.protocols[0].name,
            member_id=member_id,
        )
        if downgrades:
            self._migration.downgrade_with(group, epoch, member_id, changes)
        joined = partial(
            self._joined,
            group,
            member,
            parked,
            response,
            None if downgrades else rebalance_timeout_of(request, context),
        )
        self._writes.commit(group.group_id, changes, joined)
        return ErrorCode.NONE

    def _takes_last_modern_place(self, group: ConsumerGroup, instance_id: str | None) -> bool:
        owner_id = None if instance_id is None else group.static_members.get(instance_id)
        if owner_id is None or group.members[owner_id].is_classic or group.modern_members != 1:
            return False
        return self._migration.may_downgrade(len(group.members))

    def _find(
        self, group: ConsumerGroup, request: JoinGroupRequest, member_id: str, changes: Changes
    ) -> Before | ErrorCode:
        instance_id = request.group_instance_id
        if instance_id is None:
            member = group.members.get(member_id)
            return NEW_MEMBER if member is None else (member.metadata, member.current)
        owner_id = group.static_members.get(instance_id)
        if request.member_id:
            if owner_id is None:
                return ErrorCode.UNKNOWN_MEMBER_ID
            if owner_id != member_id:
                return ErrorCode.FENCED_INSTANCE_ID
            owner = group.members[owner_id]
            return owner.metadata, owner.current
        if owner_id is None:
            return NEW_MEMBER
        return replace_static(group, group.members[owner_id], member_id, changes, CLASSIC, request.reason)

    def _owned(self, subscription: Subscription) -> Owned:
        owned: dict[str, set[int]] = {}
        for topic, partition in subscription.owned_partitions:
            if topic in self._topics:
                owned.setdefault(self._topics.id_of(topic), set()).add(partition)
        return owned

    def _joined(
        self,
        group: ConsumerGroup,
        member: ConsumerMember,
        parked: ParkedJoin,
        response: JoinGroupResponse,
        rebalance_timeout_ms: int | None,
        error: ErrorCode,
    ) -> None:
        if error is not ErrorCode.NONE:
            self._ctx.reply(parked.token, join_refused(parked, error))
            return
        self._timers.cancel_join(group, member)
        if rebalance_timeout_ms is not None and member.metadata.classic is not None:
            self._timers.restart_session(member, member.metadata.classic.session_timeout_ms)
            self._timers.start_sync(group, member, rebalance_timeout_ms)
        self._ctx.reply(parked.token, response)

    # --- SyncGroup

    def sync(self, group: ConsumerGroup, token: Token, request: SyncGroupRequest) -> None:
        """Return the member's current assignment. Assignments in the request are ignored: there is no leader."""
        member = self._member(group, request.member_id, request.group_instance_id, "SyncGroup")
        if isinstance(member, ErrorCode):
            self._ctx.reply(token, sync_refused(member))
            return
        error = self._check_sync(group, member, request)
        if error is not ErrorCode.NONE:
            self._ctx.reply(token, sync_refused(error))
            return
        classic = member.metadata.classic
        assert classic is not None, "only classic members sync"
        version = decode_subscription(classic.protocols[0].metadata).version
        response = SyncGroupResponse(
            protocol_type=request.protocol_type,
            protocol_name=request.protocol_name,
            assignment=embedded_assignment(member.current.assigned, self._topics, version),
        )
        self._timers.cancel_sync(group, member)
        self._timers.restart_session(member, classic.session_timeout_ms)
        self._ctx.reply(token, response)

    def _check_sync(self, group: ConsumerGroup, member: ConsumerMember, request: SyncGroupRequest) -> ErrorCode:
        classic = member.metadata.classic
        if classic is None:
            return ErrorCode.UNKNOWN_MEMBER_ID
        current = member.current
        if request.generation_id != current.epoch:
            return ErrorCode.ILLEGAL_GENERATION
        if request.protocol_type not in (None, CONSUMER) or request.protocol_name not in (
            None,
            classic.protocols[0].name,
        ):
            return ErrorCode.INCONSISTENT_GROUP_PROTOCOL
        if group.assignment_epoch > current.epoch and current.state is not ConsumerMemberState.UNREVOKED_PARTITIONS:
            self._timers.start_join(group, member)
            return ErrorCode.REBALANCE_IN_PROGRESS
        return ErrorCode.NONE

    # --- Heartbeat

    def heartbeat(self, group: ConsumerGroup, request: HeartbeatRequest) -> HeartbeatResponse:
        """Restart the session, and say whether a JoinGroup would bring anything."""
        member = self._member(group, request.member_id, request.group_instance_id, "Heartbeat")
        if isinstance(member, ErrorCode):
            return HEARTBEAT_RESPONSES[member]
        classic = member.metadata.classic
        if classic is None:
            return HEARTBEAT_RESPONSES[ErrorCode.UNKNOWN_MEMBER_ID]
        if request.generation_id != member.current.epoch:
            return HEARTBEAT_RESPONSES[ErrorCode.ILLEGAL_GENERATION]
        self._timers.restart_session(member, classic.session_timeout_ms)
        if not self._should_rejoin(group, member):
            return HEARTBEAT_RESPONSES[ErrorCode.NONE]
        self._timers.start_join(group, member)
        return HEARTBEAT_RESPONSES[ErrorCode.REBALANCE_IN_PROGRESS]

    def _should_rejoin(self, group: ConsumerGroup, member: ConsumerMember) -> bool:
        current = member.current
        if current.epoch < group.assignment_epoch or current.state is ConsumerMemberState.UNREVOKED_PARTITIONS:
            return True
        return current.state is ConsumerMemberState.UNRELEASED_PARTITIONS and self._is_all_released(group, member)

    def _is_all_released(self, group: ConsumerGroup, member: ConsumerMember) -> bool:
        """Whether no member has anything any more that this one waits for."""
        assigned = member.current.assigned
        return not any(
            partition not in assigned.get(topic_id, {}) and group.has_owner(topic_id, partition)
            for topic_id, partitions in group.target_of(member.member_id).items()
            for partition in partitions
        )

    # --- LeaveGroup

    def leave(self, group: ConsumerGroup, token: Token, request: LeaveGroupRequest, version: int) -> None:
        """Remove members of either protocol, together, with one new group epoch."""
        results = []
        leaving: dict[str, str | None] = {}
        for identity in leaving_members(request, version):
            member = self._leaving(group, identity)
            error = member if isinstance(member, ErrorCode) else ErrorCode.NONE
            if not isinstance(member, ErrorCode):
                leaving[member.member_id] = identity.reason
            results.append(leave_result(identity, error))
        if version < FIRST_WITH_SEVERAL_LEAVING:
            response = LeaveGroupResponse(error_code=results[0].error_code)
        else:
            response = LeaveGroupResponse(members=tuple(results))
        if leaving:
            reason = next(iter(leaving.values()))
            self._removals.remove(group, list(leaving), "left", partial(self._left, token, response), reason)
        else:
            self._ctx.reply(token, response)

    def _leaving(self, group: ConsumerGroup, identity: MemberIdentity) -> ConsumerMember | ErrorCode:
        if identity.member_id or identity.group_instance_id is None:
            return self._member(group, identity.member_id, identity.group_instance_id, "LeaveGroup")
        owner_id = group.static_members.get(identity.group_instance_id)
        return ErrorCode.UNKNOWN_MEMBER_ID if owner_id is None else group.members[owner_id]

    def _left(self, token: Token, response: LeaveGroupResponse, error: ErrorCode) -> None:
        self._ctx.reply(token, response if error is ErrorCode.NONE else LeaveGroupResponse(error_code=error))

    # --- members

    def _member(
        self, group: ConsumerGroup, member_id: str, instance_id: str | None, api: str
    ) -> ConsumerMember | ErrorCode:
        if instance_id is not None:
            owner_id = group.static_members.get(instance_id)
            if owner_id is None:
                return ErrorCode.UNKNOWN_MEMBER_ID
            if owner_id != member_id:
                emit_fenced(self._ctx, group, ErrorCode.FENCED_INSTANCE_ID, member_id, instance_id, api)
                return ErrorCode.FENCED_INSTANCE_ID
        return group.members.get(member_id, ErrorCode.UNKNOWN_MEMBER_ID)


def described(
    before: ConsumerMemberMetadata, request: JoinGroupRequest, context: Context, subscription: Subscription
) -> ConsumerMemberMetadata:
    """A member as its JoinGroup describes it: it speaks the classic protocol from now on."""
    return replace(
        before,
        instance_id=before.instance_id if request.group_instance_id is None else request.group_instance_id,
        rack_id=before.rack_id if subscription.rack_id is None else subscription.rack_id,
        client_id=context.client_id,
        client_host=context.client_host,
        rebalance_timeout_ms=rebalance_timeout_of(request, context),
        topic_names=frozenset(subscription.topics),
        topic_regex="",
        classic=ClassicMetadata(
            request.session_timeout_ms,
            tuple(SupportedProtocol(protocol.name, protocol.metadata) for protocol in request.protocols),
        ),
    )
