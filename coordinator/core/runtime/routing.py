"""Which offsets partitions this node has, who has the others, and whether a request for a group may be asked here."""

from __future__ import annotations

from rejoin.coordinator.core.groups.classic.group import ClassicGroup
from rejoin.coordinator.core.inputs import Broker, Token
from rejoin.coordinator.core.offsets.store import GroupOffsets
from rejoin.coordinator.core.runtime.shard import Shard, ShardState
from rejoin.coordinator.core.runtime.timers import Key, Kind
from rejoin.coordinator.core.step_context import StepContext
from rejoin.protocol.partitioner import partition_for
from rejoin.protocol.records.consumer_offsets import offsets_partition
from rejoin.protocol.types import TopicPartition


class Shards:
    """The shards of this node, by offsets partition, and the cluster around it."""

    def __init__(self, ctx: StepContext) -> None:
        self._ctx = ctx
        count = ctx.settings.offsets_topic_num_partitions
        self._partitions = tuple(offsets_partition(index) for index in range(count))
        self.by_partition: dict[TopicPartition, Shard] = {}
        self.brokers: tuple[Broker, ...] = ()
        self.leaders: dict[TopicPartition, int] = {}

    @property
    def is_active(self) -> bool:
        """Whether the coordinator has started: it knows the cluster that it is a part of."""
        return bool(self.brokers)

    @property
    def is_loading(self) -> bool:
        """Whether any shard is still being read from its log."""
        return any(shard.state is ShardState.LOADING for shard in self.by_partition.values())

    def partition_of(self, key: str) -> TopicPartition:
        """The offsets partition of a group id, or of a transactional id."""
        return self._partitions[partition_for(key, len(self._partitions))]

    def coordinator_of(self, key: str) -> Broker | None:
        """The live node that coordinates a key, or none."""
        leader = self.leaders.get(self.partition_of(key))
        return next((broker for broker in self.brokers if broker.node_id == leader), None)

    def active(self) -> list[Shard]:
        """The shards that are loaded, by partition."""
        return [shard for _, shard in sorted(self.by_partition.items()) if shard.state is ShardState.ACTIVE]

    def shard_of(self, group_id: str) -> Shard | None:
        """The shard that a group belongs to, if this node has it."""
        return self.by_partition.get(self.partition_of(group_id))

    def group(self, group_id: str) -> ClassicGroup | None:
        """A group of this node."""
        shard = self.shard_of(group_id)
        return None if shard is None else shard.groups.get(group_id)

    def offsets(self, group_id: str) -> GroupOffsets | None:
        """The offsets of a group of this node."""
        shard = self.shard_of(group_id)
        return None if shard is None else shard.offsets.get(group_id)

    @property
    def is_writing(self) -> bool:
        """Whether any append is under way."""
        return any(shard.in_flight for shard in self.by_partition.values())

    def waiting(self) -> list[Token]:
        """Every token that is parked with a member."""
        members = [m for shard in self.by_partition.values() for g in shard.groups.values() for m in g.members.values()]
        joins = [member.parked_join.token for member in members if member.parked_join is not None]
        return joins + [member.parked_sync for member in members if member.parked_sync is not None]

    # --- coming and going

    def elect(self, partition: TopicPartition, epoch: int) -> None:
        """Lead an offsets partition; a shard of an older epoch is given up first."""
        before = self.by_partition.get(partition)
        if before is not None:
            if before.epoch >= epoch:
                return
            self.resign(partition)
        shard = Shard(self._ctx, partition, epoch)
        self.by_partition[partition] = shard
        shard.elected()

    def resign(self, partition: TopicPartition) -> None:
        shard = self.by_partition.pop(partition, None)
        if shard is not None:
            shard.resigned()

    def reload(self, shard: Shard) -> None:
        """Throw a shard's memory away and read its log again: what is in memory cannot be trusted any more."""
        self.resign(shard.partition)
        anew = Shard(self._ctx, shard.partition, shard.epoch)
        anew.continue_append_ids(shard)
        self.by_partition[shard.partition] = anew
        anew.elected()

    def lose_session(self, group_id: str, member_id: str) -> None:
        """Fire a member's session timer now. Parked requests stand in for heartbeats here as ever."""
        partition = self.partition_of(group_id)
        key = (Kind.SESSION, partition, group_id, member_id)
        self._ctx.deadlines.cancel(key)
        self.fire(key)

    def fire(self, key: Key) -> None:
        """Something is due."""
        kind, partition, group_id, member_id = key
        shard = self.by_partition[partition]
        if kind is Kind.APPEND:
            shard.append_timer_fired()
        elif kind is Kind.EXPIRY:
            shard.expiry_timer_fired()
        else:
            group = shard.groups.get(group_id)
            if group is None:
                return
            if kind is Kind.SESSION:
                shard.rebalancer.session_expired(group, member_id)
            elif kind is Kind.JOIN:
                shard.rebalancer.join_timer_fired(group)
            else:
                shard.rebalancer.sync_timer_fired(group)
