"""How far the members of a consumer group are, as the log has it, with topics by name. Events are made from it.

No answer depends on it: it follows the records in the order in which they are stored, while the group itself is ahead
of the log. It costs what changes, and no look at all members.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from rejoin.coordinator.core.groups.consumer.model.group import ConsumerGroup
from rejoin.coordinator.core.groups.consumer.model.member import ConsumerMemberMetadata, CurrentAssignment
from rejoin.coordinator.core.groups.consumer.model.state import ConsumerGroupState, ConsumerMemberState, derived_state
from rejoin.coordinator.core.groups.modern.epochs import FIRST_EPOCH, JOIN_EPOCH, PartitionsByTopicId
from rejoin.coordinator.core.groups.statistics import RebalanceProgress
from rejoin.coordinator.core.inputs import Millis
from rejoin.journal.events.coordinator import Cause, Ownership

NamedPartitions: TypeAlias = dict[str, list[int]]
"""Partitions by topic, both ascending. Replaced, never changed: events share them."""

NOTHING: Final[NamedPartitions] = {}


@dataclass(slots=True)
class MemberProgress:
    """How far one member is."""

    instance_id: str | None = None
    rebalance_timeout_ms: int = -1
    epoch: int = JOIN_EPOCH
    state: ConsumerMemberState = ConsumerMemberState.STABLE
    owned: NamedPartitions = field(default_factory=dict)
    pending: NamedPartitions = field(default_factory=dict)
    target: NamedPartitions = field(default_factory=dict)
    asked_at: Millis = 0
    """Time at which the member was asked to revoke its pending partitions."""
    holders: Ownership = field(default_factory=dict)
    """Owners of the partitions it waited for, as last reported."""


@dataclass(slots=True)
class GroupProgress:
    """How far one group is, and the rebalance that is under way."""

    epoch: int = FIRST_EPOCH
    assignment_epoch: int = FIRST_EPOCH
    assignor: str = ""
    members: dict[str, MemberProgress] = field(default_factory=dict)
    ownership: Ownership = field(default_factory=dict)
    """Partitions that each member owns now."""
    owned_before: Ownership = field(default_factory=dict)
    """Partitions that each member owned when the group was last Stable."""
    rebalance: RebalanceProgress | None = None
    rebalances: int = 0
    _owners: dict[tuple[str, int], str] = field(default_factory=dict)
    """Who had each partition last; it may have gone."""
    _owners_before: dict[tuple[str, int], str | None] = field(default_factory=dict)
    """Of partitions that have changed hands in this rebalance: who had them before it."""
    _stable_at: dict[int, int] = field(default_factory=dict)

    @property
    def state(self) -> ConsumerGroupState:
        """The state of the group, as far as it is stored."""
        reconciled = self._stable_at.get(self.assignment_epoch, 0)
        return derived_state(len(self.members), self.epoch, self.assignment_epoch, reconciled)

    # --- members

    def member(self, member_id: str) -> MemberProgress:
        """A member; it is made where it is not there yet."""
        member = self.members.get(member_id)
        if member is None:
            member = self.members[member_id] = MemberProgress()
            self.ownership[member_id] = NOTHING
            self._count_stable(member, 1)
        return member

    def remove(self, member_id: str) -> None:
        member = self.members.pop(member_id, None)
        if member is not None:
            self.ownership.pop(member_id, None)
            self._count_stable(member, -1)

    def rename(self, old: str, new: str) -> None:
        """A static member goes on under another id, with the same partitions before and now."""
        member = self.members.get(old)
        if member is None:
            return
        for each in each_partition(member.owned):
            self._owners[each] = new
            if self._owners_before.get(each) == old:
                self._owners_before[each] = new
        if old in self.owned_before:
            self.owned_before = {(new if each == old else each): had for each, had in self.owned_before.items()}

    def move(
        self,
        member_id: str,
        epoch: int,
        state: ConsumerMemberState,
        owned: NamedPartitions,
        pending: NamedPartitions,
    ) -> None:
        """A member has another assignment, epoch or state."""
        member = self.member(member_id)
        self._count_stable(member, -1)
        if owned != member.owned:
            for each in each_partition(without(owned, member.owned)):
                self._owners_before.setdefault(each, self._owners.get(each))
                self._owners[each] = member_id
        member.epoch, member.state, member.owned, member.pending = epoch, state, owned, pending
        self.ownership[member_id] = owned
        self._count_stable(member, 1)

    def _count_stable(self, member: MemberProgress, by: int) -> None:
        if member.state is ConsumerMemberState.STABLE:
            self._stable_at[member.epoch] = self._stable_at.get(member.epoch, 0) + by
            if not self._stable_at[member.epoch]:
                del self._stable_at[member.epoch]

    def holders_of(self, partitions: NamedPartitions) -> Ownership:
        """Who holds which of these partitions, or has not given them up yet."""
        found: Ownership = {}
        for topic, index in each_partition(partitions):
            holder_id = self._owners.get((topic, index))
            holder = None if holder_id is None else self.members.get(holder_id)
            if holder_id is None or holder is None:
                continue
            if _has(holder.owned, topic, index) or _has(holder.pending, topic, index):
                found.setdefault(holder_id, {}).setdefault(topic, []).append(index)
        return found

    # --- rebalances

    def begin_rebalance(self, cause: Cause, now: Millis) -> None:
        """A rebalance begins, or begins anew: then its first cause counts."""
        if self.rebalance is None:
            self._owners_before.clear()
            self.rebalance = RebalanceProgress(cause, now)
        else:
            self.rebalance.attempts += 1
        self.rebalance.attempt_started_at = now

    def end_rebalance(self) -> tuple[int, int]:
        """The group is at rest: how many partitions moved between members that are still there, how many found one."""
        moved = regained = 0
        for each, before in self._owners_before.items():
            after = self._owners[each]
            if after == before or after not in self.members:
                continue
            if before in self.members:
                moved += 1
            else:
                regained += 1
        self.rest()
        self.rebalance = None
        return moved, regained

    def rest(self) -> None:
        """The current owners become the owners before the next rebalance."""
        self._owners_before.clear()
        self.owned_before = dict(self.ownership)


@dataclass(frozen=True, slots=True)
class LoadedGroup:
    """A group as it was loaded. It costs no look at partitions until something happens to it."""

    epoch: int
    assignment_epoch: int
    members: tuple[tuple[str, ConsumerMemberMetadata, CurrentAssignment], ...]
    targets: Mapping[str, PartitionsByTopicId]

    @classmethod
    def of(cls, group: ConsumerGroup) -> LoadedGroup:
        members = tuple((each.member_id, each.metadata, each.current) for each in group.members.values())
        return cls(group.epoch, group.assignment_epoch, members, dict(group.targets))


def _has(partitions: NamedPartitions, topic: str, index: int) -> bool:
    """Whether a partition is among these."""
    indexes = partitions.get(topic, ())
    at = bisect_left(indexes, index)
    return at < len(indexes) and indexes[at] == index


def each_partition(partitions: NamedPartitions) -> Iterator[tuple[str, int]]:
    """Each partition of each topic."""
    return ((topic, index) for topic, indexes in partitions.items() for index in indexes)


def without(partitions: NamedPartitions, *others: NamedPartitions) -> NamedPartitions:
    """Partitions that are not among others."""
    left: NamedPartitions = {}
    for topic, indexes in partitions.items():
        known = {index for other in others for index in other.get(topic, ())}
        found = [index for index in indexes if index not in known]
        if found:
            left[topic] = found
    return left


def together(one: NamedPartitions, other: NamedPartitions) -> NamedPartitions:
    """The partitions of both."""
    if not other:
        return one
    topics = sorted({*one, *other})
    return {topic: sorted({*one.get(topic, ()), *other.get(topic, ())}) for topic in topics}
