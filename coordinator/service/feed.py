"""The most recent events, in memory, for clients that read a range or listen.

Nothing is queued for a listener: each keeps its own position and reads on when woken. A slow one finds its position
dropped.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from itertools import islice
from typing import Final, NamedTuple

from rejoin.journal.events.base import Event

RETAINED_ROWS: Final = 50_000
RETAINED_BYTES: Final = 64 * 2**20
_DEFERRED_BYTES: Final = 512
"""Bytes that are counted for a row that nothing has read: more than the rows of runs of records have."""


class FeedRow(NamedTuple):
    """A row of the journal, with the fields that listeners filter by."""

    seq: int
    name: str
    group_id: str | None
    text: bytes


class _DeferredRows:
    """Neighbouring rows of one group, made when the first of them is read; an entry of the feed for each."""

    __slots__ = ("_first", "_make", "_rows", "group_id")

    def __init__(self, first: int, group_id: str, make: Callable[[], list[FeedRow]]) -> None:
        self.group_id = group_id
        self._first = first
        self._make: Callable[[], list[FeedRow]] | None = make
        self._rows: list[FeedRow] = []

    def row(self, seq: int) -> FeedRow:
        """The row with this number."""
        if self._make is not None:
            self._rows, self._make = self._make(), None
        return self._rows[seq - self._first]


_Entry = FeedRow | _DeferredRows


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
        self._entries: list[_Entry] = []
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
        self._entries.append(FeedRow(seq, event.name, vars(event).get("group_id"), text))
        self._bytes += len(text)
        self._trim()

    def add_deferred(self, rows: int, group_id: str, make: Callable[[], list[FeedRow]]) -> None:
        """Add so many rows of a group, which ``make`` returns when one of them is read; it is called once."""
        deferred = _DeferredRows(self._head + 1, group_id, make)
        self._head += rows
        self._entries += [deferred] * rows
        self._bytes += rows * _DEFERRED_BYTES
        self._trim()

    def _trim(self) -> None:
        entries, begin = self._entries, self._begin
        last = len(entries) - 1
        while (last - begin >= self._retained_rows or self._bytes > self._retained_bytes) and begin < last:
            oldest = entries[begin]
            self._bytes -= len(oldest.text) if type(oldest) is FeedRow else _DEFERRED_BYTES
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
            found = self._read(range(start, min(start + limit, len(self._entries))))
            return EventRange(found, found[-1].seq if found else after)
        entries = self._entries
        found = self._read(
            islice((index for index in range(start, len(entries)) if entries[index].group_id == group_id), limit)
        )
        return EventRange(found, found[-1].seq if len(found) == limit else max(after, self._head))

    def _read(self, indices: Iterable[int]) -> list[FeedRow]:
        entries, first = self._entries, self._head - len(self._entries) + 1
        return [
            entry if isinstance(entry := entries[index], FeedRow) else entry.row(first + index) for index in indices
        ]

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
