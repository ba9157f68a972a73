"""``uniform``: every member gets as many partitions as the others, or one more, and keeps of its target what it can.

Kafka: UniformAssignor, UniformHomogeneousAssignmentBuilder. Where all subscribe alike, one walk over the members says
what each keeps; what none keeps goes to those with room, in order.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence, Set
from typing import TypeAlias

from rejoin.coordinator.core.groups.consumer.assignors.base import (
    Assignments,
    AssignorMember,
    ServerAssignor,
    unassigned,
)
from rejoin.coordinator.core.groups.consumer.assignors.heterogeneous import assign_heterogeneous
from rejoin.coordinator.core.groups.modern.epochs import SubscriptionKind
from rejoin.protocol.java import copied_capacity, hashed_order, put_first, uuid_hash

Run: TypeAlias = tuple[str, Sequence[int]]
"""A topic, and partitions of it in the order in which they are handed out."""

Target: TypeAlias = dict[str, Collection[int]]


class UniformAssignor(ServerAssignor):
    """Balanced and sticky: the default of Kafka."""

    name = "uniform"

    def assign(
        self,
        members: Mapping[str, AssignorMember],
        partition_counts: Mapping[str, int],
        kind: SubscriptionKind,
    ) -> Assignments:
        if kind is SubscriptionKind.HETEROGENEOUS:
            owned = _owned(members).values()
            if any(sum(map(len, parts)) > len(frozenset[int]().union(*parts)) for parts in owned):
                members = _without_overlaps(members)
            return assign_heterogeneous(members, partition_counts)
        if not members:
            return {}
        first = next(iter(members.values()))
        topics = topic_order(first.topic_ids, first.name_count)
        return assign_homogeneous(members, {topic_id: partition_counts[topic_id] for topic_id in topics})


def topic_order(topic_ids: Collection[str], name_count: int = 0) -> list[str]:
    """Topic ids in the order of a Java set that was made from them; a Python set has none, and is taken by id.

    Kafka: TopicIds.size counts names. So the set has room for those of topics that do not exist, too.
    """
    given = sorted(topic_ids) if isinstance(topic_ids, Set) else list(topic_ids)
    return hashed_order(given, uuid_hash, copied_capacity(max(len(given), name_count)))


def assign_homogeneous(members: Mapping[str, AssignorMember], partition_counts: Mapping[str, int]) -> Assignments:
    """The target where all subscribe to the topics of ``partition_counts``, in whose order they are handed out."""
    if not partition_counts:
        return {}
    quota, extras = divmod(sum(partition_counts.values()), len(members))
    runs = _unassigned(members, partition_counts)
    if _overlap(members, partition_counts, runs):
        members = _without_overlaps(members)
    unfilled: list[tuple[Target, int]] = []
    assigned: dict[str, Mapping[str, Collection[int]]] = {}
    left = len(members)
    for member_id, member in members.items():
        most = quota + (extras > 0)
        target, count = kept(member.target, partition_counts, most, runs)
        if count < most and extras > 0 and left > extras:
            # Others have to come that may use the extra partition; this one does not.
            most -= 1
        elif extras > 0:
            extras -= 1
        if count < most:
            target = dict(target)
            unfilled.append((target, most - count))
        assigned[member_id] = target
        left -= 1
    hand_out(runs, unfilled)
    return assigned


def _unassigned(members: Mapping[str, AssignorMember], partition_counts: Mapping[str, int]) -> list[Run]:
    """The partitions that no member has, in the order of topics and of numbers."""
    owned = _owned(members)
    runs = ((topic_id, unassigned(count, owned.get(topic_id, ()))) for topic_id, count in partition_counts.items())
    return [(topic_id, free) for topic_id, free in runs if free]


def _owned(members: Mapping[str, AssignorMember]) -> dict[str, list[Collection[int]]]:
    """By topic: what each member has of it."""
    owned: dict[str, list[Collection[int]]] = {}
    for member in members.values():
        for topic_id, partitions in member.target.items():
            if topic_id in owned:
                owned[topic_id].append(partitions)
            else:
                owned[topic_id] = [partitions]
    return owned


def _overlap(members: Mapping[str, AssignorMember], partition_counts: Mapping[str, int], runs: Iterable[Run]) -> bool:
    """Whether two members have the same partition as their target: after an append failed that others were built on."""
    owned = sum(
        len(parts) for each in members.values() for topic, parts in each.target.items() if topic in partition_counts
    )
    return owned > sum(partition_counts.values()) - sum(len(free) for _, free in runs)


def _without_overlaps(members: Mapping[str, AssignorMember]) -> dict[str, AssignorMember]:
    """The members, each with what no member before it has."""
    taken: dict[str, set[int]] = {}
    found: dict[str, AssignorMember] = {}
    for member_id, member in members.items():
        target = {}
        for topic_id, partitions in member.target.items():
            others = taken.setdefault(topic_id, set())
            target[topic_id] = frozenset(partitions) - others
            others |= target[topic_id]
        found[member_id] = member._replace(target=target)
    return found


def kept(
    target: Mapping[str, Collection[int]], partition_counts: Mapping[str, int], most: int, runs: list[Run]
) -> tuple[Target, int]:
    """Partitions that a member keeps of its target, and how many; those beyond its quota are added to the runs."""
    subscribed = target.keys() <= partition_counts.keys()
    keeps = dict(target) if subscribed else {each: target[each] for each in target if each in partition_counts}
    count = sum(map(len, keeps.values()))
    if count <= most:
        return keeps, count
    room = most
    # Java's order decides which go. Where all of them stay, it does not matter.
    for topic_id in hashed_order(list(target), uuid_hash):
        if topic_id not in keeps:
            continue
        partitions = keeps[topic_id]
        if len(partitions) <= room:
            room -= len(partitions)
            continue
        ordered = hashed_order(sorted(partitions), int, copied_capacity(len(partitions)))
        runs.append((topic_id, ordered[room:]))
        if room:
            keeps[topic_id] = ordered[:room]
        else:
            del keeps[topic_id]
        room = 0
    return keeps, most


def hand_out(runs: Iterable[Run], unfilled: Iterable[tuple[Target, int]]) -> None:
    """Give unassigned partitions to members with room, in order."""
    rooms = iter(unfilled)
    target: Target = {}
    new: Target = {}
    room = 0
    for topic_id, partitions in runs:
        start, end = 0, len(partitions)
        while start < end:
            if not room:
                put_first(target, new)
                (target, room), new = next(rooms), {}
            part = partitions[start : start + room]
            into = target if topic_id in target else new
            known = into.get(topic_id)
            into[topic_id] = part if known is None else (*known, *part)
            room -= len(part)
            start += len(part)
    put_first(target, new)
