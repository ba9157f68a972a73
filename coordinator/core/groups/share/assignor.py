"""The assignor of share groups: as many members for each partition as there are to share it, and little moves.

A partition is shared by as many members as it takes to give every member one. Members that have what they should keep
it; the rest goes round. Kafka: SimpleAssignor, SimpleHomogeneousAssignmentBuilder,
SimpleHeterogeneousAssignmentBuilder.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from math import ceil
from typing import Final, Generic, NamedTuple, TypeVar

from rejoin.coordinator.core.groups.modern.epochs import PartitionsByTopicId, SubscriptionKind
from rejoin.protocol.java import computed_order, hashed_order, int32, put_first, uuid_hash

SIMPLE: Final = "simple"

P = TypeVar("P")


class Sharer(NamedTuple):
    """A member as the assignor sees it: the ids of topics that it subscribes, and its target so far."""

    topic_ids: Collection[str]
    target: PartitionsByTopicId


def assign(
    members: Mapping[str, Sharer], assignable: Mapping[str, Collection[int]], kind: SubscriptionKind
) -> dict[str, PartitionsByTopicId]:
    """The new target of each member. Members come in the order of Kafka's map; ``assignable`` is by topic id."""
    if kind is SubscriptionKind.HOMOGENEOUS:
        return _homogeneous(members, assignable)
    return _heterogeneous(members, assignable)


def _homogeneous(
    members: Mapping[str, Sharer], assignable: Mapping[str, Collection[int]]
) -> dict[str, PartitionsByTopicId]:
    topic_ids = next(iter(members.values())).topic_ids
    if not topic_ids:
        return {member_id: {} for member_id in members}
    wanted = [(topic_id, index) for topic_id in topic_ids for index in sorted(assignable.get(topic_id, ()))]
    held = [
        [
            (topic_id, index)
            for topic_id in hashed_order([*each.target], uuid_hash)
            if topic_id in topic_ids
            for index in sorted(each.target[topic_id])
        ]
        for each in members.values()
    ]
    sharing = _sharing(len(members), len(wanted))
    shared = _Sharing(wanted, held, sharing, _counts(len(members), sharing, len(wanted)), _partition_hash).shared()
    # Kafka: a topic of which a member has lost everything stays in its target, with no partitions.
    return {
        member_id: _by_topic([each for each in sharer.target if each in topic_ids], partitions)
        for (member_id, sharer), partitions in zip(members.items(), shared, strict=True)
    }


def _heterogeneous(
    members: Mapping[str, Sharer], assignable: Mapping[str, Collection[int]]
) -> dict[str, PartitionsByTopicId]:
    subscribed = dict.fromkeys(topic_id for each in members.values() for topic_id in each.topic_ids)
    if not subscribed:
        return {member_id: {} for member_id in members}
    targets: list[dict[str, frozenset[int]]] = [dict(each.target) for each in members.values()]
    for topic_id in subscribed:
        # Kafka: what members have of topics that are not in this loop stays in their targets.
        wanted = sorted(assignable.get(topic_id, ()))
        subscribers = [at for at, each in enumerate(members.values()) if topic_id in each.topic_ids]
        sharing = _sharing(len(subscribers), len(wanted))
        counts = [0] * len(members)
        for at, count in zip(subscribers, _counts(len(subscribers), sharing, len(wanted)), strict=True):
            counts[at] = count
        held = [sorted(target.get(topic_id, ())) for target in targets]
        for target, shared in zip(targets, _Sharing(wanted, held, sharing, counts, int).shared(), strict=True):
            if shared or topic_id in target:
                target[topic_id] = frozenset(shared)
    return dict(zip(members, targets, strict=True))


def _sharing(members: int, partitions: int) -> int:
    """How many members share each partition."""
    return -(-members // partitions) if partitions else 0


def _counts(members: int, sharing: int, partitions: int) -> list[int]:
    """How many partitions each member should have. Kafka: in doubles."""
    each = sharing * partitions / members if members else 0.0
    return [ceil(each * (at + 1)) - ceil(each * at) for at in range(members)]


def _partition_hash(partition: tuple[str, int]) -> int:
    topic_id, index = partition
    return int32(31 * uuid_hash(topic_id) + index)


def _by_topic(kept: Iterable[str], partitions: Iterable[tuple[str, int]]) -> PartitionsByTopicId:
    found: dict[str, set[int]] = {topic_id: set() for topic_id in kept}
    new: dict[str, set[int]] = {}
    for topic_id, index in partitions:
        (found if topic_id in found else new).setdefault(topic_id, set()).add(index)
    # Kafka: the next target is computed from this one, in the order of its map.
    put_first(found, new)
    return {topic_id: frozenset(indexes) for topic_id, indexes in found.items()}


def _table_size(partitions: int) -> int:
    """The size of the table with which Kafka makes its map of partitions: there is room for one more."""
    room = (partitions + 1) * 4 // 3 + 1
    return 1 << (room - 1).bit_length()


class _Sharing(Generic[P]):
    """Partitions of one kind shared among members, which are numbered."""

    def __init__(
        self,
        wanted: Sequence[P],
        held: Sequence[Sequence[P]],
        sharing: int,
        counts: Sequence[int],
        hash_of: Callable[[P], int],
    ) -> None:
        self._sharing = sharing
        self._counts = counts
        # Kafka: what members have counts, assignable or not.
        self._held: list[dict[P, None]] = [dict.fromkeys(hashed_order(each, hash_of)) for each in held]
        lookups = [*(partition for each in held for partition in each), *wanted]
        order = computed_order(lookups, hash_of, _table_size(len(wanted)))
        self._sharers: dict[P, set[int]] = {partition: set() for partition in order}
        for member, partitions in enumerate(self._held):
            for partition in partitions:
                self._sharers[partition].add(member)
        self._unfilled = {at for at, each in enumerate(self._held) if len(each) < counts[at]}

    def shared(self) -> list[dict[P, None]]:
        """The partitions of each member."""
        self._trim_members()
        self._trim_partitions()
        self._fill()
        return self._held

    def _trim_members(self) -> None:
        """Members with too many partitions lose some."""
        for member, partitions in enumerate(self._held):
            for partition in [*partitions][: max(0, len(partitions) - self._counts[member])]:
                del partitions[partition]
                self._sharers[partition].remove(member)

    def _trim_partitions(self) -> None:
        """Partitions with too many members lose some."""
        for partition, members in self._sharers.items():
            for member in sorted(members)[: max(0, len(members) - self._sharing)]:
                members.remove(member)
                del self._held[member][partition]
                self._unfilled.add(member)

    def _fill(self) -> None:
        """Partitions with too few members take the next of those that have too few, which stand in a ring."""
        ring, at, is_of_use = sorted(self._unfilled), 0, False
        for partition, members in self._sharers.items():
            while len(members) < self._sharing:
                if at == len(ring):
                    # Differs: where every member has what it should, and something is left, Kafka's heartbeat fails.
                    # That takes targets with partitions that cannot be assigned any more.
                    if not is_of_use or not ring:
                        break
                    at, is_of_use = 0, False
                    continue
                member = ring[at]
                if member in members:
                    at += 1
                    continue
                members.add(member)
                self._held[member][partition] = None
                is_of_use = True
                if len(self._held[member]) >= self._counts[member]:
                    del ring[at]
                else:
                    at += 1
