"""Groups and offsets as the log has them: what each record of ``__consumer_offsets`` does while it is replayed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from rejoin.coordinator.core.groups.classic.group import ClassicGroup
from rejoin.coordinator.core.groups.classic.member import Member, Protocols
from rejoin.coordinator.core.groups.classic.state import EMPTY, STABLE
from rejoin.coordinator.core.groups.group import Group
from rejoin.coordinator.core.groups.statistics import StatisticsStore
from rejoin.coordinator.core.inputs import Millis
from rejoin.coordinator.core.offsets.store import OffsetStore
from rejoin.coordinator.core.step_context import StepContext
from rejoin.protocol.messages.groups.join_group import JoinGroupRequestProtocol
from rejoin.protocol.records.consumer_offsets import GroupRecord, MemberMetadata, OffsetRecord
from rejoin.protocol.records.keyed import Record, TransactionMarker
from rejoin.protocol.records.table import BY_RECORD, Owner
from rejoin.protocol.types import TopicPartition

MOST_AHEAD_MS: Final = 30 * 86_400_000
"""A clock that was set back by more is not made up for."""


class Replay:
    """Brings the groups, offsets and statistics of one shard to where the log was left."""

    def __init__(
        self,
        ctx: StepContext,
        partition: TopicPartition,
        groups: dict[str, Group],
        offsets: OffsetStore,
        statistics: StatisticsStore,
        replay_consumer_group: Callable[[Record], None],
    ) -> None:
        self._ctx = ctx
        self._partition = partition
        self._groups = groups
        self._offsets = offsets
        self._statistics = statistics
        self.newest_at: Millis = 0
        """The newest instant that a record has, as far as it may be the coordinator's own."""
        self._by_owner: dict[Owner, Callable[[Any], None]] = {
            Owner.OFFSETS: self._replay_offset,
            Owner.CLASSIC_GROUPS: self._replay_group,
            Owner.CONSUMER_GROUPS: replay_consumer_group,
        }

    def replay(self, record: Record) -> None:
        if isinstance(record, TransactionMarker):
            for offsets in self._offsets.values():
                offsets.end_transaction(record.producer_id, record.committed)
        else:
            self._by_owner[BY_RECORD[type(record)].owner](record)

    def _replay_group(self, record: GroupRecord) -> None:
        group_id = record.key.data.group
        value = None if record.value is None else record.value.data
        if value is None:
            # A group of the other kind may have its place by now. Its offsets stay; they have tombstones of their own.
            if isinstance(self._groups.get(group_id), ClassicGroup):
                del self._groups[group_id]
                self._statistics.drop(group_id)
            return
        self._groups.pop(group_id, None)
        changed_at = value.current_state_timestamp
        self._saw(changed_at)
        group = self._new_group(group_id, self._ctx.now if changed_at == -1 else changed_at)
        protocols: dict[bytes, Protocols] = {}  # by subscription: members of a group mostly have the same
        for stored in value.members:
            shared = protocols.get(stored.subscription)
            if shared is None:
                protocol = JoinGroupRequestProtocol(name=value.protocol or "", metadata=stored.subscription)
                shared = protocols[stored.subscription] = (protocol,)
            group.add(self._member(group_id, stored, shared))
        group.protocol_type = value.protocol_type or None
        group.protocol_name = value.protocol
        group.generation = value.generation
        group.leader = value.leader if value.members else None
        group.state = STABLE if value.members else EMPTY
        group.subscribed_topics = group.compute_subscribed_topics()
        statistics = self._statistics.start(group_id)
        statistics.remember_loaded(group.leader, group.assignments(), readable=group.uses_consumer_protocol)
        self._groups[group_id] = group

    def _member(self, group_id: str, stored: MemberMetadata, protocols: Protocols) -> Member:
        # Kafka: records from before rebalance timeouts have -1, and the session timeout serves as one.
        timeout_ms = stored.session_timeout if stored.rebalance_timeout == -1 else stored.rebalance_timeout
        return Member(
            group_id=group_id,
            partition=self._partition,
            member_id=stored.member_id,
            group_instance_id=stored.group_instance_id,
            client_id=stored.client_id,
            client_host=stored.client_host,
            session_timeout_ms=stored.session_timeout,
            rebalance_timeout_ms=timeout_ms,
            protocols=protocols,
            assignment=stored.assignment,
        )

    def _replay_offset(self, record: OffsetRecord) -> None:
        key = record.key.data
        partition = TopicPartition(key.topic, key.partition)
        if record.value is None:
            known = self._offsets.get(key.group)
            if known is not None:
                known.remove(partition)
            return
        self._saw(record.value.data.commit_timestamp)
        if key.group not in self._groups:
            self._groups[key.group] = self._new_group(key.group, self._ctx.now)
        offsets = self._offsets.of(key.group)
        if record.producer_id != -1:
            offsets.hold(record.producer_id, partition, record.value.data)
        else:
            offsets.store(partition, record.value.data)

    def _saw(self, at: Millis) -> None:
        # The oldest commits carry an instant of their client's, which may be anything.
        if self.newest_at < at <= self._ctx.now + MOST_AHEAD_MS:
            self.newest_at = at

    def _new_group(self, group_id: str, state_since: int) -> ClassicGroup:
        order = self._ctx.settings.emulator_member_order
        return ClassicGroup(group_id, self._partition, state_since, order, persisted=True)
