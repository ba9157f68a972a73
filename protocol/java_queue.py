"""Java's `PriorityQueue`, for which equal keys are in no order but that of its binary heap.

Python's `heapq` moves elements in other steps, so equal keys would come out otherwise.
Source: `java.util.PriorityQueue`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Generic, TypeVar

Key = TypeVar("Key", int, float)
Item = TypeVar("Item")


class JavaPriorityQueue(Generic[Key, Item]):
    """Items with the smallest key first. A key is as it was when its item came."""

    __slots__ = ("_heap",)

    def __init__(self, items: Iterable[tuple[Key, Item]] = ()) -> None:
        """Items are added one by one."""
        self._heap: list[tuple[Any, Item]] = []
        for key, item in items:
            self.push(key, item)

    def __len__(self) -> int:
        return len(self._heap)

    def __iter__(self) -> Iterator[Item]:
        """Items as they lie in the heap, as Java's iterator has them."""
        return (item for _, item in self._heap)

    def push(self, key: Key, item: Item) -> None:
        """Add an item at the end; it moves up past parents with a larger key."""
        heap = self._heap
        at = len(heap)
        added = key, item
        heap.append(added)
        while at:
            parent = at - 1 >> 1
            if key >= heap[parent][0]:
                break
            heap[at] = heap[parent]
            at = parent
        heap[at] = added

    def pop(self) -> Item:
        """Take the first item; the last one takes its place and moves down past children with a smaller key."""
        heap = self._heap
        first = heap[0][1]
        moved = heap.pop()
        size = len(heap)
        if not size:
            return first
        key, at = moved[0], 0
        while (child := 2 * at + 1) < size:
            right = child + 1
            if right < size and heap[right][0] < heap[child][0]:
                child = right
            if key <= heap[child][0]:
                break
            heap[at] = heap[child]
            at = child
        heap[at] = moved
        return first
