"""Who leads the partitions of a topic: the one source for Metadata and DescribeTopicPartitions.

Where no controller decides on each partition, there is one replica of each: its leader.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from rejoin.coordinator.core.groups.group_shards import GroupShards
from rejoin.coordinator.core.inputs import Broker, PartitionRegistration
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
    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    offline_replicas: tuple[int, ...] = ()

    @property
    def error(self) -> ErrorCode:
        return ErrorCode.LEADER_NOT_AVAILABLE if self.node_id == NO_NODE else ErrorCode.NONE


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
        partitions = [TopicIdPartition(found.topic_id, index, topic) for index in range(count)]
        return [self._of_data(partition, found.is_real) for partition in partitions]

    def _of_data(self, partition: TopicIdPartition, is_real: bool) -> PartitionLeader:
        registration = self._cluster.registration(partition)
        if registration is not None:
            return self._registered(registration)
        if is_real:
            return _leader(*self._partitions.leader_of(partition))
        brokers = self._cluster.brokers
        return _leader(brokers[partition.partition % len(brokers)] if brokers else None, SYNTHETIC_LEADER_EPOCH)

    def _registered(self, registration: PartitionRegistration) -> PartitionLeader:
        live = [broker.node_id for broker in self._cluster.brokers]
        return PartitionLeader(
            registration.leader if registration.leader in live else NO_NODE,
            registration.leader_epoch,
            registration.replicas,
            registration.isr,
            tuple(replica for replica in registration.replicas if replica not in live),
        )

    def _of_offsets(self, index: int) -> PartitionLeader:
        partition = offsets_partition(index)
        registration = self._cluster.registration(partition)
        if registration is not None:
            return self._registered(registration)
        shard = self._shards.by_partition.get(partition)
        return _leader(self._cluster.leader_of(partition), UNKNOWN_LEADER_EPOCH if shard is None else shard.epoch)


def _leader(broker: Broker | None, leader_epoch: int) -> PartitionLeader:
    if broker is None:
        return PartitionLeader(NO_NODE, leader_epoch, (), ())
    return PartitionLeader(broker.node_id, leader_epoch, (broker.node_id,), (broker.node_id,))
