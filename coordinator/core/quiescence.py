"""Quiescence: what lets a driver on a virtual clock skip heartbeats that change nothing.

A member of a Stable group that is in the current generation is *quiet*: a heartbeat of it is answered NONE and restarts
its session, and does nothing else (``MemberRequests.heartbeat``). So is a member of a consumer group that has reached
the group's epoch and has nothing new to say (``ConsumerHeartbeats.quiet_session``). It stays quiet until the node has
one of the effects in :data:`ENDS_QUIET`. Meanwhile a driver may leave its heartbeats
out: it suspends the session, and resumes it with the deadline that the last heartbeat left out would have set.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

from rejoin.coordinator.core.effects import Append
from rejoin.coordinator.core.groups.classic.group import ClassicGroup
from rejoin.coordinator.core.groups.classic.member_requests import HEARTBEAT_RESPONSES
from rejoin.coordinator.core.groups.classic.state import STABLE
from rejoin.coordinator.core.groups.quiet_session import QuietSession
from rejoin.coordinator.core.inputs import Millis
from rejoin.coordinator.core.runtime.timers import Deadlines
from rejoin.journal.events.coordinator import (
    CoreFailed,
    GroupStateChanged,
    MemberRemoved,
    PartitionElected,
    PartitionResigned,
    StaticMemberReplaced,
    StaticMemberRestored,
    TopicCreated,
    TopicDeleted,
    TopicGrown,
)
from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.records.consumer_offsets import GroupRecord, OffsetRecord
from rejoin.protocol.records.keyed import TransactionMarker


class Disturbance(NamedTuple):
    """Whose quiet is over: one member's, a whole group's if ``member_id`` is none, or everything's on the node."""

    group_id: str | None = None
    member_id: str | None = None


def _written(append: Append) -> Disturbance | None:
    """Records change a consumer group before they are stored; all those of one append are of the same group."""
    record = append.records[0] if append.records else None
    if record is None or isinstance(record, (OffsetRecord, TransactionMarker)):
        return None
    if isinstance(record, GroupRecord):
        # The end of a classic group, which may become a consumer group.
        return Disturbance(record.key.data.group) if record.value is None else None
    group_id = getattr(record.key.data, "group_id", None)
    return None if group_id is None else Disturbance(group_id)


ENDS_QUIET: Final[Mapping[type, Callable[[Any], Disturbance | None]]] = {
    Append: _written,
    TopicCreated: lambda event: Disturbance(),
    TopicDeleted: lambda event: Disturbance(),
    TopicGrown: lambda event: Disturbance(),
    GroupStateChanged: lambda event: Disturbance(event.group_id),
    StaticMemberReplaced: lambda event: Disturbance(event.group_id, event.old_member_id),
    StaticMemberRestored: lambda event: Disturbance(event.group_id, event.refused_member_id),
    MemberRemoved: lambda event: Disturbance(event.group_id, event.member_id),
    PartitionElected: lambda event: Disturbance(),
    PartitionResigned: lambda event: Disturbance(),
    CoreFailed: lambda event: Disturbance(),
}
"""The effects after which heartbeats may be answered otherwise."""

SUSPENDED: Final[Millis] = 1 << 60
"""The deadline of a session that does not run."""


def quiet_session(
    group: ClassicGroup | None, deadlines: Deadlines, member_id: str, group_instance_id: str | None, generation_id: int
) -> QuietSession | None:
    """The session of a member that is quiet, or none."""
    if group is None or group.state is not STABLE or group.generation != generation_id:
        return None
    member = group.members.get(member_id)
    if member is None:
        return None
    if group_instance_id is not None and group.static_members.get(group_instance_id) != member_id:
        return None
    expires_at = deadlines.at(member.session_key)
    if expires_at is None:
        return None
    answer = HEARTBEAT_RESPONSES[ErrorCode.NONE]
    return QuietSession(member.session_key, expires_at, member.session_timeout_ms, answer)


def suspend(session: QuietSession, deadlines: Deadlines) -> None:
    """Stop a session: its member's heartbeats are left out from now on."""
    deadlines.set(session.timer, SUSPENDED)


def resume(session: QuietSession, deadlines: Deadlines, expires_at: Millis) -> None:
    """Let a suspended session run on. Does nothing if the group has restarted or ended it by itself."""
    if deadlines.at(session.timer) == SUSPENDED:
        deadlines.set(session.timer, expires_at)
