"""Memory for the batches of a log that has many: they lie behind each other in large blocks.

A log is filled at one end and emptied at the other, so blocks go as a whole. Touching new memory is half of the cost of
a large Produce, and a third of that where the system gives pages of 2 MiB, which is asked for.
"""

from __future__ import annotations

import mmap
from contextlib import suppress
from typing import Any, Final, Self

_HUGE_PAGE: Final = 2**21
_LEAST_BLOCK: Final = 2**22
_LARGEST_BLOCK: Final = 2**25
_PRIVATE: Final = {"flags": mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS} if hasattr(mmap, "MAP_PRIVATE") else {}
"""Memory of this process alone, which Windows gives in any case."""
_SHARE: Final = 4
"""A new block has a quarter of the bytes of the log, within bounds; it is larger only if its first batch is."""


class Arena:
    """Where one log puts its batches. A block is freed with the last batch in it, once it is full."""

    __slots__ = ("_at", "_block")

    def __init__(self) -> None:
        self._block = memoryview(b"")
        self._at = 0

    def __deepcopy__(self, _: dict[int, Any]) -> Self:
        # Two logs with the same past go on in blocks of their own.
        return type(self)()

    def copy_in(self, start: bytes, rest: memoryview, log_size: int) -> memoryview:
        """A read-only copy of a batch of two parts; ``log_size`` is how many bytes the log has without it."""
        at, size = self._at, len(start) + len(rest)
        end = at + size
        if end > len(self._block):
            self._block = _new_block(max(size, _LEAST_BLOCK, min(log_size // _SHARE, _LARGEST_BLOCK)))
            at, end = 0, size
        batch = self._block[at:end]
        batch[: len(start)] = start
        batch[len(start) :] = rest
        self._at = end
        return batch.toreadonly()


def _new_block(size: int) -> memoryview:
    """Memory of this size or a little more, of no file."""
    block = mmap.mmap(-1, -(-size // _HUGE_PAGE) * _HUGE_PAGE, **_PRIVATE)
    if hasattr(mmap, "MADV_HUGEPAGE"):
        with suppress(OSError):  # a kernel may have been built without such pages
            block.madvise(mmap.MADV_HUGEPAGE)
    return memoryview(block)
