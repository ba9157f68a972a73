"""Remembers between which members partitions moved, so that two of one topic are not swapped for nothing.

Source: Kafka's AbstractStickyAssignor.PartitionMovements.
"""

from __future__ import annotations

from rejoin.client.assignors.stickiness.index import PartitionNumbering
from rejoin.protocol.java import DEFAULT_CAPACITY, table_capacity, topic_partition_order

_Route = tuple[int, int, int]
"""(topic rank, the member it came from first, the member it is with now)."""


class _RoutePartitions:
    """The partitions of one route, as a HashSet holds them: the table grows and never shrinks."""

    def __init__(self) -> None:
        self.keys: dict[int, None] = {}
        self.capacity = DEFAULT_CAPACITY

    def add(self, key: int) -> None:
        self.keys[key] = None
        self.capacity = table_capacity(len(self.keys), self.capacity)

    def first(self, index: PartitionNumbering) -> int:
        """The one that the set iterates first."""
        if len(self.keys) == 1:
            return next(iter(self.keys))
        keys = {index.partition(key): key for key in self.keys}
        return keys[topic_partition_order(list(keys), self.capacity)[0]]


class Movements:
    """Where each moved partition is now and where it started; one that returns home is forgotten."""

    def __init__(self, index: PartitionNumbering) -> None:
        self._index = index
        self._routes: dict[int, _Route] = {}
        self._partitions: dict[_Route, _RoutePartitions] = {}

    def better_choice(self, key: int, owner: int, taker: int) -> int:
        """Which partition to move from `owner` to `taker`, when `key` is to go.

        If one of the same topic has already gone exactly the other way, that one should go back instead.
        """
        route = self._routes.get(key)
        source = owner if route is None else route[1]
        travellers = self._partitions.get((key % self._index.topics, taker, source))
        return key if travellers is None else travellers.first(self._index)

    def moved(self, key: int, owner: int, taker: int) -> None:
        """Note that a partition went from `owner` to `taker`."""
        route = self._routes.pop(key, None)
        source = owner
        if route is not None:
            source = route[1]
            travellers = self._partitions[route]
            del travellers.keys[key]
            if not travellers.keys:
                del self._partitions[route]
            if source == taker:
                return
        route = (key % self._index.topics, source, taker)
        self._routes[key] = route
        self._partitions.setdefault(route, _RoutePartitions()).add(key)
