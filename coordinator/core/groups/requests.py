"""Requests of members as they come in at a node: who may ask, whether this is the node to ask, then the group.

The checks before the group's own are in Kafka's order. Kafka: KafkaApis, GroupCoordinatorService.
"""

from __future__ import annotations

from typing import Final

from rejoin.coordinator.core.groups.classic.member_requests import HEARTBEAT_RESPONSES, leave_unknown_group
from rejoin.coordinator.core.groups.classic.responses import sync_refused
from rejoin.coordinator.core.groups.group_shards import GroupShards
from rejoin.coordinator.core.groups.shard import GroupsShard
from rejoin.coordinator.core.inputs import Context, Token
from rejoin.coordinator.core.runtime.admission import BEFORE_TOPICS, Admission
from rejoin.coordinator.core.runtime.shard import ShardState
from rejoin.coordinator.core.security.resources import Resource
from rejoin.coordinator.core.step_context import StepContext
from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.messages.groups.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    refused,
)
from rejoin.protocol.messages.groups.heartbeat import HeartbeatRequest
from rejoin.protocol.messages.groups.join_group import JoinGroupRequest, JoinGroupResponse
from rejoin.protocol.messages.groups.leave_group import LeaveGroupRequest, LeaveGroupResponse
from rejoin.protocol.messages.groups.sync_group import SyncGroupRequest

ECHOED_MEMBER_ID: Final = (
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.INVALID_GROUP_ID,
    ErrorCode.INVALID_SESSION_TIMEOUT,
)
"""Refusals of JoinGroup that give the member id back; the others leave it empty, as Kafka's new coordinator does."""

FIRST_CONSUMER_HEARTBEAT_WITH_AUTHORIZED_TOPICS: Final = 1


class GroupRequests:
    """Routes the requests of members to the shards of their groups."""

    def __init__(self, ctx: StepContext, shards: GroupShards, admission: Admission) -> None:
        self._ctx = ctx
        self._shards = shards
        self._admission = admission

    def join(self, token: Token, request: JoinGroupRequest, context: Context) -> None:
        shard = self._admission.admit(self._shards, request, context, request.group_id)
        if isinstance(shard, GroupsShard):
            shard.join(token, request, context)
            return
        refused = JoinGroupResponse(
            error_code=shard,
            protocol_name=None if context.api_version >= 7 else "",
            member_id=request.member_id if shard in ECHOED_MEMBER_ID else "",
        )
        self._ctx.reply(token, refused)

    def sync(self, token: Token, request: SyncGroupRequest, context: Context) -> None:
        shard = self._admission.admit(self._shards, request, context, request.group_id)
        if isinstance(shard, ErrorCode):
            self._ctx.reply(token, sync_refused(shard))
            return
        group = shard.groups.get(request.group_id)
        if group is None:
            self._ctx.reply(token, sync_refused(ErrorCode.UNKNOWN_MEMBER_ID))
        else:
            shard.kind_of(group).sync(group, token, request)

    def heartbeat(self, token: Token, request: HeartbeatRequest, context: Context) -> None:
        group_id = request.group_id
        shard = self._admission.admit(self._shards, request, context, group_id)
        if isinstance(shard, ErrorCode):
            self._ctx.reply(token, HEARTBEAT_RESPONSES[shard])
            return
        group = shard.groups.get(group_id)
        if group is None:
            self._ctx.reply(token, HEARTBEAT_RESPONSES[ErrorCode.UNKNOWN_MEMBER_ID])
        else:
            self._ctx.reply(token, shard.kind_of(group).heartbeat(group, request))

    def leave(self, token: Token, request: LeaveGroupRequest, context: Context) -> None:
        shard = self._admission.admit(self._shards, request, context, request.group_id)
        if isinstance(shard, ErrorCode):
            self._ctx.reply(token, LeaveGroupResponse(error_code=shard))
            return
        group = shard.groups.get(request.group_id)
        if group is None:
            self._ctx.reply(token, leave_unknown_group(request, context.api_version))
            return
        # The response comes first: what leaving does to the others is its consequence.
        at = len(self._ctx.effects)
        response = shard.kind_of(group).leave(group, token, request, context.api_version)
        if response is None:
            return
        self._ctx.reply(token, response)
        self._ctx.effects.insert(at, self._ctx.effects.pop())

    def _may_be_unchanged(self, request: ConsumerGroupHeartbeatRequest, context: Context) -> bool:
        """Whether a heartbeat is allowed that subscribes to nothing anew."""
        if self._admission.allows_everything:
            return True
        return not request.subscribed_topic_names and self._admission.allows(
            type(request), context, Resource.GROUP, request.group_id
        )

    def consumer_heartbeat(self, token: Token, request: ConsumerGroupHeartbeatRequest, context: Context) -> None:
        if self._ctx.features.group_version and self._may_be_unchanged(request, context):
            led = self._shards.shard_of(request.group_id)
            is_active = led is not None and led.state is ShardState.ACTIVE
            if led is not None and is_active and led.machine.kinds.consumer.answer_unchanged(token, request, context):
                return
        shard = self._admission.admit(self._shards, request, context, request.group_id)
        names = request.subscribed_topic_names
        if names and context.api_version >= FIRST_CONSUMER_HEARTBEAT_WITH_AUTHORIZED_TOPICS:
            error = self._admission.authorize_topics(request, context, names)
            if error is not ErrorCode.NONE and shard not in BEFORE_TOPICS:
                shard = error
        if isinstance(shard, ErrorCode):
            self._ctx.reply(token, refused(shard))
        else:
            shard.kinds.consumer.consumer_heartbeat(token, request, context)
