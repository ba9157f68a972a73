"""The timers of members of consumer groups. They are set when a request is handled, stored or not.

Kafka: GroupMetadataManager.scheduleConsumerGroupSessionTimeout and its neighbours.
"""

from __future__ import annotations

from rejoin.coordinator.core.groups.consumer.model.group import ConsumerGroup
from rejoin.coordinator.core.groups.consumer.model.member import ConsumerMember
from rejoin.coordinator.core.groups.modern.session_timers import RebalanceTimers
from rejoin.coordinator.core.groups.timers import GroupTimer, member_timer
from rejoin.coordinator.core.inputs import Millis


class MemberTimers(RebalanceTimers):
    """Sets and cancels the timers of one shard's members."""

    def start_join(self, group: ConsumerGroup, member: ConsumerMember) -> None:
        """A classic member was asked to join again; the first time counts."""
        key = member_timer(GroupTimer.MEMBER_JOIN, group.partition, group.group_id, member.member_id)
        if self._ctx.deadlines.at(key) is None:
            self._ctx.deadlines.set(key, self._ctx.now + member.metadata.rebalance_timeout_ms)

    def cancel_join(self, group: ConsumerGroup, member: ConsumerMember) -> None:
        self._cancel(GroupTimer.MEMBER_JOIN, group, member)

    def start_sync(self, group: ConsumerGroup, member: ConsumerMember, timeout_ms: Millis) -> None:
        """A classic member has joined and must sync."""
        key = member_timer(GroupTimer.MEMBER_SYNC, group.partition, group.group_id, member.member_id)
        self._ctx.deadlines.set(key, self._ctx.now + timeout_ms)

    def cancel_sync(self, group: ConsumerGroup, member: ConsumerMember) -> None:
        self._cancel(GroupTimer.MEMBER_SYNC, group, member)

    def cancel(self, group: ConsumerGroup, member: ConsumerMember) -> None:
        """A member is gone."""
        self.cancel_session(member)
        self.cancel_rebalance(group, member)
        self.cancel_join(group, member)
        self.cancel_sync(group, member)
