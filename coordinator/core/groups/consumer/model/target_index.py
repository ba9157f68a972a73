"""The targets of a large group whose members all subscribe alike, in the form that the uniform assignor asks for.

It follows the group: whatever changes a member or its target notes the member here, and the next question looks at
those members alone. So a question costs what has changed since the last one, and not all members.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from heapq import heapify, heappop, heappush
from typing import Final, NamedTuple, TypeAlias

from rejoin.coordinator.core.groups.consumer.assignors.base import unassigned
from rejoin.coordinator.core.groups.consumer.model.member import ConsumerMember
from rejoin.coordinator.core.groups.modern.epochs import PartitionsByTopicId
from rejoin.coordinator.core.groups.modern.member_order import Known, slot_rank
from rejoin.protocol.java import hash_position, table_capacity

SMALLEST_INDEXED: Final = 64
"""Groups with fewer members have no index: a look at all of them is as cheap, and small maps of Java grow otherwise."""

_STALE_ALLOWED: Final = 64

_NO_TARGET: Final[PartitionsByTopicId] = {}

Rank: TypeAlias = tuple[int, ...]
"""Where a member comes in the order of Java's hash map: its bucket, and its place there."""


class _Entry(NamedTuple):
    """A member as it was when it was looked at last."""

    rank: Rank
    target: PartitionsByTopicId | None
    size: int


class _SizeClass:
    """The members that have the same number of partitions."""

    __slots__ = ("_last_first", "members")

    def __init__(self) -> None:
        self.members: dict[str, Rank] = {}
        self._last_first: list[tuple[Rank, str]] = []
        """A heap of members by falling rank. Those that have left the class go when they come up."""

    def add(self, member_id: str, rank: Rank) -> None:
        self.members[member_id] = rank
        heappush(self._last_first, (_reversed(rank), member_id))
        if len(self._last_first) > 2 * len(self.members) + _STALE_ALLOWED:
            self._last_first = [(_reversed(rank), each) for each, rank in self.members.items()]
            heapify(self._last_first)

    def last(self, count: int) -> list[str]:
        """So many members from the end of the order."""
        heap, found = self._last_first, list[tuple[Rank, str]]()
        while heap and len(found) < count:
            entry = heappop(heap)
            rank, member_id = entry
            is_duplicate = bool(found) and found[-1] == entry
            if not is_duplicate and self.members.get(member_id) == _reversed(rank):
                found.append(entry)
        for entry in found:
            heappush(heap, entry)
        return [member_id for _, member_id in found]


def _reversed(rank: Rank) -> Rank:
    return tuple(-each for each in rank)


class TargetIndex:
    """The members by the size of their targets, in the order of Java's hash map, and what no member has."""

    def __init__(self, topics: Mapping[str, int]) -> None:
        self.topics = topics
        """The number of partitions of each subscribed topic, in the order in which topics are handed out."""
        self.free: dict[str, set[int]] = {}
        """By topic, where there are any: the partitions that are in no target."""
        self.by_size: dict[int, _SizeClass] = {}
        self.without_target: dict[str, None] = {}
        """Members that no record gives a target, not even an empty one."""
        self._entries: dict[str, _Entry] = {}
        self._capacity = 0
        self._known = Known()
        self._touched: dict[str, None] = {}

    def __len__(self) -> int:
        return len(self._entries)

    @classmethod
    def of(
        cls,
        topics: Mapping[str, int],
        members: Mapping[str, ConsumerMember],
        targets: Mapping[str, PartitionsByTopicId],
        known: Known,
    ) -> TargetIndex | None:
        """The index of a group; none where targets overlap, or have topics that no member is subscribed to."""
        owned: dict[str, list[Collection[int]]] = {topic_id: [] for topic_id in topics}
        for member_id in members:
            for topic_id, partitions in targets.get(member_id, _NO_TARGET).items():
                if topic_id not in owned:
                    return None
                owned[topic_id].append(partitions)
        index = cls(topics)
        for topic_id, count in topics.items():
            free = unassigned(count, owned[topic_id])
            if len(free) + sum(map(len, owned[topic_id])) != count:
                return None
            if free:
                index.free[topic_id] = set(free)
        index._see(len(members), known)
        for member_id, member in members.items():
            index._enter(member, targets.get(member_id))
        return index

    def touch(self, member_id: str) -> None:
        """A member has come or gone, or has another target."""
        self._touched[member_id] = None

    def refresh(
        self, members: Mapping[str, ConsumerMember], targets: Mapping[str, PartitionsByTopicId], known: Known
    ) -> bool:
        """Look at what was touched. False where the index is of no use any more; ``of`` says when."""
        touched, self._touched = self._touched, {}
        for member_id in touched:
            self._release(member_id)
        if self._see(len(members), known):
            self._reorder(members)
        for member_id in touched:
            member, target = members.get(member_id), targets.get(member_id)
            if member is None:
                continue
            if not self._take(target or _NO_TARGET):
                return False
            self._enter(member, target)
        return True

    def _see(self, members: int, known: Known) -> bool:
        """How large the maps are now; returns whether all members come in another order."""
        capacity = table_capacity(members)
        before = self._capacity, self._known.capacity, self._known.is_converted
        is_other = (capacity, known.capacity, known.is_converted) != before
        self._capacity, self._known = capacity, known
        if known.newcomer is not None:
            # From the next time on it comes in the order of the others.
            self.touch(known.newcomer)
        return is_other

    def _release(self, member_id: str) -> None:
        entry = self._entries.pop(member_id, None)
        if entry is None:
            return
        self.without_target.pop(member_id, None)
        self._leave_class(member_id, entry.size)
        for topic_id, partitions in (entry.target or _NO_TARGET).items():
            if partitions:
                self.free.setdefault(topic_id, set()).update(partitions)

    def _leave_class(self, member_id: str, size: int) -> None:
        members = self.by_size[size].members
        del members[member_id]
        if not members:
            del self.by_size[size]

    def _take(self, target: PartitionsByTopicId) -> bool:
        """Whether all of a target is free; then it is not any more."""
        for topic_id, partitions in target.items():
            if not partitions and topic_id in self.topics:
                continue
            free = self.free.get(topic_id)
            if free is None or not free.issuperset(partitions):
                return False
            free.difference_update(partitions)
            if not free:
                del self.free[topic_id]
        return True

    def _enter(self, member: ConsumerMember, target: PartitionsByTopicId | None) -> None:
        member_id = member.member_id
        rank = (hash_position(member_id, self._capacity), *slot_rank(member, self._known))
        size = 0 if target is None else sum(map(len, target.values()))
        self._entries[member_id] = _Entry(rank, target, size)
        self.by_size.setdefault(size, _SizeClass()).add(member_id, rank)
        if target is None:
            self.without_target[member_id] = None

    def _reorder(self, members: Mapping[str, ConsumerMember]) -> None:
        """A map of Java's has another size: all members come in another order."""
        entries, self._entries, self.by_size = self._entries, {}, {}
        for member_id, entry in entries.items():
            self._enter(members[member_id], entry.target)

    # --- questions

    def target_of(self, member_id: str) -> PartitionsByTopicId:
        return self._entries[member_id].target or _NO_TARGET

    def in_order(self, member_ids: Iterable[str]) -> list[str]:
        """Members in the order of Java's hash map."""
        entries = self._entries
        return sorted(member_ids, key=lambda member_id: entries[member_id].rank)
