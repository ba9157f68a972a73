"""The instant of ``--at``."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import Final

from rejoin.pipeline.findings.formatting import is_simulated

_CLOCK: Final = re.compile(r"(?:(\d{1,4})d )?(\d{1,2}):(\d\d)(?::(\d\d)(?:\.(\d{1,3}))?)?")
EXPECTED: Final = "expected 2026-03-01T14:02:00Z, 14:02 or 14:02:30 (of the last day, UTC), or ms since 1970"


def instant(text: str, last_ms: int) -> int:
    """The instant that a text names, in ms; times of day are those of the last day that the source has.

    Raises ValueError.
    """
    given = text.strip()
    clock = _CLOCK.fullmatch(given)
    if clock is not None:
        if int(clock[2]) > 23 or int(clock[3]) > 59 or int(clock[4] or 0) > 59:
            raise ValueError(f"--at {text}: no time of day; expected hours up to 23, minutes and seconds up to 59")
        return _of_day(clock, last_ms)
    if given.isascii() and given.isdecimal() and len(given) <= 15:
        return int(given)
    try:
        found = datetime.fromisoformat(given)
    except ValueError:
        raise ValueError(f"--at {text}: no instant; {EXPECTED}") from None
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
