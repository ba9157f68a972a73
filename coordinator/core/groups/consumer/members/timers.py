"""The timers of members of consumer groups. They are set when a request is handled, stored or not.

Kafka: GroupMetadataManager.scheduleConsumerGroupSessionTimeout and its neighbours.
"""

from __future__ import annotations

from rejoin.coordinator.core.groups.consumer.model.group import ConsumerGroup
from rejoin.coordinator.core.groups.consumer.model.member import ConsumerMember
from rejoin.coordinator.core.groups.modern.session_timers import SessionTimers
from rejoin.coordinator.core.groups.timers import GroupTimer, member_timer
from rejoin.coordinator.core.inputs import Millis
from rejoin.coordinator.core.runtime.timers import TimerKey
from rejoin.coordinator.core.step_context import StepContext
from rejoin.protocol.errors import ErrorCode


class MemberTimers(SessionTimers):
    """Sets and cancels the timers of one shard's members."""

    def __init__(self, ctx: StepContext) -> None:
        super().__init__(ctx)
        self._rebalancing: dict[tuple[str, str], int] = {}
        """The epoch of each member at which its rebalance timer was set."""

    def start_rebalance(self, group: ConsumerGroup, member: ConsumerMember) -> None:
        """A member has to give something up from now on."""
        self._rebalancing[group.group_id, member.member_id] = member.current.epoch
        key = member_timer(GroupTimer.REBALANCE, group.partition, group.group_id, member.member_id)
        self._ctx.deadlines.set(key, self._ctx.now + member.metadata.rebalance_timeout_ms)

    def cancel_rebalance(self, group: ConsumerGroup, member: ConsumerMember) -> None:
        if self._rebalancing.pop((group.group_id, member.member_id), None) is not None:
            self._cancel(GroupTimer.REBALANCE, group, member)

    def rebalance_epoch(self, group: ConsumerGroup, member_id: str) -> int | None:
        """The epoch at which the rebalance timer that fires now was set."""
        return self._rebalancing.pop((group.group_id, member_id), None)

    def retry_rebalance(self, group_id: str, key: TimerKey, epoch: int, error: ErrorCode) -> None:
        """As :meth:`retry`, for a rebalance timer."""
        if error is not ErrorCode.NONE:
            self._rebalancing.setdefault((group_id, key.name), epoch)
            self.retry(key, error)

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

    def _cancel(self, kind: GroupTimer, group: ConsumerGroup, member: ConsumerMember) -> None:
        self._ctx.deadlines.cancel(member_timer(kind, group.partition, group.group_id, member.member_id))
