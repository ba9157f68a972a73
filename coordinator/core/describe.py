"""Views for people, made of the node's own objects."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rejoin.coordinator.core.groups.classic.group import CLASSIC, ClassicGroup
from rejoin.coordinator.core.groups.classic.member import Member
from rejoin.coordinator.core.groups.classic.state import GroupState
from rejoin.coordinator.core.groups.consumer.model.metadata import named_partitions
from rejoin.coordinator.core.groups.consumer.model.state import CONSUMER
from rejoin.coordinator.core.groups.group_shards import GroupShards
from rejoin.coordinator.core.groups.statistics import GroupStatistics, owned_partitions
from rejoin.coordinator.core.inputs import Millis
from rejoin.coordinator.core.offsets.store import GroupOffsets
from rejoin.coordinator.core.partitions.partitions import Partitions
from rejoin.coordinator.core.runtime.shards import ClusterMetadata
from rejoin.coordinator.core.runtime.timers import Deadlines, TimerKey
from rejoin.coordinator.core.topics.topics import Topics
from rejoin.coordinator.core.views import (
    ConsumerGroupView,
    ConsumerMemberView,
    GroupView,
    MemberView,
    NodeView,
    OffsetView,
    PartitionView,
    TimerView,
)
from rejoin.protocol.types import TopicPartition

if TYPE_CHECKING:
    from rejoin.coordinator.core.groups.consumer.groups import ConsumerGroups
    from rejoin.coordinator.core.groups.consumer.model.group import ConsumerGroup
    from rejoin.coordinator.core.groups.consumer.model.member import ConsumerMember


def of_node(node_id: int, cluster: ClusterMetadata, shards: GroupShards) -> NodeView:
    """The node in short. Costs O(groups and members)."""
    groups = shards.groups()
    by_state: dict[str, int] = dict.fromkeys((state.value for state in GroupState), 0)
    by_type = {CLASSIC: 0, CONSUMER: 0}
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


def of_group(group: ClassicGroup, statistics: GroupStatistics, deadlines: Deadlines) -> GroupView:
    """A group, with what Kafka's own admin requests do not show."""
    return GroupView(
        group_id=group.group_id,
        partition=group.partition.partition,
        state=group.state,
        previous_state=group.previous_state,
        state_since=group.state_since,
        generation=group.generation,
        protocol_type=group.protocol_type,
        protocol=group.protocol_name,
        leader=group.leader,
        members=[_of_member(member, group, deadlines) for member in group.ordered_members()],
        pending_members=list(group.pending_join),
        pending_sync=list(group.pending_sync),
        subscribed_topics=None if group.subscribed_topics is None else sorted(group.subscribed_topics),
        new_member_added=group.new_member_added,
        rebalance_cause=statistics.rebalance.cause.cause if statistics.rebalance is not None else None,
        rebalances=statistics.rebalances,
        deadlines=_of_deadlines(group.partition, group.group_id, deadlines),
    )


def _of_deadlines(partition: TopicPartition, group_id: str, deadlines: Deadlines) -> dict[str, Millis]:
    """The timers of a group, named."""
    due = deadlines.of_scope(partition, group_id)
    return {f"{key.kind.name.lower()} {key.name}".rstrip(): at for key, at in due.items()}


def _of_member(member: Member, group: ClassicGroup, deadlines: Deadlines) -> MemberView:
    return MemberView(
        member_id=member.member_id,
        group_instance_id=member.group_instance_id,
        client_id=member.client_id,
        client_host=member.client_host,
        session_timeout_ms=member.session_timeout_ms,
        rebalance_timeout_ms=member.rebalance_timeout_ms,
        protocols=member.protocol_names(),
        topics=member.topics(group.protocol_name) if group.uses_consumer_protocol else None,
        assignment=owned_partitions(member.assignment) if group.uses_consumer_protocol else None,
        is_leader=group.is_leader(member.member_id),
        is_new=member.is_new,
        awaiting_join=member.parked_join is not None,
        awaiting_sync=member.parked_sync is not None,
        session_expires_at=deadlines.at(member.session_key),
    )


def of_consumer_group(kind: ConsumerGroups, group_id: str, deadlines: Deadlines) -> ConsumerGroupView:
    """A consumer group as it is in memory, which may be ahead of its log."""
    group = kind.group(group_id)
    session_timeout_ms = kind.session_timeout_ms(group.group_id)
    progress = kind.progress(group_id)
    return ConsumerGroupView(
        group_id=group.group_id,
        partition=group.partition.partition,
        state=group.state,
        previous_state=group.previous_state,
        state_since=group.state_since,
        generation=group.epoch,
        group_epoch=group.epoch,
        assignment_epoch=group.assignment_epoch,
        protocol_type=group.protocol_type,
        protocol=kind.assignor_of(group),
        leader=None,
        members=[_of_consumer_member(each, group, session_timeout_ms, deadlines) for each in group.members.values()],
        pending_members=[],
        pending_sync=[],
        subscribed_topics=sorted(group.subscriptions.topics),
        new_member_added=False,
        rebalance_cause=None if progress.rebalance is None else progress.rebalance.cause.cause,
        rebalances=progress.rebalances,
        deadlines=_of_deadlines(group.partition, group.group_id, deadlines),
    )


def _of_consumer_member(
    member: ConsumerMember, group: ConsumerGroup, session_timeout_ms: Millis, deadlines: Deadlines
) -> ConsumerMemberView:
    metadata, current = member.metadata, member.current
    classic = metadata.classic
    return ConsumerMemberView(
        member_id=member.member_id,
        group_instance_id=metadata.instance_id,
        client_id=metadata.client_id,
        client_host=metadata.client_host,
        session_timeout_ms=session_timeout_ms if classic is None else classic.session_timeout_ms,
        rebalance_timeout_ms=metadata.rebalance_timeout_ms,
        protocols=[] if classic is None else [protocol.name for protocol in classic.protocols],
        topics=sorted(group.subscriptions.topics_of(metadata)),
        assignment=named_partitions(current.assigned, group.topics),
        is_leader=False,
        is_new=False,
        awaiting_join=False,
        awaiting_sync=False,
        session_expires_at=deadlines.at(member.session_key),
        member_epoch=current.epoch,
        previous_member_epoch=current.previous_epoch,
        member_state=current.state.name,
        pending_revocation=named_partitions(current.pending, group.topics),
        target=named_partitions(group.target_of(member.member_id), group.topics),
        subscribed_regex=metadata.topic_regex or None,
        is_classic=member.is_classic,
    )


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


def _written_at(topic: str, partition: int, offset: int, topics: Topics, partitions: Partitions) -> Millis | None:
    """When the record at an offset was written: its batch, where the log has batches."""
    found = topics.by_name[topic]
    if found.is_real:
        return partitions.written_at(topic, partition, offset)
    return found.partitions[partition].timestamp_of(offset, found.rate)
