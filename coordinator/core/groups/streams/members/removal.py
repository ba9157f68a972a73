"""Removal of members, by leaving, the end of a session or a missed deadline. The next heartbeat computes a new target.

Kafka: GroupMetadataManager.streamsGroupLeave, streamsGroupFenceMember.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from rejoin.coordinator.core.groups.modern.changes import OnWritten, RecordChanges, Writes
from rejoin.coordinator.core.groups.modern.session_timers import RebalanceTimers
from rejoin.coordinator.core.groups.streams.model.group import StreamsGroup
from rejoin.coordinator.core.groups.streams.model.member import StreamsMember
from rejoin.coordinator.core.groups.streams.model.records import (
    PARTS,
    current_record,
    epoch_record,
    target_epoch_record,
)
from rejoin.coordinator.core.groups.streams.model.state import STATIC_LEAVE_EPOCH
from rejoin.coordinator.core.groups.streams.model.tasks import NOTHING_HELD, HeldTasks
from rejoin.coordinator.core.runtime.timers import TimerKey
from rejoin.journal.events.consumer_groups import StaticMemberLeft
from rejoin.journal.events.coordinator import Cause, MemberRemoved, RemovalCause


class StreamsRemovals:
    """Removes members of one shard's groups."""

    def __init__(self, writes: Writes[RecordChanges], timers: RebalanceTimers) -> None:
        self._writes = writes
        self._timers = timers

    def remove(self, group: StreamsGroup, member: StreamsMember, cause: RemovalCause, on_written: OnWritten) -> None:
        """Remove a member, with a new group epoch."""
        group_id, metadata = group.group_id, member.metadata
        changes = self._writes.begin()
        changes.cause = Cause(
            cause="leave" if cause == "left" else cause,
            member_id=member.member_id,
            group_instance_id=metadata.instance_id,
        )
        changes.events.append(
            MemberRemoved(
                group_id=group_id,
                member_id=member.member_id,
                group_instance_id=metadata.instance_id,
                client_id=metadata.client_id,
                client_host=metadata.client_host,
                cause=cause,
                state=group.state,
                client_reason=None,
            )
        )
        changes.write(*PARTS.member_tombstones(group_id, [member.member_id]))
        changes.write(epoch_record(group, group.next_epoch))
        if not group.members:
            # Kafka: an Empty group is at rest, and its next member need not wait for the interval.
            changes.write(target_epoch_record(group_id, group.epoch, 0))
        self._timers.cancel_session(member)
        self._timers.cancel_rebalance(group, member)
        self._writes.commit(group_id, changes, on_written)

    def leave_for_a_moment(self, group: StreamsGroup, member: StreamsMember, on_written: OnWritten) -> None:
        """A static member goes and means to come back: its tasks stay its own, its session runs on."""
        changes = self._writes.begin()
        held = member.current.assigned
        # Kafka: with epochs of 0 it may commit, once it is back, whatever epoch it has then.
        kept = {subtopology: dict.fromkeys(tasks, 0) for subtopology, tasks in held.active.items()}
        away = replace(
            member.current,
            epoch=STATIC_LEAVE_EPOCH,
            assigned=HeldTasks(kept, held.standby, held.warmup),
            pending=NOTHING_HELD,
        )
        if member.metadata.instance_id is not None:
            changes.events.append(
                StaticMemberLeft(
                    group_id=group.group_id,
                    group_instance_id=member.metadata.instance_id,
                    member_id=member.member_id,
                    partitions={},
                )
            )
        changes.write(current_record(group.group_id, member.member_id, away))
        self._writes.commit(group.group_id, changes, on_written)

    # --- timers

    def time_out(self, group: StreamsGroup, key: TimerKey) -> None:
        """Remove a member that sent no heartbeat in time."""
        member = group.members.get(key.name)
        if member is not None:
            self.remove(group, member, "session-expiry", partial(self._timers.retry, key))

    def rebalance_timed_out(self, group: StreamsGroup, key: TimerKey) -> None:
        """Remove a member that did not give up its tasks in time; one that has moved on since is left alone."""
        epoch = self._timers.rebalance_epoch(group, key.name)
        member = group.members.get(key.name)
        if epoch is not None and member is not None and member.current.epoch == epoch:
            retry = partial(self._timers.retry_rebalance, group.group_id, key, epoch)
            self.remove(group, member, "rebalance-expiry", retry)
