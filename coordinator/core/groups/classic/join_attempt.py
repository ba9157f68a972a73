"""A JoinGroup on its way through the group."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from rejoin.coordinator.core.groups.classic.group import ClassicGroup
from rejoin.coordinator.core.groups.classic.member import Member, ParkedJoin, rebalance_timeout_of
from rejoin.coordinator.core.inputs import Context
from rejoin.journal.events.coordinator import Cause
from rejoin.protocol.messages.groups.join_group import JoinGroupRequest


@dataclass(slots=True, frozen=True)
class JoinAttempt:
    """A JoinGroup being handled."""

    request: JoinGroupRequest
    context: Context
    parked: ParkedJoin

    def update(self, group: ClassicGroup, member: Member) -> None:
        """Update a member that joins again."""
        group.replace_protocols(member, self.request.protocols)
        member.rebalance_timeout_ms = rebalance_timeout_of(self.request, self.context)
        member.session_timeout_ms = self.request.session_timeout_ms

    def cause(
        self,
        cause: Literal["join-new", "rejoin-metadata", "rejoin-leader", "static-metadata", "static-protocol"],
        member: Member,
    ) -> Cause:
        """Why the group rebalances."""
        return Cause(
            cause=cause,
            member_id=member.member_id,
            group_instance_id=member.group_instance_id,
            client_reason=self.request.reason,
        )
