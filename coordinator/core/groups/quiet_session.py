"""The session of a member whose heartbeats do nothing but restart it; see :mod:`rejoin.coordinator.core.quiescence`."""

from __future__ import annotations

from typing import Final, NamedTuple

from rejoin.coordinator.core.inputs import Millis
from rejoin.coordinator.core.runtime.timers import TimerKey
from rejoin.protocol.message import Response

NEVER: Final[Millis] = 1 << 60
"""An instant after all others."""


class QuietSession(NamedTuple):
    """The session of a quiet member, as it is now, and what each of its heartbeats does."""

    timer: TimerKey
    expires_at: Millis
    timeout_ms: Millis
    answer: Response
    """The answer to each heartbeat."""
    commits_restart: bool = True
    """Whether a commit restarts the session, too."""
    until: Millis = NEVER
    """The member stays quiet so long at the most."""
