"""Instants and windows of time that options name: ``--at``, ``--since`` and ``--until``."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final, NamedTuple

from rejoin.pipeline.findings.formatting import is_simulated, names, period
from rejoin.pipeline.vocabulary import is_untimed

_CLOCK: Final = re.compile(r"(?:(\d{1,4})d )?(\d{1,2}):(\d\d)(?::(\d\d)(?:\.(\d{1,3}))?)?")
_BEFORE: Final = re.compile(r"(\d{1,6})(s|m|h|d)")
_UNITS: Final = {"s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
EXPECTED: Final = (
    "expected 2026-03-01T14:02:00Z, 14:02 or 14:02:30 (of the last day, UTC), 30m (before the end), or ms since 1970"
)


def instant(text: str, last_ms: int, option: str = "--at") -> int:
    """The instant that a text names, in ms; times of day are those of the last day that the source has.

    A length such as ``30m`` is so long before the end of the source.

    Raises ValueError.
    """
    if is_untimed(last_ms):
        raise ValueError(f"{option} {text}: the log has no times; give it without {option}")
    given = text.strip()
    clock = _CLOCK.fullmatch(given)
    if clock is not None:
        if int(clock[2]) > 23 or int(clock[3]) > 59 or int(clock[4] or 0) > 59:
            raise ValueError(f"{option} {text}: no time of day; expected hours up to 23, minutes and seconds up to 59")
        return _of_day(clock, last_ms)
    before = _BEFORE.fullmatch(given)
    if before is not None:
        return last_ms - int(before[1]) * _UNITS[before[2]]
    if given.isascii() and given.isdecimal() and len(given) <= 15:
        return int(given)
    try:
        found = datetime.fromisoformat(given)
    except ValueError:
        raise ValueError(f"{option} {text}: no instant; {EXPECTED}") from None
    return int((found if found.tzinfo else found.replace(tzinfo=UTC)).timestamp() * 1_000)


def _of_day(clock: re.Match[str], last_ms: int) -> int:
    days, hours, minutes, seconds, fraction = (int(part or 0) for part in clock.groups())
    fraction = int((clock[5] or "0").ljust(3, "0"))
    within = timedelta(days=days, hours=hours, minutes=minutes, seconds=seconds, milliseconds=fraction)
    at_ms = int(within.total_seconds() * 1_000)
    if is_simulated(last_ms):
        return at_ms
    begins = last_ms - last_ms % 86_400_000
    # Just after midnight, 23:50 is that of the day before.
    return begins + at_ms if begins + at_ms <= last_ms + 3_600_000 else begins + at_ms - 86_400_000


class BadWindow(ValueError):
    """``--since`` or ``--until`` is none that the input has; the text says which, and what there is."""


class LogWindow(NamedTuple):
    """From when to when logs are read, as options name it; what is before or after counts as not logged."""

    since: str | None = None
    until: str | None = None

    def __str__(self) -> str:
        given = (("--since", self.since), ("--until", self.until))
        return " ".join(f"{option} {text}" for option, text in given if text is not None)

    def bounds(self, last_ms: int) -> tuple[int | None, int | None]:
        """The first instant inside and the last. Raises :class:`BadWindow`."""
        try:
            since = None if self.since is None else instant(self.since, last_ms, "--since")
            until = None if self.until is None else instant(self.until, last_ms, "--until")
        except ValueError as problem:
            raise BadWindow(str(problem)) from None
        if since is not None and until is not None and since > until:
            raise BadWindow(f"{self}: ends before it begins; expected --since before --until")
        return since, until

    def bounds_of(self, said: Sequence[Mapping[str, Any]]) -> tuple[list[str], int, int]:
        """Notes for the reader, the first instant inside and the last, for lines with ``file`` and ``order_ms``.

        A file without times is left out: its lines may lie within or not. Raises :class:`BadWindow`.
        """
        timed = [row["order_ms"] for row in said if not is_simulated(row["order_ms"])]
        untimed = sorted({Path(row["file"]).name for row in said if is_simulated(row["order_ms"])})
        if said and not timed:
            raise BadWindow(f"{self}: {names(untimed)} has no times; give it without --since and --until")
        first, last = min(timed, default=0), max(timed, default=0)
        since, until = self.bounds(last)
        since, until = max(first, since or first), min(last, until or last)
        if since > until:
            raise BadWindow(f"{self}: nothing is said about groups then, but {period(first, last)} (UTC)")
        notes = [f"{self}: only lines {period(since, until)} (UTC); what came before and after is not read"]
        return notes + ([f"{names(untimed)}: no times, so left out of the window"] if untimed else []), since, until

    def cut(self, rows: Sequence[Mapping[str, Any]]) -> tuple[list[Mapping[str, Any]], list[str]]:
        """The rows of log files whose lines lie within, and notes for the reader. Raises :class:`BadWindow`."""
        if not str(self):
            return list(rows), []
        notes, since, until = self.bounds_of([row for row in rows if row.get("order_ms") is not None])
        return [row for row in rows if since <= (row.get("order_ms") or since) <= until], notes


WHOLE: Final = LogWindow()
"""All that is there."""
