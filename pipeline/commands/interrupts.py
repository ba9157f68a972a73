"""Ctrl-C and SIGTERM in commands that run Spark: they end it at once, and its bridge to Python says nothing of it."""

from __future__ import annotations

import logging
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

STOPPED: Final = 130
"""Exit code after Ctrl-C, as shells have it."""

_SIGNALS: Final = (signal.SIGINT, signal.SIGTERM)
_AGAIN_S: Final = 0.05


@contextmanager
def logging_disabled() -> Iterator[None]:
    """Disable Python's logging meanwhile: where Spark is interrupted, py4j logs every call that was open."""
    before = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    try:
        yield
    finally:
        logging.disable(before)


class Interrupts:
    """Ctrl-C and SIGTERM while a command runs. ``came``: what fails from then on fails because of them.

    The exception may be raised where Python or a library drops it: in a finalizer, in a callback, below an ``except``
    for everything. It is then raised again shortly after, or by the next :meth:`check`.
    """

    def __init__(self) -> None:
        self.came = False
        self._ended = False

    def take(self) -> None:
        """Handle them here, also after Spark's start, whose own handler calls the JVM in the midst of another call."""
        if threading.current_thread() is threading.main_thread():
            for number in (*_SIGNALS, signal.SIGALRM):
                signal.signal(number, self._interrupt)

    def check(self) -> None:
        """Raise KeyboardInterrupt if one of them came."""
        if self.came:
            raise KeyboardInterrupt

    def ignore(self) -> None:
        """From now on nothing is raised: the first signal has begun the shutdown, which takes a moment."""
        self._ended = True

    def _interrupt(self, *_: Any) -> None:
        if not self._ended:
            self.came = True
            raise KeyboardInterrupt

    def dropped(self, what: sys.UnraisableHookArgs) -> None:
        """As ``sys.unraisablehook``: an interrupt that could not be raised where it came comes once more."""
        if not (self.came and issubclass(what.exc_type, KeyboardInterrupt)):
            sys.__unraisablehook__(what)
        elif not self._ended and threading.current_thread() is threading.main_thread():
            signal.setitimer(signal.ITIMER_REAL, _AGAIN_S)


@contextmanager
def interrupts() -> Iterator[Interrupts]:
    """Take SIGTERM like Ctrl-C; at the end both mean what they did before."""
    found = Interrupts()
    if threading.current_thread() is not threading.main_thread():
        yield found
        return
    before = {number: signal.getsignal(number) for number in (*_SIGNALS, signal.SIGALRM)}
    hook = sys.unraisablehook
    found.take()
    sys.unraisablehook = found.dropped
    try:
        yield found
    finally:
        sys.unraisablehook = hook
        signal.setitimer(signal.ITIMER_REAL, 0)
        for number, handler in before.items():
            signal.signal(number, handler)
