"""The order in which Kafka's assignors get the members of a group: that of a hash map, filled from another one.

The group's own map keeps snapshots. Its order decides between members that share a bucket of the map that the assignor
is given. A member that joins is not in it yet, and comes last. Kafka: TargetAssignmentBuilder, OverlayMap,
TimelineHashMap.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from rejoin.protocol.java import hash_map_order, timeline_slot

_SMALLEST_TABLE = 2


class OrderedMember(Protocol):
    """A member as far as its place goes. Members of a group are numbered as they come."""

    member_id: str
    number: int


class Known(NamedTuple):
    """The group's map as it is when a request comes: the size of its table, and whether the member is in it."""

    capacity: int = _SMALLEST_TABLE
    newcomer: str | None = None
    is_converted: bool = False
    """Whether the request has made a consumer group of a classic one.

    It goes on with a map of its own. Another is filled from that, in which the members of a slot come the other way
    round, and which later requests find. Kafka: GroupMetadataManager.convertToConsumerGroup.
    """


@dataclass(slots=True)
class MemberOrder:
    """Numbers members as they come, and follows the size of the table that Kafka keeps them in."""

    capacity: int = _SMALLEST_TABLE
    _numbered: int = 0

    def next_number(self) -> int:
        self._numbered += 1
        return self._numbered

    def restoring(self, number: int | None, undo: Callable[[], object]) -> Callable[[], object]:
        """The undoing of a change of a member, which then has its number again, and the table its size."""
        before = (self.capacity, self._numbered)

        def restore() -> None:
            if number is not None:
                self._numbered = number - 1
            undo()
            self.capacity, self._numbered = before

        return restore

    def grow(self, members: int) -> None:
        """A member is put into the table, again or for the first time, beside so many that are in it."""
        if (members + 1) * 3 > self.capacity * 4:
            self.capacity *= 2

    def known(self, members: Mapping[str, OrderedMember], member_id: str) -> Known:
        """The map before the request of a member."""
        return Known(self.capacity, None if member_id in members else member_id)


def converted(members: Mapping[str, OrderedMember], member_id: str) -> Known:
    """The map of a group that the request of a member has just made of a classic one."""
    newcomer = None if member_id in members else member_id
    return Known(_filled_capacity(len(members)), newcomer, is_converted=True)


def assignor_order(members: Mapping[str, OrderedMember], known: Known) -> list[str]:
    """The ids of all members as an assignor gets them."""
    return hash_map_order(timeline_order(members.values(), known))


def filled_order(member_ids: Sequence[str]) -> list[str]:
    """The ids of members as a new map has them that was filled in this order."""
    capacity = _filled_capacity(len(member_ids))
    ranked = [(timeline_slot(each, capacity), -number, each) for number, each in enumerate(member_ids)]
    return [each for *_, each in sorted(ranked)]


def _filled_capacity(count: int) -> int:
    """The size of the table of a new map into which so many members were put once."""
    order = MemberOrder()
    for members in range(count):
        order.grow(members)
    return order.capacity


def timeline_order(members: Iterable[OrderedMember], known: Known) -> list[str]:
    """The ids of members as the group's own map has them."""
    ranked = [(slot_rank(each, known), each.member_id) for each in members]
    return [member_id for _, member_id in sorted(ranked)]


def slot_rank(member: OrderedMember, known: Known) -> tuple[bool, int, int]:
    """Where a member comes among those of its bucket."""
    member_id = member.member_id
    age = member.number if known.is_converted else -member.number
    return member_id == known.newcomer, timeline_slot(member_id, known.capacity), age
