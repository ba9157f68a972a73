"""Requests of admin clients about groups: ListGroups, DescribeGroups and DeleteGroups.

Kafka: KafkaApis, GroupCoordinatorService.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from rejoin.coordinator.core.groups.classic.group import ClassicGroup
from rejoin.coordinator.core.groups.classic.state import DEAD, STABLE
from rejoin.coordinator.core.groups.group_shards import GroupShards
from rejoin.coordinator.core.groups.shard import OnDeleted
from rejoin.coordinator.core.inputs import Context, Received, Token
from rejoin.coordinator.core.runtime.admission import Admission
from rejoin.coordinator.core.runtime.repeated import computed_once
from rejoin.coordinator.core.security.resources import Resource
from rejoin.coordinator.core.step_context import RequestPart, StepContext
from rejoin.protocol.brokers.releases import has_former_coordinator
from rejoin.protocol.errors import ErrorCode
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
from rejoin.protocol.messages.groups.list_groups import ListedGroup, ListGroupsRequest, ListGroupsResponse
from rejoin.protocol.unvalidated import unvalidated

FIRST_DESCRIBE_WITH_NOT_FOUND: Final = 6
PART: Final = 500
"""How many groups a DeleteGroups looks at before others have their turn."""
COST_OF_DELETION: Final = 10
"""How many of them one counts for that is there to be deleted."""


class GroupAdminRequests:
    """Lists, describes and deletes groups."""

    def __init__(self, ctx: StepContext, shards: GroupShards, admission: Admission) -> None:
        self._ctx = ctx
        self._shards = shards
        self._admission = admission

    def list_groups(self, token: Token, request: ListGroupsRequest, context: Context) -> None:
        shards = self._admission.admit_to_all(self._shards, request, context)
        if isinstance(shards, ErrorCode):
            self._ctx.reply(token, ListGroupsResponse(error_code=shards))
            return
        names = request.states_filter
        # Kafka: before 4.0 spaces around a state count, too.
        states = {
            (name if has_former_coordinator(self._ctx.settings.emulator_as_kafka) else name.strip()).lower()
            for name in names
        }
        types = {kind.lower() for kind in request.types_filter}  # Kafka: spaces count here, unlike around a state.
        sees_all = self._admission.allows(ListGroupsRequest, context, Resource.CLUSTER)
        groups = [
            group
            for shard in shards
            for group in shard.groups.values()
            if group.persisted  # only those that the log knows
            and (not states or shard.kind_of(group).filter_name(group) in states)
            and (not types or group.kind in types)
            and (sees_all or self._admission.allows(ListGroupsRequest, context, Resource.GROUP, group.group_id))
        ]
        response = ListGroupsResponse(
            groups=tuple(
                ListedGroup(
                    group_id=group.group_id,
                    protocol_type=group.protocol_type or "",
                    group_state=group.state,
                    group_type=group.kind,
                )
                for group in sorted(groups, key=lambda group: group.group_id)
            )
        )
        self._ctx.reply(token, response)

    def describe_groups(self, token: Token, request: DescribeGroupsRequest, context: Context) -> None:
        described = computed_once(request.groups, lambda group_id: self._describe(group_id, request, context))
        self._ctx.reply(token, DescribeGroupsResponse(groups=described))

    def _describe(self, group_id: str, request: DescribeGroupsRequest, context: Context) -> DescribedGroup:
        shard = self._admission.admit(self._shards, request, context, group_id)
        if isinstance(shard, ErrorCode):
            return DescribedGroup(group_id=group_id, error_code=shard)
        group = shard.classic_group(group_id)
        if group is not None and not group.persisted:
            group = None
        # Kafka: a group that does not exist is Dead; from DescribeGroups v6 on that is an error, without operations.
        if group is None and context.api_version >= FIRST_DESCRIBE_WITH_NOT_FOUND:
            return DescribedGroup(
                group_id=group_id,
                group_state=DEAD,
                error_code=ErrorCode.GROUP_ID_NOT_FOUND,
                error_message=f"Group {group_id} not found.",
            )
        operations = -(2**31)
        if request.include_authorized_operations:
            operations = self._admission.authorized_operations(context, Resource.GROUP, group_id)
        if group is None:
            return DescribedGroup(group_id=group_id, group_state=DEAD, authorized_operations=operations)
        return DescribedGroup(
            group_id=group_id,
            group_state=group.state,
            protocol_type=group.protocol_type or "",
            protocol_data=(group.protocol_name or "") if group.state is STABLE else "",
            members=describe_members(group),
            authorized_operations=operations,
        )

    def delete_groups(self, token: Token, request: DeleteGroupsRequest, context: Context) -> None:
        results: dict[str, DeletableGroupResult | None] = dict.fromkeys(request.groups_names)
        asked = Received(token, request, context)

        def delete(group_id: str, done: OnDeleted) -> ErrorCode | None:
            shard = self._admission.admit(self._shards, request, context, group_id)
            return shard if isinstance(shard, ErrorCode) else shard.delete_group(group_id, done)

        PendingDeletion(self._ctx, asked, delete, results, deque(results)).handle_part()


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
class PendingDeletion:
    """A DeleteGroups request, until the last of its groups is gone or refused.

    A group that is deleted costs events, log lines and tombstones; so not all of them are deleted in one step.
    """

    ctx: StepContext
    asked: Received
    delete: Callable[[str, OnDeleted], ErrorCode | None]
    results: dict[str, DeletableGroupResult | None]
    left: deque[str]
    """The groups of later parts."""
    in_flight: int = 0
    """The groups of this part that are not gone yet, and the part itself while it is handled."""

    def handle_part(self) -> None:
        self.in_flight = 1
        room = PART
        while self.left and room > 0:
            group_id = self.left.popleft()
            self.in_flight += 1
            error = self.delete(group_id, self.done)
            room -= 1 if error is not None else COST_OF_DELETION
            if error is not None:
                self.done(group_id, error)
        self._ended()

    def done(self, group_id: str, error: ErrorCode) -> None:
        self.results[group_id] = unvalidated(
            DeletableGroupResult, group_id=group_id, error_code=error, error_message=None
        )
        self._ended()

    def _ended(self) -> None:
        """One more has ended. After the last one of this part, go on with the next part, or answer."""
        self.in_flight -= 1
        if self.in_flight:
            return
        if self.left:
            self.ctx.go_on_later(RequestPart(self.asked, self.handle_part))
            return
        results = tuple([result for result in self.results.values() if result is not None])
        self.ctx.reply(self.asked.token, DeleteGroupsResponse(results=results))
