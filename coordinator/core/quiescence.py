"""What a driver on a virtual clock needs in order to skip heartbeats that change nothing.

A member of a Stable group that is in the current generation is *quiet*: a heartbeat of it is answered NONE and restarts
its session, and does nothing else (``MemberRequests.heartbeat``). It
stays quiet until the node emits one of the events in :data:`ENDS_QUIET`. Meanwhile a driver may leave its heartbeats
out: it suspends the session, and resumes it with the deadline that the last heartbeat left out would have set.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

from rejoin.coordinator.core.groups.classic.group import ClassicGroup
from rejoin.coordinator.core.groups.classic.state import STABLE
from rejoin.coordinator.core.inputs import Millis
from rejoin.coordinator.core.runtime.timers import Deadlines, TimerKey
from rejoin.journal.events.coordinator import (
    CoreFailed,
    GroupStateChanged,
    MemberRemoved,
    PartitionElected,
    PartitionResigned,
    StaticMemberReplaced,
    StaticMemberRestored,
)


class Disturbance(NamedTuple):
    """Whose quiet is over: one member's, a whole group's if ``member_id`` is none, or everything's on the node."""

    group_id: str | None = None
    member_id: str | None = None


ENDS_QUIET: Final[Mapping[type, Callable[[Any], Disturbance]]] = {
    GroupStateChanged: lambda event: Disturbance(event.group_id),
    StaticMemberReplaced: lambda event: Disturbance(event.group_id, event.old_member_id),
    StaticMemberRestored: lambda event: Disturbance(event.group_id, event.refused_member_id),
    MemberRemoved: lambda event: Disturbance(event.group_id, event.member_id),
    PartitionElected: lambda event: Disturbance(),
    PartitionResigned: lambda event: Disturbance(),
    CoreFailed: lambda event: Disturbance(),
}
"""The events after which heartbeats may be answered otherwise."""

SUSPENDED: Final[Millis] = 1 << 60
"""The deadline of a session that does not run."""


class QuietSession(NamedTuple):
    """The session of a quiet member, as it is now."""

    timer: TimerKey
    expires_at: Millis


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
    return None if expires_at is None else QuietSession(member.session_key, expires_at)


def suspend(session: QuietSession, deadlines: Deadlines) -> None:
    """Stop a session: its member's heartbeats are left out from now on."""
    deadlines.set(session.timer, SUSPENDED)


def resume(session: QuietSession, deadlines: Deadlines, expires_at: Millis) -> None:
    """Let a suspended session run on. Does nothing if the group has restarted or ended it by itself."""
    if deadlines.at(session.timer) == SUSPENDED:
        deadlines.set(session.timer, expires_at)
