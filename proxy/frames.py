"""Frames of one direction of a connection: bytes come in pieces of any size, and the owner sees frame by frame.

Most frames pass as they come. A frame whose owner wants to see or change it is held until it is whole.
"""

from __future__ import annotations

import struct
from enum import Enum
from typing import Any, Final, Protocol, cast

LENGTH_BYTES: Final = 4
_LENGTH: Final = struct.Struct(">i").unpack_from


class Pass(Enum):
    """Decision about a frame of which only the beginning has arrived."""

    UNDECIDED = 0
    """The beginning is too short to decide; ask again with more of it."""
    HELD = 1
    """Hand the frame over once it is whole."""
    STREAMED = 2
    """The owner takes the frame piece by piece; it has taken the beginning."""


class FrameOwner(Protocol):
    """The side of a connection that decides what becomes of its frames."""

    def whole(self, frame: bytes) -> None:
        """Take a frame, with its length in front."""

    def begin(self, beginning: bytes, size: int) -> Pass:
        """Decide about a frame of ``size`` bytes, length included, from its beginning."""

    def more(self, piece: bytes, *, is_last: bool) -> None:
        """Take the next piece of the streamed frame."""

    def refuse(self, size: int, beginning: bytes) -> None:
        """Take notice of a length that no frame has. The owner ends the connection."""

    @property
    def is_blocked(self) -> bool:
        """Whether no further frame may be handed over for now."""


class FrameSplitter:
    """Cuts the bytes of one direction into frames.

    It holds the beginning of one frame, or one whole held frame: never more than the owner wants to hold, and while the
    owner is blocked what has arrived already. The connection stops reading then.
    """

    __slots__ = ("_held", "_held_bytes", "_left", "_owner", "_rest", "_wanted")

    def __init__(self, owner: FrameOwner) -> None:
        self._owner = owner
        self._rest = b""
        """Bytes in front of the next decision."""
        self._left = 0
        """How many bytes of the streamed frame are still to come."""
        self._held: list[bytes] = []
        self._held_bytes = 0
        self._wanted = 0
        """The size of the frame that is held until it is whole; 0 without one."""

    @property
    def has_part(self) -> bool:
        """Whether bytes of a frame are here whose end is not."""
        return bool(self._left or self._wanted or self._rest)

    def let_go(self) -> None:
        """Forget the owner and all bytes: nothing comes any more."""
        self._owner = cast(Any, None)
        self._rest, self._held = b"", []

    def feed(self, data: bytes = b"") -> None:
        """Take bytes; without any, go on with what waits."""
        if not (self._left or self._wanted or self._rest):
            # Most pieces are one frame.
            if len(data) >= LENGTH_BYTES and _LENGTH(data)[0] == len(data) - LENGTH_BYTES:
                if self._owner.is_blocked:
                    self._rest = data
                else:
                    self._owner.whole(data)
            elif data:
                self._split(data)
            return
        if self._left:
            data = self._stream(data)
            if not data:
                return
        elif self._wanted:
            data = self._hold(data)
            if not data:
                return
        if self._rest:
            data = self._rest + data if data else self._rest
            self._rest = b""
        if data:
            self._split(data)

    def _split(self, data: bytes) -> None:
        owner, at, end = self._owner, 0, len(data)
        while end - at >= LENGTH_BYTES and not owner.is_blocked:
            length: int = _LENGTH(data, at)[0]
            if length < 0:
                owner.refuse(length, data[at : at + 64])
                return
            stop = at + LENGTH_BYTES + length
            if stop <= end:
                owner.whole(data if not at and stop == end else data[at:stop])
                at = stop
                continue
            decided = owner.begin(data[at:] if at else data, LENGTH_BYTES + length)
            if decided is Pass.STREAMED:
                self._left = stop - end
                at = end
            elif decided is Pass.HELD:
                self._wanted = LENGTH_BYTES + length
                self._held, self._held_bytes = [data[at:]], end - at
                at = end
            break
        self._rest = data[at:] if at < end else b""

    def _stream(self, data: bytes) -> bytes:
        """Hand on more of the streamed frame; returns the bytes behind it."""
        left = self._left
        if len(data) < left:
            self._left = left - len(data)
            if data:
                self._owner.more(data, is_last=False)
            return b""
        self._left = 0
        self._owner.more(data if len(data) == left else data[:left], is_last=True)
        return data[left:]

    def _hold(self, data: bytes) -> bytes:
        """Keep more of the held frame, and hand it over when it is whole; returns the bytes behind it."""
        missing = self._wanted - self._held_bytes
        self._held.append(data[:missing])
        self._held_bytes += min(len(data), missing)
        if self._held_bytes < self._wanted:
            return b""
        frame = b"".join(self._held)
        self._held, self._held_bytes, self._wanted = [], 0, 0
        self._owner.whole(frame)
        return data[missing:]
