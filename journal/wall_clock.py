"""The time of day for stamps: it follows the machine's clock, and never goes back.

The machine's clock is set by people and by NTP; the steady clock of a process stands still while the machine sleeps. So
instants are counted by the steady clock and compared with the machine's from time to time:

- A difference of less than a second is slewed: for the next second, time passes up to 2 % faster or slower.
- Where the machine's clock is ahead by more, as after a sleep, time steps forward at once.
- Where it was set back by more, time passes 2 % slower until the machine's clock has caught up.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final, NamedTuple

LOOK_EVERY_NS: Final = 1_000_000_000
STEP_NS: Final = 1_000_000_000
_MOST_PER_MILLE: Final = 20
_NS_OF_A_MS: Final = 1_000_000


class ClockStep(NamedTuple):
    """A difference that is not slewed away at once. ``by_ms`` is positive where time stepped forward by so much.

    A negative one is how far the machine's clock is behind.
    """

    by_ms: int


class WallClock:
    """Milliseconds since 1970. The clocks are those of the ``time`` module, unless a test gives others."""

    def __init__(self, wall_ns: Callable[[], int] | None = None, steady_ns: Callable[[], int] | None = None) -> None:
        self._wall_ns = wall_ns or time.time_ns
        self._steady_ns = steady_ns or time.monotonic_ns
        self._base_ns = self._wall_ns()
        self._counted_from = self._steady_ns()
        self._per_mille = 1_000
        self._is_ahead = False
        """Whether the machine's clock was set back and has not caught up."""

    def now(self) -> int:
        """This instant. It is not before any that was returned earlier."""
        return self._at(self._steady_ns()) // _NS_OF_A_MS

    def stamp(self) -> int:
        """This instant, after a look at the machine's clock where the last one is more than a second ago."""
        if self._steady_ns() - self._counted_from >= LOOK_EVERY_NS:
            self.follow()
        return self.now()

    def follow(self) -> ClockStep | None:
        """Compare with the machine's clock; call it about once a second. Returns a step, once for each."""
        steady = self._steady_ns()
        self._base_ns, self._counted_from = self._at(steady), steady
        behind = self._wall_ns() - self._base_ns
        if behind >= STEP_NS:
            self._base_ns += behind
            self._per_mille, self._is_ahead = 1_000, False
            return ClockStep(behind // _NS_OF_A_MS)
        per_mille = behind * 1_000 // LOOK_EVERY_NS
        self._per_mille = 1_000 + max(-_MOST_PER_MILLE, min(_MOST_PER_MILLE, per_mille))
        was_ahead, self._is_ahead = self._is_ahead, behind <= -STEP_NS
        return ClockStep(-(-behind // _NS_OF_A_MS)) if self._is_ahead and not was_ahead else None

    def _at(self, steady: int) -> int:
        return self._base_ns + (steady - self._counted_from) * self._per_mille // 1_000
