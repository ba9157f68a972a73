"""Times at the beginning of a line, in the layouts that loggers and collectors write."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from functools import lru_cache
from typing import Final, NamedTuple

from rejoin.journal.kafka_logs.patterns import compiled_when_used
from rejoin.pipeline.reading.limits import is_instant


class Stamp(NamedTuple):
    """A time as it was written. ``date`` is ``YYYY-MM-DD``, ``MM-DD`` where no year is written, or None.

    ``zone`` is None for local times. ``at_ms`` is set where the line has an instant and no calendar time.
    """

    date: str | None = None
    time: str = ""
    fraction: str | None = None
    zone: str | None = None
    at_ms: int | None = None


class Begun(NamedTuple):
    """A line that begins with a time, and where its text goes on."""

    stamp: Stamp
    end: int


_NAMES_OF_MONTHS: Final = "jan feb mar apr may jun jul aug sep oct nov dec"
_MONTHS: Final = {name: f"{number:02}" for number, name in enumerate(_NAMES_OF_MONTHS.split(), start=1)}
_MONTH: Final = r"(?P<month>Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sept?|Oct|Nov|Dec)[a-z]{0,6}"
_CLOCK: Final = r"(?P<time>\d?\d:\d\d:\d\d)(?:[,.](?P<fraction>\d{1,9}))?"
_ZONE: Final = r"(?P<zone> ?Z\b| ?[+-]\d\d:?\d\d(?!\d)| (?:UTC|GMT)\b)?"
_HALF: Final = r"(?: ?(?P<half>[AaPp])\.?[Mm]\.?)?"


# 2024-11-15T10:55:30.336Z; Go writes 2024/11/15, ClickHouse 2024.11.15.
_ISO: Final = compiled_when_used(
    rf"(?P<year>\d{{4}})(?P<by>[-/.])(?P<month>\d\d)(?P=by)(?P<day>\d\d)[ T_@]{{1,2}}{_CLOCK}{_ZONE}"
)
# 10:55:30.336: no date.
_TIME: Final = compiled_when_used(rf"{_CLOCK}(?=[\s\]|]|$)")
# 24/11/15 10:55:30, as Spark; the year comes first.
_SHORT: Final = compiled_when_used(rf"(?P<short>\d\d)/(?P<month>\d\d)/(?P<day>\d\d) {_CLOCK}")
# 11/15/2024, 10:55:30 AM; 15.11.2024 10:55:30.
_YEAR_LAST: Final = compiled_when_used(
    rf"(?P<first>\d?\d)(?P<by>[./-])(?P<second>\d?\d)(?P=by)(?P<year>\d{{4}}),? (?:@ )?{_CLOCK}{_HALF}{_ZONE}"
)
# 15 Nov 2024 10:55:30,336; 15/Nov/2024:10:55:30 +0000; Fri, 15 Nov 2024 10:55:30 GMT.
_DAY_MONTH: Final = compiled_when_used(
    rf"(?:[A-Z][a-z]{{2}}, )?(?P<day>\d?\d)[ /-]{_MONTH}[ /-](?P<year>\d{{4}})[ :]{_CLOCK}{_ZONE}"
)
# 2019 Apr 10 07:26:02.
_YEAR_MONTH: Final = compiled_when_used(rf"(?P<year>\d{{4}})[ -]{_MONTH}[ -](?P<day>\d?\d) {_CLOCK}{_ZONE}")
# Nov 15, 2024 @ 10:55:30.336; Nov 15, 2024 10:55:30 AM.
_MONTH_DAY: Final = compiled_when_used(
    rf"{_MONTH} (?P<day>\d?\d),? (?P<year>\d{{4}})[, @]{{1,3}}{_CLOCK}{_HALF}{_ZONE}"
)
# Fri Nov 15 10:55:30 UTC 2024, as ctime.
_CTIME: Final = compiled_when_used(
    rf"[A-Z][a-z]{{2}} {_MONTH} +(?P<day>\d?\d) {_CLOCK}(?: [A-Z]{{3,4}})? (?P<year>\d{{4}})\b"
)
# Nov 15 10:55:30, as syslog: no year.
_SYSLOG: Final = compiled_when_used(rf"{_MONTH} +(?P<day>\d?\d) {_CLOCK}")
# I1115 10:55:30.336123, as glog and klog: no year.
_KLOG: Final = compiled_when_used(rf"[IWEF](?P<month>\d\d)(?P<day>\d\d) {_CLOCK}")
_OF_DIGITS: Final = (_SHORT, _YEAR_LAST, _DAY_MONTH, _YEAR_MONTH)
_OF_LETTERS: Final = (_MONTH_DAY, _SYSLOG, _CTIME, _DAY_MONTH, _KLOG)
_INSTANT: Final = re.compile(
    r"(?P<whole>\d{10})\.(?P<fraction>\d{1,9})(?!\d)|(?P<millis>\d{13})(?!\d)|(?P<micros>\d{16})(?!\d)"
    r"|(?P<nanos>\d{19})(?!\d)|(?P<seconds>\d{10})(?=[\s\]|,:])|(?P<old>\d{9})\.(?P<older>\d{1,9})(?!\d)"
)
LEVELS: Final = "TRACE|DEBUG|INFO|NOTICE|WARN|WARNING|ERROR|ERR|CRITICAL|CRIT|FATAL|SEVERE"
_BEFORE: Final = re.compile(
    r"(?:<\d{1,3}>(?:1 )?|%[0-7]\||\[[ ]?(?:[A-Za-z][\w .:/-]{0,40})\](?: \d+)?(?:[\s:-]+|(?=\d{4}[/-]\d))"
    rf"|[DIWEFA], (?=\[)|(?:{LEVELS})(?:\s*[:|-])?\s+|(?:time|ts|timestamp|date|t|at)=(?=[\"\d])|[\[(\"'])*",
    re.IGNORECASE,
)
"""Signs that loggers put before the time: a priority, the logger in brackets, the level, the name of a field."""
_BEHIND: Final = re.compile(r"[\])\"',]*")
_COULD_BEGIN: Final = re.compile(
    r"[\[(\"'<%]|(?:[A-Z][a-z]{2}[a-z, ]|[DIWEFA], \[|[IWEF]\d{4}|[A-Za-z]{1,9}[=:\s|-])", re.IGNORECASE
)
_BY_ISO: Final = ("-", "/", ".")


@lru_cache(maxsize=64)
def begins_with_time(text: str) -> Begun | None:
    """The time with which a line begins, also behind its level or its logger in brackets; None for other lines."""
    if not text:
        return None
    if text[0].isdigit():
        return stamp_at(text)
    if _COULD_BEGIN.match(text) is None:
        return None
    start = before.end() if (before := _BEFORE.match(text)) is not None else 0
    found = stamp_at(text, start) or (stamp_at(text, 0) if start else None)
    if found is None:
        return None
    behind = _BEHIND.match(text, found.end) if start else None
    return found._replace(end=behind.end()) if behind is not None else found


def stamp_at(text: str, start: int = 0) -> Begun | None:
    """The time that stands exactly there."""
    first = text[start : start + 1]
    if first.isdigit():
        return _of_digits(text, start)
    if first.isalpha() and first.isupper():
        return _first_of(_OF_LETTERS, text, start)
    return None


def _of_digits(text: str, start: int) -> Begun | None:
    """The time that begins with a digit: the sign behind the first number says which formats it can have."""
    if text[start + 4 : start + 5] in _BY_ISO and (found := _ISO.match(text, start)) is not None:
        return Begun(_stamp(found), found.end())
    if ":" in text[start + 1 : start + 3]:
        found = _TIME.match(text, start)
        return Begun(_stamp(found), found.end()) if found is not None else None
    if (instant := _INSTANT.match(text, start)) is not None:
        at_ms = _millis(instant)
        return Begun(Stamp(at_ms=at_ms), instant.end()) if is_instant(at_ms) else None
    return _first_of(_OF_DIGITS, text, start)


def _first_of(formats: Iterable[re.Pattern[str]], text: str, start: int) -> Begun | None:
    for pattern in formats:
        found = pattern.match(text, start)
        if found is not None:
            return Begun(_stamp(found), found.end())
    return None


def _millis(found: re.Match[str]) -> int:
    kind = found.lastgroup
    if kind == "fraction":
        return int(found["whole"]) * 1_000 + int(found["fraction"][:3].ljust(3, "0"))
    if kind == "older":
        return int(found["old"]) * 1_000 + int(found["older"][:3].ljust(3, "0"))
    return _IN_MILLIS[str(kind)](int(found[str(kind)]))


_IN_MILLIS: Final[Mapping[str, Callable[[int], int]]] = {
    "seconds": lambda value: value * 1_000,
    "millis": lambda value: value,
    "micros": lambda value: value // 1_000,
    "nanos": lambda value: value // 1_000_000,
}


def _stamp(found: re.Match[str]) -> Stamp:
    parts = found.groupdict()
    time = parts["time"] if len(parts["time"]) == 8 else f"0{parts['time']}"
    zone = parts.get("zone")
    if zone is not None:
        zone = "Z" if zone.strip() in ("Z", "UTC", "GMT") else zone.strip()
    return Stamp(_date(parts), _of_half(time, parts.get("half")), parts.get("fraction"), zone)


def _date(parts: Mapping[str, str | None]) -> str | None:
    year = parts.get("year") or (f"20{parts['short']}" if parts.get("short") else None)
    if parts.get("first") is not None:
        month, day = _month_and_day(str(parts["first"]), str(parts["second"]), str(parts["by"]))
    elif parts.get("month") is not None:
        month, day = str(parts["month"]), str(parts["day"])
        month = _MONTHS.get(month[:3].lower(), month)
    else:
        return None
    return f"{year}-{month}-{day:>02}" if year else f"{month}-{day:>02}"


def _month_and_day(first: str, second: str, by: str) -> tuple[str, str]:
    """Month and day of a date whose year comes last; the day is first where dots stand between, or above 12."""
    month, day = (second, first) if by == "." or int(first) > 12 else (first, second)
    return f"{month:>02}", f"{day:>02}"


def _of_half(time: str, half: str | None) -> str:
    """The time of a clock of 24 hours."""
    if half is None:
        return time
    hour = int(time[:2]) % 12 + (12 if half in "Pp" else 0)
    return f"{hour:02}{time[2:]}"


class Calendar:
    """Adds the year or the date that stamps of one file leave out.

    The date is that of the last stamp that had one; before any, that of ``written``, the day on which the file was
    written. Times of day that fall by more than half a day are those of the next day.
    """

    def __init__(self, written: datetime | None = None) -> None:
        self._written = written or datetime.now(UTC)
        self._date: str | None = None
        self._time = ""
        self.guessed = False
        """Whether a date was added that stands nowhere in the file."""

    def whole(self, stamp: Stamp) -> Stamp:
        """The stamp with its date; those of instants stay as they are."""
        if stamp.at_ms is not None:
            return stamp
        if stamp.date is not None and len(stamp.date) == 10:
            self._date, self._time = stamp.date, stamp.time
            return stamp
        date = self._in_year(stamp.date) if stamp.date is not None else self._day(stamp.time)
        self._date, self._time = date, stamp.time
        return stamp._replace(date=date)

    def _in_year(self, day: str) -> str:
        if self._date is not None:
            year = int(self._date[:4])
            # December becomes January once a year, and January becomes December in a file whose newest line is first.
            months = int(day[:2]) - int(self._date[5:7])
            return f"{year + (1 if months < -6 else -1 if months > 6 else 0)}-{day}"
        self.guessed = True
        year = self._written.year - (1 if day > f"{self._written:%m-%d}" else 0)
        return f"{year}-{day}"

    def _day(self, time: str) -> str:
        if self._date is None:
            self.guessed = True
            return f"{self._written:%Y-%m-%d}"
        if not self._time:
            return self._date
        hours = int(time[:2]) - int(self._time[:2])
        if abs(hours) <= 12:
            return self._date
        day = datetime.fromisoformat(self._date).toordinal() + (1 if hours < 0 else -1)
        return datetime.fromordinal(day).strftime("%Y-%m-%d")
