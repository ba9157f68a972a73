"""The groups of a node: the shard of each, and views of it."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import TYPE_CHECKING

from rejoin.coordinator.core.groups.classic.group import ClassicGroup
from rejoin.coordinator.core.groups.group import Group
from rejoin.coordinator.core.groups.shard import GroupsShard
from rejoin.coordinator.core.groups.share.persister import NoPersister, SharePersister
from rejoin.coordinator.core.inputs import Token
from rejoin.coordinator.core.offsets.store import GroupOffsets
from rejoin.coordinator.core.runtime.appends import ShardLog
from rejoin.coordinator.core.runtime.shards import Shards
from rejoin.coordinator.core.step_context import StepContext
from rejoin.protocol.records.consumer_offsets import OFFSETS_TOPIC

if TYPE_CHECKING:
    from rejoin.coordinator.core.groups.consumer.model.group import ConsumerGroup
    from rejoin.coordinator.core.groups.modern.metadata import TopicsMetadata


class GroupShards(Shards[GroupsShard]):
    """The shards of ``__consumer_offsets`` on this node."""

    def __init__(self, ctx: StepContext, topics: TopicsMetadata, has_followers: Callable[[], bool]) -> None:
        super().__init__(ctx, OFFSETS_TOPIC, ctx.settings.offsets_topic_num_partitions, self._make_machine)
        self._topics = topics
        self._has_followers = has_followers
        self.persister: SharePersister = NoPersister()
        """Who is asked about share-partitions. It is set before the first shard is elected."""

    def _make_machine(self, ctx: StepContext, log: ShardLog) -> GroupsShard:
        return GroupsShard(ctx, log, self._topics, self._has_followers, self.persister)

    def machine_of(self, group_id: str) -> GroupsShard | None:
        """The shard of a group, loaded or not, if this node leads it."""
        shard = self.shard_of(group_id)
        return None if shard is None else shard.machine

    def classic_group(self, group_id: str) -> ClassicGroup | None:
        """A group of this node, if it is there and of this kind."""
        machine = self.machine_of(group_id)
        return None if machine is None else machine.classic_group(group_id)

    def consumer_group(self, group_id: str) -> ConsumerGroup | None:
        """A group of this node, if it is there and of this kind."""
        machine = self.machine_of(group_id)
        return None if machine is None else machine.consumer_group(group_id)

    def offsets(self, group_id: str) -> GroupOffsets | None:
        """The offsets of a group of this node."""
        machine = self.machine_of(group_id)
        return None if machine is None else machine.offsets.get(group_id)

    def groups(self) -> list[Group]:
        """Every group of this node, by partition."""
        return [group for machine in self.machines() for group in machine.groups.values()]

    def topics_changed(self, topics: Collection[str], *, has_new: bool) -> None:
        """Topics were created, grown or deleted."""
        for machine in self.machines():
            machine.topics_changed(topics, has_new=has_new)

    def group_configured(self, group_id: str) -> None:
        """The settings that a group has of its own have changed."""
        machine = self.machine_of(group_id)
        if machine is not None:
            machine.configured(group_id)

    def parked_tokens(self) -> list[Token]:
        """Every token that is parked with a member."""
        groups = self.groups()
        joins = [token for group in groups for token in group.parked_joins]
        return joins + [token for group in groups for token in group.parked_syncs]

    def lose_session(self, group_id: str, member_id: str) -> None:
        """Fire a member's session timer now. Parked requests stand in for heartbeats here as ever."""
        machine = self.machine_of(group_id)
        group = None if machine is None else machine.groups.get(group_id)
        if machine is None or group is None:
            return
        key = machine.kind_of(group).session_key(group, member_id)
        self._ctx.deadlines.cancel(key)
        self.fire(key)
