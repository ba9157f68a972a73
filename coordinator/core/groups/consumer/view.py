"""Consumer groups as people see them."""

from __future__ import annotations

from rejoin.coordinator.core.groups.consumer.model.group import ConsumerGroup
from rejoin.coordinator.core.groups.consumer.model.member import ConsumerMember
from rejoin.coordinator.core.groups.consumer.progress import GroupProgress
from rejoin.coordinator.core.groups.modern.metadata import named_partitions
from rejoin.coordinator.core.groups.modern.view import group_fields
from rejoin.coordinator.core.inputs import Millis
from rejoin.coordinator.core.runtime.timers import Deadlines
from rejoin.coordinator.core.views import ConsumerGroupView, ConsumerMemberView


def of_consumer_group(
    group: ConsumerGroup, assignor: str, session_timeout_ms: Millis, progress: GroupProgress, deadlines: Deadlines
) -> ConsumerGroupView:
    """A consumer group as it is in memory, which may be ahead of its log."""
    return ConsumerGroupView(
        **group_fields(group, assignor, deadlines),
        members=[_of_consumer_member(each, group, session_timeout_ms, deadlines) for each in group.members.values()],
        subscribed_topics=sorted(group.subscriptions.topics),
        rebalance_cause=None if progress.rebalance is None else progress.rebalance.cause.cause,
        rebalances=progress.rebalances,
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
