"""Answers that a client has not taken yet: handed to its socket in parts, and bounded over all connections of a node.

A large answer to a Fetch is views on the log's own batches. What the socket has not taken is not copied, so a client
that does not read costs its connection a list, and not its bytes.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import Final, Generic, TypeVar

from rejoin.protocol.records.batch_run import BatchRun
from rejoin.protocol.wire.writer import Part

AT_ONCE: Final = 5 * 2**18
"""Answers of up to so many bytes are handed to the transport whole."""
_CHUNK: Final = 2**18
MOST_UNSENT: Final = 2**29
"""How many bytes of answers a node holds for clients that do not read; the bytes of logs are not counted."""

Connection = TypeVar("Connection")


def flat(parts: list[Part]) -> list[bytes | memoryview]:
    """The parts, with the pieces of runs in their places."""
    found: list[bytes | memoryview] = []
    for part in parts:
        if isinstance(part, BatchRun):
            found += part.pieces()
        else:
            found.append(part)
    return found


class Outgoing:
    """The answers of one connection that its transport has not got yet, in order."""

    __slots__ = ("_parts", "_pieces", "is_last", "is_scheduled", "owned", "transport")

    def __init__(self, transport: asyncio.Transport) -> None:
        self.transport = transport
        self._parts: deque[Part] = deque()
        self._pieces = _pieces(self._parts)
        self.owned = 0
        """The bytes that are kept here alone, and not in a log as well."""
        self.is_last = False
        """Whether the connection ends behind them."""
        self.is_scheduled = False

    def add(self, parts: Iterable[Part]) -> None:
        """Put answers behind the others."""
        for part in parts:
            self._parts.append(part)
            if isinstance(part, bytes):
                self.owned += len(part)

    def write_some(self) -> bool:
        """Hand the next chunk to the transport; returns whether that was not all."""
        chunk: list[bytes | memoryview] = []
        size = owned = 0
        for piece in self._pieces:
            chunk.append(piece)
            size += len(piece)
            owned += len(piece) if isinstance(piece, bytes) else 0
            if size >= _CHUNK:
                break
        self.owned = max(0, self.owned - owned)
        if chunk:
            self.transport.writelines(chunk)
        return size >= _CHUNK

    def end(self) -> None:
        """All is written: close the connection, if it ends here."""
        if self.is_last:
            self.transport.close()


def _pieces(parts: deque[Part]) -> Iterator[bytes | memoryview]:
    while parts:
        part = parts.popleft()
        for piece in part.pieces() if isinstance(part, BatchRun) else (part,):
            if len(piece) <= AT_ONCE:
                yield piece
                continue
            view = memoryview(piece)
            for at in range(0, len(view), _CHUNK):
                yield view[at : at + _CHUNK]


class UnsentBytes(Generic[Connection]):
    """How many bytes of answers each connection holds. Above the bound the one that holds most is given up."""

    def __init__(self, give_up: Callable[[Connection, int], None], most: int = MOST_UNSENT) -> None:
        self._give_up = give_up
        self._most = most
        self._unsent: dict[Connection, int] = {}
        self.total = 0

    def hold(self, connection: Connection, size: int) -> None:
        """A connection holds so many bytes now."""
        before = self._unsent.pop(connection, 0)
        if size:
            self._unsent[connection] = size
        self.total += size - before
        while self.total > self._most and size > before:
            largest, unsent = max(self._unsent.items(), key=lambda each: each[1])
            del self._unsent[largest]
            self.total -= unsent
            self._give_up(largest, unsent)
