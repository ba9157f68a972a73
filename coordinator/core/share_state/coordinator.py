"""Which node coordinates a share-partition's state, and what this node has of ``__share_group_state``.

Kafka: ShareCoordinatorService.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from rejoin.coordinator.core.partitions.partition import Partition
from rejoin.coordinator.core.partitions.partitions import Partitions
from rejoin.coordinator.core.runtime.shards import ClusterMetadata
from rejoin.coordinator.core.runtime.timers import TimerKey
from rejoin.coordinator.core.share_state.shard import ShareStateShard
from rejoin.coordinator.core.state_topics.state_topic import InternalTopic, StateTopic
from rejoin.coordinator.core.step_context import StepContext
from rejoin.coordinator.core.topics.changes import TopicChanges
from rejoin.coordinator.core.topics.placement import Placement
from rejoin.coordinator.core.topics.topics import Topics
from rejoin.protocol.records.share_partitions import (
    SHARE_GROUP_STATE_TOPIC,
    SHARE_GROUP_STATE_TOPIC_ID,
    SharePartitionKey,
)
from rejoin.protocol.types import TopicIdPartition

SHARE_GROUP_STATE_CONFIGS: Final = {
    "cleanup.policy": "delete",
    "compression.type": "producer",
    "retention.bytes": "-1",
    "retention.ms": "-1",
}


class ShareCoordinator(StateTopic[ShareStateShard]):
    """The partitions of the share coordinator's topic: who leads them, and the shards of those that are led here."""

    def __init__(
        self,
        ctx: StepContext,
        cluster: ClusterMetadata,
        topics: Topics,
        changes: TopicChanges,
        partitions: Partitions,
        placement: Callable[[], Placement],
    ) -> None:
        topic = InternalTopic(
            SHARE_GROUP_STATE_TOPIC,
            SHARE_GROUP_STATE_TOPIC_ID,
            ctx.settings.share_coordinator_state_topic_num_partitions,
            {
                **SHARE_GROUP_STATE_CONFIGS,
                "segment.bytes": str(ctx.settings.share_coordinator_state_topic_segment_bytes),
            },
        )
        super().__init__(ctx, cluster, topics, changes, partitions, placement, topic, self._shard)
        self._step = ctx
        self._names = topics

    def _shard(self, partition: Partition) -> ShareStateShard:
        return ShareStateShard(self._step, partition, self._is_known)

    def _is_known(self, key: SharePartitionKey) -> bool:
        name = self._names.named(key.topic_id)
        return name is not None and self._names.has_partition(name, key.partition)

    def topics_changed(self) -> None:
        """Topics may be gone."""
        for shard in self.shards.values():
            if len(shard.states):
                shard.topics_deleted(lambda topic_id: self._names.named(topic_id) is None)

    def fire(self, timer: TimerKey) -> None:
        """A timer of one of the shards is due."""
        shard = self.shards.get(timer.owner) if isinstance(timer.owner, TopicIdPartition) else None
        if shard is not None:
            shard.timer_fired()
