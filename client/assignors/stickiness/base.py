"""The common base of `sticky` and `cooperative-sticky`: everything but where a member's claim is written.

Source: Kafka's AbstractStickyAssignor.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence

from rejoin.client.assignors.base import Assignor, ClusterView, MemberSubscription, Partition
from rejoin.client.assignors.common import (
    collector_paused,
    known_partition_counts,
    members_in_map_order,
    subscribed_topics,
)
from rejoin.client.assignors.racks import RackView
from rejoin.client.assignors.stickiness.claims import Claim, Claims, all_subscriptions_equal
from rejoin.client.assignors.stickiness.constrained import ConstrainedAssignment
from rejoin.client.assignors.stickiness.general import GeneralAssignment, transferring_partitions
from rejoin.client.assignors.stickiness.index import PartitionNumbering
from rejoin.protocol.embedded.consumer_protocol import NO_GENERATION, Subscription


class StickyBase(Assignor):
    """Balance first, then as few moves as possible. Instance ids do not count; racks do (KIP-881)."""

    checked = False

    def __init__(self) -> None:
        # Kafka: the newest generation ever seen by this object, not only by this call.
        self._newest_generation = NO_GENERATION

    @abstractmethod
    def _claims(self, index: PartitionNumbering, subscriptions: Sequence[Subscription], as_listed: bool) -> list[Claim]:
        """The partitions that each of these members claims to have owned.

        `as_listed`: whether keys must be in the order in which the member listed its partitions.
        """

    def _assign(
        self, cluster: ClusterView, members: Mapping[str, MemberSubscription]
    ) -> tuple[dict[str, list[Partition]], dict[Partition, str]]:
        """Everyone's partitions, members in join order, and those that change owners, with their new one."""
        if not members:
            return {}, {}
        in_map_order = members_in_map_order(members)
        counts = known_partition_counts(cluster, subscribed_topics(members))
        index = PartitionNumbering(counts)
        subscriptions = [members[member_id].subscription for member_id in in_map_order]
        racks = RackView(cluster, counts, members)
        alike = all_subscriptions_equal(members, in_map_order)
        with collector_paused(index.total):
            claims = Claims(index, dict(zip(in_map_order, self._claims(index, subscriptions, not alike), strict=True)))
            self._newest_generation = max(self._newest_generation, claims.newest_generation)
            if alike:
                constrained = ConstrainedAssignment(index, claims, racks)
                given, transferring = constrained.given, constrained.transferring
            else:
                given = GeneralAssignment(index, claims, members, racks, self._newest_generation).given
                transferring = transferring_partitions(members, given)
        return {member_id: given[member_id] for member_id in members}, transferring
