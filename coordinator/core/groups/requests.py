"""Requests about groups as they come in at a node: who may ask, whether this is the node to ask, then the group.

The checks before the group's own are in Kafka's order. Kafka: KafkaApis, GroupCoordinatorService.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from rejoin.coordinator.core.groups.classic.group import ClassicGroup
from rejoin.coordinator.core.groups.classic.membership import HEARTBEAT_ANSWERS, leave_unknown_group
from rejoin.coordinator.core.groups.classic.rebalance import sync_refused
from rejoin.coordinator.core.groups.classic.state import DEAD, STABLE
from rejoin.coordinator.core.inputs import Context, Token
from rejoin.coordinator.core.runtime.authorizer import CLUSTER_NAME, Authorizer, Operation, Resource
from rejoin.coordinator.core.runtime.routing import Shards
from rejoin.coordinator.core.runtime.shard import GroupDeletionListener, Shard
from rejoin.coordinator.core.step_context import StepContext
from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.message import Request
from rejoin.protocol.messages.groups.delete_groups import (
    DeletableGroupResult,
    DeleteGroupsRequest,
    DeleteGroupsResponse,
)
from rejoin.protocol.messages.groups.describe_groups import (
    DescribedGroup,
    DescribedGroupMember,
    DescribeGroupsRequest,
    DescribeGroupsResponse,
)
from rejoin.protocol.messages.groups.heartbeat import HeartbeatRequest, HeartbeatResponse
from rejoin.protocol.messages.groups.join_group import JoinGroupRequest, JoinGroupResponse
from rejoin.protocol.messages.groups.leave_group import LeaveGroupRequest
from rejoin.protocol.messages.groups.list_groups import ListedGroup, ListGroupsRequest, ListGroupsResponse
from rejoin.protocol.messages.groups.sync_group import SyncGroupRequest

CLASSIC: Final = "classic"
FIRST_DESCRIBE_WITH_NOT_FOUND: Final = 6

ECHOED_MEMBER_ID: Final = (
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.INVALID_GROUP_ID,
    ErrorCode.INVALID_SESSION_TIMEOUT,
)
"""Refusals of JoinGroup that give the member id back; the others leave it empty, as Kafka's new coordinator does."""


