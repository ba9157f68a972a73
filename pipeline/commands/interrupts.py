"""Ctrl-C and SIGTERM in commands that run Spark: they end it at once, and its bridge to Python says nothing of it."""

from __future__ import annotations

import logging
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

STOPPED: Final = 130
"""Exit code after Ctrl-C, as shells have it."""


@contextmanager
def quietly() -> Iterator[None]:
    """When Spark is left in the middle of something, its bridge to Python logs every call that it had open."""
    before = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    try:
        yield
    finally:
        logging.disable(before)


class Interrupts:
    """Ctrl-C and SIGTERM while a command runs. ``came``: what fails from then on fails because of them."""

    def __init__(self) -> None:
        self.came = False

    def take(self) -> None:
        """Handle them here, also after Spark's start, whose own handler calls the JVM in the midst of another call."""
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGINT, signal.SIGTERM):
                signal.signal(number, self._interrupt)

    def _interrupt(self, *_: Any) -> None:
        self.came = True
        raise KeyboardInterrupt


@contextmanager
def interrupts() -> Iterator[Interrupts]:
    """Take SIGTERM like Ctrl-C; at the end both mean what they did before."""
    found = Interrupts()
    if threading.current_thread() is not threading.main_thread():
        yield found
        return
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    found.take()
    try:
        yield found
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def ignore_interrupts() -> None:
    """The first signal has begun the shutdown, which takes a moment."""
    if threading.current_thread() is threading.main_thread():
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, signal.SIG_IGN)
