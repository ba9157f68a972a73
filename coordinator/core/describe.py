"""Views for people, made of the node's own objects."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rejoin.coordinator.core.groups.classic.state import GroupState
from rejoin.coordinator.core.groups.group_shards import GroupShards
from rejoin.coordinator.core.groups.kinds import KINDS
from rejoin.coordinator.core.inputs import Millis
from rejoin.coordinator.core.offsets.store import GroupOffsets
from rejoin.coordinator.core.partitions.partitions import Partitions
from rejoin.coordinator.core.runtime.shards import ClusterMetadata
from rejoin.coordinator.core.runtime.timers import TimerKey
from rejoin.coordinator.core.topics.topics import Topics
from rejoin.coordinator.core.views import (
    NodeView,
    OffsetView,
    PartitionView,
    RecordRunView,
    ShareStateView,
    TimerView,
)

if TYPE_CHECKING:
    from rejoin.coordinator.core.share.led_partitions import LedSharePartition


def of_node(node_id: int, cluster: ClusterMetadata, shards: GroupShards) -> NodeView:
    """The node in short. Costs O(groups and members)."""
    groups = shards.groups()
    by_state: dict[str, int] = dict.fromkeys((state.value for state in GroupState), 0)
    by_type = dict.fromkeys(KINDS, 0)
    for group in groups:
        by_state[group.state] = by_state.get(group.state, 0) + 1
        by_type[group.kind] += 1
    return NodeView(
        node_id=node_id,
        partitions=[
            PartitionView(
                topic=shard.partition.topic,
                partition=shard.partition.partition,
                epoch=shard.epoch,
                state=shard.state,
                groups=shard.machine.size(),
                offsets=shard.machine.offsets.count(),
                pending_appends=len(shard.in_flight),
            )
            for _, shard in sorted(shards.by_partition.items())
        ],
        groups_by_state=by_state,
        groups_by_type=by_type,
        groups=len(groups),
        members=sum(group.member_count for group in groups),
        offsets=sum(machine.offsets.count() for machine in shards.machines()),
        parked_joins=sum(len(group.parked_joins) for group in groups),
        parked_syncs=sum(len(group.parked_syncs) for group in groups),
        brokers=list(cluster.brokers),
    )


def of_timer(key: TimerKey, at: Millis) -> TimerView:
    """A timer, named."""
    return TimerView(key.kind.name.lower(), key.owner.partition, key.scope, key.name, at)


def of_offsets(offsets: GroupOffsets, topics: Topics, partitions: Partitions, now: Millis) -> list[OffsetView]:
    """Committed offsets with their lag, by topic and partition; pending ones of open transactions are marked."""
    views = []
    for partition, value in sorted(offsets.stored.items()):
        topic, index = partition
        end = topics.end_offset(topic, index, now) if topics.has_partition(topic, index) else None
        lag = None if end is None else end - value.offset
        written_at = (
            _written_at(topic, index, value.offset, topics, partitions) if lag is not None and lag > 0 else None
        )
        views.append(
            OffsetView(
                topic=topic,
                partition=index,
                offset=value.offset,
                leader_epoch=value.leader_epoch,
                metadata=value.metadata,
                committed_at=value.commit_timestamp,
                log_end_offset=end,
                lag=lag,
                lag_ms=0 if lag == 0 else None if written_at is None else max(0, now - written_at),
                transactional_pending=offsets.is_pending(partition),
            )
        )
    return views


def of_share_partition(led: LedSharePartition, now: Millis) -> ShareStateView:
    """A share-partition, with what is left of each lock. Costs O(records in flight)."""
    view = led.machine.view(now)
    return ShareStateView(
        group_id=led.group_id,
        topic=led.partition.topic,
        partition=led.partition.partition,
        state=view.state,
        start_offset=view.start_offset,
        end_offset=view.end_offset,
        state_epoch=view.state_epoch,
        leader_epoch=view.leader_epoch,
        delivery_complete_count=view.delivery_complete_count,
        records=[
            RecordRunView(
                first_offset=run.first_offset,
                last_offset=run.last_offset,
                state=run.state.name,
                delivery_count=run.delivery_count,
                member_id=run.member_id or None,
                lock_ms=run.lock_ms,
            )
            for batch in view.batches
            for run in batch.runs
        ],
    )


def _written_at(topic: str, partition: int, offset: int, topics: Topics, partitions: Partitions) -> Millis | None:
    """When the record at an offset was written: its batch, where the log has batches."""
    found = topics.by_name[topic]
    if found.is_real:
        return partitions.written_at(topic, partition, offset)
    return found.partitions[partition].timestamp_of(offset, found.rate)
