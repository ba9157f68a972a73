"""``range``: each topic in contiguous ranges, in the same order of members for all topics. Not sticky.

Kafka: the server's RangeAssignor. Unlike the client's it ignores racks, and static members come first.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rejoin.coordinator.core.groups.consumer.assignors.base import Assignments, AssignorMember, ServerAssignor
from rejoin.coordinator.core.groups.modern.epochs import SubscriptionKind
from rejoin.protocol.java import utf16_key, utf16_sorted


class ServerRangeAssignor(ServerAssignor):
    """Topics with as many partitions and the same subscribers are divided alike."""

    name = "range"

    def assign(
        self,
        members: Mapping[str, AssignorMember],
        partition_counts: Mapping[str, int],
        kind: SubscriptionKind,
    ) -> Assignments:
        ordered = _ordered(members)
        assigned: dict[str, dict[str, Sequence[int]]] = {member_id: {} for member_id in ordered}
        for topic_id, subscribers in _subscribers(ordered, members, kind).items():
            smallest, extras = divmod(partition_counts[topic_id], len(subscribers))
            first = 0
            for index, member_id in enumerate(subscribers):
                end = first + smallest + (index < extras)
                if end > first:
                    assigned[member_id][topic_id] = range(first, end)
                first = end
        if kind is SubscriptionKind.HOMOGENEOUS:
            return assigned
        # Kafka: each member's map is filled in the order of its own subscription.
        return {
            member_id: {each: given[each] for each in members[member_id].topic_ids if each in given}
            for member_id, given in assigned.items()
        }


def _ordered(members: Mapping[str, AssignorMember]) -> list[str]:
    """Members with an instance id first, by that; then the others by member id."""
    instances = {member_id: member.instance_id for member_id, member in members.items()}
    static = [(utf16_key(instance), member_id) for member_id, instance in instances.items() if instance is not None]
    return [
        *(member_id for _, member_id in sorted(static)),
        *utf16_sorted(member_id for member_id, instance in instances.items() if instance is None),
    ]


def _subscribers(
    ordered: Sequence[str], members: Mapping[str, AssignorMember], kind: SubscriptionKind
) -> dict[str, Sequence[str]]:
    """Who subscribes to each topic, in order."""
    if not ordered:
        return {}
    if kind is SubscriptionKind.HOMOGENEOUS:
        return dict.fromkeys(members[ordered[0]].topic_ids, ordered)
    found: dict[str, list[str]] = {}
    for member_id in ordered:
        for topic_id in members[member_id].topic_ids:
            found.setdefault(topic_id, []).append(member_id)
    return {**found}
