"""Batches of a log that follow each other, as one value of a response, without a copy of their bytes."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from itertools import chain, repeat
from typing import Any, Final, Self, TypeAlias

_Bytes: TypeAlias = bytes | memoryview

_LEAST_RUN: Final = 65_536
"""Fewer bytes are joined at once."""
_PIECE: Final = 16_384
"""Smaller batches are joined into pieces of about this size: each piece of an answer costs the socket some work."""


class BatchRun:
    """Bytes that are still where the log has them. The run keeps them alive when the log drops them."""

    __slots__ = ("_batches", "_size")

    def __init__(self, batches: Collection[_Bytes], size: int) -> None:
        self._batches = batches
        self._size = size

    def __len__(self) -> int:
        return self._size

    def __bytes__(self) -> bytes:
        return b"".join(self._batches)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, BatchRun | bytes | memoryview):
            return len(self) == len(other) and bytes(self) == bytes(other)
        return NotImplemented

    __hash__ = None  # type: ignore[assignment]

    def __deepcopy__(self, _: dict[int, Any]) -> Self:
        return self

    def pieces(self) -> Iterator[_Bytes]:
        """All bytes in order. Large batches are views; small ones are joined, a piece at a time."""
        small: list[_Bytes] = []
        size = 0
        for batch, is_end in chain(zip(self._batches, repeat(False)), ((b"", True),)):
            if small and (is_end or len(batch) >= _PIECE or size >= _PIECE):
                yield b"".join(small)
                small.clear()
                size = 0
            if len(batch) >= _PIECE:
                yield batch
            elif batch:
                small.append(batch)
                size += len(batch)


def run_of(batches: Collection[_Bytes], size: int) -> _Bytes | BatchRun:
    """Batches of so many bytes as one value: few bytes are joined, and many are a run."""
    return BatchRun(batches, size) if size >= _LEAST_RUN else b"".join(batches)


def whole(records: _Bytes | BatchRun) -> _Bytes:
    """The bytes of a value in one piece, for a reader in the same process."""
    return bytes(records) if isinstance(records, BatchRun) else records
