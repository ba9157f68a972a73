"""Lines of the journal that wait until a page is opened."""

from __future__ import annotations

from collections import deque
from typing import Final

MOST_BYTES: Final = 16 << 20
"""Bytes that are kept while no page is open; the oldest lines are dropped."""


class NewestLines:
    """The newest lines that were not read yet."""

    def __init__(self, most_bytes: int = MOST_BYTES) -> None:
        self._lines: deque[str] = deque()
        self._bytes = 0
        self._most = most_bytes
        self.dropped = 0
        """Lines that were dropped unread."""

    def __len__(self) -> int:
        return len(self._lines)

    def add(self, line: str) -> None:
        """Keep a line."""
        self._lines.append(line)
        self._bytes += len(line)
        while self._bytes > self._most:
            self._bytes -= len(self._lines.popleft())
            self.dropped += 1

    def take(self, most: int) -> list[str]:
        """So many of the oldest lines, which are not kept any more."""
        taken = [self._lines.popleft() for _ in range(min(most, len(self._lines)))]
        self._bytes -= sum(map(len, taken))
        return taken
