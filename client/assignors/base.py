"""An assignor: a name, and a function from a group's topics and members to the partitions of each member.

Partitions are plain `(topic, partition)` tuples in everything an assignor returns: a large answer is a
million of them, and a plain tuple is several times quicker to make than a `TopicPartition`, to which it is
equal. An assignor may return `TopicPartition`s, or hand on those it was given.

Source: Kafka's ConsumerPartitionAssignor; KIP-429 (protocols), KIP-881 (racks).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import ClassVar, TypeAlias

from rejoin.protocol.embedded.consumer_protocol import Assignment, Subscription

Partition: TypeAlias = tuple[str, int]
"""(topic, partition)."""

Assignments: TypeAlias = Mapping[str, Sequence[Partition]]
"""Member id → its partitions, in the order in which the member is to see them."""


class RebalanceProtocol(Enum):
    """Treatment of a member's partitions while the group rebalances; the value is Kafka's id."""

    EAGER = 0
    """Give everything up before joining."""

    COOPERATIVE = 1
    """Keep everything until an assignment says otherwise (KIP-429)."""


@dataclass(frozen=True, slots=True)
class ClusterView:
    """The topics as the group's leader knows them.

    `partition_counts`: topic → number of partitions; a topic that is absent, or has 0, is skipped.
    `racks`: topic → for each partition the racks of its replicas (None for a replica without one).
    A topic, or a partition at the end of its list, may be missing there: no racks known.
    """

    partition_counts: Mapping[str, int]
    racks: Mapping[str, Sequence[Sequence[str | None]]] = field(default_factory=dict)

    def racks_of(self, topic: str, partition: int) -> frozenset[str]:
        """The named racks that hold a replica of this partition."""
        by_partition = self.racks.get(topic, ())
        if partition >= len(by_partition):
            return frozenset()
        return frozenset(rack for rack in by_partition[partition] if rack is not None)


@dataclass(frozen=True, slots=True)
class MemberSubscription:
    """One member as the leader sees it in the answer to its JoinGroup."""

    subscription: Subscription
    group_instance_id: str | None = None


class Assignor(ABC):
    """Decides, in the leader, which member reads which partition.

    An instance belongs to one consumer for its lifetime and may keep state: what it learns in `on_assignment`
    can travel to the next leader in `subscription_user_data`.
    """

    name: ClassVar[str]
    """The name that members put into JoinGroup, and that the coordinator chooses by vote."""

    protocols: ClassVar[tuple[RebalanceProtocol, ...]] = (RebalanceProtocol.EAGER,)
    """The rebalance protocols this assignor can serve."""

    version: ClassVar[int] = 0
    """The version of the user data; Kafka asks for it and gives it no meaning."""

    checked: ClassVar[bool] = True
    """Whether the answer is checked before it is sent. Kafka's own assignors are the reference and are not."""

    def subscription_user_data(self, topics: Sequence[str]) -> bytes | None:
        """User data for the next leader, beside the topics; called before each JoinGroup."""
        return None

    @abstractmethod
    def assign(self, cluster: ClusterView, members: Mapping[str, MemberSubscription]) -> Assignments:
        """Decide. `members` (member id → subscription) come in the order in which they joined.

        Every member must appear in the answer, if only with an empty list. Must be a pure function of the
        arguments and of what this object remembers: equal arguments have equal answers on any machine.
        """

    def on_assignment(self, assignment: Assignment, generation: int) -> None:  # noqa: B027
        """Called on every member's own assignor when an assignment arrives, with the group's generation."""


class AssignorError(Exception):
    """An assignor cannot assign: the members' claims contradict each other. The message says how."""
