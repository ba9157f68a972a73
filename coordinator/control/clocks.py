"""Clocks that can be driven: one that stands still until it is advanced, and one that runs, at any speed.

Both call every alarm at its very instant, even when the process is late, so that what a node does depends on its inputs
and not on how busy the machine is. A clock that runs leaves out the time for which the process stood still: it goes on
from its first alarm that was due meanwhile, after everything that has arrived was handed in.
"""

from __future__ import annotations

import asyncio
import itertools
import time
from collections.abc import Callable
from heapq import heappop, heappush
from typing import Final

from rejoin.coordinator.core.inputs import Millis

START: Final = 1_700_000_000_000
"""Where virtual time begins unless said otherwise."""

_SHORTEST_DELAY: Final = 0.001
STALLED_SECONDS: Final = 1.0
"""A process whose wakeup comes so late, by the machine's clock, stood still."""


class DrivenAlarm:
    """A call that was ordered for an instant."""

    __slots__ = ("_call", "when")

    def __init__(self, when: Millis, call: Callable[[], None]) -> None:
        self.when = when
        self._call: Callable[[], None] | None = call

    @property
    def is_set(self) -> bool:
        return self._call is not None

    def cancel(self) -> None:
        """Do not call."""
        self._call = None

    def fire(self) -> None:
        call, self._call = self._call, None
        if call is not None:
            call()


class VirtualClock:
    """Stands still. ``jump`` sets it, and ``catch_up`` fires what is due by then."""

    def __init__(self, start: Millis = START) -> None:
        self._now = start
        self._alarms: list[tuple[Millis, int, DrivenAlarm]] = []
        self._count = itertools.count()
        self.let_in: Callable[[Callable[[], None]], None] | None = None
        """Calls back when everything has been handed in that has arrived. Of use to a clock that runs."""

    @property
    def kind(self) -> str:
        """The clock as it is named on the command line."""
        return "virtual"

    def now(self) -> Millis:
        return self._now

    def call_at(self, when: Millis, call: Callable[[], None]) -> DrivenAlarm:
        alarm = DrivenAlarm(when, call)
        heappush(self._alarms, (when, next(self._count), alarm))
        if when <= self._now:
            # Due already: no time has to pass for it, only the current step has to end.
            asyncio.get_running_loop().call_soon(self.catch_up)
        return alarm

    def next_alarm(self) -> Millis | None:
        """The instant of the first alarm, or none."""
        while self._alarms and not self._alarms[0][2].is_set:
            heappop(self._alarms)
        return self._alarms[0][0] if self._alarms else None

    def jump(self, to: Millis) -> None:
        """Set the time. Nothing fires by that."""
        self._now = to

    def catch_up(self) -> None:
        """Fire what is due, each alarm at its own instant."""
        while (when := self.next_alarm()) is not None and when <= self._now:
            heappop(self._alarms)[2].fire()

    def stop(self) -> None:
        """Fire nothing any more."""
        self._alarms.clear()


class RunningClock(VirtualClock):
    """Runs by itself, so many times as fast as the machine's. It can be jumped as well."""

    def __init__(self, speed: float = 1.0, start: Millis | None = None) -> None:
        super().__init__(_machine_time() if start is None else start)
        self.speed = speed
        self._begun_ns = time.monotonic_ns()
        self._frozen_at: Millis | None = None
        self._wakeup: asyncio.TimerHandle | None = None
        self._wakeup_at: Millis = 0
        self._wakeup_due = 0.0
        self._seen: Millis = 0

    @property
    def kind(self) -> str:
        return "real" if self.speed == 1.0 else f"fast:{self.speed:g}"

    def now(self) -> Millis:
        if self._frozen_at is not None:
            return self._frozen_at
        if self._has_stood_still():
            return max(self._wakeup_at, self._seen)
        self._seen = self._now + int((time.monotonic_ns() - self._begun_ns) * self.speed) // 1_000_000
        return self._seen

    def call_at(self, when: Millis, call: Callable[[], None]) -> DrivenAlarm:
        alarm = super().call_at(when, call)
        self._schedule_wakeup()
        return alarm

    def jump(self, to: Millis) -> None:
        self._now = self._seen = to
        self._frozen_at = None
        self._begun_ns = time.monotonic_ns()
        self._cancel_wakeup()
        self._schedule_wakeup()

    def catch_up(self) -> None:
        if self._frozen_at is not None:
            return
        now = self.now()
        try:
            while (when := self.next_alarm()) is not None and when <= now:
                # While an alarm fires it is the instant that it was set for.
                self._frozen_at = when
                heappop(self._alarms)[2].fire()
        finally:
            self._frozen_at = None
        self._schedule_wakeup()

    def stop(self) -> None:
        super().stop()
        self._cancel_wakeup()

    def _schedule_wakeup(self) -> None:
        when = self.next_alarm()
        if when is None or self._frozen_at is not None:
            return
        if self._wakeup is not None:
            if self._wakeup_at <= when:
                return
            self._cancel_wakeup()
        seconds = max((when - self.now()) / 1_000 / self.speed, _SHORTEST_DELAY)
        self._wakeup_at = when
        self._wakeup_due = time.monotonic() + seconds
        self._wakeup = asyncio.get_running_loop().call_later(seconds, self._wake)

    def _has_stood_still(self) -> bool:
        is_late = self._wakeup is not None and time.monotonic() - self._wakeup_due >= STALLED_SECONDS
        return is_late and self.let_in is not None

    def _wake(self) -> None:
        if self._has_stood_still() and self.let_in is not None:
            # An input that arrived by a deadline wins over it, so time stands until all are in.
            self._frozen_at, self._wakeup = self.now(), None
            self.let_in(self._go_on)
            return
        self._wakeup = None
        self.catch_up()
        self._schedule_wakeup()

    def _go_on(self) -> None:
        if self._frozen_at is not None:
            self.jump(self._frozen_at)
        self.catch_up()

    def _cancel_wakeup(self) -> None:
        if self._wakeup is not None:
            self._wakeup.cancel()
            self._wakeup = None


def _machine_time() -> Millis:
    return time.time_ns() // 1_000_000


def clock_named(name: str) -> VirtualClock:
    """The clock that ``real``, ``virtual`` or ``fast:SPEED`` means. Raises ``ValueError`` for anything else."""
    kind, colon, speed = name.partition(":")
    if name == "virtual":
        # Clients stamp their records by the machine's clock, and Kafka refuses records of the future.
        return VirtualClock(_machine_time())
    if name == "real":
        return RunningClock()
    if kind == "fast" and colon:
        try:
            times = float(speed)
        except ValueError:
            times = 0.0
        if 0.0 < times <= 1e6:
            return RunningClock(times)
    raise ValueError(
        f"--clock {name}: expected real, virtual, or fast:SPEED, such as fast:5, with a speed of at most a million"
    )
