"""Files whose newest line is the first, as web consoles export them, read from their end to their beginning."""

from __future__ import annotations

import enum
from collections.abc import Iterable, Iterator
from typing import IO, Final

from rejoin.pipeline.reading.broker_logs.lines import LogClock
from rejoin.pipeline.reading.peeling.peel import Peels
from rejoin.pipeline.reading.peeling.peeled import Peeled
from rejoin.pipeline.reading.peeling.stamps import Calendar, begins_with_time

LOOKED_AT: Final = 2_000
"""Lines from whose times the order of a file is concluded."""
LEAST_FALL_MS: Final = 1_000
"""Times that fall by less in all are a matter of threads."""
LARGEST: Final = 1 << 28
"""Bytes of a file that is turned round: it is held in memory."""


class LineOrder(enum.Enum):
    """Order of the times of a file's lines."""

    OLDEST_FIRST = enum.auto()
    NEWEST_FIRST = enum.auto()
    NO_TIMES = enum.auto()


def order_of(lines: Iterable[bytes]) -> LineOrder:
    """The order of lines, each pod, container or host by itself. Two lines within a second prove nothing."""
    calendar, clock, peels = Calendar(), LogClock(), Peels()
    first: dict[tuple[str, ...], int] = {}
    last: dict[tuple[str, ...], int] = {}
    rises = falls = 0
    for raw in lines:
        line = peels.peel(raw.decode("utf-8", "replace"))
        at = _instant(line, calendar, clock)
        if at is None:
            continue
        first.setdefault(line.origin, at)
        before = last.get(line.origin, at)
        rises += at > before
        falls += at < before
        last[line.origin] = at
    if not last:
        return LineOrder.NO_TIMES
    fell_ms = sum(first[origin] - at for origin, at in last.items())
    return LineOrder.NEWEST_FIRST if fell_ms >= LEAST_FALL_MS and falls > 10 * rises else LineOrder.OLDEST_FIRST


def _instant(line: Peeled, calendar: Calendar, clock: LogClock) -> int | None:
    begun = begins_with_time(line.text)
    stamp = begun.stamp if begun is not None else line.stamp
    if stamp is None:
        return None
    stamp = calendar.whole(stamp)
    if stamp.at_ms is not None:
        return stamp.at_ms
    try:
        return clock.read(str(stamp.date), stamp.time, stamp.fraction, stamp.zone)
    except ValueError:
        return None


class OldestFirst:
    """The lines of a file from the oldest to the newest, each with its number in the file.

    Lines that go on with a record stay behind the line with which the record begins.
    """

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file

    def __iter__(self) -> Iterator[bytes]:
        return (raw for _, raw in self.numbered())

    def numbered(self) -> Iterator[tuple[int, bytes]]:
        """Numbers and lines."""
        peels = Peels()
        records: list[list[tuple[int, bytes]]] = []
        for number, raw in enumerate(self._file, 1):
            line = peels.peel(raw.decode("utf-8", "replace"))
            if begins_with_time(line.text) is not None or line.stamp is not None or not records:
                records.append([])
            records[-1].append((number, raw))
        for record in reversed(records):
            yield from record


def look_at_order(file: IO[bytes]) -> LineOrder:
    """The order of the beginning of a file, which is at its beginning afterwards."""
    head = [line for _, line in zip(range(LOOKED_AT), file, strict=False)]
    file.seek(0)
    return order_of(head)
