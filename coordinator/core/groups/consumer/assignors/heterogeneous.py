"""``uniform`` where members subscribe to different topics: fill the least loaded, then move from the most loaded.

Kafka: UniformHeterogeneousAssignmentBuilder. The result need not be the best there is, since each step moves
partitions of one topic between its subscribers.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from rejoin.coordinator.core.groups.consumer.assignors.base import Assignments, AssignorMember, unassigned
from rejoin.protocol.java import put_first, uuid_bits

_ROUNDS: Final = 16
"""Kafka: MAX_ITERATION_COUNT. Each round over the topics is assumed to halve the remaining imbalance."""

_NOBODY: Final = -1


def assign_heterogeneous(members: Mapping[str, AssignorMember], partition_counts: Mapping[str, int]) -> Assignments:
    """The target; members are numbered in their order."""
    subscribers: dict[str, list[int]] = {}
    for number, member in enumerate(members.values()):
        for topic_id in member.topic_ids:
            subscribers.setdefault(topic_id, []).append(number)
    if not subscribers:
        return {}
    ordered = sorted(subscribers, key=lambda each: _topic_key(each, partition_counts[each], len(subscribers[each])))
    targets = _Targets(list(members.values()))
    for topic_id in ordered:
        targets.assign_rest(topic_id, partition_counts[topic_id], subscribers[topic_id])
    _balance(targets, [each for each in ordered if len(subscribers[each]) > 1], subscribers)
    return dict(zip(members, targets.ordered(), strict=True))


def _topic_key(topic_id: str, partitions: int, subscribers: int) -> tuple[float, int, tuple[int, int]]:
    """Most partitions per subscriber first, then fewest subscribers, then the id."""
    return -(partitions / subscribers), subscribers, uuid_bits(topic_id)


class _Targets:
    """The target in the making: partitions by member and topic, and how many each member has."""

    def __init__(self, members: Sequence[AssignorMember]) -> None:
        self.by_member: list[dict[str, Collection[int]]] = []
        self.sizes: list[int] = []
        self._holders: dict[str, list[int]] = {}
        self._old: list[set[str]] = []
        """By member: the topics that have stayed in its target since the beginning."""
        for number, member in enumerate(members):
            topics = member.topic_ids
            kept = {each: partitions for each, partitions in member.target.items() if each in topics}
            for topic_id in kept:
                self._holders.setdefault(topic_id, []).append(number)
            self.by_member.append(kept)
            self._old.append({*kept})
            self.sizes.append(sum(map(len, kept.values())))

    def assign_rest(self, topic_id: str, count: int, subscribers: Sequence[int]) -> None:
        """Give what no member has to the least loaded subscribers, level by level."""
        free = unassigned(count, [self.by_member[number][topic_id] for number in self._holders.get(topic_id, ())])
        sizes = self.sizes
        if not free:
            return
        ordered = sorted(subscribers, key=sizes.__getitem__)
        at, lowest, width = 0, sizes[ordered[0]], 0
        while at < len(free):
            while width < len(ordered) and sizes[ordered[width]] == lowest:
                width += 1
            # All of the level get one after the other, as often as it takes to reach the next one.
            rounds = sizes[ordered[width]] - lowest if width < len(ordered) else len(free)
            part = free[at : at + rounds * width]
            for index, number in enumerate(ordered[: min(width, len(part))]):
                self._extend(number, topic_id, part[index::width])
            at += len(part)
            lowest += rounds

    def _extend(self, number: int, topic_id: str, partitions: Sequence[int]) -> None:
        target = self.by_member[number]
        known = target.get(topic_id)
        target[topic_id] = partitions if known is None else (*known, *partitions)
        self.sizes[number] += len(partitions)

    def replace(self, number: int, topic_id: str, partitions: list[int]) -> None:
        """A member has these of a topic now. Its size is what was counted while they moved."""
        if partitions:
            self.by_member[number][topic_id] = partitions
        else:
            self.by_member[number].pop(topic_id, None)
            self._old[number].discard(topic_id)

    def ordered(self) -> list[dict[str, Collection[int]]]:
        """The target of each member, with its topics in order."""
        for target, old in zip(self.by_member, self._old, strict=True):
            put_first(target, {topic_id: target.pop(topic_id) for topic_id in [*target] if topic_id not in old})
        return self.by_member


def _balance(targets: _Targets, topics: Sequence[str], subscribers: Mapping[str, Sequence[int]]) -> None:
    """Move partitions topic by topic, until a whole round has moved none."""
    last_moved: str | None = None
    for _ in range(_ROUNDS if topics else 0):
        for topic_id in topics:
            if topic_id == last_moved:
                return
            moved = _balance_topic(targets, topic_id, subscribers[topic_id])
            if moved or last_moved is None:
                last_moved = topic_id


def _balance_topic(targets: _Targets, topic_id: str, subscribers: Sequence[int]) -> int:
    """Move partitions of one topic from the most loaded of its subscribers to the least; how many that are."""
    sizes = targets.sizes
    ordered = sorted(subscribers, key=sizes.__getitem__)
    if sizes[ordered[-1]] - sizes[ordered[0]] <= 1:
        return 0
    loads = _Loads(ordered, sizes)
    owned: dict[int, list[int]] = {}
    gained: dict[int, list[int]] = {}
    moved = 0
    while not loads.are_balanced:
        giver = loads.next_most_loaded()
        while giver != _NOBODY:
            partitions = owned.get(giver)
            if partitions is None:
                partitions = owned[giver] = sorted(targets.by_member[giver].get(topic_id, ()))
            if partitions:
                break
            loads.exclude_most_loaded()
            giver = loads.next_most_loaded()
        if giver == _NOBODY:
            break
        taker = loads.next_least_loaded()
        if loads.are_balanced:
            break
        # Kafka: what a member gets in this round it does not give away again in it.
        gained.setdefault(taker, []).append(owned[giver].pop())
        sizes[giver] -= 1
        sizes[taker] += 1
        moved += 1
    if moved:
        for number in {**owned, **gained}:
            kept = owned.get(number)
            if kept is None:
                kept = list(targets.by_member[number].get(topic_id, ()))
            targets.replace(number, topic_id, [*kept, *gained.get(number, ())])
    return moved


@dataclass(slots=True)
class _Loads:
    """Subscribers by load, with the range of the least loaded, which grows, and that of the most loaded.

    Kafka: MemberAssignmentBalancer. The numbers of a range are what its members have once each has got or given one.
    """

    ordered: list[int]
    sizes: Sequence[int]
    _least: int = field(init=False)
    _least_end: int = 0
    _next_least: int = 0
    _most: int = field(init=False)
    _most_start: int = field(init=False)
    _most_end: int = field(init=False)
    _next_most: int = field(init=False)

    def __post_init__(self) -> None:
        self._least = self.sizes[self.ordered[0]] - 1
        self._most = self.sizes[self.ordered[-1]] + 1
        self._most_start = self._most_end = len(self.ordered)
        self._next_most = len(self.ordered) - 1

    @property
    def are_balanced(self) -> bool:
        return self._most - self._least <= 1

    def next_least_loaded(self) -> int:
        """Who gets the next partition."""
        if self._next_least >= self._least_end:
            self._least += 1
            while self._least_end < len(self.ordered) and self.sizes[self.ordered[self._least_end]] == self._least:
                self._least_end += 1
            self._next_least = 0
        self._next_least += 1
        return self.ordered[self._next_least - 1]

    def next_most_loaded(self) -> int:
        """The member that gives the next partition, or none."""
        if self._next_most < self._most_start:
            if self._most_end <= self._most_start and self._most_start > 0:
                self._most = self.sizes[self.ordered[self._most_start - 1]]
            else:
                self._most -= 1
            while self._most_start > 0 and self.sizes[self.ordered[self._most_start - 1]] == self._most:
                self._most_start -= 1
            self._next_most = self._most_end - 1
        if self._next_most < 0:
            return _NOBODY
        self._next_most -= 1
        return self.ordered[self._next_most + 1]

    def exclude_most_loaded(self) -> None:
        """The last one that was named has nothing to give."""
        at, last = self._next_most + 1, self._most_end - 1
        self.ordered[at], self.ordered[last] = self.ordered[last], self.ordered[at]
        self._most_end -= 1
