"""Removal of members, by leaving, the end of a session or a missed deadline; and its effect on the group.

The target of the others is not touched: the next heartbeat of any of them computes it.
Kafka: GroupMetadataManager.consumerGroupLeave, consumerGroupFenceMembers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

from rejoin.coordinator.core.groups.consumer.members.timers import MemberTimers
from rejoin.coordinator.core.groups.consumer.model.changes import Changes, Writes
from rejoin.coordinator.core.groups.consumer.model.group import ConsumerGroup
from rejoin.coordinator.core.groups.consumer.model.member import ConsumerMember
from rejoin.coordinator.core.groups.consumer.model.records import (
    PARTS,
    current_record,
    epoch_record,
    target_epoch_record,
)
from rejoin.coordinator.core.groups.consumer.model.state import STATIC_LEAVE_EPOCH
from rejoin.coordinator.core.groups.modern.changes import OnWritten
from rejoin.coordinator.core.groups.modern.metadata import TopicsMetadata, metadata_hash, named_partitions
from rejoin.coordinator.core.runtime.timers import TimerKey
from rejoin.coordinator.core.step_context import StepContext
from rejoin.journal.events.consumer_groups import StaticMemberLeft
from rejoin.journal.events.coordinator import Cause, MemberRemoved, RemovalCause
from rejoin.protocol.records.groups.consumer_groups import (
    ConsumerGroupPartitionMetadataRecord,
    regular_expression_record,
)


class Removals:
    """Removes members of one shard's groups."""

    def __init__(self, ctx: StepContext, topics: TopicsMetadata, writes: Writes, timers: MemberTimers) -> None:
        self._ctx = ctx
        self._topics = topics
        self._writes = writes
        self._timers = timers
        self.downgrade: Callable[[ConsumerGroup, Sequence[str], Changes], bool] = lambda *_: False
        """Makes a classic group of one that has only classic members left, if it may; set by the migration."""

    def remove(
        self,
        group: ConsumerGroup,
        member_ids: Sequence[str],
        cause: RemovalCause,
        on_written: OnWritten,
        reason: str | None = None,
    ) -> None:
        """Remove members for good, all with one new group epoch."""
        changes = self._writes.begin()
        leaving = [group.members[member_id] for member_id in member_ids]
        changes.events += [_removed(group, member, cause, group.state, reason) for member in leaving]
        is_downgraded = self.downgrade(group, member_ids, changes)
        if not is_downgraded:
            first = leaving[0]
            changes.cause = Cause(
                cause="leave" if cause == "left" else cause,
                member_id=first.member_id,
                group_instance_id=first.metadata.instance_id,
                client_reason=reason,
            )
            self.write(group, member_ids, changes)
            for member in leaving:
                self._timers.cancel(group, member)
        self._writes.commit(group.group_id, changes, on_written)

    def write(self, group: ConsumerGroup, member_ids: Sequence[str], changes: Changes) -> None:
        """The records of a removal, with a new group epoch."""
        group_id = group.group_id
        regexes = dict.fromkeys(group.members[member_id].metadata.topic_regex for member_id in member_ids)
        changes.write(*PARTS.member_tombstones(group_id, member_ids))
        for regex in regexes:
            if regex and regex not in group.subscriptions.regexes:
                changes.write(regular_expression_record(group_id, regex, None))
        new_hash = metadata_hash(group.subscriptions.topics, self._topics)
        changes.write(epoch_record(group_id, group.next_epoch, new_hash))
        if group.has_partition_metadata:
            changes.write(ConsumerGroupPartitionMetadataRecord.of(group_id, None))
        if not group.members and group.rules.rests_when_empty:
            # Kafka: since 4.4 an Empty group is at rest, and its next member need not wait for the interval.
            changes.write(target_epoch_record(group_id, group.epoch, 0))

    def leave_for_a_moment(self, group: ConsumerGroup, member: ConsumerMember, on_written: OnWritten) -> None:
        """A static member goes and means to come back: its partitions stay its own, its session runs on."""
        changes = self._writes.begin()
        # Kafka: with epochs of 0 it may commit, once it is back, whatever epoch it has then.
        kept = {topic_id: dict.fromkeys(partitions, 0) for topic_id, partitions in member.current.assigned.items()}
        away = replace(member.current, epoch=STATIC_LEAVE_EPOCH, assigned=kept, pending={})
        changes.write(current_record(group.group_id, member.member_id, away))
        assert member.metadata.instance_id is not None, "only static members leave for a moment"
        changes.events.append(
            StaticMemberLeft(
                group_id=group.group_id,
                group_instance_id=member.metadata.instance_id,
                member_id=member.member_id,
                partitions=named_partitions(away.assigned, self._topics),
            )
        )
        self._writes.commit(group.group_id, changes, on_written)

    # --- timers

    def time_out(self, group: ConsumerGroup, key: TimerKey, cause: RemovalCause) -> None:
        """Remove a member that did not act in time."""
        member_id = key.name
        if member_id in group.members:
            self.remove(group, [member_id], cause, partial(self._timers.retry, key))

    def rebalance_timed_out(self, group: ConsumerGroup, key: TimerKey, epoch: int) -> None:
        """A member did not give up its partitions in time; one that has moved on since is left alone."""
        member_id = key.name
        member = group.members.get(member_id)
        if member is not None and member.current.epoch == epoch:
            retry = partial(self._timers.retry_rebalance, group.group_id, key, epoch)
            self.remove(group, [member_id], "rebalance-expiry", retry)


def _removed(
    group: ConsumerGroup, member: ConsumerMember, cause: RemovalCause, state: str, reason: str | None
) -> MemberRemoved:
    return MemberRemoved(
        group_id=group.group_id,
        member_id=member.member_id,
        group_instance_id=member.metadata.instance_id,
        client_id=member.metadata.client_id,
        client_host=member.metadata.client_host,
        cause=cause,
        state=state,
        client_reason=reason,
    )
