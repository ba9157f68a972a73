"""The part of a share consumer's state that other consumers do not have: sessions, records in flight, acknowledgements.

Everything else is the :class:`~rejoin.client.core.state.consumer.ConsumerState` that it shares with them.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from rejoin.client.core.errors import KafkaError
from rejoin.client.core.fetch.consumer_record import ConsumerRecord
from rejoin.client.core.fetch.fetched import FetchedBatches
from rejoin.client.core.inputs import Millis, Token
from rejoin.client.core.share.session import ShareSessionHandler
from rejoin.client.core.state.consumer import ConsumerState
from rejoin.protocol.types import TopicIdPartition, TopicPartition


class DeliverySource(NamedTuple):
    """The node that delivered records of a partition: acknowledgements of them go to it."""

    node_id: int
    partition: TopicIdPartition

    @property
    def name(self) -> TopicPartition:
        """The partition without its topic's id."""
        return named(self.partition)


Acknowledgements = dict[int, int]
"""Types by offset."""

Results = Mapping[TopicPartition, KafkaError | None]
"""For each partition the error of its acknowledgements, or None."""


@dataclass(slots=True)
class DeliveredRecords:
    """Records of one source that the user has, and what it has said about them so far."""

    records: dict[int, ConsumerRecord] = field(default_factory=dict)
    acknowledged: Acknowledgements = field(default_factory=dict)

    @property
    def unacknowledged(self) -> int:
        return len(self.records) - len(self.acknowledged)


@dataclass(slots=True)
class AcquiredBatches:
    """Fetched batches that are not handed out yet, and how often each acquired offset was delivered."""

    source: DeliverySource
    batches: FetchedBatches
    acquired: deque[tuple[int, int, int]]
    """First offset, last offset, delivery count; ascending."""


@dataclass(slots=True, eq=False)
class AcknowledgeCall:
    """A commit: acknowledgements by node until they are sent, and results by partition."""

    token: Token
    until: Millis
    waiting: dict[int, dict[TopicIdPartition, Acknowledgements]]
    in_flight: set[int] = field(default_factory=set)
    """Nodes whose response is outstanding."""
    results: dict[TopicPartition, KafkaError | None] = field(default_factory=dict)
    attempts: int = 0
    retry_at: Millis = 0
    closes: bool = False
    """True when its requests close the sessions."""

    @property
    def is_done(self) -> bool:
        return not self.waiting and not self.in_flight


class Completed(NamedTuple):
    """Acknowledgements with a result, for the user's callback."""

    partition: TopicPartition
    offsets: tuple[int, ...]
    error: KafkaError | None


@dataclass(slots=True)
class ShareConsumerState:
    """Fetching and acknowledging. At most one request of either kind is in flight to each node."""

    is_explicit: bool
    limits_records: bool
    """``share.acquire.mode=record_limit`` (KIP-1206)."""
    sessions: dict[int, ShareSessionHandler] = field(default_factory=dict)
    in_flight: dict[int, int] = field(default_factory=dict)
    """Request ids by node."""
    asking: int = -1
    """The node that was asked for records last, and while it answers the only one where records are limited."""
    retry_at: dict[int, Millis] = field(default_factory=dict)
    buffered: deque[AcquiredBatches] = field(default_factory=deque)
    deliveries: dict[DeliverySource, DeliveredRecords] = field(default_factory=dict)
    pending: dict[DeliverySource, Acknowledgements] = field(default_factory=dict)
    """Acknowledgements that travel with the next ShareFetch."""
    calls: list[AcknowledgeCall] = field(default_factory=list)
    renewing: dict[DeliverySource, dict[int, ConsumerRecord]] = field(default_factory=dict)
    """Records whose renewal has no response yet."""
    renewed: dict[DeliverySource, dict[int, ConsumerRecord]] = field(default_factory=dict)
    """Records with a new lock: the next poll returns them again."""
    completed: deque[Completed] = field(default_factory=deque)
    error: KafkaError | None = None
    """Raised from the next poll."""
    lock_timeout_ms: Millis | None = None
    """How long records stay acquired, as the last response says."""


def named(partition: TopicIdPartition) -> TopicPartition:
    """A partition without its topic's id."""
    return TopicPartition(partition.topic, partition.partition)


def share_of(state: ConsumerState) -> ShareConsumerState:
    """The part of a share consumer."""
    assert state.share is not None, "this is no share consumer"
    return state.share
