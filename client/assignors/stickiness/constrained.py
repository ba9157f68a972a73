"""The sticky algorithm for members that all want the same topics: each keeps a fair share, the rest is dealt.

Source: Kafka's AbstractStickyAssignor.ConstrainedAssignmentBuilder; KIP-54, KIP-429, KIP-881.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rejoin.client.assignors.base import AssignorError, Partition
from rejoin.client.assignors.racks import RackView
from rejoin.client.assignors.stickiness.claims import Claims
from rejoin.client.assignors.stickiness.index import PartitionNumbering, Row, missing_keys
from rejoin.protocol.java import utf16_sorted


class ConstrainedAssignment:
    """One run. With N partitions and k members, N mod k members end with the larger share, the others with the smaller.

    `given`: member → its partitions, in Kafka's order: what it keeps by number and topic, then what it gains.
    `transferring`: partition → the member that gains it, where another member may not have given it up yet.
    """

    def __init__(self, index: PartitionNumbering, claims: Claims, racks: RackView) -> None:
        self._index = index
        self._racks = racks
        self._doubly_claimed = claims.doubly_claimed
        members = len(claims.owned)
        self._small, self._expected_large = divmod(index.total, members)
        self._large = self._small + (self._expected_large > 0)
        self._large_so_far = 0
        # Members that may get more: those below the small share, and those at it that may still get the large one.
        self._under: list[str] = []
        self._exact: list[str] = []
        self._revoked: dict[int, str] = {}
        # Members whose keys were listed in ascending order: their own tuples can be handed on.
        self._ascending: set[str] = set()

        kept = self._keep(claims.owned)
        row = self._unassigned(kept, claims.unclaimed_marks)
        self.given = {member_id: self._as_partitions(claims, member_id, keys) for member_id, keys in kept.items()}
        self._under = utf16_sorted(self._under)
        self._exact = utf16_sorted(self._exact)
        if racks:
            row = self._deal_by_rack(row)
        self._deal(row)
        self.transferring = self._changing_owners({member_id: len(keys) for member_id, keys in kept.items()})

    def _keep(self, owned: Mapping[str, list[int]]) -> dict[str, list[int]]:
        """Let each member, in map order, keep up to its share of what it owned; keys ascending."""
        kept: dict[str, list[int]] = {}
        for member_id, listed in owned.items():
            keys = self._of_matching_rack(member_id, listed) if self._racks else listed
            if self._doubly_claimed:
                keys = [key for key in keys if key not in self._doubly_claimed]
            in_order = sorted(keys)
            if in_order == keys:
                self._ascending.add(member_id)
            else:
                keys = in_order
            share = self._share(member_id, len(keys))
            for key in keys[share:]:
                self._revoked[key] = member_id
            kept[member_id] = keys if share >= len(keys) else keys[:share]
        return kept

    def _share(self, member_id: str, count: int) -> int:
        """How many of `count` partitions this member keeps, noting whether it may get more."""
        if count < self._small:
            self._under.append(member_id)
            return count
        if count >= self._large and self._large_so_far < self._expected_large:
            self._large_so_far += 1
            if self._large_so_far == self._expected_large:
                self._exact.clear()
            return self._large
        if self._large_so_far < self._expected_large:
            self._exact.append(member_id)
        return self._small

    def _as_partitions(self, claims: Claims, member_id: str, keys: Sequence[int]) -> list[Partition]:
        """The partitions of the ascending keys that a member keeps."""
        claim = claims.by_member[member_id]
        if claim.partitions is None or len(claim.partitions) != len(claim.keys) or not claims.orderly or self._racks:
            return self._index.partitions(keys)
        if member_id in self._ascending:
            return list(claim.partitions[: len(keys)])
        listed = dict(zip(claim.keys, claim.partitions, strict=True))
        return list(map(listed.__getitem__, keys))

    def _of_matching_rack(self, member_id: str, keys: Sequence[int]) -> list[int]:
        matching = []
        for key in keys:
            if self._racks.mismatch(member_id, self._index.partition(key)):
                self._revoked[key] = member_id
            else:
                matching.append(key)
        return matching

    def _unassigned(self, kept: Mapping[str, list[int]], marks: bytearray | None) -> Row:
        """Partitions that no member keeps, by topic and number."""
        index = self._index
        if not any(kept.values()):
            return Row.of_everything(index)
        if marks is None:
            taken = {key for keys in kept.values() for key in keys}
            return Row.of_keys(index, missing_keys(index, range(index.topics), taken))
        for key in self._revoked:
            marks[key] = 0
        missing: list[int] = []
        for rank, count in enumerate(index.counts):
            column = marks[rank :: index.topics]
            number = column.find(0, 0, count)
            while number >= 0:
                missing.append(number * index.topics + rank)
                number = column.find(0, number + 1, count)
        return Row.of_keys(index, missing)

    def _deal_by_rack(self, row: Row) -> Row:
        """Give what can be given within racks, the partitions with the fewest members nearby first; return the rest."""
        left: list[Partition] = []
        sizes = {member_id: len(partitions) for member_id, partitions in self.given.items()}
        at = 0
        for partition in self._racks.hardest_first(row):
            taker, at = self._taker_by_rack(partition, sizes, at)
            if taker is None:
                left.append(partition)
            else:
                sizes[taker] += 1
                self.given[taker].append(partition)
        return Row.of_partitions(left)

    def _taker_by_rack(self, partition: Partition, sizes: Mapping[str, int], at: int) -> tuple[str | None, int]:
        """The member of a matching rack that is to have this partition, and where the round goes on."""
        under, exact = self._under, self._exact
        index = self._racks.next_near(partition, under, at)
        if index is not None:
            taker = under[index]
            size = sizes[taker] + 1
            if size >= self._small:
                del under[index]
                if size < self._large and self._large_so_far < self._expected_large:
                    exact.append(taker)
            else:
                index += 1
            return taker, index % len(under) if under else 0
        index = self._racks.next_near(partition, exact, 0)
        if index is None:
            return None, at
        taker = exact[index]
        if sizes[taker] + 1 == self._large:
            del exact[index]
            self._large_so_far += 1
            if self._large_so_far == self._expected_large:
                exact.clear()
        return taker, at

    def _deal(self, row: Row) -> None:
        """Deal the row: in rounds to those below the small share, then one each to those who may have the large one."""
        dealt = 0
        needs = {member_id: self._small - len(self.given[member_id]) for member_id in self._under}
        while needs and dealt < len(row):
            # No member drops out before the smallest need is met: so many rounds are one slice for each member.
            rounds = max(1, min(needs.values()))
            stop = min(dealt + rounds * len(needs), len(row))
            for index, member_id in enumerate(needs):
                self.given[member_id] += row.take(dealt + index, stop, len(needs))
                needs[member_id] = self._small - len(self.given[member_id])
            dealt = stop
            self._exact += [member_id for member_id, need in needs.items() if need == 0]
            needs = {member_id: need for member_id, need in needs.items() if need != 0}
        if needs:
            self._complain_about_too_few(needs)
        if len(row) - dealt > len(self._exact):
            self._complain_about_too_many(len(row) - dealt - len(self._exact))
        for member_id, partition in zip(self._exact, row.take(dealt, len(row)), strict=False):
            self.given[member_id].append(partition)

    def _changing_owners(self, kept: Mapping[str, int]) -> dict[Partition, str]:
        """Gained partitions, those after the first `kept` in a list, that were or may still be another member's."""
        if not self._revoked and not self._doubly_claimed:
            return {}
        losers = {self._index.partition(key): member_id for key, member_id in self._revoked.items()}
        contested = {self._index.partition(key) for key in self._doubly_claimed}
        return {
            partition: member_id
            for member_id, partitions in self.given.items()
            for partition in partitions[kept[member_id] :]
            if losers.get(partition, member_id) != member_id or partition in contested
        }

    def _complain_about_too_few(self, needs: Mapping[str, int]) -> None:
        # Kafka: verifyUnfilledMembers throws IllegalStateException, and the rebalance fails.
        member_id, need = next(iter(needs.items()))
        raise AssignorError(
            f"{member_id} lacks {need} of {self._small} partitions and there are none left to give: "
            + self._ghosts_in_words()
        )

    def _complain_about_too_many(self, count: int) -> None:
        # Kafka: assignRoundRobin throws IllegalStateException, and the rebalance fails.
        raise AssignorError(f"{count} partitions are left and every member is full: " + self._ghosts_in_words())

    def _ghosts_in_words(self) -> str:
        index = self._index
        ghosts = [
            f"{topic}-{number} ({member_id})"
            for member_id, partitions in self.given.items()
            for topic, number in partitions
            if not 0 <= number < index.counts[index.ranks[topic]]
        ]
        return "members hold partitions that do not exist: " + ", ".join(ghosts)
