"""When racks count, and which members are near which partitions, for rack-aware assignors (KIP-881)."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

from rejoin.client.assignors.base import ClusterView, MemberSubscription, Partition


def racks_matter(member_racks: Collection[str], partition_racks: Sequence[frozenset[str]]) -> bool:
    """Whether looking at racks can change anything.

    Some member must have a rack in which some partition has a replica, and not every partition may be in all
    of the racks. A partition without racks is not in all of them.
    """
    # Kafka: AbstractPartitionAssignor.useRackAwareAssignment.
    everywhere = frozenset[str]().union(*set(partition_racks))
    if everywhere.isdisjoint(member_racks):
        return False
    return any(racks != everywhere for racks in partition_racks)


class RackView:
    """Where members and partitions are, as far as it counts; without any rack that counts, it is falsy."""

    def __init__(
        self, cluster: ClusterView, counts: Mapping[str, int], members: Mapping[str, MemberSubscription]
    ) -> None:
        self.member_racks: dict[str, str] = {}
        self._partition_racks: dict[Partition, frozenset[str]] = {}
        self._members_near: dict[Partition, int] = {}
        racks = {m: member.subscription.rack_id for m, member in members.items() if member.subscription.rack_id}
        if not racks or not cluster.racks:
            return
        partition_racks = {
            (topic, number): cluster.racks_of(topic, number)
            for topic, count in counts.items()
            for number in range(count)
        }
        if not racks_matter(set(racks.values()), list(partition_racks.values())):
            return
        self.member_racks = {member_id: rack for member_id, rack in racks.items() if rack}
        self._partition_racks = partition_racks
        population: dict[str, int] = {}
        for rack in self.member_racks.values():
            population[rack] = population.get(rack, 0) + 1
        self._members_near = {
            partition: sum(population.get(rack, 0) for rack in near) for partition, near in partition_racks.items()
        }

    def __bool__(self) -> bool:
        return bool(self.member_racks)

    def mismatch(self, member_id: str, partition: Partition) -> bool:
        """Whether the member has a rack and no replica of the partition is in it."""
        rack = self.member_racks.get(member_id)
        return rack is not None and rack not in self._partition_racks.get(partition, ())

    def matches(self, member_id: str, partition: Partition) -> bool:
        """Whether the member has a rack and a replica of the partition is in it."""
        rack = self.member_racks.get(member_id)
        return rack is not None and rack in self._partition_racks.get(partition, ())

    def hardest_first(self, partitions: Iterable[Partition]) -> list[Partition]:
        """Partitions ordered by how few members are nearby, otherwise in the given order."""
        return sorted(partitions, key=lambda partition: self._members_near.get(partition, 0))

    def next_near(self, partition: Partition, members: Sequence[str], first: int) -> int | None:
        """Index of the first member in its rack, going round from index `first`; None if there is none."""
        near = self._partition_racks.get(partition)
        if not near:
            return None
        for step in range(len(members)):
            index = (first + step) % len(members)
            if self.member_racks.get(members[index]) in near:
                return index
        return None
