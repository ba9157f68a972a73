"""Time for the runtime: the current instant, and one wakeup."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Protocol

from rejoin.coordinator.core.inputs import Millis


class Alarm(Protocol):
    """A call that was ordered and can be taken back."""

    def cancel(self) -> None:
        """Do not call."""


class Clock(Protocol):
    """Where instants come from. They never go backwards."""

    def now(self) -> Millis:
        """This instant, ms since 1970."""

    def call_at(self, when: Millis, call: Callable[[], None]) -> Alarm:
        """Call at an instant or shortly after, never before returning."""


class SystemClock:
    """The machine's clock, read once; from then on its monotonic one, which never goes back."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._offset_ns = time.time_ns() - time.monotonic_ns()

    def now(self) -> Millis:
        return (time.monotonic_ns() + self._offset_ns) // 1_000_000

    def call_at(self, when: Millis, call: Callable[[], None]) -> Alarm:
        # Never less than one millisecond: event loops round, and an early wakeup would only be set again.
        return self._loop.call_later(max(when - self.now(), 1) / 1_000, call)
