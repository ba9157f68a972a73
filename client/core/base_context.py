"""The context of a step of any client's core: time, effects so far, next deadline, and backoffs.

Every part of a core says how long it can wait (:meth:`BaseContext.wake`) each time it is looked at; the smallest of
these is the next deadline. Nothing else remembers timers, so none can go stale.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Generic, TypeVar

from rejoin.client.core.inputs import Millis
from rejoin.protocol.registry import Api

RETRY_BACKOFF_JITTER = 0.2

EffectT = TypeVar("EffectT")


class BaseContext(Generic[EffectT]):
    """One step: the time it takes place at and the effects it has had so far."""

    __slots__ = ("_longest_backoff_ms", "_retry_backoff_ms", "effects", "jitter", "next_wake", "now", "versions")

    def __init__(
        self,
        retry_backoff_ms: Millis,
        retry_backoff_max_ms: Millis,
        jitter: Callable[[], float],
        versions: Mapping[Api, int],
    ) -> None:
        self._retry_backoff_ms = retry_backoff_ms
        self._longest_backoff_ms = max(retry_backoff_max_ms, retry_backoff_ms)
        self.jitter = jitter
        self.versions = versions
        self.now: Millis = 0
        self.effects: list[EffectT] = []
        self.next_wake: Millis | None = None

    def begin(self, now: Millis) -> None:
        """Start a step."""
        self.now = now
        self.effects = []
        self.next_wake = None

    def emit(self, effect: EffectT) -> None:
        """Add an effect, or an event."""
        self.effects.append(effect)

    def wake(self, at: Millis) -> None:
        """Come back at this time at the latest."""
        if self.next_wake is None or at < self.next_wake:
            self.next_wake = at

    def version(self, api: Api) -> int:
        """The version this client speaks: the one that goes without saying, or an older one that it was given."""
        return min(self.versions.get(api, api.default_version), api.default_version)

    def backoff(self, attempts: int) -> int:
        """The wait before retry number ``attempts``, counted from 0: exponential, with 20 % of jitter (KIP-580)."""
        # Kafka: ExponentialBackoff.
        term = min(self._retry_backoff_ms * 2 ** min(attempts, 30), self._longest_backoff_ms)
        factor = 1 - RETRY_BACKOFF_JITTER + 2 * RETRY_BACKOFF_JITTER * self.jitter()
        return min(int(term * factor), self._longest_backoff_ms)
