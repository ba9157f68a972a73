"""Counts calls: what work costs, the same on every machine, however busy it is."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any


def calls_of(work: Callable[[], object]) -> int:
    """How many functions it calls, of Python and of C. A profiler that was set is set again afterwards."""
    counted = 0

    def count(frame: FrameType, event: str, argument: object) -> None:
        nonlocal counted
        counted += event in ("call", "c_call")

    before = sys.getprofile()
    sys.setprofile(count)
    try:
        work()
    finally:
        sys.setprofile(before)
    return counted


def steps_of(work: Callable[[], object]) -> int:
    """How many lines of Python run, and how many calls there are: a loop without calls counts as well."""
    counted = 0

    def trace(frame: FrameType, event: str, argument: object) -> Any:
        nonlocal counted
        counted += event in ("line", "call")
        return trace

    def count(frame: FrameType, event: str, argument: object) -> None:
        nonlocal counted
        counted += event == "c_call"

    traced, profiled = sys.gettrace(), sys.getprofile()
    sys.setprofile(count)
    sys.settrace(trace)
    try:
        work()
    finally:
        sys.settrace(traced)
        sys.setprofile(profiled)
    return counted
