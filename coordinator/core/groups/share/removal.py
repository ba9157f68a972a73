"""Removal of members, by leaving or the end of a session. The next heartbeat of another computes a new target.

Kafka: GroupMetadataManager.shareGroupLeave, shareGroupFenceMember.
"""

from __future__ import annotations

from functools import partial

from rejoin.coordinator.core.groups.modern.changes import OnWritten, RecordChanges, Writes
from rejoin.coordinator.core.groups.modern.metadata import TopicsMetadata, metadata_hash
from rejoin.coordinator.core.groups.modern.session_timers import SessionTimers
from rejoin.coordinator.core.groups.share.model.group import ShareGroup
from rejoin.coordinator.core.groups.share.model.records import PARTS, epoch_record, target_epoch_record
from rejoin.coordinator.core.runtime.timers import TimerKey
from rejoin.journal.events.coordinator import Cause, MemberRemoved, RemovalCause


class ShareRemovals:
    """Removes members of one shard's groups."""

    def __init__(self, topics: TopicsMetadata, writes: Writes[RecordChanges], timers: SessionTimers) -> None:
        self._topics = topics
        self._writes = writes
        self._timers = timers

    def remove(self, group: ShareGroup, member_id: str, cause: RemovalCause, on_written: OnWritten) -> None:
        """Remove a member, with a new group epoch."""
        changes = self._writes.begin()
        member = group.members[member_id]
        changes.cause = Cause(cause="leave" if cause == "left" else cause, member_id=member_id)
        changes.events.append(
            MemberRemoved(
                group_id=group.group_id,
                member_id=member_id,
                group_instance_id=None,
                client_id=member.metadata.client_id,
                client_host=member.metadata.client_host,
                cause=cause,
                state=group.state,
                client_reason=None,
            )
        )
        changes.write(*PARTS.member_tombstones(group.group_id, [member_id]))
        new_hash = metadata_hash(group.topics, self._topics)
        changes.write(epoch_record(group.group_id, group.next_epoch, new_hash))
        if not group.members:
            # Kafka: an Empty group is at rest, and its next member need not wait for the interval.
            changes.write(target_epoch_record(group.group_id, group.epoch, 0))
        self._timers.cancel_session(member)
        self._writes.commit(group.group_id, changes, on_written)

    def time_out(self, group: ShareGroup, key: TimerKey) -> None:
        """Remove a member that sent no heartbeat in time."""
        if key.name in group.members:
            self.remove(group, key.name, "session-expiry", partial(self._timers.retry, key))
