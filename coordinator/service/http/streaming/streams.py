"""How many clients follow the events of a node at once, and what each event costs for all of them together."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Final

from rejoin.coordinator.service.feed import Feed, FeedRow
from rejoin.coordinator.service.http.problems import Problem

MOST_STREAMS: Final = 200
_GATHER_SECONDS: Final = 0.001


@contextmanager
def open_stream(feed: Feed) -> Iterator[None]:
    """Count a stream while it is open. Raises :class:`Problem` where there are too many."""
    if feed.streams >= MOST_STREAMS:
        detail = f"{MOST_STREAMS} streams of events are open, the most that a node serves; close one, or ask for ranges"
        raise Problem(503, "too-many-streams", detail, headers={"Retry-After": "1"})
    feed.streams += 1
    try:
        yield
    finally:
        feed.streams -= 1


def gather_seconds(feed: Feed) -> float:
    """How long a stream waits for more rows once one has come: with many streams each writes less often."""
    return _GATHER_SECONDS * (feed.streams - 1)


class EventRenderer:
    """Server-sent events. Streams that have come equally far get the same bytes, which are made once."""

    def __init__(self) -> None:
        self._rows: Sequence[FeedRow] = ()
        self._text = b""
        self.rendered = 0
        """How many rows were rendered so far."""

    def render(self, rows: Sequence[FeedRow]) -> bytes:
        """The text of some rows, which follow each other."""
        last = self._rows
        if len(rows) != len(last) or not rows or rows[0] is not last[0] or rows[-1] is not last[-1]:
            self._rows, self._text = rows, b"".join(map(_as_event, rows))
            self.rendered += len(rows)
        return self._text


def _as_event(row: FeedRow) -> bytes:
    return b"id: %d\nevent: %s\ndata: %s\n\n" % (row.seq, row.name.encode(), row.text)
