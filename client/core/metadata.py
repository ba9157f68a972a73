"""The topics this consumer needs to know: asked for when that changes, after errors, and when they have grown old.

Source: Kafka's Metadata, ConsumerMetadata and ConsumerCoordinator.MetadataSnapshot.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

from rejoin.client.assignors import ClusterView
from rejoin.client.core import requests
from rejoin.client.core.errors import InvalidTopicError, KafkaError, TopicAuthorizationError
from rejoin.client.core.inputs import Millis
from rejoin.client.core.step_context import InFlight, StepContext
from rejoin.client.core.subscription import Kind, SubscriptionState
from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.message import Response
from rejoin.protocol.messages.cluster.metadata import MetadataResponse, MetadataResponseTopic
from rejoin.protocol.registry import METADATA

Racks: TypeAlias = tuple[tuple[str | None, ...], ...]
"""For each partition the racks of its replicas."""


class Topic(NamedTuple):
    """A topic as far as consumers care."""

    partitions: int
    racks: Racks
    internal: bool


@dataclass(frozen=True, slots=True)
class Snapshot:
    """What a leader's assignment was computed from; racks count only where the leader itself has one."""

    version: int
    topics: dict[str, tuple[int, tuple[frozenset[str | None], ...]]]

    def matches(self, other: Snapshot) -> bool:
        return self.version == other.version or self.topics == other.topics


class Metadata:
    """The last known topics. At most one Metadata request is in flight."""

    def __init__(self, ctx: StepContext, subscription: SubscriptionState) -> None:
        self.version = 0
        self.topics: dict[str, Topic] = {}
        self.error: KafkaError | None = None
        """Raised from the next poll."""
        self.refreshed_at: Millis | None = None
        """When the last answer came."""
        self._ctx = ctx
        self._subscription = subscription
        self._requested = True
        self._serial = 1
        self._asked = 0
        self._seen = 0
        self._attempts = 0
        self._retry_at: Millis = 0
        self._request_id: int | None = None

    def request_update(self) -> int:
        """Ask again as soon as the backoff allows; the number says which answer will do (:meth:`seen`)."""
        self._requested = True
        self._serial += 1
        return self._serial

    def wanted_update(self) -> int:
        """The number of the update that is wanted or due already, or 0 when what is known will do."""
        if not self.stale:
            return 0
        return self._serial if self._requested else self.request_update()

    def seen(self, update: int) -> bool:
        """True when an answer has come that was asked for no earlier than update ``update``."""
        return self._seen >= update

    @property
    def stale(self) -> bool:
        """True when an update is wanted or due."""
        if self._requested or self.refreshed_at is None:
            return True
        return self._ctx.now >= self.refreshed_at + self._ctx.config.metadata_max_age_ms

    def refreshable(self) -> bool:
        """True when the last update is long enough ago for another one."""
        last = self.refreshed_at
        return last is None or self._ctx.now >= last + self._ctx.config.retry_backoff_ms

    @property
    def in_flight(self) -> bool:
        return self._request_id is not None

    def ensure_fresh(self) -> bool:
        """True when nothing newer is wanted; otherwise somebody is being asked, or will be after a backoff."""
        if not self.stale:
            assert self.refreshed_at is not None
            self._ctx.wake(self.refreshed_at + self._ctx.config.metadata_max_age_ms)
            return True
        if self._request_id is None:
            if self._ctx.now < self._retry_at:
                self._ctx.wake(self._retry_at)
            else:
                self._ask()
        return False

    def raise_error(self) -> None:
        """Raise, once, what made an update impossible."""
        if self.error is not None:
            error, self.error = self.error, None
            raise error

    def _ask(self) -> None:
        topics = None if self._subscription.kind is Kind.PATTERN else self._subscription.metadata_topics()
        request = requests.metadata(
            topics, create=self._ctx.config.allow_auto_create_topics, version=self._ctx.version(METADATA)
        )
        self._asked = self._serial
        self._request_id = self._ctx.send(request, self._answered, self._failed)

    def _answered(self, sent: InFlight, response: Response) -> None:
        assert isinstance(response, MetadataResponse)
        self._request_id = None
        racks = {broker.node_id: broker.rack for broker in response.brokers}
        topics: dict[str, Topic] = {}
        again = False
        forbidden: list[str] = []
        for topic in response.topics:
            name = topic.name or ""
            match topic.error_code:
                case ErrorCode.NONE:
                    topics[name] = _topic(topic, racks)
                case ErrorCode.TOPIC_AUTHORIZATION_FAILED:
                    forbidden.append(name)
                case ErrorCode.INVALID_TOPIC_EXCEPTION:
                    self.error = InvalidTopicError(f"invalid topic: {name!r}")
                case _:
                    # Kafka: a topic that is not there yet is asked for again until it is.
                    again = True
        if forbidden:
            self.error = TopicAuthorizationError(forbidden)
        self.topics = topics
        self.version += 1
        self._seen = self._asked
        self.refreshed_at = self._ctx.now
        self._requested = again or self._asked != self._serial
        self._attempts = self._attempts + 1 if again else 0
        self._retry_at = self._ctx.now + self._ctx.backoff(self._attempts - 1) if again else self._ctx.now

    def _failed(self, sent: InFlight, problem: KafkaError) -> None:
        self._request_id = None
        self._requested = True
        self._retry_at = self._ctx.now + self._ctx.backoff(self._attempts)
        self._attempts += 1

    def matching(self) -> list[str]:
        """Known topics that match the subscribed pattern."""
        hide = self._ctx.config.exclude_internal_topics
        return [
            name
            for name, topic in self.topics.items()
            if not (topic.internal and hide) and self._subscription.matches(name)
        ]

    def snapshot(self) -> Snapshot:
        """The topics of the subscription, and of the group for its leader, as they are known now."""
        racks_count = bool(self._ctx.config.client_rack)
        return Snapshot(
            self.version,
            {
                name: (
                    self.topics[name].partitions,
                    tuple(frozenset(racks) for racks in self.topics[name].racks) if racks_count else (),
                )
                for name in self._subscription.metadata_topics()
                if name in self.topics
            },
        )

    def cluster(self) -> ClusterView:
        """The topics as an assignor sees them."""
        return ClusterView(
            {name: topic.partitions for name, topic in self.topics.items()},
            {name: topic.racks for name, topic in self.topics.items()},
        )


_READ: dict[int, tuple[MetadataResponseTopic, dict[int, str | None], Topic]] = {}
"""The topics that were read last, by identity: consumers that share an answer need not each read it."""

_MOST_READ = 64


def _topic(topic: MetadataResponseTopic, racks: dict[int, str | None]) -> Topic:
    known = _READ.get(id(topic))
    if known is not None and known[0] is topic and known[1] == racks:
        return known[2]
    if len(_READ) >= _MOST_READ:
        _READ.clear()
    read = _read_topic(topic, racks)
    _READ[id(topic)] = (topic, racks, read)
    return read


def _read_topic(topic: MetadataResponseTopic, racks: dict[int, str | None]) -> Topic:
    partitions = sorted(topic.partitions, key=lambda partition: partition.partition_index)
    return Topic(
        len(partitions),
        tuple(tuple(racks.get(node) for node in partition.replica_nodes) for partition in partitions),
        topic.is_internal,
    )
