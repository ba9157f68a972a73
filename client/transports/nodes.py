"""The nodes that a transport can ask: how each has done lately, and which to ask first.

A node that cannot be reached, or does not answer in time, is left alone for ``reconnect.backoff.ms``, doubling up to
``reconnect.backoff.max.ms``, and asked again only after those that answer.

Source: Kafka's NetworkClient (leastLoadedNode, handleTimedOutRequests) and ClusterConnectionStates.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from time import monotonic
from typing import Final

LOGGER: Final = logging.getLogger("rejoin.client")
"""Where a client says that a node cannot be reached: on standard error, unless the program configures it."""
_WARNS_FROM: Final = 4
"""So many failures in a row are worth a line; after that 8, 16, …"""


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

    has_answered: bool = False
    failures: int = 0
    failed_at: float = 0.0
    usable_at: float = 0.0
    in_flight: int = 0

    def fail(self, backoff: ReconnectBackoff, problem: str) -> None:
        """Count a failure; the node is left alone for a while. One that has never answered is warned of."""
        wait = min(backoff.first * 2 ** min(self.failures, 20), backoff.longest)
        self.failures += 1
        self.failed_at = monotonic()
        self.usable_at = self.failed_at + wait
        if not self.has_answered and self.failures >= _WARNS_FROM and self.failures.bit_count() == 1:
            LOGGER.warning("%s (tried %d times; rejoin serve starts a server)", problem, self.failures)

    def succeed(self) -> None:
        """The node has answered."""
        self.has_answered = True
        self.failures, self.failed_at = 0, 0.0
