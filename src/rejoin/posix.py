"""Differences between POSIX and Windows: file locks, event loops and their signals."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final

_STOP_SIGNALS: Final = (signal.SIGTERM, signal.SIGINT)


class PosixNeeded(Exception):
    """A feature needs POSIX. The text names the feature."""

    def __init__(self, feature: str) -> None:
        super().__init__(f"{feature} needs POSIX: expected Linux, macOS or WSL")


@contextmanager
def stop_signals(loop: asyncio.AbstractEventLoop, call: Callable[[], object]) -> Iterator[None]:
    """Have the event loop call ``call`` at SIGTERM and SIGINT."""
    before = {number: signal.getsignal(number) for number in _STOP_SIGNALS}
    try:
        for number in _STOP_SIGNALS:
            loop.add_signal_handler(number, call)
        has_handlers = True
    except NotImplementedError:  # on Windows
        for number in _STOP_SIGNALS:
            signal.signal(number, lambda *_: loop.call_soon_threadsafe(call))
        has_handlers = False
    try:
        yield
    finally:
        for number, handler in before.items():
            if has_handlers:
                loop.remove_signal_handler(number)
            else:
                signal.signal(number, handler)


def fast_loop_factory() -> Any:
    """The maker of uvloop's event loops; None, which stands for asyncio's, where uvloop is not installed."""
    try:
        import uvloop  # noqa: PLC0415
    except ImportError:
        return None
    return uvloop.new_event_loop