class GroupRequests:
    """Routes requests about groups to their shards."""

    def __init__(self, ctx: StepContext, shards: Shards, authorizer: Authorizer) -> None:
        self._ctx = ctx
        self._shards = shards
        self._authorizer = authorizer

    # --- members

    def join(self, token: Token, request: JoinGroupRequest, context: Context) -> None:
        settings = self._ctx.settings
        timeout_ms = request.session_timeout_ms
        error = ErrorCode.NONE
        shard = self._shards.serving(request.group_id)
        if not self._may(context, Operation.READ, request.group_id):
            error = ErrorCode.GROUP_AUTHORIZATION_FAILED
        elif not self._shards.is_active:
            error = ErrorCode.COORDINATOR_NOT_AVAILABLE
        elif not request.group_id:
            error = ErrorCode.INVALID_GROUP_ID
        elif not settings.group_min_session_timeout_ms <= timeout_ms <= settings.group_max_session_timeout_ms:
            error = ErrorCode.INVALID_SESSION_TIMEOUT
        elif isinstance(shard, ErrorCode):
            error = shard
        if error is ErrorCode.NONE and isinstance(shard, Shard):
            shard.join(token, request, context)
            return
        answer = JoinGroupResponse(
            error_code=error,
            protocol_name=None if context.api_version >= 7 else "",
            member_id=request.member_id if error in ECHOED_MEMBER_ID else "",
        )
        self._ctx.reply(token, answer)

    def sync(self, token: Token, request: SyncGroupRequest, context: Context) -> None:
        if context.api_version >= 5 and (request.protocol_type is None or request.protocol_name is None):
            self._ctx.reply(token, sync_refused(ErrorCode.INCONSISTENT_GROUP_PROTOCOL))
            return
        shard = self._admit(token, request, context, request.group_id)
        if shard is None:
            return
        group = shard.groups.get(request.group_id)
        if group is None:
            self._ctx.reply(token, sync_refused(ErrorCode.UNKNOWN_MEMBER_ID))
        else:
            shard.membership.sync(group, token, request)

    def heartbeat(self, token: Token, request: HeartbeatRequest, context: Context) -> None:
        shard = self._shards.serving(request.group_id)
        if isinstance(shard, Shard) and request.group_id and self._may(context, Operation.READ, request.group_id):
            group = shard.groups.get(request.group_id)
            answer = (
                HEARTBEAT_ANSWERS[ErrorCode.UNKNOWN_MEMBER_ID]
                if group is None
                else shard.membership.heartbeat(group, request)
            )
            self._ctx.reply(token, answer)
        else:
            self._ctx.reply(token, self._heartbeat_refused(shard, request, context))

    def _heartbeat_refused(
        self, shard: Shard | ErrorCode, request: HeartbeatRequest, context: Context
    ) -> HeartbeatResponse:
        if not self._may(context, Operation.READ, request.group_id):
            return HEARTBEAT_ANSWERS[ErrorCode.GROUP_AUTHORIZATION_FAILED]
        if shard is ErrorCode.COORDINATOR_NOT_AVAILABLE:
            return HEARTBEAT_ANSWERS[shard]
        if not request.group_id:
            return HEARTBEAT_ANSWERS[ErrorCode.INVALID_GROUP_ID]
        if shard is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
            # Kafka: while a shard loads, heartbeats are fine without a look at the group, so that nobody panics.
            return HEARTBEAT_ANSWERS[ErrorCode.NONE]
        return HEARTBEAT_ANSWERS[ErrorCode.NOT_COORDINATOR]

    def leave(self, token: Token, request: LeaveGroupRequest, context: Context) -> None:
        shard = self._admit(token, request, context, request.group_id)
        if shard is None:
            return
        group = shard.groups.get(request.group_id)
        if group is None:
            self._ctx.reply(token, leave_unknown_group(request, context.api_version))
            return
        # The answer comes first: what leaving does to the others is its consequence.
        at = len(self._ctx.effects)
        answer = shard.membership.leave(group, request, context.api_version)
        self._ctx.reply(token, answer)
        self._ctx.effects.insert(at, self._ctx.effects.pop())

    # --- administration

    def list_groups(self, token: Token, request: ListGroupsRequest, context: Context) -> None:
        if not self._shards.is_active:
            self._ctx.reply(token, ListGroupsResponse(error_code=ErrorCode.COORDINATOR_NOT_AVAILABLE))
            return
        if self._shards.is_loading:
            self._ctx.reply(token, ListGroupsResponse(error_code=ErrorCode.COORDINATOR_LOAD_IN_PROGRESS))
            return
        states = {state.strip().lower() for state in request.states_filter}
        types = {kind.lower() for kind in request.types_filter}  # Kafka: spaces count here, unlike around a state.
        sees_all = self._authorizer.allows(context.principal, Operation.DESCRIBE, Resource.CLUSTER, CLUSTER_NAME)
        groups = [
            group
            for shard in self._shards.active()
            for group in shard.listed()
            if (not states or group.state.lower() in states)
            and (not types or CLASSIC in types)
            and (sees_all or self._may(context, Operation.DESCRIBE, group.group_id))
        ]
        answer = ListGroupsResponse(
            groups=tuple(
                ListedGroup(
                    group_id=group.group_id,
                    protocol_type=group.protocol_type or "",
                    group_state=group.state,
                    group_type=CLASSIC,
                )
                for group in sorted(groups, key=lambda group: group.group_id)
            )
        )
        self._ctx.reply(token, answer)

    def describe_groups(self, token: Token, request: DescribeGroupsRequest, context: Context) -> None:
        described = tuple(
            self._describe(group_id, context, request.include_authorized_operations) for group_id in request.groups
        )
        self._ctx.reply(token, DescribeGroupsResponse(groups=described))

    def _describe(self, group_id: str, context: Context, with_operations: bool) -> DescribedGroup:
        if not self._may(context, Operation.DESCRIBE, group_id):
            return DescribedGroup(group_id=group_id, error_code=ErrorCode.GROUP_AUTHORIZATION_FAILED)
        shard = self._shards.serving(group_id)
        if isinstance(shard, ErrorCode):
            return DescribedGroup(group_id=group_id, error_code=shard)
        operations = -(2**31)
        if with_operations:
            operations = self._authorizer.authorized_operations(context.principal, Resource.GROUP, group_id)
        group = shard.groups.get(group_id)
        if group is None or not group.persisted:
            # Kafka: a group that does not exist is Dead, not an error (an error from DescribeGroups v6 on).
            unknown = DescribedGroup(group_id=group_id, group_state=DEAD, authorized_operations=operations)
            if context.api_version < FIRST_DESCRIBE_WITH_NOT_FOUND:
                return unknown
            found = {"error_code": ErrorCode.GROUP_ID_NOT_FOUND, "error_message": f"Group {group_id} not found."}
            return unknown.model_copy(update=found)
        return DescribedGroup(
            group_id=group_id,
            group_state=group.state,
            protocol_type=group.protocol_type or "",
            protocol_data=(group.protocol_name or "") if group.state is STABLE else "",
            members=describe_members(group),
            authorized_operations=operations,
        )

    def delete_groups(self, token: Token, request: DeleteGroupsRequest, context: Context) -> None:
        names = list(dict.fromkeys(request.groups_names))
        deletion = Deletion(self._ctx, token, dict.fromkeys(names))
        for group_id in names:
            error: ErrorCode | None
            shard = self._shards.serving(group_id)
            if not self._may(context, Operation.DELETE, group_id):
                error = ErrorCode.GROUP_AUTHORIZATION_FAILED
            elif isinstance(shard, ErrorCode):
                error = shard
            else:
                error = shard.delete_group(group_id, deletion)
            if error is not None:
                deletion.group_deleted(group_id, error)
        if not names:
            self._ctx.reply(token, DeleteGroupsResponse())

    # --- admission

    def _admit(self, token: Token, request: Request, context: Context, group_id: str) -> Shard | None:
        """The shard to ask, or none when the request has been refused."""
        shard = self._shards.serving(group_id)
        if not self._may(context, Operation.READ, group_id):
            error = ErrorCode.GROUP_AUTHORIZATION_FAILED
        elif shard is ErrorCode.COORDINATOR_NOT_AVAILABLE:
            error = ErrorCode.COORDINATOR_NOT_AVAILABLE
        elif not group_id:
            error = ErrorCode.INVALID_GROUP_ID
        elif isinstance(shard, Shard):
            return shard
        else:
            error = shard
            if error is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS and isinstance(request, SyncGroupRequest):
                error = self._sync_while_loading()
        self._ctx.reply(token, request.error_response(context.api_version, error))
        return None

    def _sync_while_loading(self) -> ErrorCode:
        # Differs: Kafka 4 sends COORDINATOR_LOAD_IN_PROGRESS, which its own consumer takes for fatal; 3.x sent this.
        if self._ctx.settings.emulator_sync_while_loading == "rebalance-in-progress":
            return ErrorCode.REBALANCE_IN_PROGRESS
        return ErrorCode.COORDINATOR_LOAD_IN_PROGRESS

    def _may(self, context: Context, operation: Operation, group_id: str) -> bool:
        return self._authorizer.allows(context.principal, operation, Resource.GROUP, group_id)


def describe_members(group: ClassicGroup) -> tuple[DescribedGroupMember, ...]:
    """Members as DescribeGroups shows them: metadata only while the group is Stable, the stored assignment always."""
    return tuple(
        DescribedGroupMember(
            member_id=member.member_id,
            group_instance_id=member.group_instance_id,
            client_id=member.client_id,
            client_host=member.client_host,
            member_metadata=member.metadata_for(group.protocol_name or "") if group.state is STABLE else b"",
            member_assignment=member.assignment,
        )
        for member in group.ordered_members()
    )


@dataclass(slots=True)
class Deletion(GroupDeletionListener):
    """A DeleteGroups request, until the last of its groups is gone or refused."""

    ctx: StepContext
    token: Token
    results: dict[str, ErrorCode | None]

    def group_deleted(self, group_id: str, error: ErrorCode) -> None:
        self.results[group_id] = error
        if None in self.results.values():
            return
        self.ctx.reply(
            self.token,
            DeleteGroupsResponse(
                results=tuple(
                    DeletableGroupResult(group_id=name, error_code=result or ErrorCode.NONE)
                    for name, result in self.results.items()
                )
            ),
        )
