"""A frame that arrives in many pieces: they are joined once, when the last of them is there."""

from __future__ import annotations


class LargeFrame:
    """The pieces of a frame that is on its way, its size included."""

    __slots__ = ("_missing", "_pieces")

    def __init__(self, begins: bytes, size: int) -> None:
        """``begins`` are the bytes that are there, fewer than ``size``, which all of the frame has."""
        self._pieces = [begins]
        self._missing = size - len(begins)

    def take(self, data: bytes) -> bytes | None:
        """Take in what follows. Returns what is behind the frame, once it is whole; none before."""
        left = self._missing - len(data)
        self._missing = left
        if left >= 0:
            self._pieces.append(data)
            return None if left else b""
        self._pieces.append(data[:left])
        return data[left:]

    def joined(self) -> bytes:
        """The whole frame."""
        return b"".join(self._pieces)
