"""Neighbouring partitions as runs: the answer of a range assignor, without an object for each partition."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain, islice, repeat
from typing import overload

from rejoin.client.assignors.base import Partition


class Runs(Sequence[Partition]):
    """A sequence of (topic, partition) that keeps only where runs of neighbours begin and end.

    Equal to any sequence of the same partitions in the same order. The tuples are made when they are read.
    """

    __slots__ = ("_length", "_runs")

    def __init__(self) -> None:
        self._runs: list[tuple[str, range]] = []
        self._length = 0

    def add(self, topic: str, numbers: range) -> None:
        """Append these partitions of a topic."""
        if numbers:
            self._runs.append((topic, numbers))
            self._length += len(numbers)

    def __len__(self) -> int:
        return self._length

    def __iter__(self) -> Iterator[Partition]:
        return chain.from_iterable(zip(repeat(topic), numbers, strict=False) for topic, numbers in self._runs)

    @overload
    def __getitem__(self, index: int) -> Partition: ...
    @overload
    def __getitem__(self, index: slice) -> list[Partition]: ...
    def __getitem__(self, index: int | slice) -> Partition | list[Partition]:
        if isinstance(index, slice):
            return list(self)[index]
        at = index + self._length if index < 0 else index
        if not 0 <= at < self._length:
            raise IndexError(index)
        return next(islice(self, at, None))

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Runs):
            return list(self) == list(other)
        if not isinstance(other, Sequence) or isinstance(other, str | bytes):
            return NotImplemented
        return len(self) == len(other) and all(a == b for a, b in zip(self, other, strict=True))

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return repr(list(self))
