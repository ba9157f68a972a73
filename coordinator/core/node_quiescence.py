"""The contract with simulations: the state of groups, and heartbeats and commits that may be left out."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from rejoin.coordinator.core import quiescence, snapshots
from rejoin.coordinator.core.effects import Append
from rejoin.coordinator.core.groups.quiet_session import QuietSession
from rejoin.coordinator.core.inputs import (
    Millis,
    Token,
)
from rejoin.protocol.records.consumer_offsets import OffsetRecord
from rejoin.protocol.types import TopicPartition

if TYPE_CHECKING:
    from rejoin.protocol.messages.offsets.offset_commit import OffsetCommitRequest
from rejoin.coordinator.core.node_parts import NodeParts


class NodeQuiescence(NodeParts):
    """A node whose quiet members need not send what changes nothing."""

    def shard(self, partition: TopicPartition) -> snapshots.ShardSnapshot | None:
        """An offsets partition, or none where another node leads it."""
        shard = self._groups.by_partition.get(partition)
        return None if shard is None else snapshots.of_shard(shard)

    def group(self, group_id: str) -> snapshots.GroupSnapshot | None:
        """A classic group as it is in memory, loaded or not."""
        group = self._groups.classic_group(group_id)
        return None if group is None else snapshots.of_group(group, self._groups.offsets(group_id))

    def consumer_group(self, group_id: str) -> snapshots.ConsumerGroupSnapshot | None:
        """A consumer group as it is in memory, loaded or not."""
        group = self._groups.consumer_group(group_id)
        return None if group is None else snapshots.of_consumer_group(group, self._groups.offsets(group_id))

    def quiet_session(
        self, group_id: str, member_id: str, group_instance_id: str | None, generation_id: int
    ) -> QuietSession | None:
        """The session of a member whose heartbeats only restart it, or none."""
        machine = self._groups.machine_of(group_id)
        if machine is not None and self._groups.consumer_group(group_id) is not None:
            return machine.kinds.consumer.quiet_session(group_id, member_id, group_instance_id, generation_id)
        group = self._groups.classic_group(group_id)
        return quiescence.quiet_session(group, self._ctx.deadlines, member_id, group_instance_id, generation_id)

    def suspend_session(self, session: QuietSession) -> None:
        """The heartbeats of a quiet member are left out from now on."""
        quiescence.suspend(session, self._ctx.deadlines)

    def resume_session(self, session: QuietSession, expires_at: Millis) -> None:
        """Let a suspended session run on, as the heartbeats that were left out would have set it."""
        quiescence.resume(session, self._ctx.deadlines, expires_at)

    def has_offsets(self, group_id: str, partitions: Iterable[TopicPartition]) -> bool:
        """Whether an offset is stored for each of a group's partitions."""
        offsets = self._groups.offsets(group_id)
        return offsets is not None and all(partition in offsets.stored for partition in partitions)

    def resume_offsets(self, records: Iterable[OffsetRecord]) -> None:
        """Store the offsets that a quiet member has committed while its commits were left out."""
        for record in records:
            key = record.key.data
            offsets = self._groups.offsets(key.group)
            if offsets is not None and record.value is not None:
                offsets.store(TopicPartition(key.topic, key.partition), record.value.data)

    def resume_commit(
        self, group_id: str, token: Token, request: OffsetCommitRequest, version: int, at: Millis
    ) -> Append:
        """Put a commit in flight that arrived at an instant and was accepted; returns its append."""
        machine = self._groups.machine_of(group_id)
        assert machine is not None, "commits are left out only where their group is led"
        ctx = self._ctx
        ctx.now, ctx.effects = at, []
        machine.commits.resume(machine.groups[group_id], token, request, version)
        (append,) = ctx.effects
        assert isinstance(append, Append), "an accepted commit is written"
        machine.log.order_appends()
        return append
