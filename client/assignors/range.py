"""Kafka's `range` assignor: each topic cut into consecutive pieces, one for each subscriber.

Source: Kafka's RangeAssignor; KIP-881 for racks.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import islice

from rejoin.client.assignors.base import Assignments, Assignor, ClusterView, MemberSubscription, Partition
from rejoin.client.assignors.common import (
    collector_paused,
    distinct_topic_lists,
    known_partition_counts,
    members_in_map_order,
    members_in_name_order,
    partitions_of,
)
from rejoin.client.assignors.racks import racks_matter
from rejoin.client.assignors.runs import Runs
from rejoin.protocol.java import hash_map_order, utf16_key

LONG_RUN = 8
LARGE_ANSWER = 1_000
"""An answer of so many partitions, in runs of so many neighbours on the average, keeps the runs."""


class RangeAssignor(Assignor):
    """Gives every subscriber of a topic the same number of neighbouring partitions, the first ones one more.

    Each topic starts again with the first member. So members with equal subscriptions get the same numbers
    of topics that have equally many partitions, and the first members more of everything.
    """

    name = "range"
    checked = False

    def assign(self, cluster: ClusterView, members: Mapping[str, MemberSubscription]) -> Assignments:
        """Cut. A list is in the map order of topics, or with racks by topic and partition."""
        given: dict[str, list[Partition]] = {member_id: [] for member_id in members}
        in_name_order = members_in_name_order(members)
        topic_lists = distinct_topic_lists(members)
        counts = known_partition_counts(cluster, _topics_in_map_order(members, topic_lists))
        subscribers = _subscribers(members, in_name_order, topic_lists, counts)
        topics = hash_map_order(list(counts))
        member_racks = {m: members[m].subscription.rack_id for m in in_name_order if members[m].subscription.rack_id}
        if cluster.racks and member_racks:
            pieces = [_Topic(topic, counts[topic], subscribers[topic], cluster, member_racks) for topic in topics]
            if any(piece.needs_racks for piece in pieces):
                _assign_by_rack(pieces, given)
                return given
        total = sum(counts.values())
        pieces_given = sum(min(counts[topic], len(subscribers[topic])) for topic in topics)
        if total >= max(LARGE_ANSWER, LONG_RUN * pieces_given):
            return _cut_into_runs(counts, subscribers, topics, members)
        with collector_paused(total):
            for topic in topics:
                _cut(topic, counts[topic], subscribers[topic], given)
        return given


def _cut_into_runs(
    counts: Mapping[str, int],
    subscribers: Mapping[str, Sequence[str]],
    topics: Sequence[str],
    members: Mapping[str, MemberSubscription],
) -> dict[str, Runs]:
    """Plain ranges that are long enough to be kept as where they begin and end."""
    given = {member_id: Runs() for member_id in members}
    for topic in topics:
        quota, extras = divmod(counts[topic], len(subscribers[topic]))
        start = 0
        for number, member_id in enumerate(subscribers[topic]):
            end = start + quota + (number < extras)
            given[member_id].add(topic, range(start, end))
            start = end
    return given


def _cut(topic: str, count: int, subscribers: Sequence[str], given: Mapping[str, list[Partition]]) -> None:
    """Plain ranges of one topic with `count` partitions."""
    quota, extras = divmod(count, len(subscribers))
    if quota == 0 or (quota == 1 and extras == 0):
        for number, member_id in zip(range(count), subscribers, strict=False):
            given[member_id].append((topic, number))
        return
    row = list(partitions_of(topic, range(count)))
    start, end = 0, quota + 1
    for member_id in subscribers[:extras]:
        given[member_id] += row[start:end]
        start, end = end, end + quota + 1
    end = start + quota
    for member_id in subscribers[extras:]:
        given[member_id] += row[start:end]
        start, end = end, end + quota


def _topics_in_map_order(
    members: Mapping[str, MemberSubscription], topic_lists: Sequence[tuple[str, ...]]
) -> list[str]:
    """Every subscribed topic, as a HashSet iterates them that was filled member by member."""
    if len(topic_lists) == 1:
        topics = dict.fromkeys(topic_lists[0])
    else:
        topics = {}
        for member_id in members_in_map_order(members):
            topics.update(dict.fromkeys(members[member_id].subscription.topics))
    return hash_map_order(list(topics))


def _subscribers(
    members: Mapping[str, MemberSubscription],
    in_name_order: list[str],
    topic_lists: Sequence[tuple[str, ...]],
    counts: Mapping[str, int],
) -> dict[str, list[str]]:
    """Topic → its subscribers in name order."""
    if len(topic_lists) == 1:
        return dict.fromkeys(counts, in_name_order)
    found: dict[str, list[str]] = {topic: [] for topic in counts}
    for member_id in in_name_order:
        for topic in dict.fromkeys(members[member_id].subscription.topics):
            if topic in found:
                found[topic].append(member_id)
    return found


class _Topic:
    """One topic while racks decide: its remaining partitions, and how many each member may still take."""

    def __init__(
        self,
        topic: str,
        count: int,
        subscribers: Sequence[str],
        cluster: ClusterView,
        member_racks: Mapping[str, str | None],
    ) -> None:
        self.name = topic
        self.count = count
        self.racks = {member_id: member_racks.get(member_id) for member_id in subscribers}
        self._left = dict.fromkeys(range(count))
        self._taken = dict.fromkeys(subscribers, 0)
        self._quota, self._extras = divmod(count, len(subscribers))
        named = {rack for rack in self.racks.values() if rack}
        self._partition_racks = [cluster.racks_of(topic, number) for number in range(count)] if named else []
        self.needs_racks = racks_matter(named, self._partition_racks)

    @property
    def racked(self) -> int:
        """How many partitions have their racks looked at: all, or none when no subscriber has a rack."""
        return len(self._partition_racks)

    def near(self, member_id: str, number: int) -> bool:
        """Whether a replica is in the member's rack; everything is near to a member without one."""
        rack = self.racks[member_id]
        return rack is None or (bool(self._partition_racks) and rack in self._partition_racks[number])

    def capacity(self, member_id: str) -> int:
        """How many more this member may take."""
        return max(0, self._quota + (1 if self._extras > 0 else 0) - self._taken[member_id])

    def give(self, member_id: str, numbers: Sequence[int], taken: list[Partition]) -> None:
        """Assign these partitions; a member that goes above the quota uses up one of the extras."""
        taken.extend(partitions_of(self.name, numbers))
        self._taken[member_id] += len(numbers)
        if self._taken[member_id] > self._quota:
            self._extras -= 1
        for number in numbers:
            del self._left[number]

    def give_in_order(self, given: Mapping[str, list[Partition]], near_only: bool) -> None:
        """Let one subscriber after the other take remaining partitions (of its own rack), up to its capacity."""
        for member_id in self.racks:
            if not self._left:
                break
            wanted: Iterable[int] = self._left
            if near_only:
                wanted = (number for number in self._left if self.near(member_id, number))
            numbers = list(islice(wanted, self.capacity(member_id)))
            if numbers:
                self.give(member_id, numbers, given[member_id])


