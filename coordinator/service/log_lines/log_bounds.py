"""Bounds of the log: lines a minute for each level, and characters of each text.

Clients choose names, ids and reasons, and each request may cause an event. Kafka logs as much, but into files that are
rotated.
"""

from __future__ import annotations

import time
from collections.abc import Callable, MutableMapping
from typing import Any, Final

import structlog

LEFT_OUT: Final = "log_lines_left_out"
MOST_LINES: Final = 3_000
"""Lines a minute of each level."""
LONGEST_TEXT: Final = 300
LONGEST_SENTENCE: Final = 1_000
_WINDOW_SECONDS: Final = 60.0
_SENTENCES: Final = ("problem", "reason", "detail")
"""Fields that are sentences of our own, with names of clients in them."""
_WHOLE: Final = ("exception", "event")


class LineBudget:
    """A processor of structlog: drops and counts the lines of a level beyond its lines a minute."""

    def __init__(self, most: int = MOST_LINES, clock: Callable[[], float] = time.monotonic) -> None:
        self._most = most
        self._clock = clock
        self._begins: dict[str, float] = {}
        self._lines: dict[str, int] = {}

    def __call__(self, _: object, level: str, fields: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
        if fields.get("event") == LEFT_OUT:
            return fields
        now = self._clock()
        lines = self._lines.get(level, 0)
        if not lines or now >= self._begins[level] + _WINDOW_SECONDS:
            self._begins[level], self._lines[level] = now, 1
            if lines > self._most:
                _say(level, lines=lines - self._most)
            return fields
        self._lines[level] = lines + 1
        if lines >= self._most:
            if lines == self._most:
                _say(level, hint=f"{lines} lines of this level were logged within a minute; further lines are counted")
            raise structlog.DropEvent
        return fields


def _say(level: str, **about: Any) -> None:
    getattr(structlog.get_logger("coordinator"), level)(LEFT_OUT, **about)


def cut_fields(_: object, __: str, fields: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    """A processor of structlog: long texts are cut, in lists and mappings as well."""
    return {name: value if name in _WHOLE else _cut(value, _longest(name)) for name, value in fields.items()}


def _longest(name: str) -> int:
    return LONGEST_SENTENCE if name in _SENTENCES else LONGEST_TEXT


def _cut(value: Any, longest: int) -> Any:
    if isinstance(value, str):
        return value if len(value) <= longest else f"{value[:longest]}… ({len(value):,} characters)"
    if isinstance(value, list | tuple):
        return [_cut(each, longest) for each in value]
    if isinstance(value, dict):
        return {_cut(name, longest): _cut(each, longest) for name, each in value.items()}
    return value
