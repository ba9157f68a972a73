"""Rates of clients as Kafka measures them: sampled windows for bytes, a bucket of tokens for changes of topics.

Times are milliseconds, rates are per second.

Kafka: Rate, SampledStat, TokenBucket, QuotaUtils.throttleTime.
"""

from __future__ import annotations

from math import floor

from rejoin.coordinator.core.inputs import Millis


class _Sample:
    """Sum of one window."""

    __slots__ = ("began_at", "last_at", "value")

    def __init__(self, now: Millis) -> None:
        self.reset(now)

    def reset(self, now: Millis) -> None:
        self.began_at = self.last_at = now
        self.value = 0.0


class SampledRate:
    """A rate over the last ``samples`` windows; one more window is kept, which is still open."""

    __slots__ = ("_current", "_kept", "_samples", "_window_ms")

    def __init__(self, samples: int, window_ms: Millis) -> None:
        self._samples = samples
        self._window_ms = window_ms
        self._kept: list[_Sample] = []
        self._current = 0

    def record(self, value: float, now: Millis) -> None:
        if not self._kept:
            self._kept.append(_Sample(now))
        sample = self._kept[self._current]
        if now - sample.began_at >= self._window_ms:
            sample = self._advance(now)
        sample.value += value
        sample.last_at = now

    def _advance(self, now: Millis) -> _Sample:
        self._current = (self._current + 1) % (self._samples + 1)
        if self._current >= len(self._kept):
            self._kept.append(_Sample(now))
        else:
            self._kept[self._current].reset(now)
        return self._kept[self._current]

    def throttle_ms(self, limit: float, now: Millis) -> Millis:
        """How long the client has to be silent for its rate to fall to the limit; 0 below it."""
        window_ms = self._measured_ms(now)
        rate = sum(sample.value for sample in self._kept) / (window_ms / 1_000)
        return floor((rate - limit) / limit * window_ms + 0.5) if rate > limit else 0

    def _measured_ms(self, now: Millis) -> Millis:
        """The time that the samples stand for; a client that has just come counts as if it had been silent before."""
        if not self._kept:
            self._kept.append(_Sample(now))
        oldest_ms = self._samples * self._window_ms
        for sample in self._kept:
            if now - sample.last_at >= oldest_ms:
                sample.reset(now)
        elapsed = now - min(sample.began_at for sample in self._kept)
        missing = self._samples - 1 - elapsed // self._window_ms
        return max(1, elapsed + max(0, missing) * self._window_ms)


class TokenBucket:
    """Tokens that come at a rate, up to those of all windows; taking more than there are makes a debt."""

    __slots__ = ("_samples", "_tokens", "_updated_at", "_window_ms")

    def __init__(self, samples: int, window_ms: Millis) -> None:
        self._samples = samples
        self._window_ms = window_ms
        self._tokens = 0.0
        self._updated_at: Millis = 0

    def take(self, tokens: float, limit: float, now: Millis) -> None:
        burst = self._refill(limit, now)
        self._tokens = min(burst, self._tokens - tokens)

    def throttle_ms(self, limit: float, now: Millis) -> Millis:
        """How long it takes until there is no debt; 0 without one."""
        self._refill(limit, now)
        return floor(-self._tokens / limit * 1_000 + 0.5) if self._tokens < 0 else 0

    def _refill(self, limit: float, now: Millis) -> float:
        burst = self._samples * self._window_ms / 1_000 * limit
        self._tokens = min(burst, self._tokens + limit * (now - self._updated_at) / 1_000)
        self._updated_at = now
        return burst
