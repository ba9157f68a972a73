"""The topics that members subscribe to, as far as a coordinator reads subscriptions."""

from __future__ import annotations

from typing import Final

from rejoin.protocol.embedded.consumer_protocol import subscription_topics

MOST_BYTES: Final = 4 * 2**20
"""The subscriptions remembered, together: what clients send must not fill the memory."""


class SubscribedTopics:
    """Decodes subscriptions and caches their topics: members of a group mostly send equal ones."""

    def __init__(self, most_bytes: int = MOST_BYTES) -> None:
        self._most_bytes = most_bytes
        self._topics: dict[bytes, tuple[str, ...] | None] = {}
        self.bytes = 0
        """How many bytes of subscriptions are remembered."""

    def __call__(self, subscription: bytes) -> tuple[str, ...] | None:
        """The topics that a subscription names, or none when it cannot be read."""
        try:
            return self._topics[subscription]
        except KeyError:
            topics = self._topics[subscription] = subscription_topics(subscription)
        self.bytes += len(subscription)
        while self.bytes > self._most_bytes:
            oldest = next(iter(self._topics))
            del self._topics[oldest]
            self.bytes -= len(oldest)
        return topics


topics_of: Final = SubscribedTopics()
"""For all groups of the process."""
