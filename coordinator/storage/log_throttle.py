"""Log repeated failures in few lines: the first at once, then one every few seconds with a count, then the recovery."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

EVERY_SECONDS: Final = 5.0


@dataclass(slots=True)
class _Failure:
    """One kind of failure, with its counts since it began and since it was last logged."""

    logged_at: float
    began: float = 0.0
    times: int = 0
    unlogged: int = 0
    is_logged: bool = False


class LogThrottle:
    """Logs each kind of failure at most once every few seconds."""

    def __init__(self, logger: Any, clock: Callable[[], float] = time.monotonic) -> None:
        self._logger = logger
        self._clock = clock
        self._known: dict[str, _Failure] = {}
        self._lasting: set[str] = set()

    def failed(self, what: str, problem: object, *, level: str = "error", **about: Any) -> None:
        """Count a failure, and log it unless the last line about it is recent."""
        if times := self.due(what):
            if isinstance(problem, BaseException):
                problem = f"{type(problem).__name__}: {problem}"
            getattr(self._logger, level)(what, problem=problem, **about, **counted(times))

    def due(self, what: str) -> int:
        """Count a failure. Returns how many failures the next log line stands for, or 0 while no line is due."""
        now = self._clock()
        failure = self._known.setdefault(what, _Failure(now - EVERY_SECONDS))
        if what not in self._lasting:
            self._lasting.add(what)
            failure.began, failure.times, failure.is_logged = now, 0, False
        failure.times += 1
        failure.unlogged += 1
        if now < failure.logged_at + EVERY_SECONDS:
            return 0
        times, failure.unlogged = failure.unlogged, 0
        failure.logged_at, failure.is_logged = now, True
        return times

    def recovered(self, what: str, again: str) -> None:
        """Note that ``what`` works. If its failure was logged, log the recovery as ``again``."""
        if what not in self._lasting:
            return
        self._lasting.discard(what)
        failure = self._known[what]
        if failure.is_logged:
            failure.unlogged = 0
            self._logger.info(again, failures=failure.times, after_ms=round((self._clock() - failure.began) * 1_000))


def counted(times: int) -> dict[str, int]:
    """The ``times`` field of a log line that stands for more than one failure."""
    return {"times": times} if times > 1 else {}
