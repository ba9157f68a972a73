"""Share groups as people see them."""

from __future__ import annotations

from rejoin.coordinator.core.groups.modern.metadata import TopicsMetadata, named_partitions
from rejoin.coordinator.core.groups.modern.view import group_fields
from rejoin.coordinator.core.groups.share.assignor import SIMPLE
from rejoin.coordinator.core.groups.share.model.group import ShareGroup
from rejoin.coordinator.core.groups.share.model.member import ShareMember
from rejoin.coordinator.core.inputs import Millis
from rejoin.coordinator.core.runtime.timers import Deadlines
from rejoin.coordinator.core.views import ConsumerGroupView, ConsumerMemberView


def of_share_group(
    group: ShareGroup, topics: TopicsMetadata, session_timeout_ms: Millis, deadlines: Deadlines
) -> ConsumerGroupView:
    """A share group as it is in memory, which may be ahead of its log."""
    return ConsumerGroupView(
        **group_fields(group, SIMPLE, deadlines),
        members=[_of_member(each, group, topics, session_timeout_ms, deadlines) for each in group.members.values()],
        subscribed_topics=sorted(group.topics),
        rebalance_cause=None,
        rebalances=0,
    )


def _of_member(
    member: ShareMember, group: ShareGroup, topics: TopicsMetadata, session_timeout_ms: Millis, deadlines: Deadlines
) -> ConsumerMemberView:
    metadata, current = member.metadata, member.current
    return ConsumerMemberView(
        member_id=member.member_id,
        group_instance_id=None,
        client_id=metadata.client_id,
        client_host=metadata.client_host,
        session_timeout_ms=session_timeout_ms,
        rebalance_timeout_ms=-1,
        protocols=[],
        topics=sorted(metadata.topic_names),
        assignment=named_partitions(current.assigned, topics),
        is_leader=False,
        is_new=False,
        awaiting_join=False,
        awaiting_sync=False,
        session_expires_at=deadlines.at(member.session_key),
        member_epoch=current.epoch,
        previous_member_epoch=current.previous_epoch,
        member_state="STABLE",
        pending_revocation={},
        target=named_partitions(group.targets.get(member.member_id, {}), topics),
        subscribed_regex=None,
        is_classic=False,
    )
