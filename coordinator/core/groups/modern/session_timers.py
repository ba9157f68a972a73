"""Session timers of members. They are set when a request is handled, stored or not."""

from __future__ import annotations

from typing import Final, Protocol

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
