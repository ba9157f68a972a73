"""Frames: each request and response has its length in front, four bytes. No I/O.

Chunks of a connection go in as they arrive, whole frames come out one by one.
"""

from __future__ import annotations

import struct
from typing import Final

from rejoin.protocol.wire.errors import InvalidReceiveError

MAX_FRAME_BYTES: Final = 100 * 2**20
"""Kafka: socket.request.max.bytes."""

_LENGTH: Final = struct.Struct(">i")
_LENGTH_BYTES: Final = 4


class FrameSplitter:
    """What one connection has sent and no one has taken yet.

    A frame is kept in the chunks it came in until its last byte is there, and copied once.
    """

    __slots__ = ("_at", "_chunks", "_limit", "_needed", "_size")

    def __init__(self, max_frame_bytes: int = MAX_FRAME_BYTES) -> None:
        self._limit = max_frame_bytes
        self._chunks: list[bytes] = []
        self._at = 0
        """How much of the first chunk has been taken."""
        self._size = 0
        """How much has not been taken, in all chunks."""
        self._needed = _LENGTH_BYTES
        """How much there must be for the next frame, as far as it is known."""

    @property
    def buffered_bytes(self) -> int:
        """How many bytes wait to be taken."""
        return self._size

    def feed(self, chunk: bytes) -> None:
        """Add what has arrived."""
        if chunk:
            self._chunks.append(chunk)
            self._size += len(chunk)

    def next_frame(self) -> bytes | None:
        """The next frame without its length, or none while it is not whole. Raises :class:`InvalidReceiveError`."""
        if self._size < self._needed:
            return None
        if self._needed == _LENGTH_BYTES:
            first, at = self._chunks[0], self._at
            if len(first) - at < _LENGTH_BYTES:
                first, at = self._merge(), 0
            (length,) = _LENGTH.unpack_from(first, at)
            if not 0 <= length <= self._limit:
                text = f"expected a length of 0 to {self._limit:,} bytes in front of a request, not {length:,}"
                raise InvalidReceiveError(text)
            self._needed = _LENGTH_BYTES + length
            if self._size < self._needed:
                return None
        return self._take()

    def _take(self) -> bytes:
        """Take the frame that is there."""
        chunks, needed = self._chunks, self._needed
        first, start = chunks[0], self._at + _LENGTH_BYTES
        stop = self._at + needed
        self._size -= needed
        self._needed = _LENGTH_BYTES
        if stop > len(first):
            return self._joined(start, stop)
        frame = first[start:stop]
        if stop == len(first):
            del chunks[0]
            stop = 0
        self._at = stop
        return frame

    def _joined(self, start: int, stop: int) -> bytes:
        """Take the bytes between two positions, counted from the first chunk's beginning, of several chunks."""
        parts: list[bytes | memoryview] = []
        taken = 0
        for chunk in self._chunks:
            size = len(chunk)
            if stop < size:
                break
            parts.append(memoryview(chunk)[start:] if start > 0 else chunk)
            taken += 1
            start, stop = max(start - size, 0), stop - size
        if stop:
            parts.append(memoryview(self._chunks[taken])[start:stop])
        del self._chunks[:taken]
        self._at = stop
        return b"".join(parts)

    def _merge(self) -> bytes:
        """Make one chunk of all."""
        merged = b"".join([memoryview(self._chunks[0])[self._at :], *self._chunks[1:]])
        self._chunks[:] = [merged]
        self._at = 0
        return merged
