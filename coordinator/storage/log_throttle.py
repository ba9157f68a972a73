"""What goes wrong again and again, in few lines: at once, then every few seconds with a count, and when it is over."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

EVERY_SECONDS: Final = 5.0


@dataclass(slots=True)
class _Trouble:
    """One kind of failure: how often since it began, and since there was a line about it."""

    said_at: float
    began: float = 0.0
    times: int = 0
    untold: int = 0
    is_told: bool = False


class Complaints:
    """Lines about failures, each kind by its name: no more than one in a few seconds, however often it comes back."""

    def __init__(self, logger: Any, clock: Callable[[], float] = time.monotonic) -> None:
        self._logger = logger
        self._clock = clock
        self._known: dict[str, _Trouble] = {}
        self._lasting: set[str] = set()

    def say(self, what: str, problem: object, *, level: str = "error", **about: Any) -> None:
        """It has failed, this time with ``problem``."""
        if times := self.due(what):
            if isinstance(problem, BaseException):
                problem = f"{type(problem).__name__}: {problem}"
            getattr(self._logger, level)(what, problem=problem, **about, **counted(times))

    def due(self, what: str) -> int:
        """It has failed. How many failures a line about it stands for by now; 0: none is due."""
        now = self._clock()
        trouble = self._known.setdefault(what, _Trouble(now - EVERY_SECONDS))
        if what not in self._lasting:
            self._lasting.add(what)
            trouble.began, trouble.times, trouble.is_told = now, 0, False
        trouble.times += 1
        trouble.untold += 1
        if now < trouble.said_at + EVERY_SECONDS:
            return 0
        times, trouble.untold = trouble.untold, 0
        trouble.said_at, trouble.is_told = now, True
        return times

    def over(self, what: str, again: str) -> None:
        """It went well; ``again`` is what that is called after a failure that was told."""
        if what not in self._lasting:
            return
        self._lasting.discard(what)
        trouble = self._known[what]
        if trouble.is_told:
            trouble.untold = 0
            self._logger.info(again, failures=trouble.times, after_ms=round((self._clock() - trouble.began) * 1_000))


def counted(times: int) -> dict[str, int]:
    """What a line says of how many failures it stands for."""
    return {"times": times} if times > 1 else {}
