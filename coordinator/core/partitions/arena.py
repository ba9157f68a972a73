"""Memory for the batches of a log that has many: they lie behind each other in large blocks.

A log is filled at one end and emptied at the other, so blocks go as a whole. Where the system has pages of 2 MiB it is
asked for those: memory that was never touched before, which is half of the cost of a large Produce, costs a third then.
"""

from __future__ import annotations

import mmap
from typing import Any, Final, Self

from rejoin.protocol.types import BatchBytes

_HUGE_PAGE: Final = 2**21
_LARGEST_BLOCK: Final = 2**25
_PRIVATE: Final = {"flags": mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS} if hasattr(mmap, "MAP_PRIVATE") else {}
"""Memory of this process alone, which Windows gives in any case."""
_SHARE: Final = 4
"""A new block is so much smaller than all that the log has: no more than this is unused."""


class Arena:
    """Where one log puts its batches. A block is freed with the last view of it."""

    __slots__ = ("_at", "_block")

    def __init__(self) -> None:
        self._block = memoryview(b"")
        self._at = 0

    def __deepcopy__(self, _: dict[int, Any]) -> Self:
        # Two logs with the same past go on in blocks of their own.
        return type(self)()

    def place(self, start: bytes, rest: memoryview, log_size: int) -> BatchBytes:
        """A batch of two parts at its place, read-only; ``log_size`` is how many bytes the log has without it."""
        at, size = self._at, len(start) + len(rest)
        end = at + size
        if end > len(self._block):
            self._block = _new_block(max(size, min(log_size // _SHARE, _LARGEST_BLOCK)))
            at, end = 0, size
        placed = self._block[at:end]
        placed[: len(start)] = start
        placed[len(start) :] = rest
        self._at = end
        return placed.toreadonly()


def _new_block(size: int) -> memoryview:
    """Memory of this size or a little more, of no file."""
    block = mmap.mmap(-1, -(-size // _HUGE_PAGE) * _HUGE_PAGE, **_PRIVATE)
    if hasattr(mmap, "MADV_HUGEPAGE"):
        block.madvise(mmap.MADV_HUGEPAGE)
    return memoryview(block)
