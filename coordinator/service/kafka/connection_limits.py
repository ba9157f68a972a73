"""Limits of connections: how many there may be, of all clients and of one address, and how fast new ones come.

A connection that is refused is closed at once; one of an address above its rate is closed after its throttle time; one
above the limits of the broker waits until there is room. Instants are seconds of any steady clock.

Kafka: SocketServer.ConnectionQuotas, Acceptor.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from enum import Enum, auto
from typing import Final, NamedTuple, TypeAlias

from rejoin.coordinator.config import Settings
from rejoin.coordinator.core.quotas.rates import SampledRate
from rejoin.coordinator.core.security.client_quotas import CONNECTION_CREATION_RATE, IP, QuotaEntity
from rejoin.coordinator.settings.listeners import connections_by_address

Limits: TypeAlias = Mapping[QuotaEntity, Mapping[str, float]]

UNLIMITED: Final = 2**31 - 1
"""max.connection.creation.rate where there is none."""

MOST_ADDRESSES: Final = 10_000
"""Rates of addresses that are kept; with more, the one that has not connected for the longest time goes first."""


class ConnectionFate(Enum):
    """The fate of a new connection."""

    ACCEPTED = auto()
    WAITS = auto()
    CLOSED = auto()
    CLOSED_LATER = auto()


class ConnectionDecision(NamedTuple):
    """A fate; with a time where it ends a wait, and the reason where the connection ends."""

    fate: ConnectionFate
    seconds: float = 0.0
    reason: str = ""


_LOOKS_SECONDS: Final = 1.0
_ACCEPTED: Final = ConnectionDecision(ConnectionFate.ACCEPTED)


class ConnectionLimits:
    """Counts and rates of the connections of one node, with its ``settings`` and ``client_quotas`` as they are now."""

    def __init__(self, settings: Callable[[], Settings], client_quotas: Callable[[], Limits]) -> None:
        self._settings = settings
        self._client_quotas = client_quotas
        self._read = settings()
        self._samples = self._read.quota_window_num
        self._window_ms = self._read.quota_window_size_seconds * 1_000
        self._obey(self._read)
        self._total = 0
        self._by_address: Counter[str] = Counter()
        self._created = SampledRate(self._samples, self._window_ms)
        self._created_by: dict[str, SampledRate] = {}
        self._not_before = 0.0
        self._is_counted = False
        """Whether the connection that is decided about counts in the rate of all."""

    def _obey(self, settings: Settings) -> None:
        self._read = settings
        self._most = settings.max_connections
        self._most_of_address = settings.max_connections_per_ip
        self._overrides = connections_by_address(settings.max_connections_per_ip_overrides)
        self._creation_rate = settings.max_connection_creation_rate

    def admit(self, address: str, now: float) -> ConnectionDecision:
        """Decide about the connection that has waited longest, or has just come. It counts if it is accepted."""
        settings = self._settings()
        if settings is not self._read:
            self._obey(settings)
        # Kafka: waitForConnectionSlot, recordIpConnectionMaybeThrottle, and only then the limit of the address.
        if self._creation_rate != UNLIMITED and not self._is_counted:
            self._is_counted = True
            self._not_before = now + self._throttle_seconds(self._created, self._creation_rate, now, keeps=True)
        if now < self._not_before:
            return ConnectionDecision(ConnectionFate.WAITS, self._not_before - now)
        if self._total >= self._most:
            # A higher limit may be set meanwhile.
            return ConnectionDecision(ConnectionFate.WAITS, _LOOKS_SECONDS)
        self._is_counted = False
        limit = self._rate_of(address)
        if limit is not None and (throttle := self._throttle_seconds(self._created_of(address), limit, now)):
            reason = f"connection_creation_rate: more than {limit:g} a second from this address"
            return ConnectionDecision(ConnectionFate.CLOSED_LATER, throttle, reason)
        most = self._overrides.get(address, self._most_of_address)
        if self._by_address[address] >= most:
            reason = f"max.connections.per.ip: {most} are open from this address already"
            return ConnectionDecision(ConnectionFate.CLOSED, reason=reason)
        self._total += 1
        self._by_address[address] += 1
        return _ACCEPTED

    def closed(self, address: str) -> None:
        """A connection that was accepted has ended."""
        self._total -= 1
        self._by_address[address] -= 1
        if not self._by_address[address]:
            del self._by_address[address]

    def _rate_of(self, address: str) -> float | None:
        limits = self._client_quotas()
        if not limits:
            return None
        for name in (address, None):
            rate = limits.get(((IP, name),), {}).get(CONNECTION_CREATION_RATE)
            if rate is not None:
                return rate
        return None

    def _created_of(self, address: str) -> SampledRate:
        created = self._created_by.pop(address, None) or SampledRate(self._samples, self._window_ms)
        self._created_by[address] = created
        if len(self._created_by) > MOST_ADDRESSES:
            del self._created_by[next(iter(self._created_by))]
        return created

    def _throttle_seconds(self, created: SampledRate, limit: float, now: float, *, keeps: bool = False) -> float:
        """Count a connection; returns for how long no other may come. Unless it ``keeps``, it does not count then."""
        now_ms = int(now * 1_000)
        created.record(1.0, now_ms)
        throttle_ms = min(created.throttle_ms(limit, now_ms), self._window_ms)
        if throttle_ms and not keeps:
            created.record(-1.0, now_ms)
        return throttle_ms / 1_000
