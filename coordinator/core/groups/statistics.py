"""Statistics of groups for events and views: rebalances and owners of partitions. No response depends on them."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, field

from rejoin.coordinator.core.inputs import Millis
from rejoin.journal.events.coordinator import Cause, Ownership
from rejoin.protocol.embedded.consumer_protocol import decode_assignment


@dataclass(slots=True)
class RebalanceProgress:
    """A rebalance, from Stable (or Empty) until Stable (or Empty) again: why and when it began, and how far it is."""

    cause: Cause
    started_at: Millis
    attempts: int = 1
    attempt_started_at: Millis = 0
    join_ended_at: Millis = 0


@dataclass(slots=True)
class StableSnapshot:
    """Who led and who owned what when the group was last Stable, members that have gone since included."""

    leader: str | None = None
    assignments: dict[str, bytes] = field(default_factory=dict)


@dataclass(slots=True)
class MemberAliases:
    """The ids under which static members are remembered, though they have come back under others since.

    So a member that comes back costs no look at everything that is remembered of it.
    """

    _first: dict[str, str] = field(default_factory=dict)
    _current: dict[str, str] = field(default_factory=dict)

    def first(self, member_id: str) -> str:
        """The id under which this member is remembered."""
        return self._first.get(member_id, member_id)

    def current(self, first: str) -> str:
        """The id that this member has by now."""
        return self._current.get(first, first)

    def rename(self, old: str, new: str) -> None:
        first = self._first.pop(old, old)
        self._first.pop(new, None)
        self._first[new] = first
        self._current[first] = new

    def retain(self, member_ids: Collection[str]) -> None:
        """Forget all but these members."""
        self._first = {current: first for current, first in self._first.items() if current in member_ids}
        self._current = {first: current for current, first in self._first.items()}


@dataclass(slots=True)
class GroupStatistics:
    """The statistics of one group.

    Members are remembered under their first id (:class:`MemberAliases`). ``_unread`` has assignments that were loaded
    and not decoded since.
    """

    rebalance: RebalanceProgress | None = None
    rebalances: int = 0
    _aliases: MemberAliases = field(default_factory=MemberAliases)
    _last_owners: dict[tuple[str, int], str] = field(default_factory=dict)
    _unread: dict[str, bytes] = field(default_factory=dict)
    _last_stable: StableSnapshot = field(default_factory=StableSnapshot)

    def begin_rebalance(self, cause: Cause, now: Millis) -> None:
        """A rebalance begins, or begins anew: then its first cause counts."""
        if self.rebalance is None:
            self.rebalance = RebalanceProgress(cause, now)
        else:
            self.rebalance.attempts += 1
        self.rebalance.attempt_started_at = now

    def end_rebalance(self) -> RebalanceProgress | None:
        """The rebalance has ended; returns its statistics."""
        ended, self.rebalance = self.rebalance, None
        return ended

    def rename_member(self, old: str, new: str) -> None:
        """A static member has come back under another id."""
        self._aliases.rename(old, new)

    def remember(self, leader: str | None, assignments: dict[str, bytes], owned: Ownership) -> None:
        """Keep who leads and who owns what, now that the group is Stable or Empty."""
        self._aliases.retain(assignments)
        first = self._aliases.first
        self._last_stable = StableSnapshot(
            None if leader is None else first(leader),
            {first(member_id): assignment for member_id, assignment in assignments.items()},
        )
        self._read_loaded()
        self._remember_owners(owned)

    def remember_loaded(self, leader: str | None, assignments: dict[str, bytes], *, readable: bool) -> None:
        """Remember the owners of a group that was loaded. Assignments are decoded when an owner is first asked for."""
        self.remember(leader, assignments, {})
        if readable:
            self._unread = assignments

    def last_stable(self) -> StableSnapshot:
        """The group as it was when it was last Stable, with the ids that members have by now."""
        current, was = self._aliases.current, self._last_stable
        return StableSnapshot(
            None if was.leader is None else current(was.leader),
            {current(first): assignment for first, assignment in was.assignments.items()},
        )

    def last_owner(self, topic: str, partition: int) -> str | None:
        """Who owned a partition last, by the id that it has now; it may have gone."""
        if self._unread:
            self._read_loaded()
        first = self._last_owners.get((topic, partition))
        return None if first is None else self._aliases.current(first)

    def _read_loaded(self) -> None:
        unread, self._unread = self._unread, {}
        self._remember_owners({member_id: owned_partitions(data) or {} for member_id, data in unread.items()})

    def _remember_owners(self, owned: Ownership) -> None:
        """Keep who owned each partition last, also while no member does."""
        for member_id, topics in owned.items():
            first = self._aliases.first(member_id)
            for topic, partitions in topics.items():
                for partition in partitions:
                    self._last_owners[topic, partition] = first


class StatisticsStore:
    """The statistics of all groups of one shard, by group id."""

    __slots__ = ("_by_group",)

    def __init__(self) -> None:
        self._by_group: dict[str, GroupStatistics] = {}

    def of(self, group_id: str) -> GroupStatistics:
        """The statistics of a group, made when first asked for."""
        statistics = self._by_group.get(group_id)
        return self.start(group_id) if statistics is None else statistics

    def start(self, group_id: str) -> GroupStatistics:
        """Begin anew: another group of this id was created or loaded."""
        statistics = self._by_group[group_id] = GroupStatistics()
        return statistics

    def drop(self, group_id: str) -> None:
        self._by_group.pop(group_id, None)


def owned_partitions(assignment: bytes) -> dict[str, list[int]] | None:
    """An assignment as topic to partitions, each in ascending order; none when it cannot be read."""
    if not assignment:
        return {}
    try:
        partitions = decode_assignment(assignment).partitions
    except ValueError:
        return None
    owned: dict[str, list[int]] = {}
    for topic, partition in sorted(partitions):
        owned.setdefault(topic, []).append(partition)
    return owned


def count_moves(last_owner: Callable[[str, int], str | None], after: Ownership) -> tuple[int, int]:
    """How many partitions moved between members that are still there, and how many were regained.

    Kafka has no such count. A partition is *moved* when the member that owned it last is still there, even if no member
    had it for a generation, as in a cooperative rebalance; it is *regained* when that member has gone, or never was.
    """
    moved = regained = 0
    for member_id, topics in after.items():
        for topic, partitions in topics.items():
            for partition in partitions:
                old = last_owner(topic, partition)
                if old == member_id:
                    continue
                if old is not None and old in after:
                    moved += 1
                else:
                    regained += 1
    return moved, regained
