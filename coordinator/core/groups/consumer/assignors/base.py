"""The interface of server-side assignors. Topics are ids here."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping, Sequence
from itertools import compress
from types import MappingProxyType
from typing import ClassVar, Final, NamedTuple, TypeAlias

from rejoin.coordinator.core.groups.modern.epochs import SubscriptionKind as SubscriptionKind

Assignments: TypeAlias = Mapping[str, Mapping[str, Collection[int]]]
"""By member id, by topic id: the partitions that the member should have, each once. A member without any may be left
out."""


_NOTHING: Final[Mapping[str, Collection[int]]] = MappingProxyType({})


class AssignorMember(NamedTuple):
    """A member as an assignor sees it. ``target`` is its assignment so far, which it may not have reached yet.

    Topic ids come in the order in which a Java set has the topics' names: some of Kafka's answers depend on it.
    """

    instance_id: str | None = None
    rack_id: str | None = None
    topic_ids: Collection[str] = ()
    target: Mapping[str, Collection[int]] = _NOTHING
    name_count: int = 0
    """How many topics it names, whether they exist or not: Kafka makes room for as many. Fewer than there are ids of
    existing topics counts as those."""


class ServerAssignor(ABC):
    """Computes target assignments. It keeps nothing between two of them: the same question has the same answer.

    Kafka: ConsumerGroupPartitionAssignor.
    """

    name: ClassVar[str]
    """The name that members and settings use."""

    @abstractmethod
    def assign(
        self,
        members: Mapping[str, AssignorMember],
        partition_counts: Mapping[str, int],
        kind: SubscriptionKind,
    ) -> Assignments:
        """The new target of all members. ``partition_counts`` has every topic that some member is subscribed to.

        Members come in the order of the group; what is answered must not depend on any other order.
        """


def unassigned(count: int, taken: Collection[Collection[int]]) -> Sequence[int]:
    """The partitions of a topic that are in none of these, ascending."""
    if not taken:
        return range(count)
    if sum(map(len, taken)) == count == len(frozenset[int]().union(*taken)):
        return ()
    is_free = bytearray(b"\1") * count
    for partitions in taken:
        for partition in partitions:
            is_free[partition] = 0
    return list(compress(range(count), is_free))
