"""The nodes that a transport can ask: how each has done lately, and which to ask first.

A node that cannot be reached, or does not answer in time, is left alone for ``reconnect.backoff.ms``, doubling up to
``reconnect.backoff.max.ms``, and asked again only after those that answer.

Source: Kafka's NetworkClient (leastLoadedNode, handleTimedOutRequests) and ClusterConnectionStates.
"""

from __future__ import annotations

from dataclasses import dataclass
from time import monotonic


@dataclass(frozen=True, slots=True)
class ReconnectBackoff:
    """How long a node that failed is left alone, in seconds."""

    first: float
    longest: float

    @classmethod
    def of_ms(cls, first_ms: int, longest_ms: int) -> ReconnectBackoff:
        first = first_ms / 1_000
        return cls(first, max(longest_ms / 1_000, first))


@dataclass(slots=True, eq=False, kw_only=True)
class NodeState:
    """A node and its recent failures. ``failures`` counts since its last answer; ``failed_at`` is 0 without any."""

    failures: int = 0
    failed_at: float = 0.0
    usable_at: float = 0.0
    in_flight: int = 0

    def fail(self, backoff: ReconnectBackoff) -> None:
        """Count a failure; the node is left alone for a while."""
        wait = min(backoff.first * 2 ** min(self.failures, 20), backoff.longest)
        self.failures += 1
        self.failed_at = monotonic()
        self.usable_at = self.failed_at + wait

    def succeed(self) -> None:
        """The node has answered."""
        self.failures, self.failed_at = 0, 0.0
