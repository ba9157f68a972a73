"""Which node coordinates a transactional id, and what this node has of its partition of ``__transaction_state``.

Kafka: TransactionStateManager, AutoTopicCreationManager.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Final, TypeAlias

from rejoin.coordinator.core.inputs import Broker, TopicsRecords
from rejoin.coordinator.core.partitions.partitions import Partitions
from rejoin.coordinator.core.runtime.shards import ClusterMetadata
from rejoin.coordinator.core.runtime.timers import TimerKey
from rejoin.coordinator.core.step_context import StepContext
from rejoin.coordinator.core.topics.changes import TopicChange, TopicChanges
from rejoin.coordinator.core.topics.placement import Placement
from rejoin.coordinator.core.topics.topics import Topics
from rejoin.coordinator.core.transactions.markers import TransactionMarkers
from rejoin.coordinator.core.transactions.producer_ids import ProducerIds
from rejoin.coordinator.core.transactions.producers import TxnProducer
from rejoin.coordinator.core.transactions.shard import OnComplete, TransactionsShard
from rejoin.coordinator.core.transactions.timers import TransactionTimer
from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.partitioner import partition_for
from rejoin.protocol.records.transaction_state import TRANSACTION_STATE_TOPIC, TRANSACTION_STATE_TOPIC_ID
from rejoin.protocol.types import LogPartition, TopicIdPartition, TopicPartition

TRANSACTION_STATE_CONFIGS: Final = {"cleanup.policy": "compact", "compression.type": "uncompressed"}

Retry: TypeAlias = Callable[[], None]
"""Handles a request again."""

Verified: TypeAlias = dict[TopicPartition, ErrorCode]
"""The coordinator's error for each partition."""


