"""Co-partition groups: topics of one subtopology that need the same number of partitions.

Kafka: CopartitionedTopicsEnforcer, InternalTopicManager.enforceCopartitioning.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final, TypeAlias

from rejoin.coordinator.core.groups.streams.topology.problems import (
    InvalidTopologyError,
    WrongPartitionsError,
    some_of,
)
from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.java import utf16_sorted
from rejoin.protocol.streams.topology import CopartitionGroup, Subtopology

MOST_COUNTED: Final = 20
"""So many topics of a group whose numbers of partitions differ are named."""
# Differs: Kafka names all of them, however many.

Count: TypeAlias = Callable[[str], int]
"""The number of partitions of a topic: that which it has, or else that which is decided."""


def copartitioned(subtopologies: Iterable[Subtopology]) -> list[list[str]]:
    """The topics of each co-partition group."""
    return [_topics_of(each, group) for each in subtopologies for group in each.copartition_groups]


def _topics_of(subtopology: Subtopology, group: CopartitionGroup) -> list[str]:
    sources = _chosen(subtopology.source_topics, group.source_topics)
    repartitions = _chosen(
        [info.name for info in subtopology.repartition_source_topics], group.repartition_source_topics
    )
    return list(dict.fromkeys((*sources, *repartitions)))


def _chosen(names: Sequence[str], places: Sequence[int]) -> list[str]:
    """The names at these places. Kafka: a place that does not exist is not caught."""
    if any(not 0 <= place < len(names) for place in places):
        raise InvalidTopologyError(ErrorCode.UNKNOWN_SERVER_ERROR)
    return [names[place] for place in places]


class Copartitioning:
    """Gives repartition topics the number of partitions that their group needs: it changes ``decided``."""

    def __init__(
        self, subtopologies: Iterable[Subtopology], given: Mapping[str, int], decided: dict[str, int], count: Count
    ) -> None:
        self._given = given
        self._decided = decided
        self._count = count
        self._repartitions = {info.name for each in subtopologies for info in each.repartition_source_topics}
        self._wanted = set(map(count, given))
        """The numbers of partitions of all topics of the topology for which the application gives one."""

    def enforce(self, names: Sequence[str]) -> None:
        """Bring one group to the same number, which topics that exist and numbers that are given may prevent."""
        repartitions = [name for name in names if name in self._repartitions]
        ordinary = [name for name in names if name not in self._repartitions]
        if ordinary:
            number = self._same(ordinary, set(map(self._count, ordinary)))
        elif self._wanted and repartitions:
            # Kafka: numbers that are given anywhere in the topology count, also those of other groups.
            number = self._same(repartitions, self._wanted)
        else:
            number = max(map(self._count, repartitions), default=0)
        for name in repartitions:
            if name in self._given and self._count(name) != number:
                raise WrongPartitionsError(f"Topic {name} has {self._count(name)} partitions and needs {number}.")
        self._decided.update(dict.fromkeys(repartitions, number))

    def _same(self, names: Sequence[str], numbers: set[int]) -> int:
        if len(numbers) > 1:
            shown = some_of([f"{name}: {self._count(name)}" for name in utf16_sorted(names)], MOST_COUNTED)
            raise WrongPartitionsError(f"Topics need the same number of partitions: {shown}.")
        return next(iter(numbers))
