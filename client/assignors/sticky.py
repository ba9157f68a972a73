"""Kafka's `sticky` assignor, for members that give everything up before they rejoin.

Source: Kafka's StickyAssignor; KIP-54, KIP-341.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rejoin.client.assignors.base import Assignments, ClusterView, MemberSubscription
from rejoin.client.assignors.stickiness.base import StickyBase
from rejoin.client.assignors.stickiness.claims import Claim
from rejoin.client.assignors.stickiness.index import PartitionNumbering
from rejoin.client.assignors.stickiness.user_data import StickyClaimReader, encode_sticky_user_data
from rejoin.protocol.embedded.consumer_protocol import NO_GENERATION, Assignment, Subscription
from rejoin.protocol.types import TopicPartition


class StickyAssignor(StickyBase):
    """Claims travel in the user data, for an eager member owns nothing by the time it joins."""

    name = "sticky"

    def __init__(self) -> None:
        super().__init__()
        self._remembered: tuple[TopicPartition, ...] | None = None
        self._generation = NO_GENERATION

    def subscription_user_data(self, topics: Sequence[str]) -> bytes | None:
        """The last assignment with its generation; None before the first one."""
        # Kafka: remembered also after the member was thrown out; the claim then carries the old generation.
        if self._remembered is None:
            return None
        return encode_sticky_user_data(self._remembered, self._generation)

    def on_assignment(self, assignment: Assignment, generation: int) -> None:
        """Remember the assignment and its generation."""
        self._remembered = assignment.partitions
        self._generation = generation

    def assign(self, cluster: ClusterView, members: Mapping[str, MemberSubscription]) -> Assignments:
        """Assign. Raises AssignorError where Kafka's throws."""
        return self._assign(cluster, members)[0]

    def _claims(self, index: PartitionNumbering, subscriptions: Sequence[Subscription], as_listed: bool) -> list[Claim]:
        return list(map(StickyClaimReader(index, as_listed).read, subscriptions))
