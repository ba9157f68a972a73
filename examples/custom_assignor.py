"""An assignor of one's own: members say how strong they are, and get partitions in proportion.

Run it as `python -m examples.custom_assignor`, or let the command line use it:

    rejoin assign --assignor examples.custom_assignor:WeightedAssignor \\
        --topics orders:12 --members a,b,c --then leave:b

To find it by its name, declare it in your package's pyproject.toml:

    [project.entry-points."rejoin.assignors"]
    weighted = "my_package.weighted:WeightedAssignor"
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence

from rejoin.client.assignors import Assignments, Assignor, ClusterView, MemberSubscription, Partition, run_assignor
from rejoin.protocol.embedded.consumer_protocol import Subscription


class WeightedAssignor(Assignor):
    """Gives each partition to the subscriber that has the least for its strength.

    A member's strength, by default its number of processors, travels to the leader as user data.
    """

    name = "weighted"

    def __init__(self, strength: int | None = None) -> None:
        self.strength = strength or os.cpu_count() or 1

    def subscription_user_data(self, topics: Sequence[str]) -> bytes:
        """Two bytes: the strength."""
        return self.strength.to_bytes(2, "big")

    def assign(self, cluster: ClusterView, members: Mapping[str, MemberSubscription]) -> Assignments:
        """Deal by topic and number; ties go to the member that joined first."""
        strengths = {member_id: _strength_of(member.subscription) for member_id, member in members.items()}
        given: dict[str, list[Partition]] = {member_id: [] for member_id in members}
        topics = sorted({topic for member in members.values() for topic in member.subscription.topics})
        for topic in topics:
            subscribers = [m for m, member in members.items() if topic in member.subscription.topics]
            for number in range(cluster.partition_counts.get(topic, 0)):
                taker = min(subscribers, key=lambda m: (len(given[m]) + 1) / strengths[m])
                given[taker].append((topic, number))
        return given


def _strength_of(subscription: Subscription) -> int:
    """1 for a member that does not say."""
    return max(1, int.from_bytes(subscription.user_data or b"", "big"))


def main() -> None:
    """Three members of different strength read one topic."""
    members = {
        member_id: MemberSubscription(
            Subscription(("orders",), WeightedAssignor(strength).subscription_user_data(("orders",)))
        )
        for member_id, strength in {"small": 1, "medium": 2, "large": 5}.items()
    }
    # What a leader does: the answer is checked, and a broken rule names the partition and the member.
    answer = run_assignor(WeightedAssignor(), ClusterView({"orders": 16}), members)
    for member_id, partitions in answer.items():
        print(f"{member_id:<7} {len(partitions):>2}  {', '.join(str(number) for _, number in partitions)}")


if __name__ == "__main__":
    main()
