"""All that a producer remembers between two steps: one struct of plain data.

The modules beside this one are functions of it. What never changes is in the
:class:`~rejoin.client.core.producer.context.ProducerContext`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Final, NamedTuple, TypeAlias

from rejoin.client.core.effects import Endpoint
from rejoin.client.core.errors import KafkaError
from rejoin.client.core.inputs import GroupMetadata, Millis, OffsetAndMetadata, Token
from rejoin.client.core.producer.inputs import Produced, TransactionCall
from rejoin.protocol.types import TopicPartition
from rejoin.protocol.wire.record_batch import NO_PRODUCER_EPOCH, NO_PRODUCER_ID, NO_SEQUENCE, increment_sequence
from rejoin.protocol.wire.record_encoder import BatchBuilder

# -- batches


class ProducerIdAndEpoch(NamedTuple):
    """Who writes, as the broker knows it."""

    producer_id: int
    epoch: int


NO_PRODUCER: Final = ProducerIdAndEpoch(NO_PRODUCER_ID, NO_PRODUCER_EPOCH)


@dataclass(slots=True, eq=False)
class ProducerBatch:
    """Records of one partition that travel together.

    It takes records while it has a ``builder`` and is not full. From its first request on it is ``data``.
    """

    queue: PartitionQueue
    created_at: Millis
    builder: BatchBuilder | None
    limit: int
    """Most bytes of records, not compressed."""
    reserved: int
    """The bytes of ``buffer.memory`` that it holds."""
    tokens: list[Token] = field(default_factory=list)
    timestamps: list[Millis] = field(default_factory=list)
    is_full: bool = False
    data: bytes = b""
    producer: ProducerIdAndEpoch = NO_PRODUCER
    base_sequence: int = NO_SEQUENCE
    sequence_was_reset: bool = False
    """True from a rewrite of its sequence until it is sent again."""
    attempts: int = 0
    retry_at: Millis = 0
    is_sent: bool = False
    """True while a request with it has no answer."""
    is_done: bool = False
    leader_epoch: int = -1
    attempts_at_new_leader: int = 0
    """How many attempts had failed when the last new leader was seen."""

    @property
    def partition(self) -> TopicPartition:
        return self.queue.partition

    @property
    def count(self) -> int:
        return len(self.tokens)

    @property
    def last_sequence(self) -> int:
        return increment_sequence(self.base_sequence, len(self.tokens) - 1)

    @property
    def has_sequence(self) -> bool:
        return self.base_sequence != NO_SEQUENCE

    def saw_leader(self, epoch: int) -> None:
        """The partition is led in this epoch."""
        if epoch > self.leader_epoch:
            self.leader_epoch = epoch
            self.attempts_at_new_leader = self.attempts

    @property
    def has_new_leader(self) -> bool:
        """True when the partition has another leader since the last attempt failed: there is no reason to wait."""
        # Kafka: hasLeaderChangedForTheOngoingRetry (KIP-951).
        return self.attempts > 0 and self.attempts == self.attempts_at_new_leader


@dataclass(slots=True, eq=False)
class PartitionQueue:
    """The batches of one partition, and where its sequences stand.

    ``in_flight`` has, in order, the batches that were sent and are not done; with idempotence they stay there while
    they wait to be sent again, so that none overtakes another.
    """

    partition: TopicPartition
    batches: deque[ProducerBatch] = field(default_factory=deque)
    in_flight: list[ProducerBatch] = field(default_factory=list)
    producer: ProducerIdAndEpoch = NO_PRODUCER
    next_sequence: int = 0
    last_acked_sequence: int = NO_SEQUENCE
    last_acked_offset: int = -1
    unresolved_sequence: int | None = None
    """The sequence behind a batch of which it is unknown whether the broker has it."""

    def is_next(self, sequence: int) -> bool:
        """Whether a sequence follows the last one that was acknowledged."""
        last = self.last_acked_sequence
        return sequence == (0 if last == NO_SEQUENCE else increment_sequence(last, 1))


# -- topics


class KnownLeader(NamedTuple):
    """Who leads a partition, if that is known, and since which epoch."""

    endpoint: Endpoint | None
    epoch: int


@dataclass(slots=True, eq=False)
class TopicState:
    """A topic that records are sent to: its partitions, as far as they are known, and their queues."""

    name: str
    used_at: Millis
    leaders: list[KnownLeader] = field(default_factory=list)
    queues: dict[int, PartitionQueue] = field(default_factory=dict)
    error: KafkaError | None = None
    """Why it cannot be used; given to the records that wait."""
    sticky_partition: int = -1
    sticky_bytes: int = 0
    """Bytes given to the sticky partition since it was chosen."""
    compression_ratio: float = 1.0


@dataclass(slots=True)
class ProducerMetadata:
    """When topics were looked up, and when that is due again. At most one request is in flight."""

    update_requested: bool = False
    refreshed_at: Millis | None = None
    attempts: int = 0
    retry_at: Millis = 0
    request_id: int | None = None
    version: int = 0
    problem: str = ""
    """Why the last request has no answer."""


# -- requests


class ProduceSent(NamedTuple):
    """A Produce request that waits for its answer."""

    node_id: int
    batches: tuple[ProducerBatch, ...]


class MetadataSent(NamedTuple):
    """A Metadata request that waits for its answer."""

    topics: frozenset[str]


class InitProducerIdSent(NamedTuple):
    """An InitProducerId request that waits for its answer."""


class TransactionRequestSent(NamedTuple):
    """A request about a transaction that waits for its answer, and its name in the table of reactions."""

    name: str
    version: int = -1
    key: str = ""
    key_type: int = -1
    """Version, key and its type of a FindCoordinator, whose answer depends on them."""


SentRequest: TypeAlias = ProduceSent | MetadataSent | InitProducerIdSent | TransactionRequestSent


@dataclass(slots=True)
class ProducerNode:
    """A node and its Produce requests without an answer."""

    in_flight: int = 0
    throttled_until: Millis = 0


@dataclass(slots=True)
class Idempotence:
    """The producer id, and what is to be done about it."""

    producer: ProducerIdAndEpoch = NO_PRODUCER
    request_id: int | None = None
    attempts: int = 0
    retry_at: Millis = 0
    bump_required: bool = False
    to_rewrite: dict[PartitionQueue, None] = field(default_factory=dict)
    """The partitions whose sequences start again with the next epoch."""
    unresolved: dict[PartitionQueue, None] = field(default_factory=dict)
    """The partitions with an ``unresolved_sequence``."""


# -- transactions


class TransactionStatus(Enum):
    """Where a transactional producer stands, by the names that Java gives it."""

    UNINITIALIZED = "UNINITIALIZED"
    INITIALIZING = "INITIALIZING"
    READY = "READY"
    IN_TRANSACTION = "IN_TRANSACTION"
    COMMITTING = "COMMITTING_TRANSACTION"
    ABORTING = "ABORTING_TRANSACTION"
    ABORTABLE_ERROR = "ABORTABLE_ERROR"
    FATAL_ERROR = "FATAL_ERROR"


class WaitingCall(NamedTuple):
    """A caller that waits for the end of a transition, or for its offsets."""

    token: Token
    call: TransactionCall
    expires_at: Millis


class OffsetsToSend(NamedTuple):
    """Offsets to commit with a transaction."""

    offsets: Mapping[TopicPartition, OffsetAndMetadata]
    group: GroupMetadata


@dataclass(slots=True)
class Transaction:
    """The transactions of a producer. At most one request about them is in flight."""

    status: TransactionStatus = TransactionStatus.UNINITIALIZED
    bumps_epochs: bool = True
    """True with transaction.version 2: Produce adds partitions, and each end raises the epoch (KIP-890)."""
    knows_features: bool = False
    coordinator: Endpoint | None = None
    group_coordinator: Endpoint | None = None
    coordinated_group: str = ""
    """The group whose coordinator that is."""
    partitions: set[TopicPartition] = field(default_factory=set)
    """The partitions that were added; with transaction.version 2 nothing has to be."""
    adding: frozenset[TopicPartition] = frozenset()
    groups: set[str] = field(default_factory=set)
    offsets: OffsetsToSend | None = None
    is_started: bool = False
    """Whether the coordinator may know of this transaction, so that it needs an end."""
    needs_new_epoch: bool = False
    error: KafkaError | None = None
    """Why this transaction can only be aborted."""
    call: WaitingCall | None = None
    unseen: TransactionCall | None = None
    """A call that ended after its caller had given up: the same call again is done."""
    request_id: int | None = None
    attempts: int = 0
    retry_at: Millis = 0


# -- calls


class Parked(NamedTuple):
    """A record that waits for metadata or for memory."""

    produced: Produced
    expires_at: Millis


@dataclass(slots=True)
class Flush:
    """A call of flush and the batches that it waits for."""

    token: Token
    waiting: dict[ProducerBatch, None]


@dataclass(slots=True)
class Close:
    """A call of close."""

    token: Token
    until: Millis | None


@dataclass(slots=True)
class ProducerCoreState:
    """One producer."""

    topics: dict[str, TopicState] = field(default_factory=dict)
    active: dict[PartitionQueue, None] = field(default_factory=dict)
    """The queues with batches, in the order in which they are looked at next."""
    incomplete: dict[ProducerBatch, None] = field(default_factory=dict)
    """All batches that are not done, by their time of creation."""
    memory_used: int = 0
    parked: deque[Parked] = field(default_factory=deque)
    waits_for_memory: bool = False
    metadata: ProducerMetadata = field(default_factory=ProducerMetadata)
    idempotence: Idempotence = field(default_factory=Idempotence)
    transaction: Transaction | None = None
    """None without a transactional id."""
    fatal_error: KafkaError | None = None
    nodes: dict[int, ProducerNode] = field(default_factory=dict)
    requests: dict[int, SentRequest] = field(default_factory=dict)
    last_request_id: int = 0
    flushes: list[Flush] = field(default_factory=list)
    close: Close | None = None
    is_closed: bool = False

    def node(self, node_id: int) -> ProducerNode:
        """The state of a node."""
        node = self.nodes.get(node_id)
        if node is None:
            node = self.nodes[node_id] = ProducerNode()
        return node
