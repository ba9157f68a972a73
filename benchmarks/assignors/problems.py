"""The problems that assignors are timed on: the sizes of Kafka's own stress tests, and small ones.

The Java program beside this builds the same ones from the same words.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from rejoin.client.assignors import Assignments, ClusterView, MemberSubscription
from rejoin.client.assignors.stickiness.user_data import encode_sticky_user_data
from rejoin.protocol.embedded.consumer_protocol import Subscription, decode_subscription, encode_subscription
from rejoin.protocol.types import TopicPartition

WISHES = ("equal", "odd-one", "quarters", "rotating")
"""Who wants what: everybody everything; the last member one topic only; every fourth member the first half of
the topics and the others the second; each member half of them, beginning one further on."""


@dataclass(frozen=True)
class Problem:
    """A group and its topics. `wishes` is one of WISHES."""

    name: str
    members: int
    topics: int
    partitions: int
    wishes: str = "equal"

    @property
    def total(self) -> int:
        """Partitions of all topics."""
        return self.topics * self.partitions

    @property
    def cluster(self) -> ClusterView:
        """The metadata."""
        return ClusterView(dict.fromkeys(self.topic_names, self.partitions))

    @property
    def topic_names(self) -> list[str]:
        """`topic-0000` and so on."""
        return [f"topic-{number:04d}" for number in range(self.topics)]

    @property
    def member_ids(self) -> list[str]:
        """`consumer-0000` and so on."""
        return [f"consumer-{number:04d}" for number in range(self.members)]

    def wanted(self, member: int) -> list[str]:
        """The topics of one member."""
        names, half = self.topic_names, self.topics // 2
        match self.wishes:
            case "odd-one":
                return names[:1] if member == self.members - 1 else names
            case "quarters":
                return names[:half] if member % 4 == 0 else names[half:]
            case "rotating":
                return [names[(member + step) % self.topics] for step in range(half)]
        return names

    def fresh(self) -> dict[str, MemberSubscription]:
        """All members join, and none owned a partition before."""
        return {m: _through_the_wire(self.wanted(number), None, (), -1) for number, m in enumerate(self.member_ids)}

    def after_leaving(self, assignor: str, before: Assignments) -> dict[str, MemberSubscription]:
        """The member in the middle has left; the others say what they held."""
        return {
            member_id: _claiming(assignor, self.wanted(number), before[member_id])
            for number, member_id in enumerate(self.member_ids)
            if number != self.members // 2
        }


STRESS = Problem("equal", 2000, 500, 2000)
ODD_ONE = Problem("one wants less", 2000, 500, 2000, "odd-one")
QUARTERS = Problem("two camps", 500, 100, 200, "quarters")
ROTATING = Problem("each half", 500, 100, 200, "rotating")
SIZES = (
    Problem("tiny", 3, 2, 3),
    Problem("small", 10, 5, 12),
    Problem("medium", 100, 50, 24),
    Problem("few members", 10, 2, 50_000),
    Problem("many members", 2000, 10, 100),
    STRESS,
)
PROBLEMS = {problem.name: problem for problem in (*SIZES, ODD_ONE, QUARTERS, ROTATING)}


def _claiming(assignor: str, topics: Sequence[str], held: Sequence[tuple[str, int]]) -> MemberSubscription:
    if assignor == "sticky":
        return _through_the_wire(topics, encode_sticky_user_data(held, 1), (), 1)
    if assignor == "cooperative-sticky":
        return _through_the_wire(topics, None, tuple(TopicPartition(*partition) for partition in held), 1)
    return _through_the_wire(topics, None, (), 1)


def _through_the_wire(
    topics: Sequence[str], user_data: bytes | None, owned: tuple[TopicPartition, ...], generation: int
) -> MemberSubscription:
    """As a leader sees it: read from the bytes of a JoinGroup response."""
    subscription = Subscription(tuple(topics), user_data, owned, generation)
    return MemberSubscription(decode_subscription(encode_subscription(subscription)))


def floor_of(answer: Mapping[str, Sequence[tuple[str, int]]]) -> list[list[tuple[str, int]]]:
    """The least any answer costs: its lists of (topic, partition) tuples are built, nothing else."""
    return [[(topic, number) for topic, number in given] for given in answer.values()]
