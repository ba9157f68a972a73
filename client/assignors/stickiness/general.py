"""The sticky algorithm for members that want different topics: keep, fill, then move while it evens things out.

Source: Kafka's AbstractStickyAssignor.GeneralAssignmentBuilder; KIP-54, KIP-881.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain

from rejoin.client.assignors.base import MemberSubscription, Partition
from rejoin.client.assignors.racks import RackView
from rejoin.client.assignors.stickiness.claims import Claims
from rejoin.client.assignors.stickiness.index import PartitionNumbering, missing_keys
from rejoin.client.assignors.stickiness.movements import Movements
from rejoin.protocol.java import int32, utf16_sorted


class GeneralAssignment:
    """One run. Members are numbered by name, partitions are keys of the index.

    An entry in the order of members is `size * members + number`: the least loaded first, then by name.
    """

    def __init__(
        self,
        index: PartitionNumbering,
        claims: Claims,
        members: Mapping[str, MemberSubscription],
        racks: RackView,
        newest_generation: int,
    ) -> None:
        self._index = index
        self._racks = racks
        self._ids = utf16_sorted(claims.owned)
        self._count = len(self._ids)
        numbers = {member_id: number for number, member_id in enumerate(self._ids)}
        self._wanted: list[list[int]] = [[] for _ in self._ids]
        self._subscribers: list[list[int]] = [[] for _ in range(index.topics)]
        for member_id in claims.owned:
            number = numbers[member_id]
            ranks = [index.ranks[topic] for topic in members[member_id].subscription.topics if topic in index.ranks]
            self._wanted[number] = ranks
            for rank in ranks:
                self._subscribers[rank].append(number)
        self._can_read = [frozenset(subscribers) for subscribers in self._subscribers]
        self._most = [self._most_for(ranks) for ranks in self._wanted]
        self._previous = {k: numbers[m] for k, m in claims.previous_owners(newest_generation).items()}
        self._movements = Movements(index)
        self._owner: dict[int, int] = {}
        self._lists: list[list[int]] = [[] for _ in self._ids]
        self._order: list[int] = []
        # Whether the state is balanced, None when something moved since it was last looked at; and the topic
        # that showed it was not.
        self._balanced: bool | None = None
        self._uneven = 0
        self._lightest: dict[int, int] = {}
        self._owned_by_topic: list[dict[int, int]] = []
        self._active: list[bool] = [True] * self._count

        revocation_required = self._keep(claims.owned, numbers)
        self._balance(revocation_required)
        self.given = {member_id: index.partitions(self._lists[numbers[member_id]]) for member_id in claims.owned}

    def _most_for(self, ranks: Sequence[int]) -> int:
        """The most partitions a member with these topics could have."""
        counts = self._index.counts
        return self._index.total if len(ranks) == self._index.topics else sum(counts[rank] for rank in ranks)

    def _keep(self, owned: Mapping[str, list[int]], numbers: Mapping[str, int]) -> bool:
        """Keep what members may still have; True if some of it had to be taken away."""
        topics = self._index.topics
        revoked = False
        for member_id, keys in owned.items():
            number = numbers[member_id]
            wanted = frozenset(self._wanted[number])
            kept = [key for key in keys if key % topics in wanted]
            if self._racks:
                kept = [key for key in kept if not self._mismatch(number, key)]
            revoked = revoked or len(kept) < len(keys)
            self._lists[number] = kept
            self._owner.update(dict.fromkeys(kept, number))
        return revoked

    def _mismatch(self, number: int, key: int) -> bool:
        return self._racks.mismatch(self._ids[number], self._index.partition(key))

    def _balance(self, revocation_required: bool) -> None:
        """Fill, set aside what cannot change, move, and take the moves back if they did not pay."""
        index = self._index
        ranks = sorted(range(index.topics), key=lambda rank: (len(self._subscribers[rank]), rank))
        unassigned = missing_keys(index, ranks, set(self._owner))
        self._order = sorted(len(keys) * self._count + number for number, keys in enumerate(self._lists))
        starting_empty = self._order[-1] < self._count
        self._fill(unassigned)
        movable = [len(self._subscribers[rank]) >= 2 for rank in range(index.topics)]
        everything = list(chain.from_iterable(index.topic_keys(rank) for rank in ranks if movable[rank]))
        unassigned = [key for key in unassigned if movable[key % index.topics]]
        self._set_aside_fixed_members(movable)
        self._count_owners()

        before = [list(keys) for keys in self._lists]
        if not revocation_required:
            self._reassign(unassigned)
        # Kafka: the moves of both passes are undone, though only the second one is asked whether it moved.
        moved = self._reassign(everything)
        if moved and not starting_empty and self._score(self._lists) >= self._score(before):
            self._lists = before

    def _fill(self, unassigned: Sequence[int]) -> None:
        """Give each partition to the least loaded member that may read it, at first only within its racks."""
        if self._racks:
            unassigned = [key for key in unassigned if not self._give_to_least_loaded(key, by_rack=True)]
        for key in unassigned:
            self._give_to_least_loaded(key, by_rack=False)

    def _give_to_least_loaded(self, key: int, by_rack: bool) -> bool:
        can_read = self._can_read[key % self._index.topics]
        order, members = self._order, self._count
        for index, code in enumerate(order):
            number = code % members
            if number in can_read and not (by_rack and self._mismatch(number, key)):
                del order[index]
                insort(order, code + members, index)
                self._lists[number].append(key)
                self._owner[key] = number
                return True
        return False

    def _set_aside_fixed_members(self, movable: Sequence[bool]) -> None:
        """Leave out members that have all they could get, none of which another member could have."""
        topics = self._index.topics
        for number, keys in enumerate(self._lists):
            if len(keys) >= self._most[number] and not any(movable[key % topics] for key in keys):
                self._active[number] = False
                del self._order[bisect_left(self._order, len(keys) * self._count + number)]
        # Kafka: with a member that holds partitions that do not exist, or whose old partition it wants to give
        # back to a member set aside, the original fails here on a missing entry.
        # Differs: such a member takes no part, as if it had never claimed the partition.
        for rank, subscribers in enumerate(self._subscribers):
            self._subscribers[rank] = [number for number in subscribers if self._active[number]]
        self._previous = {key: number for key, number in self._previous.items() if self._active[number]}

    def _count_owners(self) -> None:
        """For each topic, how many of its partitions each member has."""
        # Differs: of a partition that was given twice, because a member holds one that does not exist, Kafka counts
        # one owner only, the later in map order; here both count.
        topics = self._index.topics
        self._owned_by_topic = [{} for _ in range(topics)]
        for number, keys in enumerate(self._lists):
            if self._active[number]:
                for key in keys:
                    if self._index.exists(key):
                        owners = self._owned_by_topic[key % topics]
                        owners[number] = owners.get(number, 0) + 1

    def _reassign(self, keys: Iterable[int]) -> bool:
        """Move partitions from loaded to less loaded members, pass after pass, until balanced or nothing moves."""
        keys = list(keys)
        moved_any = moved = False
        while True:
            moved = False
            for key in keys:
                if self._is_balanced():
                    break
                taker = self._better_owner(key)
                if taker is not None:
                    self._move(self._movements.better_choice(key, self._owner[key], taker), taker)
                    moved = True
            if not moved:
                return moved_any
            moved_any = True

    def _better_owner(self, key: int) -> int | None:
        """The member that should have this partition rather than its owner."""
        size = len(self._lists[self._owner[key]])
        previous = self._previous.get(key)
        if previous is not None and size > len(self._lists[previous]) + 1:
            return previous
        taker = self._least_loaded(key % self._index.topics)
        return taker if size > len(self._lists[taker]) + 1 else None

    def _least_loaded(self, rank: int) -> int:
        """The first in the order of members that may read this topic, worked out once until something moves."""
        found = self._lightest.get(rank)
        if found is None:
            found = min(self._subscribers[rank], key=lambda number: (len(self._lists[number]), number))
            self._lightest[rank] = found
        return found

    def _move(self, key: int, taker: int) -> None:
        owner = self._owner[key]
        self._movements.moved(key, owner, taker)
        for number, change in ((owner, -1), (taker, +1)):
            size = len(self._lists[number])
            del self._order[bisect_left(self._order, size * self._count + number)]
            insort(self._order, (size + change) * self._count + number)
        self._lists[owner].remove(key)
        self._lists[taker].append(key)
        self._owner[key] = taker
        self._balanced = None
        self._lightest.clear()
        if self._index.exists(key):
            owners = self._owned_by_topic[key % self._index.topics]
            owners[taker] = owners.get(taker, 0) + 1
            owners[owner] = owners.get(owner, 0) - 1
            if owners[owner] <= 0:
                del owners[owner]

    def _is_balanced(self) -> bool:
        """Whether no member could take a partition from one that has at least two more."""
        if self._balanced is None:
            self._balanced = self._look_for_balance()
        return self._balanced

    def _look_for_balance(self) -> bool:
        if self._order[0] // self._count >= self._order[-1] // self._count - 1:
            return True
        topics = self._index.topics
        for step in range(topics):
            # The topic that was uneven last time most likely still is.
            rank = (self._uneven + step) % topics
            if self._is_uneven(rank):
                self._uneven = rank
                return False
        return True

    def _is_uneven(self, rank: int) -> bool:
        owners = self._owned_by_topic[rank]
        if not owners:
            return False
        lists, most = self._lists, self._most
        highest = max(len(lists[number]) for number in owners)
        return any(
            len(lists[number]) + 1 < highest and len(lists[number]) != most[number]
            for number in self._subscribers[rank]
        )

    def _score(self, lists: Sequence[Sequence[int]]) -> int:
        """The sum of the differences in size over all pairs of members; lower is better balanced."""
        sizes = sorted(len(keys) for number, keys in enumerate(lists) if self._active[number])
        # Kafka: the sum is a 32-bit int and wraps around.
        return int32(sum(size * (2 * index - len(sizes) + 1) for index, size in enumerate(sizes)))


def transferring_partitions(
    members: Mapping[str, MemberSubscription], given: Mapping[str, Sequence[Partition]]
) -> dict[Partition, str]:
    """Partition → its new owner, for each one that a member gains and another member loses."""
    gained: dict[Partition, str] = {}
    lost: set[Partition] = set()
    for member_id, partitions in given.items():
        owned = set(members[member_id].subscription.owned_partitions)
        for partition in partitions:
            if partition not in owned:
                gained[partition] = member_id
        lost.update(owned.difference(partitions))
    return {partition: member_id for partition, member_id in gained.items() if partition in lost}
