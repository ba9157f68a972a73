"""Which shards this node has, which partition a key belongs to, and the cluster around the node."""

from __future__ import annotations

from typing import Final, Generic

from rejoin.coordinator.core.inputs import Broker, PartitionRegistration, Registrations
from rejoin.coordinator.core.runtime.shard import LogObserver, M, MakeMachine, Shard, ShardState
from rejoin.coordinator.core.runtime.timers import TimerKey
from rejoin.coordinator.core.step_context import StepContext
from rejoin.protocol.java import LONGEST_CACHED
from rejoin.protocol.partitioner import partition_for
from rejoin.protocol.types import LogPartition, TopicPartition

CLUSTER_ID: Final = "rejoin-emulated-kafka0"
_MOST_FOUND: Final = 4_096


class ClusterMetadata:
    """The live nodes, and which of them leads each partition, as far as this node knows."""

    def __init__(self) -> None:
        self.brokers: tuple[Broker, ...] = ()
        self.leaders: dict[TopicPartition, int] = {}
        self.registrations: Registrations | None = None
        """All partitions, where a controller decides on each of them."""

    @property
    def is_known(self) -> bool:
        """Whether the coordinator has started: it knows the cluster that it is a part of."""
        return bool(self.brokers)

    @property
    def is_one_broker(self) -> bool:
        """Whether no other node can have a copy of a log: an append that has ended is committed."""
        return len(self.brokers) <= 1

    def registration(self, partition: LogPartition) -> PartitionRegistration | None:
        """A partition as the controller knows it; none without a controller, or if the partition is unknown."""
        return None if self.registrations is None else self.registrations.get(partition)

    def leader_of(self, partition: TopicPartition) -> Broker | None:
        """The live node that leads a partition, or none."""
        return self.broker(self.leaders.get(partition))

    def broker(self, node_id: int | None) -> Broker | None:
        """A live node by its id."""
        for broker in self.brokers:
            if broker.node_id == node_id:
                return broker
        return None


class Shards(Generic[M]):
    """The shards of this node for one coordinator topic, each with a state machine of the same kind."""

    def __init__(self, ctx: StepContext, topic: str, partitions: int, make: MakeMachine[M]) -> None:
        self._ctx = ctx
        self._make = make
        self._partitions = tuple(TopicPartition(topic, index) for index in range(partitions))
        self.by_partition: dict[TopicPartition, Shard[M]] = {}
        self._found: dict[str, Shard[M]] = {}
        """Cached lookups of keys, cleared when a shard comes or goes."""
        self.observer: LogObserver | None = None
        """Observer of the logs of all shards that start from now on."""

    # --- looking up

    def partition_of(self, key: str) -> TopicPartition:
        """The partition that a key belongs to: a group id, say."""
        return self._partitions[partition_for(key, len(self._partitions))]

    def shard_of(self, key: str) -> Shard[M] | None:
        """The shard of a key, if this node leads it."""
        return self._found.get(key) or self._find(key)

    def _find(self, key: str) -> Shard[M] | None:
        shard = self.by_partition.get(self._partitions[partition_for(key, len(self._partitions))])
        if shard is not None and len(key) <= LONGEST_CACHED:
            if len(self._found) >= _MOST_FOUND:
                self._found.clear()
            self._found[key] = shard
        return shard

    def machines(self) -> list[M]:
        """Every state machine, loaded or not, by partition."""
        return [shard.machine for _, shard in sorted(self.by_partition.items())]

    def active(self) -> list[M]:
        """The state machines that are loaded, by partition."""
        return [shard.machine for _, shard in sorted(self.by_partition.items()) if shard.state is ShardState.ACTIVE]

    @property
    def is_loading(self) -> bool:
        """Whether any shard is still reading its log."""
        return any(shard.state is ShardState.LOADING for shard in self.by_partition.values())

    @property
    def is_writing(self) -> bool:
        """Whether any append is in flight."""
        return any(shard.is_writing for shard in self.by_partition.values())

    # --- leading and resigning

    def elect(self, partition: TopicPartition, epoch: int) -> None:
        """Lead a partition; a shard of an older epoch resigns first."""
        before = self.by_partition.get(partition)
        if before is not None:
            if before.epoch >= epoch:
                return
            self.resign(partition)
        self._start(Shard(self._ctx, partition, epoch, self._make))

    def resign(self, partition: TopicPartition) -> None:
        """Lead a partition no longer."""
        shard = self.by_partition.pop(partition, None)
        self._found.clear()
        if shard is not None:
            shard.resigned()

    def reload(self, partition: TopicPartition) -> None:
        """Drop a shard's memory, which cannot be trusted any more, and read its log again."""
        before = self.by_partition.get(partition)
        if before is None:
            return
        self.resign(partition)
        shard = Shard(self._ctx, partition, before.epoch, self._make)
        shard.continue_append_ids(before)
        self._start(shard)

    def _start(self, shard: Shard[M]) -> None:
        self.by_partition[shard.partition] = shard
        self._found.clear()
        shard.observer = self.observer
        shard.elected()

    def fire(self, key: TimerKey) -> None:
        """A timer of one of the shards is due."""
        assert isinstance(key.owner, TopicPartition), "data partitions have their own timers"
        self.by_partition[key.owner].timer_fired(key)
