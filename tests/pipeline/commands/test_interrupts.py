"""Ctrl-C ends a command also where Python or a library drops the exception that it raises."""

from __future__ import annotations

import signal
import sys
import time
from contextlib import suppress

import pytest

from rejoin.pipeline.commands.interrupts import interrupts


class Finalized:
    def __del__(self) -> None:
        signal.raise_signal(signal.SIGINT)


def test_an_interrupt_inside_a_finalizer_comes_once_more(capsys: pytest.CaptureFixture[str]) -> None:
    before = signal.getsignal(signal.SIGALRM), sys.unraisablehook
    with interrupts() as interrupted:
        Finalized()
        with pytest.raises(KeyboardInterrupt):
            time.sleep(60)
        assert interrupted.came
    assert (signal.getsignal(signal.SIGALRM), sys.unraisablehook) == before
    assert signal.getitimer(signal.ITIMER_REAL) == (0, 0)
    assert capsys.readouterr().err == ""


def test_an_interrupt_that_a_library_swallows_is_seen_at_the_next_check() -> None:
    with interrupts() as interrupted:
        interrupted.check()
        with suppress(BaseException):
            signal.raise_signal(signal.SIGTERM)
        with pytest.raises(KeyboardInterrupt):
            interrupted.check()


def test_none_comes_while_the_command_ends(capsys: pytest.CaptureFixture[str]) -> None:
    with interrupts() as interrupted:
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
        interrupted.ignore()
        signal.raise_signal(signal.SIGINT)
        signal.raise_signal(signal.SIGALRM)
        Finalized()
        assert signal.getitimer(signal.ITIMER_REAL) == (0, 0)
    assert capsys.readouterr().err == ""
