"""Which node coordinates a transactional id, and what this node has of its partition of ``__transaction_state``.

Kafka: TransactionStateManager.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Final, TypeAlias

from rejoin.coordinator.core.partitions.partition import Partition
from rejoin.coordinator.core.partitions.partitions import Partitions
from rejoin.coordinator.core.runtime.shards import ClusterMetadata
from rejoin.coordinator.core.runtime.timers import TimerKey
from rejoin.coordinator.core.state_topics.state_topic import InternalTopic, StateTopic
from rejoin.coordinator.core.step_context import StepContext
from rejoin.coordinator.core.topics.changes import TopicChanges
from rejoin.coordinator.core.topics.placement import Placement
from rejoin.coordinator.core.topics.topics import Topics
from rejoin.coordinator.core.transactions.markers import TransactionMarkers
from rejoin.coordinator.core.transactions.producer_ids import ProducerIds
from rejoin.coordinator.core.transactions.producers import TxnProducer
from rejoin.coordinator.core.transactions.shard import OnComplete, TransactionsShard
from rejoin.coordinator.core.transactions.timers import TransactionTimer
from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.records.transaction_state import TRANSACTION_STATE_TOPIC, TRANSACTION_STATE_TOPIC_ID
from rejoin.protocol.types import TopicIdPartition, TopicPartition

TRANSACTION_STATE_CONFIGS: Final = {"cleanup.policy": "compact", "compression.type": "uncompressed"}

Verified: TypeAlias = dict[TopicPartition, ErrorCode]
"""The coordinator's error for each partition."""


class TransactionCoordinator(StateTopic[TransactionsShard]):
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
        log = InternalTopic(
            TRANSACTION_STATE_TOPIC,
            TRANSACTION_STATE_TOPIC_ID,
            ctx.settings.transaction_state_log_num_partitions,
            TRANSACTION_STATE_CONFIGS,
        )
        super().__init__(ctx, cluster, topics, changes, partitions, placement, log, self._shard)
        self._context = ctx
        self._ids = ids
        self._markers = markers
        self.on_complete: OnComplete = lambda transactional_id: None

    def _shard(self, partition: Partition) -> TransactionsShard:
        return TransactionsShard(self._context, partition, self._ids, self._markers, self.on_complete)

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

    def fire(self, key: TimerKey) -> None:
        """A timer of the coordinator is due."""
        if key.kind is TransactionTimer.MARKERS:
            self._markers.timer_fired(key)
        elif isinstance(key.owner, TopicIdPartition) and key.owner in self.shards:
            self.shards[key.owner].cleanup.timer_fired(key)


def _verified_all(partitions: list[TopicPartition], on_verified: Callable[[Verified], None], error: ErrorCode) -> None:
    """Report one error for all partitions of a transaction."""
    on_verified(dict.fromkeys(partitions, error))
