"""A process that serves: differences between POSIX and Windows (file locks, event loops, signals), and its memory."""

from __future__ import annotations

import asyncio
import gc
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, Final

_FEW_OPEN_FILES: Final = 4_096
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


def allow_many_connections() -> None:
    """Let this process have as many open files, and so connections, as the system allows it; few are logged."""
    try:
        import resource  # noqa: PLC0415 (Windows has no such module and no such limit)
    except ImportError:
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    if soft == hard and hard < _FEW_OPEN_FILES:
        import structlog  # noqa: PLC0415

        structlog.get_logger("process").warning("few_open_files_allowed", limit=hard)


def calm_collector() -> None:
    """Run Python's cycle collector less often, and exempt all objects that exist now.

    Only for a process that is nothing but a service. Ten thousand parked requests are half a million objects without a
    cycle; scanning them repeatedly costs more than answering them.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 100)
