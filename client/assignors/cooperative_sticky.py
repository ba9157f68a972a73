"""Kafka's `cooperative-sticky` assignor: sticky, and nothing is given to a member before another has let it go.

Source: Kafka's CooperativeStickyAssignor; KIP-429, KIP-792.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rejoin.client.assignors.base import Assignments, ClusterView, MemberSubscription, RebalanceProtocol
from rejoin.client.assignors.stickiness.base import StickyBase
from rejoin.client.assignors.stickiness.claims import Claim
from rejoin.client.assignors.stickiness.index import PartitionNumbering
from rejoin.protocol.embedded.consumer_protocol import NO_GENERATION, Assignment, Subscription


class CooperativeStickyAssignor(StickyBase):
    """Claims travel in the subscription's own fields: owned partitions and generation.

    A partition that changes owners stays unassigned in this round. Its old owner sees that it is missing,
    revokes it and rejoins, and the next round assigns it.
    """

    name = "cooperative-sticky"
    protocols = (RebalanceProtocol.COOPERATIVE, RebalanceProtocol.EAGER)

    def __init__(self) -> None:
        super().__init__()
        self._generation = NO_GENERATION

    def subscription_user_data(self, topics: Sequence[str]) -> bytes | None:
        """The generation of the last assignment, for leaders that do not read it from the subscription: 4 bytes."""
        return self._generation.to_bytes(4, "big", signed=True)

    def on_assignment(self, assignment: Assignment, generation: int) -> None:
        """Remember the generation."""
        self._generation = generation

    def assign(self, cluster: ClusterView, members: Mapping[str, MemberSubscription]) -> Assignments:
        """Assign, then withhold what changes owners. Raises AssignorError where Kafka's throws."""
        given, transferring = self._assign(cluster, members)
        for partition, member_id in transferring.items():
            given[member_id].remove(partition)
        return given

    def _claims(self, index: PartitionNumbering, subscriptions: Sequence[Subscription], as_listed: bool) -> list[Claim]:
        return [
            Claim(
                index.keys(subscription.owned_partitions),
                _generation_of(subscription),
                max(subscription.generation_id, NO_GENERATION),
                subscription.owned_partitions,
            )
            for subscription in subscriptions
        ]


def _generation_of(subscription: Subscription) -> int:
    """The subscription's generation or, if it is too old a version to say, the one in the user data."""
    if subscription.generation_id >= 0:
        return subscription.generation_id
    if subscription.user_data is None or len(subscription.user_data) < 4:
        return NO_GENERATION
    return int.from_bytes(subscription.user_data[:4], "big", signed=True)
