"""A node's state in memory as values, for checks against the log and against responses."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from rejoin.coordinator.core.groups.classic.group import ClassicGroup
from rejoin.coordinator.core.groups.classic.member import Member, names_of
from rejoin.coordinator.core.groups.classic.state import GroupState
from rejoin.coordinator.core.groups.consumer.model.state import ConsumerGroupState, ConsumerMemberState
from rejoin.coordinator.core.inputs import Millis, Token
from rejoin.coordinator.core.offsets.store import GroupOffsets
from rejoin.coordinator.core.runtime.shard import Shard, ShardState
from rejoin.protocol.types import TopicPartition

if TYPE_CHECKING:
    from rejoin.coordinator.core.groups.consumer.model.group import ConsumerGroup
    from rejoin.coordinator.core.groups.modern.epochs import PartitionsByTopicId


class MemberSnapshot(NamedTuple):
    """A member. ``parked`` are the tokens of its requests that wait; ``assignment`` is as the leader encoded it."""

    member_id: str
    group_instance_id: str | None
    client_id: str
    session_timeout_ms: int
    protocols: tuple[str, ...]
    assignment: bytes
    parked: tuple[Token, ...]
    has_satisfied_heartbeat: bool


class GroupSnapshot(NamedTuple):
    """A group; its members in join order, by member id. ``commits_in_flight`` counts partitions."""

    group_id: str
    partition: TopicPartition
    state: GroupState
    state_since: Millis
    generation: int
    leader: str | None
    members: dict[str, MemberSnapshot]
    pending_members: tuple[str, ...]
    pending_sync: tuple[str, ...]
    commits_in_flight: int


class ConsumerMemberSnapshot(NamedTuple):
    """A member of a consumer group. Topics are named by id, so that partitions of deleted ones count, too."""

    member_id: str
    group_instance_id: str | None
    client_id: str
    epoch: int
    previous_epoch: int
    state: ConsumerMemberState
    assigned: PartitionsByTopicId
    pending: PartitionsByTopicId
    target: PartitionsByTopicId
    is_classic: bool


class ConsumerGroupSnapshot(NamedTuple):
    """A consumer group, as it is in memory; its members by member id. ``commits_in_flight`` counts partitions."""

    group_id: str
    partition: TopicPartition
    state: ConsumerGroupState
    epoch: int
    assignment_epoch: int
    members: dict[str, ConsumerMemberSnapshot]
    commits_in_flight: int


class ShardSnapshot(NamedTuple):
    """An offsets partition that a node leads."""

    partition: TopicPartition
    epoch: int
    is_active: bool
    appends_in_flight: int


def of_member(member: Member) -> MemberSnapshot:
    """A member as it is."""
    parked: list[Token] = []
    if member.parked_join is not None:
        parked.append(member.parked_join.token)
    if member.parked_sync is not None:
        parked.append(member.parked_sync)
    return MemberSnapshot(
        member.member_id,
        member.group_instance_id,
        member.client_id,
        member.session_timeout_ms,
        names_of(member.protocols),
        member.assignment,
        tuple(parked),
        member.has_satisfied_heartbeat,
    )


def of_group(group: ClassicGroup, offsets: GroupOffsets | None) -> GroupSnapshot:
    """A group as it is."""
    return GroupSnapshot(
        group.group_id,
        group.partition,
        group.state,
        group.state_since,
        group.generation,
        group.leader,
        {member_id: of_member(member) for member_id, member in group.members.items()},
        tuple(group.pending_join),
        tuple(group.pending_sync),
        0 if offsets is None else len(offsets.in_flight),
    )


def of_consumer_group(group: ConsumerGroup, offsets: GroupOffsets | None) -> ConsumerGroupSnapshot:
    """A consumer group as it is."""
    from rejoin.coordinator.core.groups.consumer.model.member import same_partitions  # noqa: PLC0415

    return ConsumerGroupSnapshot(
        group.group_id,
        group.partition,
        group.state,
        group.epoch,
        group.assignment_epoch,
        {
            member_id: ConsumerMemberSnapshot(
                member_id,
                member.metadata.instance_id,
                member.metadata.client_id,
                member.current.epoch,
                member.current.previous_epoch,
                member.current.state,
                same_partitions(member.current.assigned),
                same_partitions(member.current.pending),
                group.target_of(member_id),
                member.is_classic,
            )
            for member_id, member in group.members.items()
        },
        0 if offsets is None else len(offsets.in_flight),
    )


def of_shard(shard: Shard[Any]) -> ShardSnapshot:
    """A shard as it is."""
    return ShardSnapshot(shard.partition, shard.epoch, shard.state is ShardState.ACTIVE, len(shard.in_flight))
