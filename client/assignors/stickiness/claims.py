"""Previous owners: the claims of all members, and how contradictions are resolved.

Source: Kafka's AbstractStickyAssignor.allSubscriptionsEqual and prepopulateCurrentAssignments; KIP-792.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from rejoin.client.assignors.base import MemberSubscription, Partition
from rejoin.client.assignors.stickiness.index import PartitionNumbering
from rejoin.protocol.embedded.consumer_protocol import NO_GENERATION


class Claim(NamedTuple):
    """One member's claim to owned partitions: keys of partitions of known topics, in the order listed.

    `partitions` are the same as tuples when the member's subscription had them so, for handing on.
    `subscription_generation` is what other members' claims are compared with, `generation` what this
    member's own are. They differ for `sticky` after a member was reset but remembers its assignment.
    """

    keys: list[int]
    generation: int
    subscription_generation: int
    partitions: Sequence[Partition] | None = None


class Claims:
    """All claims of a group, members in map order, with each partition left to one member at most.

    `owned`: member → keys it may keep, in the order listed (its user may change the lists).
    `doubly_claimed`: keys that two members of one generation held.
    `unclaimed_marks`: when nothing contradicts and everything exists, a byte for each key, 0 where no
    member claims it; None otherwise.
    """

    def __init__(self, index: PartitionNumbering, claims: Mapping[str, Claim]) -> None:
        self.by_member = claims
        self.newest_generation = max((claim.generation for claim in claims.values()), default=NO_GENERATION)
        self.doubly_claimed: dict[int, None] = {}
        self.unclaimed_marks = _marks_if_orderly(index, claims)
        if self.unclaimed_marks is not None:
            self.owned = {member_id: claim.keys for member_id, claim in claims.items()}
        else:
            self.owned = self._settle(claims)

    @property
    def orderly(self) -> bool:
        """Whether nothing contradicts and everything exists: then each member owns just what it listed."""
        return self.unclaimed_marks is not None

    def _settle(self, claims: Mapping[str, Claim]) -> dict[str, list[int]]:
        """Give each contested partition to the newest generation, or to no member if two share it."""
        owned: dict[str, list[int]] = {}
        claimants: dict[int, str] = {}
        for member_id, claim in claims.items():
            mine = owned[member_id] = []
            for key in claim.keys:
                rival = claimants.get(key)
                if rival is None:
                    mine.append(key)
                    claimants[key] = member_id
                    continue
                # Kafka: one side's number is the claim's, the other's the subscription's. For `sticky` they may differ.
                rival_generation = claims[rival].subscription_generation
                if claim.generation < rival_generation:
                    continue
                if claim.generation == rival_generation:
                    # Kafka: taken from the earlier claimant, not given to the later, which is remembered from now on.
                    self.doubly_claimed[key] = None
                else:
                    mine.append(key)
                if key in owned[rival]:
                    owned[rival].remove(key)
                claimants[key] = member_id
        return owned

    def previous_owners(self, newest_generation: int) -> dict[int, str]:
        """Key → the newest claimant of an older generation than `newest_generation`."""
        found: dict[int, tuple[str, int]] = {}
        for member_id, claim in self.by_member.items():
            if claim.generation >= newest_generation:
                continue
            for key in claim.keys:
                if key not in found or claim.generation > found[key][1]:
                    found[key] = (member_id, claim.generation)
        return {key: member_id for key, (member_id, _) in found.items()}


def all_subscriptions_equal(members: Mapping[str, MemberSubscription], in_map_order: Sequence[str]) -> bool:
    """Whether all members want the same topics, as Kafka tests it."""
    # Kafka: members are compared with the first that wants anything. Empty ones before it count as equal,
    # and are then given partitions of topics they never asked for.
    first: tuple[str, ...] = ()
    wanted: set[str] = set()
    for member_id in in_map_order:
        topics = members[member_id].subscription.topics
        if not wanted:
            first, wanted = topics, set(topics)
        elif len(topics) != len(wanted) or not (topics is first or wanted.issuperset(topics)):
            return False
    return True


def _marks_if_orderly(index: PartitionNumbering, claims: Mapping[str, Claim]) -> bytearray | None:
    """A mark at every claimed key; None if a partition is claimed twice or does not exist."""
    marks = index.marks()
    if marks is None:
        return None
    claimed = 0
    try:
        for claim in claims.values():
            if min(claim.keys, default=0) < 0:
                return None
            claimed += len(claim.keys)
            for key in claim.keys:
                marks[key] = 1
    except IndexError:
        return None
    # A partition claimed twice leaves a mark too few, one beyond its topic's count a mark that is not counted.
    found = 0
    for rank, count in enumerate(index.counts):
        found += marks[rank :: index.topics].count(1, 0, count)
    return marks if found == claimed else None