class TransactionCoordinator:
    """The partitions of the transaction log: who leads them, and the shards of those that are led here."""

    def __init__(
        self,
        ctx: StepContext,
        cluster: ClusterMetadata,
        topics: Topics,
        changes: TopicChanges,
        partitions: Partitions,
        ids: ProducerIds,
        markers: TransactionMarkers,
        placement: Callable[[], Placement],
    ) -> None:
        self._ctx = ctx
        self._cluster = cluster
        self._topics = topics
        self._changes = changes
        self._partitions = partitions
        self._ids = ids
        self._markers = markers
        self._placement = placement
        self._waiting: list[tuple[str, Retry]] = []
        """Requests that came before there was a transaction log, each with its transactional id."""
        self._has_failed = False
        self.shards: dict[TopicIdPartition, TransactionsShard] = {}
        self.on_complete: OnComplete = lambda transactional_id: None

    # --- looking up

    def _partition_of(self, transactional_id: str) -> TopicIdPartition | None:
        count = self._topics.partition_count(TRANSACTION_STATE_TOPIC)
        if not count:
            return None
        return self._partitions.identify(TRANSACTION_STATE_TOPIC, partition_for(transactional_id, count))

    def leader_of(self, transactional_id: str) -> Broker | None:
        """The node that coordinates a transactional id, or none."""
        partition = self._partition_of(transactional_id)
        return None if partition is None else self._partitions.leader_of(partition)[0]

    def find(self, transactional_id: str) -> TransactionsShard | ErrorCode:
        """The shard of a transactional id, or why this node cannot answer for it."""
        if not self._cluster.is_known:
            return ErrorCode.COORDINATOR_NOT_AVAILABLE
        partition = self._partition_of(transactional_id)
        if partition is None or partition not in self._partitions.led:
            return ErrorCode.NOT_COORDINATOR
        return self.shards.get(partition, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)

    # --- transactions

    def verify(
        self,
        transactional_id: str,
        producer: TxnProducer,
        partitions: list[TopicPartition],
        *,
        adds: bool,
        on_verified: Callable[[Verified], None],
    ) -> None:
        """Verify that partitions are in a transaction that this node coordinates; with ``adds`` they become so."""
        shard = self.find(transactional_id)
        if not transactional_id:
            shard = ErrorCode.INVALID_REQUEST
        if isinstance(shard, ErrorCode):
            on_verified(dict.fromkeys(partitions, shard))
        elif adds:
            on_end = partial(_verified_all, partitions, on_verified)
            shard.add_partitions(transactional_id, producer, partitions, on_end, by_broker=True)
        else:
            on_verified(shard.verify_partitions(transactional_id, producer, partitions))

    @property
    def is_loading(self) -> bool:
        """Whether a partition of the log is still being read."""
        count = self._topics.partition_count(TRANSACTION_STATE_TOPIC)
        partitions = (self._partitions.identify(TRANSACTION_STATE_TOPIC, index) for index in range(count))
        return any(each in self._partitions.led and each not in self.shards for each in partitions)

    # --- the log itself

    def when_ready(self, transactional_id: str, retry: Retry) -> bool:
        """Whether there is a transaction log. If not it is made, and the request is handled again when it is read."""
        # Differs: Kafka's clients look for a coordinator first, get COORDINATOR_NOT_AVAILABLE, and ask again.
        is_there = TRANSACTION_STATE_TOPIC in self._topics.by_name
        if is_there or self._has_failed or not self._cluster.is_known:
            return True
        self._waiting.append((transactional_id, retry))
        if len(self._waiting) == 1:
            self._changes.make(_LogCreation(self, self._topics, self._ctx, self._placement))
        return False

    def created(self, error: ErrorCode) -> None:
        """The log exists, and the partitions led here are being read; or it could not be created."""
        self._has_failed = error is not ErrorCode.NONE
        self._go_on()
        self._has_failed = False

    def _go_on(self) -> None:
        waiting, self._waiting = self._waiting, []
        for transactional_id, retry in waiting:
            if self.find(transactional_id) is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
                self._waiting.append((transactional_id, retry))
            else:
                retry()

    def on_progress(self, partition: LogPartition) -> None:
        """A data partition has changed: one of the log may have been read, or is not led here any more."""
        if not isinstance(partition, TopicIdPartition) or partition.topic_id != TRANSACTION_STATE_TOPIC_ID:
            return
        led = self._partitions.get(partition)
        shard = self.shards.get(partition)
        if shard is not None and (led is None or shard.coordinator_epoch != led.epoch):
            del self.shards[partition]
            shard.resigned()
            shard = None
        if led is not None and shard is None:
            shard = self.shards[partition] = TransactionsShard(
                self._ctx, led, self._ids, self._markers, self.on_complete
            )
            shard.load()
        if self._waiting:
            self._go_on()

    def fire(self, key: TimerKey) -> None:
        """A timer of the coordinator is due."""
        if key.kind is TransactionTimer.MARKERS:
            self._markers.timer_fired(key)
        elif isinstance(key.owner, TopicIdPartition) and key.owner in self.shards:
            self.shards[key.owner].cleanup.timer_fired(key)


def _verified_all(partitions: list[TopicPartition], on_verified: Callable[[Verified], None], error: ErrorCode) -> None:
    """Report one error for all partitions of a transaction."""
    on_verified(dict.fromkeys(partitions, error))


class _LogCreation(TopicChange):
    """``__transaction_state`` is made by its first use."""

    def __init__(
        self,
        coordinator: TransactionCoordinator,
        topics: Topics,
        ctx: StepContext,
        placement: Callable[[], Placement],
    ) -> None:
        self._coordinator = coordinator
        self._topics = topics
        self._ctx = ctx
        self._placement = placement

    def decide(self) -> TopicsRecords:
        if TRANSACTION_STATE_TOPIC in self._topics.by_name:
            return ()
        return self._topics.internal(
            TRANSACTION_STATE_TOPIC,
            TRANSACTION_STATE_TOPIC_ID,
            self._ctx.settings.transaction_state_log_num_partitions,
            TRANSACTION_STATE_CONFIGS,
            self._placement(),
            self._ctx.now,
        )

    def ended(self, error: ErrorCode) -> None:
        self._coordinator.created(error)
