"""What any kind of group answers: all that commits, fetches, expiry, deletion and listing need to know of one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, TypeAlias

from rejoin.coordinator.core.inputs import Millis
from rejoin.coordinator.core.step_context import StepContext
from rejoin.journal.events.coordinator import MemberFenced
from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.records.consumer_offsets import OffsetCommitValue

RetentionStart: TypeAlias = Callable[[OffsetCommitValue], Millis]
"""The instant from which the retention of a committed offset counts."""


@dataclass(slots=True, frozen=True)
class Committer:
    """Who commits, as far as a group cares."""

    member_id: str
    group_instance_id: str | None
    generation: int
    producer_id: int = -1

    @property
    def is_transactional(self) -> bool:
        return self.producer_id != -1

    @property
    def keeps_session(self) -> bool:
        """Whether an accepted commit counts as a heartbeat."""
        return not self.is_transactional and self.generation >= 0


class Group(Protocol):
    """A group of any kind. ``persisted``: whether the log knows it, so that it is listed and needs a tombstone."""

    group_id: str
    persisted: bool

    @property
    def kind(self) -> str:
        """Which protocol its members speak, as ListGroups names it."""

    @property
    def state(self) -> str:
        """The name that Kafka shows."""

    @property
    def is_empty(self) -> bool:
        """Whether it has no members, and none is about to join."""

    def is_subscribed_to(self, topic: str) -> bool:
        """Whether some member reads the topic, or may read it."""

    def member_of_instance(self, group_instance_id: str) -> str | None:
        """The member id that a static member has now."""

    def validate_offset_commit(self, committer: Committer) -> ErrorCode:
        """Whether the group takes a commit of this member in this generation."""

    def validate_offset_fetch(self) -> ErrorCode:
        """Whether its offsets can be read; if not, it has none to show."""

    def validate_offset_delete(self) -> ErrorCode:
        """Whether single offsets may be deleted."""

    def validate_delete(self) -> ErrorCode:
        """Whether the whole group may be deleted."""

    def offsets_retained_from(self) -> RetentionStart | None:
        """From when the retention of its offsets counts, or none while they do not expire."""


def emit_fenced(
    ctx: StepContext, group: Group, error: ErrorCode, member_id: str, group_instance_id: str | None, api: str
) -> None:
    """Report a static member that another one has replaced, if that is what the error says."""
    if error is not ErrorCode.FENCED_INSTANCE_ID or group_instance_id is None:
        return
    ctx.emit(
        MemberFenced(
            group_id=group.group_id,
            group_instance_id=group_instance_id,
            member_id=member_id,
            current_member_id=group.member_of_instance(group_instance_id) or "",
            api=api,
        )
    )
