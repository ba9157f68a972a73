"""Numbers, lengths and instants as people say them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Final

from rejoin.pipeline.vocabulary import OF_NO_DAY_BEFORE_MS, UNTIMED_FROM_MS, is_untimed

_NICE_S: Final = (1, 2, 5, 6, 10, 15, 20, 30, 45, 60, 90, 120, 180, 240, 300, 420, 600, 900, 1200, 1800, 2700, 3600)


def count(number: int, noun: str) -> str:
    """``1 rebalance``, ``1,600 rebalances``."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def times(number: int) -> str:
    """``once``, ``twice``, ``3 times``."""
    return {1: "once", 2: "twice"}.get(number, f"{number:,} times")


def span(ms: float) -> str:
    """A length: ``400 ms``, ``4.5 s``, ``45 s``, ``2.5 min``, ``3 h``."""
    for limit, unit, name in ((1_000, 1, "ms"), (120_000, 1_000, "s"), (7_200_000, 60_000, "min")):
        if round(ms) < limit:
            return f"{_short(ms / unit)} {name}"
    return f"{_short(ms / 3_600_000)} h"


def spans(values: Sequence[float]) -> str:
    """Lengths from the shortest to the longest: ``4.5 s``, or ``0.4 to 2 s``."""
    least, most = span(min(values)), span(max(values))
    if least == most:
        return least
    if least.endswith(" ms") and most.endswith(" s") and min(values) >= 100:
        least = f"{_short(min(values) / 1_000)} s"
    number, unit = least.split(" ")
    return f"{number} to {most}" if unit == most.split(" ")[1] else f"{least} to {most}"


def seconds(ms: float) -> str:
    """Consumer-seconds and the like, without the unit: ``0.4``, ``36``, ``1,200``."""
    return _short(ms / 1_000)


def _short(value: float) -> str:
    if 0 < value < 0.05:
        # What rounds to nothing is something all the same.
        return f"{value:.1g}"
    if value < 9.95:
        return f"{value:.1f}".removesuffix(".0")
    return f"{value:,.0f}"


def names(who: Iterable[str], most: int = 3) -> str:
    """``a``, ``a and b``, ``a, b, c and 2 more``."""
    distinct = list(dict.fromkeys(who))
    shown = distinct[:most] if len(distinct) > most + 1 else distinct
    rest = len(distinct) - len(shown)
    if rest:
        shown = [*shown, f"{rest} more"]
    return shown[0] if len(shown) == 1 else f"{', '.join(shown[:-1])} and {shown[-1]}" if shown else "none"


def is_simulated(at_ms: int) -> bool:
    """Whether an instant is of no day: counted from the start of a simulation, or the number of a line."""
    return at_ms < OF_NO_DAY_BEFORE_MS


def clock(at_ms: int) -> str:
    """An instant of no day: ``0:05:00``, ``2d 0:05:00`` of a simulation, ``line 12`` of a log without times."""
    if is_untimed(at_ms):
        return f"line {at_ms - UNTIMED_FROM_MS:,}"
    day, second = divmod(at_ms // 1_000, 86_400)
    return (f"{day}d " if day else "") + f"{second // 3600}:{second // 60 % 60:02}:{second % 60:02}"


def period(from_ms: int | None, to_ms: int | None) -> str:
    """A time span, as the end of a sentence: ``on 3 March``, ``from 0:05:00 to 0:10:20``, ``at line 12``."""
    if from_ms is None or to_ms is None or is_untimed(from_ms) != is_untimed(to_ms):
        return "at an unknown time"
    if is_simulated(from_ms):
        begin, end = clock(from_ms), clock(to_ms)
        return f"at {begin}" if begin == end else f"from {begin} to {end}"
    first, last = (datetime.fromtimestamp(ms / 1_000, UTC) for ms in (from_ms, to_ms))
    if first.date() != last.date():
        year = f" {last.year}" if first.year == last.year else ""
        return f"from {_day(first, not year)} to {_day(last, not year)}{year}"
    if to_ms - from_ms < 1_000:
        return f"on {_day(first)} at {first:%H:%M:%S}"
    return f"on {_day(first)} from {first:%H:%M:%S} to {last:%H:%M:%S}"


def _day(when: datetime, with_year: bool = False) -> str:
    return f"{when.day} {when:%B}" + (f" {when.year}" if with_year else "")


def at_least(ms: float) -> int:
    """A round value for a setting in ms that is no less."""
    for nice in _NICE_S:
        if nice * 1_000 >= ms:
            return nice * 1_000
    return int(-(-ms // 3_600_000) * 3_600_000)
