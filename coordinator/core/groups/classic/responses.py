"""Responses to JoinGroup and SyncGroup, with and without a generation."""

from __future__ import annotations

from rejoin.coordinator.core.groups.classic.group import ClassicGroup
from rejoin.coordinator.core.groups.classic.member import Member, ParkedJoin
from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.messages.groups.join_group import JoinGroupResponse, JoinGroupResponseMember
from rejoin.protocol.messages.groups.sync_group import SyncGroupResponse


def join_refused(parked: ParkedJoin, error: ErrorCode, member_id: str = "") -> JoinGroupResponse:
    """A JoinGroup response without a generation."""
    name = None if parked.version >= 7 else ""
    return JoinGroupResponse(error_code=error, protocol_name=name, member_id=member_id)


def join_accepted(
    parked: ParkedJoin,
    group: ClassicGroup,
    member_id: str,
    *,
    leader: str | None = None,
    members: tuple[JoinGroupResponseMember, ...] = (),
    skip_assignment: bool = False,
    error: ErrorCode = ErrorCode.NONE,
) -> JoinGroupResponse:
    """A JoinGroup response with the current generation. ``leader``: whom to name, if not the one who leads."""
    # Kafka: JoinGroupResponse. A protocol whose name is empty is none from v7 on.
    name = group.protocol_name or None
    return JoinGroupResponse(
        error_code=error,
        generation_id=group.generation,
        protocol_type=group.protocol_type,
        protocol_name="" if name is None and parked.version < 7 else name,
        leader=(group.leader if leader is None else leader) or "",
        skip_assignment=skip_assignment,
        member_id=member_id,
        members=members,
    )


def sync_refused(error: ErrorCode) -> SyncGroupResponse:
    """A SyncGroup response without an assignment."""
    return SyncGroupResponse(error_code=error)


def sync_accepted(group: ClassicGroup, member: Member) -> SyncGroupResponse:
    """A member's assignment as it is stored."""
    return SyncGroupResponse(
        protocol_type=group.protocol_type, protocol_name=group.protocol_name, assignment=member.assignment
    )
