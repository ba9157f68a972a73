"""Common parts of assignors: which topics count, and the order of members and topics.

Topics and members sit in hash maps in Kafka. Where the order of such a map can be seen in an answer, the
functions here compute it; everything else is in the order in which members joined.
"""

from __future__ import annotations

import gc
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from itertools import chain, repeat

from rejoin.client.assignors.base import ClusterView, MemberSubscription, Partition
from rejoin.protocol.java import hash_map_order, utf16_key, utf16_sorted

_MANY = 50_000


@contextmanager
def collector_paused(partitions: int) -> Iterator[None]:
    """Keep Python from looking for reference cycles while a large answer of `partitions` partitions is built.

    A tuple of a name and a number is in no cycle, and to look at each of a million costs as much as to make it.
    What was made counts as old afterwards: the next full collection looks at it, once.
    """
    if partitions < _MANY or not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        if gc.get_freeze_count() == 0:
            # Young objects would all be looked at by the first collection. Freezing and thawing makes them old;
            # a program that keeps frozen objects of its own must not have them thawed.
            gc.freeze()
            gc.unfreeze()
        gc.enable()


def subscribed_topics(members: Mapping[str, MemberSubscription]) -> list[str]:
    """Every topic that a member subscribes to, once, in the order of joining and listing."""
    lists = distinct_topic_lists(members)
    return list(dict.fromkeys(chain.from_iterable(lists)))


def distinct_topic_lists(members: Mapping[str, MemberSubscription]) -> list[tuple[str, ...]]:
    """The different topic lists among members, in the order of joining; most groups have one."""
    found: list[tuple[str, ...]] = []
    last: tuple[str, ...] | None = None
    seen: set[tuple[str, ...]] = set()
    for member in members.values():
        topics = member.subscription.topics
        if topics is last or topics == last:
            continue
        last = topics
        if topics not in seen:
            seen.add(topics)
            found.append(topics)
    return found


def known_partition_counts(cluster: ClusterView, topics: Iterable[str]) -> dict[str, int]:
    """Topic → partitions, for the topics the metadata knows and that have any."""
    counts = cluster.partition_counts
    return {topic: counts[topic] for topic in topics if counts.get(topic, 0) > 0}


def members_in_map_order(members: Mapping[str, MemberSubscription]) -> list[str]:
    """Member ids in the order in which the leader's HashMap, filled in the order of joining, iterates them."""
    return hash_map_order(list(members))


def members_in_name_order(members: Mapping[str, MemberSubscription]) -> list[str]:
    """Members with an instance id first, by instance id; then the others by member id."""

    instance_ids = [member.group_instance_id for member in members.values() if member.group_instance_id is not None]
    if not instance_ids:
        return utf16_sorted(members)

    def sort_key(member_id: str) -> tuple[bool, bytes]:
        instance_id = members[member_id].group_instance_id
        return (instance_id is None, utf16_key(member_id if instance_id is None else instance_id))

    if len(set(instance_ids)) == len(instance_ids):
        return sorted(members, key=sort_key)
    # Kafka: a coordinator never lets two members share an instance id, but if they did, map order would decide.
    return sorted(members_in_map_order(members), key=sort_key)


def partitions_of(topic: str, numbers: Iterable[int]) -> Iterable[Partition]:
    """(topic, number) for each number, without a step of Python for each."""
    return zip(repeat(topic), numbers, strict=False)
