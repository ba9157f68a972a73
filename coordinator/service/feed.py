"""The most recent events, in memory, for clients that read a range or listen.

Nothing is queued for a listener: each keeps its own position and reads on when woken. A slow one finds its position
dropped.
"""

from __future__ import annotations

import asyncio
from typing import Final, NamedTuple

from rejoin.journal.events.base import Event

RETAINED_ROWS: Final = 50_000
RETAINED_BYTES: Final = 64 * 2**20


class FeedRow(NamedTuple):
    """A row of the journal, with the fields that listeners filter by."""

    seq: int
    name: str
    group_id: str | None
    text: bytes


class RowsNotRetained(Exception):
    """The requested rows are no longer kept."""

    def __init__(self, first: int) -> None:
        super().__init__(f"the oldest row kept is {first}")
        self.first = first


class EventRange(NamedTuple):
    """Rows, and behind which row the next range begins."""

    entries: list[FeedRow]
    next: int


class Feed:
    """Keeps the newest rows and wakes listeners. ``after`` is the number of the newest row before this feed began."""

    def __init__(
        self, after: int = 0, retained_rows: int = RETAINED_ROWS, retained_bytes: int = RETAINED_BYTES
    ) -> None:
        self._entries: list[FeedRow] = []
        self._begin = 0
        self._head = after
        self._bytes = 0
        self._retained_rows = retained_rows
        self._retained_bytes = retained_bytes
        self._waiting: list[asyncio.Future[None]] = []
        self._closed = False
        self.streams = 0
        """How many clients listen over HTTP."""

    @property
    def head(self) -> int:
        """The number of the newest row."""
        return self._head

    @property
    def first(self) -> int:
        """The number of the oldest row kept; one more than the head where there is none."""
        return self._head - (len(self._entries) - self._begin) + 1

    @property
    def closed(self) -> bool:
        """True when no more rows will come."""
        return self._closed

    @property
    def listeners(self) -> int:
        """How many listeners wait for the next row."""
        return len(self._waiting)

    def add(self, text: bytes, event: Event) -> None:
        """Add the next row, which has the number behind the head's."""
        seq = self._head = self._head + 1
        entries, begin = self._entries, self._begin
        entries.append(FeedRow(seq, event.name, vars(event).get("group_id"), text))
        self._bytes += len(text)
        last = len(entries) - 1
        while (last - begin >= self._retained_rows or self._bytes > self._retained_bytes) and begin < last:
            self._bytes -= len(entries[begin].text)
            begin += 1
        if begin > 1_000 and begin > last // 2:
            del entries[:begin]
            begin = 0
        self._begin = begin
        if self._waiting:
            self._wake()

    def range(self, after: int, limit: int, group_id: str | None = None) -> EventRange:
        """At most ``limit`` rows after ``after``. Raises :class:`RowsNotRetained` if the first of them is gone."""
        if after + 1 < self.first:
            raise RowsNotRetained(self.first)
        start = min(self._begin + after + 1 - self.first, len(self._entries))
        if group_id is None:
            found = self._entries[start : start + limit]
            return EventRange(found, found[-1].seq if found else after)
        found = []
        for index in range(start, len(self._entries)):
            entry = self._entries[index]
            if entry.group_id == group_id:
                found.append(entry)
                if len(found) == limit:
                    return EventRange(found, entry.seq)
        return EventRange(found, max(after, self._head))

    async def wait(self, after: int) -> None:
        """Return when there is a row behind ``after``, or the feed is closed."""
        while self._head <= after and not self._closed:
            woken = asyncio.get_running_loop().create_future()
            self._waiting.append(woken)
            try:
                await woken
            finally:
                if woken in self._waiting:
                    self._waiting.remove(woken)

    def close(self) -> None:
        """End every wait."""
        self._closed = True
        self._wake()

    def _wake(self) -> None:
        waiting, self._waiting = self._waiting, []
        for each in waiting:
            if not each.done():
                each.set_result(None)
