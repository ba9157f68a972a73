"""Kafka's `roundrobin` assignor: all partitions in a row, dealt one by one.

Source: Kafka's RoundRobinAssignor.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from itertools import chain, groupby

from rejoin.client.assignors.base import Assignments, Assignor, ClusterView, MemberSubscription, Partition
from rejoin.client.assignors.common import (
    collector_paused,
    distinct_topic_lists,
    known_partition_counts,
    members_in_name_order,
    partitions_of,
)
from rejoin.protocol.java import utf16_sorted


class RoundRobinAssignor(Assignor):
    """Walks over all partitions, by topic and number, and over the members in a circle, giving one at a time.

    A member that does not subscribe to the topic at hand is passed over until the next round.
    Racks do not count.
    """

    name = "roundrobin"
    checked = False

    def assign(self, cluster: ClusterView, members: Mapping[str, MemberSubscription]) -> Assignments:
        """Deal. A list is ordered by topic and partition."""
        dealer = members_in_name_order(members)
        topic_lists = distinct_topic_lists(members)
        topics = utf16_sorted(set(chain.from_iterable(topic_lists)))
        counts = known_partition_counts(cluster, topics)
        with collector_paused(sum(counts.values())):
            return self._dealt(members, dealer, topic_lists, counts)

    def _dealt(
        self,
        members: Mapping[str, MemberSubscription],
        dealer: Sequence[str],
        topic_lists: Sequence[tuple[str, ...]],
        counts: Mapping[str, int],
    ) -> Assignments:
        dealt: dict[str, list[Partition]] = {member_id: [] for member_id in members}
        hands = [dealt[member_id] for member_id in dealer]
        if len(topic_lists) == 1:
            _give_out(_row(list(counts), counts), hands, 0)
            return dealt
        seats = _seats_by_topic(members, dealer, counts)
        at = 0
        for seated, run in groupby(counts, key=seats.__getitem__):
            # Topics next to each other that the same members want are one row of cards.
            row = _row(list(run), counts)
            first = bisect_left(seated, at) % len(seated)
            _give_out(row, [hands[seat] for seat in seated], first)
            at = seated[(first + len(row) - 1) % len(seated)] + 1
        return dealt


def _row(topics: Sequence[str], counts: Mapping[str, int]) -> list[Partition]:
    return list(chain.from_iterable(partitions_of(topic, range(counts[topic])) for topic in topics))


def _give_out(row: Sequence[Partition], hands: Sequence[list[Partition]], first: int) -> None:
    """Give the row out, one each, starting with the hand at index `first`."""
    count = len(hands)
    for offset in range(min(count, len(row))):
        hands[(first + offset) % count].extend(row[offset::count])


def _seats_by_topic(
    members: Mapping[str, MemberSubscription], dealer: Sequence[str], counts: Mapping[str, int]
) -> dict[str, tuple[int, ...]]:
    """Topic → indexes in `dealer` of its subscribers, ascending."""
    seats: dict[str, list[int]] = {topic: [] for topic in counts}
    for seat, member_id in enumerate(dealer):
        for topic in dict.fromkeys(members[member_id].subscription.topics):
            if topic in seats:
                seats[topic].append(seat)
    return {topic: tuple(found) for topic, found in seats.items()}
