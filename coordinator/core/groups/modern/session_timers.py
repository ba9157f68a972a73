"""Session timers of members. They are set when a request is handled, stored or not."""

from __future__ import annotations

from typing import Any, Final, Protocol

from rejoin.coordinator.core.groups.modern.group import ModernGroup
from rejoin.coordinator.core.groups.timers import GroupTimer, member_timer
from rejoin.coordinator.core.inputs import Millis
from rejoin.coordinator.core.runtime.timers import TimerKey
from rejoin.coordinator.core.step_context import StepContext
from rejoin.protocol.errors import ErrorCode

RETRY_MS: Final[Millis] = 500
"""After this a timer fires again whose records could not be written."""


class TimedMember(Protocol):
    """A member with a session."""

    session_key: TimerKey


class SessionTimers:
    """Sets the session timers of one shard's members."""

    def __init__(self, ctx: StepContext) -> None:
        self._ctx = ctx

    def restart_session(self, member: TimedMember, session_timeout_ms: Millis) -> None:
        self._ctx.deadlines.set(member.session_key, self._ctx.now + session_timeout_ms)

    def cancel_session(self, member: TimedMember) -> None:
        self._ctx.deadlines.cancel(member.session_key)

    def retry(self, key: TimerKey, error: ErrorCode) -> None:
        """Take in the end of a timer's append; after an error the timer fires again."""
        # Kafka: CoordinatorRuntime.EventBasedCoordinatorTimer.schedule. A shard that resigns cancels its timers.
        if error is not ErrorCode.NONE and self._ctx.deadlines.at(key) is None:
            self._ctx.deadlines.set(key, self._ctx.now + RETRY_MS)


class RebalancingMember(TimedMember, Protocol):
    """A member that has to give something up, for which it has its rebalance timeout."""

    member_id: str
    metadata: Any
    current: Any


class RebalanceTimers(SessionTimers):
    """Sets the timers of one shard's members that have sessions and have to give up what is not theirs any more."""

    def __init__(self, ctx: StepContext) -> None:
        super().__init__(ctx)
        self._rebalancing: dict[tuple[str, str], int] = {}
        """The epoch of each member at which its rebalance timer was set."""

    def start_rebalance(self, group: ModernGroup[Any, Any], member: RebalancingMember) -> None:
        """A member has to give something up from now on."""
        self._rebalancing[group.group_id, member.member_id] = member.current.epoch
        key = member_timer(GroupTimer.REBALANCE, group.partition, group.group_id, member.member_id)
        self._ctx.deadlines.set(key, self._ctx.now + member.metadata.rebalance_timeout_ms)

    def cancel_rebalance(self, group: ModernGroup[Any, Any], member: RebalancingMember) -> None:
        if self._rebalancing.pop((group.group_id, member.member_id), None) is not None:
            self._cancel(GroupTimer.REBALANCE, group, member)

    def rebalance_epoch(self, group: ModernGroup[Any, Any], member_id: str) -> int | None:
        """The epoch at which the rebalance timer that fires now was set."""
        return self._rebalancing.pop((group.group_id, member_id), None)

    def retry_rebalance(self, group_id: str, key: TimerKey, epoch: int, error: ErrorCode) -> None:
        """As :meth:`retry`, for a rebalance timer."""
        if error is not ErrorCode.NONE:
            self._rebalancing.setdefault((group_id, key.name), epoch)
            self.retry(key, error)

    def _cancel(self, kind: GroupTimer, group: ModernGroup[Any, Any], member: RebalancingMember) -> None:
        self._ctx.deadlines.cancel(member_timer(kind, group.partition, group.group_id, member.member_id))
