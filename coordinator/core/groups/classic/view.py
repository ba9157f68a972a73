"""Classic groups as people see them."""

from __future__ import annotations

from rejoin.coordinator.core.groups.classic.group import ClassicGroup
from rejoin.coordinator.core.groups.classic.member import Member
from rejoin.coordinator.core.groups.statistics import GroupStatistics, owned_partitions
from rejoin.coordinator.core.groups.timers import named_deadlines
from rejoin.coordinator.core.runtime.timers import Deadlines
from rejoin.coordinator.core.views import GroupView, MemberView


def of_classic_group(group: ClassicGroup, statistics: GroupStatistics, deadlines: Deadlines) -> GroupView:
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
        deadlines=named_deadlines(group.partition, group.group_id, deadlines),
    )


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
