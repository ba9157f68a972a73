"""Classic groups as the log has them: what each of their records does while it is replayed."""

from __future__ import annotations

from rejoin.coordinator.core.groups.classic.group import ClassicGroup
from rejoin.coordinator.core.groups.classic.member import Member, Protocols
from rejoin.coordinator.core.groups.classic.state import EMPTY, STABLE
from rejoin.coordinator.core.groups.group import Group
from rejoin.coordinator.core.groups.statistics import StatisticsStore
from rejoin.coordinator.core.inputs import Millis
from rejoin.coordinator.core.step_context import StepContext
from rejoin.protocol.messages.groups.join_group import JoinGroupRequestProtocol
from rejoin.protocol.records.consumer_offsets import GroupRecord, MemberMetadata
from rejoin.protocol.types import TopicPartition


class ClassicReplay:
    """Replays the records of one shard's classic groups."""

    def __init__(
        self, ctx: StepContext, partition: TopicPartition, groups: dict[str, Group], statistics: StatisticsStore
    ) -> None:
        self._ctx = ctx
        self._partition = partition
        self._groups = groups
        self._statistics = statistics

    def replay(self, record: GroupRecord) -> Millis:
        """Apply a record; returns when the group entered its state, or -1."""
        group_id = record.key.data.group
        value = None if record.value is None else record.value.data
        if value is None:
            # A group of the other kind may have its place by now. Its offsets stay; they have tombstones of their own.
            if isinstance(self._groups.get(group_id), ClassicGroup):
                del self._groups[group_id]
                self._statistics.drop(group_id)
            return -1
        self._groups.pop(group_id, None)
        changed_at = value.current_state_timestamp
        group = self.new_group(group_id, self._ctx.now if changed_at == -1 else changed_at)
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
        return changed_at

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

    def new_group(self, group_id: str, state_since: Millis) -> ClassicGroup:
        """A group that is in the log."""
        order = self._ctx.settings.emulator_member_order
        return ClassicGroup(group_id, self._partition, state_since, order, persisted=True)
