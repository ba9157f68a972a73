"""Time for the runtime: the current instant, and one wakeup."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Protocol

import structlog

from rejoin.coordinator.core.groups.loading import MOST_AHEAD_MS
from rejoin.coordinator.core.inputs import Millis
from rejoin.journal.wall_clock import LOOK_EVERY_NS, WallClock

WRITTEN_EVERY_SECONDS: Final = 10.0
"""How often a node writes down how far its clock has come."""


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
    """The machine's clock, as :class:`~rejoin.journal.wall_clock.WallClock` follows it after ``follow``."""

    def __init__(self, loop: asyncio.AbstractEventLoop, wall: WallClock | None = None) -> None:
        self._loop = loop
        self._wall = wall or WallClock()
        self._timer: asyncio.TimerHandle | None = None

    def now(self) -> Millis:
        return self._wall.now()

    def follow(self, on_step: Callable[[Millis], None]) -> None:
        """Follow the machine's clock from now on. ``on_step`` is called with each step forward, before the next input.

        Timers do not step: an alarm that is set rings after the time that was left.
        """
        step = self._wall.follow()
        if step is not None:
            log: Any = structlog.get_logger("coordinator")
            if step.by_ms > 0:
                effect = "timestamps continue from the new time; timers keep the time they had left"
                log.warning("clock_stepped", by_ms=step.by_ms, effect=effect)
                on_step(step.by_ms)
            else:
                effect = "timestamps stay ahead, and advance 2 % slower until the machine's clock has caught up"
                log.warning("clock_set_back", by_ms=-step.by_ms, effect=effect)
        self._timer = self._loop.call_later(LOOK_EVERY_NS / 1e9, self.follow, on_step)

    def stop(self) -> None:
        """Follow the machine's clock no longer."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def call_at(self, when: Millis, call: Callable[[], None]) -> Alarm:
        # Never less than one millisecond: event loops round, and an early wakeup would only be set again.
        return self._loop.call_later(max(when - self.now(), 1) / 1_000, call)


@dataclass(frozen=True)
class Uptime:
    """Time since the machine booted, which cannot be set, unlike its clock. Only times of one boot compare."""

    boot: str
    ms: Millis


def uptime() -> Uptime | None:
    """Since when this machine has been up, asleep or not. None where the system does not say, as outside Linux."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
        return Uptime(boot, time.clock_gettime_ns(time.CLOCK_BOOTTIME) // 1_000_000)
    except (OSError, AttributeError):
        return None


class ClockFile:
    """The latest time of a node's clock, in its data directory: written every ten seconds, and when the node stops.

    A synthetic topic's end offset is computed from time. After the clock was set back, it continues from this instant.
    The file lacks the last seconds of a node that was killed: at most as many as the machine's uptime has grown, and at
    most ten after a reboot.
    """

    def __init__(self, folder: Path, clock: Clock, uptime: Callable[[], Uptime | None] = uptime) -> None:
        self._path = folder / "clock"
        self._clock = clock
        self._uptime = uptime
        self._newest: Millis = 0
        self._timer: asyncio.TimerHandle | None = None

    def newest(self) -> Millis:
        """An instant not before any that was answered before the restart, where the clock is behind it; else 0."""
        try:
            written = json.loads(self._path.read_text(encoding="ascii"))
            newest = max(int(written["newest"]), self._latest(written))
        except FileNotFoundError:
            return 0
        except (OSError, ValueError, TypeError, KeyError, OverflowError, RecursionError) as problem:
            structlog.get_logger("coordinator").warning(
                "clock_file_ignored",
                file=str(self._path),
                problem=f"{type(problem).__name__}: {problem}"[:200],
                effect="if this machine's clock was set back, the ends of synthetic topics go back, too",
            )
            return 0
        if not 0 < newest - self._clock.now() <= MOST_AHEAD_MS:
            return 0
        self._newest = newest
        return newest

    def _latest(self, written: dict[str, Any]) -> Millis:
        """The latest time that the clock can have shown when it wrote the file."""
        clock = int(written["clock"])
        if written["ended"]:
            return clock
        now = self._uptime()
        if now is not None and written["boot"] == now.boot and 0 <= written["uptime"] <= now.ms:
            return clock + now.ms - int(written["uptime"])
        return clock + round(WRITTEN_EVERY_SECONDS * 1_000)

    def begin(self) -> None:
        """Write the file now, and again and again."""
        self._write(ended=False)
        self._timer = asyncio.get_running_loop().call_later(WRITTEN_EVERY_SECONDS, self.begin)

    def end(self) -> None:
        """Write the file for the last time."""
        if self._timer is not None:
            self._timer.cancel()
            self._write(ended=True)

    def _write(self, *, ended: bool) -> None:
        up = self._uptime() or Uptime("", 0)
        state = {"newest": self._newest, "clock": self._clock.now(), "ended": ended, "boot": up.boot, "uptime": up.ms}
        aside = self._path.with_suffix(".new")
        # Where the disk is full, the older file stays.
        with suppress(OSError):
            aside.write_text(json.dumps(state), encoding="ascii")
            aside.replace(self._path)
