"""The timers of groups. Their scope is the group id."""

from __future__ import annotations

from enum import IntEnum

from rejoin.coordinator.core.inputs import Millis
from rejoin.coordinator.core.runtime.timers import Deadlines, TimerKey
from rejoin.protocol.types import TopicPartition


class GroupTimer(IntEnum):
    """Kinds of timers. Of several at one instant, the lower number fires first."""

    SESSION = 1
    JOIN = 2
    SYNC = 3
    EXPIRY = 4
    MEMBER_SESSION = 5
    REBALANCE = 6
    MEMBER_JOIN = 7
    MEMBER_SYNC = 8
    INITIAL_REBALANCE = 9


def session_timer(partition: TopicPartition, group_id: str, member_id: str) -> TimerKey:
    """The session of a member, or the time in which a handed-out id may be used."""
    return TimerKey(GroupTimer.SESSION, partition, group_id, member_id)


def join_timer(partition: TopicPartition, group_id: str) -> TimerKey:
    """The end of a group's join phase."""
    return TimerKey(GroupTimer.JOIN, partition, group_id)


def sync_timer(partition: TopicPartition, group_id: str) -> TimerKey:
    """The end of the time in which members must send SyncGroup."""
    return TimerKey(GroupTimer.SYNC, partition, group_id)


def member_timer(kind: GroupTimer, partition: TopicPartition, group_id: str, member_id: str) -> TimerKey:
    """A timer of one member of a consumer group."""
    return TimerKey(kind, partition, group_id, member_id)


def member_session_timer(partition: TopicPartition, group_id: str, member_id: str) -> TimerKey:
    """The session of a member of a consumer group."""
    return TimerKey(GroupTimer.MEMBER_SESSION, partition, group_id, member_id)


def initial_rebalance_timer(partition: TopicPartition, group_id: str) -> TimerKey:
    """The end of the time in which a streams group that was Empty collects members."""
    return TimerKey(GroupTimer.INITIAL_REBALANCE, partition, group_id)


def named_deadlines(partition: TopicPartition, group_id: str, deadlines: Deadlines) -> dict[str, Millis]:
    """The timers of a group, named."""
    due = deadlines.of_scope(partition, group_id)
    return {f"{key.kind.name.lower()} {key.name}".rstrip(): at for key, at in due.items()}
