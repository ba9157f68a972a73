"""A frame that arrives in many pieces: they are joined once, when the last of them is there."""

from __future__ import annotations

from typing import Final

_SMALL: Final = 16_384
"""Smaller pieces are put together as they come: an object for each would be larger than what it holds."""


class LargeFrame:
    """The received part of a frame, its size included."""

    __slots__ = ("_missing", "_pieces", "_small")

    def __init__(self, prefix: bytes, size: int) -> None:
        """``prefix`` are the bytes that are there, fewer than ``size``, which all of the frame has."""
        self._pieces: list[bytes | bytearray] = [prefix]
        self._small = bytearray()
        self._missing = size - len(prefix)

    def take(self, data: bytes) -> bytes | None:
        """Take in what follows. Returns the rest, which is behind the frame, once that is whole; none before."""
        left = self._missing - len(data)
        self._missing = left
        if left < 0:
            self._add(data[:left])
            return data[left:]
        self._add(data)
        return None if left else b""

    def _add(self, data: bytes) -> None:
        if len(data) < _SMALL:
            self._small += data
            if len(self._small) < _SMALL:
                return
            data = b""
        if self._small:
            self._pieces.append(self._small)
            self._small = bytearray()
        self._pieces.append(data)

    def joined(self) -> bytes:
        """The whole frame. Nothing is left here."""
        frame = b"".join((*self._pieces, self._small))
        self._pieces.clear()
        return frame