def _assign_by_rack(pieces: Sequence[_Topic], given: Mapping[str, list[Partition]]) -> None:
    """Near partitions first, keeping co-partitioned topics together; then whatever is left."""
    together: dict[tuple[frozenset[tuple[str, str | None]], int], list[_Topic]] = {}
    for piece in pieces:
        together.setdefault((frozenset(piece.racks.items()), piece.racked), []).append(piece)
    for alike in together.values():
        # Kafka: RangeAssignor.assignWithRackMatching. Two topics are enough, even if neither needs racks itself.
        if len(alike) > 1:
            _give_together(alike, given)
        elif alike[0].needs_racks:
            alike[0].give_in_order(given, near_only=True)
    for piece in pieces:
        piece.give_in_order(given, near_only=False)
    for taken in given.values():
        taken.sort(key=lambda partition: (utf16_key(partition[0]), partition[1]))


def _give_together(alike: Sequence[_Topic], given: Mapping[str, list[Partition]]) -> None:
    """Give each number of all these topics to one member that is near to all of them and has room in all."""
    remaining = list(alike[0].racks)
    for number in range(alike[0].racked):
        taker = next(
            (
                member_id
                for member_id in remaining
                if all(topic.near(member_id, number) and topic.capacity(member_id) > 0 for topic in alike)
            ),
            None,
        )
        if taker is None:
            continue
        for topic in alike:
            topic.give(taker, (number,), given[taker])
        if not any(topic.capacity(taker) > 0 for topic in alike):
            remaining.remove(taker)
            if not remaining:
                break
