"""Instances of clients that asked for subscriptions or pushed: what each is to push, and when it did so last.

Kafka: ClientMetricsInstance, ClientMetricsManager.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

import google_crc32c

from rejoin.coordinator.core.inputs import Context, Millis
from rejoin.coordinator.core.telemetry.subscriptions import (
    ALL_METRICS,
    DEFAULT_INTERVAL_MS,
    ClientAttributes,
    MetricsSubscription,
    attributes_of,
    subscription_of,
)
from rejoin.coordinator.core.topics.topics import Topics
from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.java import concurrent_hash_map_order, copied_set_order, hash_map_order, int32, uuid_hash

MOST_INSTANCES: Final = 16_384
SHORTEST_LIFE_MS: Final[Millis] = 60_000
INTERVALS_OF_LIFE: Final = 3
"""An instance that sends nothing is forgotten after so many of its intervals, and no sooner than a minute."""

MAY_ASK_AGAIN: Final = (ErrorCode.UNKNOWN_SUBSCRIPTION_ID, ErrorCode.UNSUPPORTED_COMPRESSION_TYPE)
"""After these errors of a push, a client may ask for its subscription at once."""


@dataclass(slots=True)
class ClientInstance:
    """An instance of a client, with what the subscriptions that match it make together."""

    attributes: ClientAttributes
    subscription_id: int
    version: int
    """The version of the subscriptions from which this was made."""
    metrics: tuple[str, ...]
    interval_ms: Millis
    expires_at: Millis = 0
    last_get_at: Millis = 0
    last_push_at: Millis = 0
    is_terminating: bool = False
    last_error: ErrorCode = ErrorCode.NONE

    def may_get(self, now: Millis) -> bool:
        """Whether the client may ask for its subscription now; it is counted as having asked."""
        if now - max(self.last_get_at, self.last_push_at) >= self.interval_ms:
            self.last_get_at = now
            return True
        return self.last_error in MAY_ASK_AGAIN

    def may_push(self, now: Millis) -> bool:
        """Whether the client may push now: first after it has asked, then once an interval."""
        # Kafka: the first push may come early, as clients spread it over the interval.
        if self.last_get_at <= self.last_push_at and now - self.last_push_at < self.interval_ms:
            return False
        self.last_push_at = now
        return True


class ClientInstances:
    """Instances by id, the one that was silent longest first. Their number is bounded."""

    def __init__(self, topics: Topics, most: int = MOST_INSTANCES) -> None:
        self._topics = topics
        self._most = most
        self._by_id: dict[str, ClientInstance] = {}
        self._by_connection: dict[str, str] = {}
        self._subscriptions: tuple[int, tuple[MetricsSubscription, ...]] = (-1, ())

    def __contains__(self, instance_id: str) -> bool:
        return instance_id in self._by_id

    def __len__(self) -> int:
        return len(self._by_id)

    def of(self, instance_id: str, context: Context, now: Millis) -> ClientInstance:
        """An instance, made where it is not known, or anew where subscriptions have changed."""
        # Differs: in Kafka a timer forgets an instance; here it is forgotten with its next request, or for another.
        found = self._by_id.pop(instance_id, None)
        version = self._topics.client_metrics_version
        if found is None or found.expires_at <= now:
            found = self._made(attributes_of(instance_id, context))
        elif found.version < version:
            found = self._made(found.attributes)
        found.expires_at = now + max(SHORTEST_LIFE_MS, INTERVALS_OF_LIFE * found.interval_ms)
        self._by_id[instance_id] = found
        if context.connection:
            self._by_connection.pop(context.connection, None)
            self._by_connection[context.connection] = instance_id
        for table in (self._by_id, self._by_connection):
            if len(table) > self._most:
                del table[next(iter(table))]
        return found

    def disconnected(self, connection: str) -> None:
        """Forget the instance of a connection that is gone."""
        instance_id = self._by_connection.pop(connection, None)
        if instance_id is not None:
            self._by_id.pop(instance_id, None)

    def _made(self, attributes: ClientAttributes) -> ClientInstance:
        matching = [each for each in self._all() if each.matches(attributes)]
        interval = min((DEFAULT_INTERVAL_MS, *(each.interval_ms for each in matching)))
        prefixes = (prefix for each in matching for prefix in copied_set_order(each.metrics))
        metrics = tuple(dict.fromkeys(prefixes))
        if ALL_METRICS in metrics:
            metrics = (ALL_METRICS,)
        metrics = tuple(hash_map_order(metrics))
        known = subscription_id(metrics, interval, attributes["client_instance_id"])
        return ClientInstance(attributes, known, self._topics.client_metrics_version, metrics, interval)

    def _all(self) -> tuple[MetricsSubscription, ...]:
        version, found = self._subscriptions
        if version != self._topics.client_metrics_version:
            configs = self._topics.client_metrics_configs
            found = tuple(subscription_of(configs[name]) for name in concurrent_hash_map_order(list(configs)))
            self._subscriptions = (self._topics.client_metrics_version, found)
        return found


def subscription_id(metrics: Iterable[str], interval_ms: Millis, instance_id: str) -> int:
    """The id of what a client is to push. Kafka: ClientMetricsManager.computeSubscriptionId."""
    text = f"[{', '.join(metrics)}]{interval_ms}"
    return int32(google_crc32c.value(text.encode()) ^ uuid_hash(instance_id))
