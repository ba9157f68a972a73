"""Records of those parts that groups of each kind have: epochs, members, targets and current assignments.

Kafka: GroupCoordinatorRecordHelpers.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from rejoin.coordinator.core.inputs import Millis
from rejoin.protocol.records.groups.group_parts import AssignmentEpoch, GroupPart, MemberPart


@dataclass(frozen=True, slots=True)
class PartRecords:
    """The types of records that one kind of groups has for these parts."""

    epoch: type[GroupPart[Any]]
    member: type[MemberPart[Any]]
    target_epoch: type[GroupPart[AssignmentEpoch]]
    target: type[MemberPart[Any]]
    current: type[MemberPart[Any]]

    def member_tombstones(self, group_id: str, member_ids: Iterable[str]) -> list[Any]:
        """The end of members: of what each has, should have, and is, in this order, as replay needs it."""
        return [
            part.of(group_id, member_id, None)
            for member_id in member_ids
            for part in (self.current, self.target, self.member)
        ]


def assignment_epoch(epoch: int, at: Millis) -> AssignmentEpoch:
    """The epoch of the target, and when it was computed."""
    return AssignmentEpoch(assignment_epoch=epoch, assignment_timestamp=at)
