"""Who leads the partitions of a topic: the one source for Metadata and DescribeTopicPartitions.

There is one replica of each partition: its leader.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from rejoin.coordinator.core.groups.group_shards import GroupShards
from rejoin.coordinator.core.inputs import Broker
from rejoin.coordinator.core.partitions.partitions import Partitions
from rejoin.coordinator.core.runtime.shards import ClusterMetadata
from rejoin.coordinator.core.topics.topics import Topics
from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.records.consumer_offsets import OFFSETS_TOPIC, offsets_partition
from rejoin.protocol.types import TopicIdPartition

NO_NODE: Final = -1
UNKNOWN_LEADER_EPOCH: Final = -1
SYNTHETIC_LEADER_EPOCH: Final = 0


class PartitionLeader(NamedTuple):
    """The leader of a partition, or -1, and its leader epoch, or -1 where only that node knows it."""

    node_id: int
    leader_epoch: int

    @property
    def error(self) -> ErrorCode:
        return ErrorCode.LEADER_NOT_AVAILABLE if self.node_id == NO_NODE else ErrorCode.NONE

    @property
    def replicas(self) -> tuple[int, ...]:
        return () if self.node_id == NO_NODE else (self.node_id,)


class Leaders:
    """Finds leaders."""

    def __init__(self, cluster: ClusterMetadata, shards: GroupShards, topics: Topics, partitions: Partitions) -> None:
        self._cluster = cluster
        self._shards = shards
        self._topics = topics
        self._partitions = partitions

    def of(self, topic: str) -> list[PartitionLeader]:
        """The leaders of all partitions of a topic that exists."""
        count = self._topics.partition_count(topic)
        if topic == OFFSETS_TOPIC:
            return [self._of_offsets(index) for index in range(count)]
        found = self._topics.by_name[topic]
        if found.is_real:
            topic_id = found.topic_id
            return [
                _leader(*self._partitions.leader_of(TopicIdPartition(topic_id, index, topic))) for index in range(count)
            ]
        nodes = [broker.node_id for broker in self._cluster.brokers]
        return [
            PartitionLeader(nodes[index % len(nodes)] if nodes else NO_NODE, SYNTHETIC_LEADER_EPOCH)
            for index in range(count)
        ]

    def _of_offsets(self, index: int) -> PartitionLeader:
        partition = offsets_partition(index)
        shard = self._shards.by_partition.get(partition)
        return _leader(self._cluster.leader_of(partition), UNKNOWN_LEADER_EPOCH if shard is None else shard.epoch)


def _leader(broker: Broker | None, leader_epoch: int) -> PartitionLeader:
    return PartitionLeader(NO_NODE if broker is None else broker.node_id, leader_epoch)
