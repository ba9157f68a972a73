"""Rates of clients against their quotas: which quota counts for a client, and how long it has to be silent.

A client is a user with a client id. The most special quota counts, and says whose rates are added up: those of a user
with a client id, of all clients of a user, or of all users of a client id.

Kafka: ClientQuotaManager, ControllerMutationQuotaManager.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple, TypeVar

from rejoin.coordinator.core.inputs import Context, Millis, Token
from rejoin.coordinator.core.quotas.muted import MutedConnections
from rejoin.coordinator.core.quotas.rates import SampledRate, TokenBucket
from rejoin.coordinator.core.security.client_principals import ClientPrincipals
from rejoin.coordinator.core.security.client_quotas import (
    CLIENT_ID,
    CONSUMER_BYTE_RATE,
    CONTROLLER_MUTATION_RATE,
    PRODUCER_BYTE_RATE,
    REQUEST_PERCENTAGE,
    USER,
)
from rejoin.coordinator.core.step_context import OwnToken, StepContext

FORGOTTEN_MS: Final = 3_600_000
"""How long the rate of a client that is silent is kept. Kafka: SensorAccess, an hour."""

MOST_RATES: Final = 10_000
"""Rates of clients that are kept; with more, those go first that have not changed for the longest time."""
# Differs: in Kafka time alone bounds them.

_PERCENT_OF_SECOND: Final = 100 / 1_000
"""Per millisecond of work."""

_Measure = TypeVar("_Measure", SampledRate, TokenBucket)


class _Limit(NamedTuple):
    """The quota that counts for a client."""

    value: float
    user: str
    """Empty where the rates of all users are added up."""
    client_id: str
    """Empty where those of all client ids are."""


class ClientRates:
    """Rates of producing, fetching, work and changing topics. Nothing is kept of clients without a quota."""

    def __init__(self, ctx: StepContext, muted: MutedConnections) -> None:
        self._ctx = ctx
        self._limits = ctx.security.client_quotas.limits
        settings = ctx.settings
        self._principals = ClientPrincipals.of_setting(settings.emulator_principals)
        self._samples = settings.quota_window_num
        self._window_ms = settings.quota_window_size_seconds * 1_000
        self._bucket_samples = settings.controller_quota_window_num
        self._bucket_window_ms = settings.controller_quota_window_size_seconds * 1_000
        self._sampled: dict[tuple[str, str, str], tuple[Millis, SampledRate]] = {}
        self._buckets: dict[tuple[str, str, str], tuple[Millis, TokenBucket]] = {}

        self._muted = muted

    @property
    def has_quotas(self) -> bool:
        """Whether there is any quota."""
        return bool(self._limits)

    # --- bytes

    def produced(self, token: Token, context: Context, size: int) -> Millis:
        """Count the bytes of a Produce; its connection is muted for as long as is returned."""
        limit = self._limit(PRODUCER_BYTE_RATE, token, context)
        if limit is None:
            return 0
        rate = self._rate(PRODUCER_BYTE_RATE, limit)
        rate.record(size, self._ctx.now)
        throttle_ms = rate.throttle_ms(limit.value, self._ctx.now)
        if throttle_ms:
            self._muted.mute(context, throttle_ms)
        return throttle_ms

    def fetched(self, token: Token, context: Context, size: int) -> Millis:
        """Count the bytes of an answer to a Fetch. With too many of them the connection is muted, for the time that is
        returned, and they must not be sent.

        Kafka: what is not sent is taken back from the rate.
        """
        limit = self._limit(CONSUMER_BYTE_RATE, token, context)
        if limit is None:
            return 0
        rate = self._rate(CONSUMER_BYTE_RATE, limit)
        rate.record(size, self._ctx.now)
        throttle_ms = rate.throttle_ms(limit.value, self._ctx.now)
        if throttle_ms:
            rate.record(-size, self._ctx.now)
            self._muted.mute(context, throttle_ms)
        return throttle_ms

    def not_sent(self, token: Token, context: Context, size: int) -> None:
        """Take back the bytes of an answer to a Fetch which another quota keeps from being sent."""
        limit = self._limit(CONSUMER_BYTE_RATE, token, context)
        if limit is not None:
            self._rate(CONSUMER_BYTE_RATE, limit).record(-size, self._ctx.now)

    def most_fetched(self, token: Token, context: Context) -> int | None:
        """The bytes that all windows together leave a client for one answer to a Fetch, or none without a quota."""
        limit = self._limit(CONSUMER_BYTE_RATE, token, context)
        return None if limit is None else int(int(limit.value) * (self._samples - 1) * self._window_ms / 1_000)

    # --- work

    def worked(self, token: Token, context: Context, took_ms: float) -> Millis:
        """Count the work on a request; its connection is muted for as long as is returned, a window at most."""
        limit = self._limit(REQUEST_PERCENTAGE, token, context)
        if limit is None:
            return 0
        rate = self._rate(REQUEST_PERCENTAGE, limit)
        rate.record(took_ms * _PERCENT_OF_SECOND, self._ctx.now)
        throttle_ms = min(rate.throttle_ms(limit.value, self._ctx.now), self._window_ms)
        if throttle_ms:
            self._muted.mute(context, throttle_ms)
        return throttle_ms

    def _rate(self, key: str, limit: _Limit) -> SampledRate:
        return self._kept(self._sampled, key, limit, lambda: SampledRate(self._samples, self._window_ms))

    # --- the quota of a client

    def _limit(self, key: str, token: Token, context: Context) -> _Limit | None:
        if context.by_operator or type(token) is OwnToken:
            return None
        user = self._principals.of(context).partition(":")[2]
        client_id = context.client_id
        for name in (user, None):
            for entity, is_by_client in (
                (((CLIENT_ID, client_id), (USER, name)), True),
                (((CLIENT_ID, None), (USER, name)), True),
                (((USER, name),), False),
            ):
                value = self._limits.get(entity, {}).get(key)
                if value is not None:
                    return _Limit(value, user, client_id if is_by_client else "")
        for name in (client_id, None):
            value = self._limits.get(((CLIENT_ID, name),), {}).get(key)
            if value is not None:
                return _Limit(value, "", client_id)
        return None

    def _kept(
        self,
        measures: dict[tuple[str, str, str], tuple[Millis, _Measure]],
        key: str,
        limit: _Limit,
        make: Callable[[], _Measure],
    ) -> _Measure:
        """The rate that a limit is for, the last one of all from now on."""
        now = self._ctx.now
        name = (key, limit.user, limit.client_id)
        used_at, measure = measures.pop(name, (now, None))
        if measure is None or now - used_at >= FORGOTTEN_MS:
            measure = make()
        measures[name] = now, measure
        while len(measures) > MOST_RATES or now - next(iter(measures.values()))[0] >= FORGOTTEN_MS:
            del measures[next(iter(measures))]
        return measure

    # --- changes of topics

    def _bucket(self, limit: _Limit) -> TokenBucket:
        return self._kept(
            self._buckets,
            CONTROLLER_MUTATION_RATE,
            limit,
            lambda: TokenBucket(self._bucket_samples, self._bucket_window_ms),
        )

    def mutation_budget(self, token: Token, context: Context, *, strict: bool) -> MutationBudget | None:
        """Changes that a client may make in one request, or none where it has no quota."""
        limit = self._limit(CONTROLLER_MUTATION_RATE, token, context) if self._limits else None
        if limit is None:
            return None
        return MutationBudget(self._ctx, self._muted, context, self._bucket(limit), limit.value, strict=strict)


class MutationBudget:
    """Changes of one request: a ``strict`` one is refused what comes after the debt, others only wait.

    Kafka: StrictControllerMutationQuota, PermissiveControllerMutationQuota.
    """

    def __init__(
        self,
        ctx: StepContext,
        muted: MutedConnections,
        context: Context,
        bucket: TokenBucket,
        limit: float,
        *,
        strict: bool,
    ) -> None:
        self._ctx = ctx
        self._muted = muted
        self._context = context
        self._bucket = bucket
        self._limit = limit
        self._strict = strict
        self.throttle_ms: Millis = 0
        self._decided: dict[str, bool] = {}

    def take(self, topic: str, partitions: int) -> bool:
        """Count the partitions of a topic that are made or deleted; returns whether they may be. It counts once."""
        if topic not in self._decided:
            self._decided[topic] = self._take(partitions)
        return self._decided[topic]

    def mute(self) -> Millis:
        """Mute the connection, if there is a debt; returns for how long."""
        if self.throttle_ms:
            self._muted.mute(self._context, self.throttle_ms)
        return self.throttle_ms

    def _take(self, partitions: int) -> bool:
        now = self._ctx.now
        if self._strict:
            self.throttle_ms = max(self.throttle_ms, self._bucket.throttle_ms(self._limit, now))
            if self.throttle_ms:
                return False
        self._bucket.take(partitions, self._limit, now)
        if not self._strict:
            self.throttle_ms = max(self.throttle_ms, self._bucket.throttle_ms(self._limit, now))
        return True
