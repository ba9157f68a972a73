"""A group whose coordinator assigns: what consumer groups, share groups and streams groups have alike.

All of it comes from records; the setters are what replay calls. Kafka: ModernGroup.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final, Generic, Protocol, TypeVar

from rejoin.coordinator.core.groups.modern.epochs import FIRST_EPOCH, RefreshDeadline
from rejoin.coordinator.core.groups.modern.member_order import MemberOrder
from rejoin.coordinator.core.inputs import Millis, Token
from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.records.consumer_offsets import OffsetCommitValue
from rejoin.protocol.types import TopicPartition


class EpochMember(Protocol):
    """A member of such a group. Metadata and current assignment are replaced, never changed."""

    member_id: str
    number: int
    metadata: Any
    current: Any
    """It has the member's ``epoch``."""


FIRST_COMMIT_OF_MODERN_MEMBERS: Final = 9
FIRST_TXN_COMMIT_WITH_STALE_EPOCH: Final = 6


def committed_at(value: OffsetCommitValue) -> Millis:
    """The start of an offset's retention where it counts from the commit, whatever the state of the group."""
    return value.commit_timestamp


class UnknownStateError(Exception):
    """A member in a state of a newer version must own nothing before it can go on."""


M = TypeVar("M", bound=EpochMember)
T = TypeVar("T")
"""A member's target assignment."""


@dataclass(slots=True, kw_only=True)
class ModernGroup(ABC, Generic[M, T]):
    """Epochs, members and targets of a group, and how a change that failed is made good."""

    group_id: str
    partition: TopicPartition
    epoch: int = FIRST_EPOCH
    metadata_hash: int = 0
    assignment_epoch: int = FIRST_EPOCH
    assignment_at: Millis = 0
    """When the target was computed; 0: never, or again as soon as it is wanted."""
    members: dict[str, M] = field(default_factory=dict)
    targets: dict[str, T] = field(default_factory=dict)
    refresh: RefreshDeadline = field(default_factory=RefreshDeadline)
    needs_epoch: bool = False
    """Whether a change failed behind which others were made, so that the next request has to bump the epoch."""
    persisted: bool = False
    state_since: Millis = 0
    """When the group left the state before."""
    member_order: MemberOrder = field(default_factory=MemberOrder, repr=False, compare=False)

    # --- what every group answers

    @property
    def member_count(self) -> int:
        return len(self.members)

    @property
    def parked_joins(self) -> list[Token]:
        return []

    @property
    def parked_syncs(self) -> list[Token]:
        return []

    @property
    def is_empty(self) -> bool:
        return not self.members

    def validate_delete(self) -> ErrorCode:
        return ErrorCode.NONE if self.is_empty else ErrorCode.NON_EMPTY_GROUP

    # --- what replay calls

    def set_epoch(self, epoch: int, metadata_hash: int) -> None:
        self.epoch, self.metadata_hash = epoch, metadata_hash

    def set_assignment_epoch(self, epoch: int, at: Millis) -> None:
        self.assignment_epoch, self.assignment_at = epoch, at

    def set_target(self, member_id: str, target: T | None) -> None:
        if target is None:
            self.targets.pop(member_id, None)
        else:
            self.targets[member_id] = target

    @abstractmethod
    def set_metadata(self, member_id: str, metadata: Any) -> None:
        """A member is there or has changed; without metadata it is gone."""

    @abstractmethod
    def set_current(self, member_id: str, current: Any) -> None:
        """Set a member's current assignment; creates the member, as a compacted log may have this record first."""

    # --- questions

    @property
    def next_epoch(self) -> int:
        """The next group epoch. After a change that failed it is beyond what members have been answered."""
        if not self.needs_epoch:
            return self.epoch + 1
        answered: int = max(self.epoch, self.assignment_epoch, *(each.current.epoch for each in self.members.values()))
        return answered + 1

    def repaired(self) -> Callable[[], object]:
        """The epoch is bumped; returns what undoes that."""
        before, self.needs_epoch = self.needs_epoch, False
        return lambda: setattr(self, "needs_epoch", before)
