"""Where the replicas of new partitions go. Kafka: StripedReplicaPlacer, ReplicationControlManager."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

Replicas: TypeAlias = tuple[int, ...]
"""The brokers of one partition, the preferred leader first."""


@dataclass(frozen=True, slots=True)
class Placement:
    """The live brokers. Without a ``default_replication_factor`` no controller decides where replicas are."""

    brokers: tuple[int, ...] = ()
    default_replication_factor: int | None = None

    def replicas(self, first: int, count: int, factor: int = -1) -> tuple[Replicas, ...]:
        """The replicas of new partitions from one on, round robin over the brokers."""
        if self.default_replication_factor is None or not self.brokers:
            return ()
        wanted = self.default_replication_factor if factor == -1 else factor
        brokers, copies = self.brokers, min(wanted, len(self.brokers))
        # Differs: Kafka begins at a random broker, so that a topic's first partition may be led by any.
        return tuple(
            tuple(brokers[(index + copy) % len(brokers)] for copy in range(copies))
            for index in range(first, first + count)
        )

    def problem(self, assignments: Sequence[Replicas]) -> str:
        """The problem with the replicas that a request asks for; empty if there is none."""
        for replicas in assignments:
            if len(set(replicas)) < len(replicas):
                return f"replicas {list(replicas)}: expected no broker twice"
            for broker in replicas:
                if self.brokers and broker not in self.brokers:
                    return f"replicas {list(replicas)}: there is no broker {broker}; there are {list(self.brokers)}"
            if len(replicas) != len(assignments[0]):
                return f"replicas {list(replicas)}: expected as many as {list(assignments[0])}"
        return ""
