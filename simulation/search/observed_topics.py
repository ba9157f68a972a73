"""Topics that were deleted in a run, and the offsets partitions whose leaders have forgotten them since."""

from __future__ import annotations

from dataclasses import dataclass, field

from rejoin.protocol.messages.topics.delete_topics import DeleteTopicsRequest
from rejoin.protocol.types import TopicPartition
from rejoin.simulation.actors.node import NodeActor


@dataclass
class ObservedTopics:
    """Deleted topics by offsets partition. Only a leader that serves when a topic is deleted deletes its offsets.

    Kafka: offsets stay until they expire where no coordinator is active just then, or where its append fails.
    """

    _begun: dict[TopicPartition, tuple[int, frozenset[str]]] = field(default_factory=dict)
    """Deletions whose tombstones may be in flight, with the leader's epoch."""
    _over: dict[TopicPartition, frozenset[str]] = field(default_factory=dict)

    def deleted(self, node: NodeActor, group_ids: list[str], request: DeleteTopicsRequest) -> None:
        """Observe that a node got a request to delete topics."""
        names = frozenset(each.name for each in request.topics if each.name is not None)
        for group_id in group_ids:
            shard = node.shard(group_id)
            if shard is not None and shard.is_active:
                before = self._begun.get(shard.partition, (shard.epoch, frozenset[str]()))
                kept = before[1] if before[0] == shard.epoch else frozenset[str]()
                self._begun[shard.partition] = (shard.epoch, kept | names)

    def append_failed(self, partition: TopicPartition) -> None:
        """Observe that an append failed, which may be that of tombstones."""
        self._begun.pop(partition, None)

    def forgotten(self, partition: TopicPartition, epoch: int) -> frozenset[str]:
        """Topics that must have no offsets in a partition, where its leader of this epoch has no appends in flight."""
        if partition in self._begun:
            began, names = self._begun.pop(partition)
            if began == epoch:
                self._over[partition] = self._over.get(partition, frozenset()) | names
        return self._over.get(partition, frozenset())

    def __bool__(self) -> bool:
        return bool(self._begun or self._over)
