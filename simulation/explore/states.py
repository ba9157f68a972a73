"""The states that were met, in few bytes each: the digest, by which path it was reached first, and its number."""

from __future__ import annotations

from array import array
from typing import Final

from rejoin.simulation.explore.paths import Path

_DIGEST: Final = 16
_FIRST_SIZE: Final = 1 << 12
"""How many places the table has at first. Their number is a power of two."""


class States:
    """States by digest and by number, in the order in which they were met.

    A state takes 16 bytes for its digest, 4 for its parent's number, 1 for the choice, and 6 to 12 for its place in an
    open-addressing table of numbers: about 30, where a dict of digests took 170.
    """

    def __init__(self) -> None:
        self._digests = bytearray()
        self._parents = array("I")
        self._choices = bytearray()
        self._table = array("I", bytes(4 * _FIRST_SIZE))
        """By hash: the number of a state and 1, or 0 where the place is free."""

    def __len__(self) -> int:
        return len(self._parents)

    def number_of(self, digest: bytes) -> int | None:
        """The number of a state that was met; none of another."""
        found = self._table[self._place(digest)]
        return found - 1 if found else None

    def add(self, digest: bytes, parent: int, choice: int) -> int:
        """Take in a state that was not met before. Returns its number."""
        if 3 * len(self) >= 2 * len(self._table):
            self._grow()
        number = len(self)
        self._table[self._place(digest)] = number + 1
        self._digests += digest
        self._parents.append(parent)
        self._choices.append(choice)
        return number

    def parent_of(self, state: int) -> tuple[int, int]:
        """The state from which another was met first, and by which choice there. The first state is its own parent."""
        return self._parents[state], self._choices[state]

    def path_to(self, state: int) -> Path:
        """The path by which a state was first met."""
        path: list[int] = []
        while state:
            path.append(self._choices[state])
            state = self._parents[state]
        return tuple(reversed(path))

    def size(self) -> int:
        """Bytes of memory that are in use."""
        tables = len(self._parents) * self._parents.itemsize + len(self._table) * self._table.itemsize
        return len(self._digests) + len(self._choices) + tables

    def _place(self, digest: bytes) -> int:
        """Where a digest is in the table, or would be."""
        table, digests, mask = self._table, self._digests, len(self._table) - 1
        place = int.from_bytes(digest[:8], "little") & mask
        while number := table[place]:
            if digests[_DIGEST * (number - 1) : _DIGEST * number] == digest:
                break
            place = (place + 1) & mask
        return place

    def _grow(self) -> None:
        size = 2 * len(self._table)
        table, digests, mask = array("I", bytes(4 * size)), self._digests, size - 1
        for number in range(1, len(self) + 1):
            at = _DIGEST * (number - 1)
            place = int.from_bytes(digests[at : at + 8], "little") & mask
            while table[place]:
                place = (place + 1) & mask
            table[place] = number
        self._table = table
