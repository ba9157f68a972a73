"""Groups of any kind: what every group answers, and what every kind of groups does.

Commits, fetches, expiry, deletion and listing know no more of a group than :class:`Group`. What depends on the protocol
of the members goes to the :class:`GroupKind` of the group.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable
from typing import Any, Generic, NamedTuple, Protocol, TypeAlias, TypeVar

from rejoin.coordinator.core.inputs import Context, Millis, Token
from rejoin.coordinator.core.runtime.appends import AppendCompletion
from rejoin.coordinator.core.runtime.timers import TimerKey
from rejoin.coordinator.core.step_context import StepContext
from rejoin.coordinator.core.views import GroupView
from rejoin.journal.events.coordinator import MemberFenced
from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.messages.groups.heartbeat import HeartbeatRequest, HeartbeatResponse
from rejoin.protocol.messages.groups.join_group import JoinGroupRequest
from rejoin.protocol.messages.groups.leave_group import LeaveGroupRequest, LeaveGroupResponse
from rejoin.protocol.messages.groups.sync_group import SyncGroupRequest
from rejoin.protocol.records.consumer_offsets import OffsetCommitValue
from rejoin.protocol.records.keyed import KeyedRecord, Record
from rejoin.protocol.types import TopicPartition

RetentionStart: TypeAlias = Callable[[OffsetCommitValue], Millis]
"""The instant from which the retention of a committed offset counts."""

TimedRecord: TypeAlias = tuple[Millis, KeyedRecord[Any, Any]]
"""A record and when it was written."""


class Committer(NamedTuple):
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
    protocol_type: str | None
    persisted: bool

    @property
    def kind(self) -> str:
        """Which protocol its members speak, as ListGroups names it."""

    @property
    def member_count(self) -> int:
        """How many members it has."""

    @property
    def parked_joins(self) -> list[Token]:
        """Who waits for the join phase to end, by member."""

    @property
    def parked_syncs(self) -> list[Token]:
        """Who waits for an assignment, by member."""

    @property
    def state(self) -> str:
        """The name that Kafka shows."""

    @property
    def is_empty(self) -> bool:
        """Whether the group has no members, and none is about to join."""

    def is_subscribed_to(self, topic: str) -> bool:
        """Whether some member reads the topic, or may read it."""

    def member_of_instance(self, group_instance_id: str) -> str | None:
        """The member id that a static member has now."""

    def validate_offset_commit(
        self, committer: Committer, version: int, partitions: Iterable[TopicPartition]
    ) -> ErrorCode:
        """Whether the group takes a commit of these partitions from this member in this generation."""

    def validate_offset_fetch(self, member_id: str | None = None, epoch: int = -1) -> ErrorCode:
        """Whether the group's offsets can be read, by a member where one is named."""

    def validate_offset_delete(self) -> ErrorCode:
        """Whether single offsets may be deleted."""

    def validate_delete(self) -> ErrorCode:
        """Whether the whole group may be deleted."""

    def offsets_retained_from(self) -> RetentionStart | None:
        """From when the retention of its offsets counts, or none while they do not expire."""


G = TypeVar("G", bound=Group)

OnChecked: TypeAlias = Callable[[ErrorCode], None]
"""Called with NONE where something may go on, or with the error that prevents it."""


class GroupKind(ABC, Generic[G]):
    """One kind of groups on one shard. ``core/groups/kinds.py`` has the table of kinds.

    Kafka: requests of the classic protocol may come to groups of any kind.
    """

    # --- requests of the classic protocol

    @abstractmethod
    def join(self, group: G, token: Token, request: JoinGroupRequest, context: Context) -> None:
        """JoinGroup; the answer may come later."""

    @abstractmethod
    def sync(self, group: G, token: Token, request: SyncGroupRequest) -> None:
        """SyncGroup; the answer may come later."""

    @abstractmethod
    def heartbeat(self, group: G, request: HeartbeatRequest) -> HeartbeatResponse:
        """Heartbeat."""

    @abstractmethod
    def leave(self, group: G, token: Token, request: LeaveGroupRequest, version: int) -> LeaveGroupResponse | None:
        """LeaveGroup; without a response, it is answered when it is stored."""

    def yields_to_classic(self, group: G) -> bool:
        """Whether a JoinGroup makes a classic group in place of this one."""
        return False

    def yielded(self, group: G) -> None:
        """A JoinGroup has taken this group out, to make a classic one."""

    @abstractmethod
    def committed(self, group: G, member_id: str) -> None:
        """A commit of this member was accepted: it counts as a heartbeat."""

    # --- what happens

    @abstractmethod
    def timer_fired(self, group: G, key: TimerKey) -> None:
        """A timer of this group is due."""

    @abstractmethod
    def session_key(self, group: G, member_id: str) -> TimerKey:
        """The timer of a member's session."""

    def topics_changed(self, topics: Collection[str], *, has_new: bool) -> None:
        """Topics were created, grown or deleted."""

    def topics_deleted(self, topic_ids: Collection[str]) -> None:
        """Topics are gone."""

    def configured(self, group_id: str) -> None:
        """The settings that a group has of its own have changed. There need not be such a group."""

    # --- the log

    @abstractmethod
    def replay(self, record: Any) -> Millis:
        """Apply a record while the log is read; returns when it was written, or -1 where it does not say so."""

    @abstractmethod
    def loaded(self, group: G, offset_count: int) -> None:
        """The log is read: every member's session starts now."""

    def enforce_max_size(self, group: G) -> None:
        """Start a rebalance where a loaded group has more members than it may have."""

    @abstractmethod
    def close(self, group: G, error: ErrorCode) -> None:
        """Answer every parked request with this error; the group is Dead."""

    @property
    def groups_in_flight(self) -> Collection[str]:
        """The groups that are ahead of the log: records of them are being written."""
        return ()

    def read_committed(self, group_id: str, read: Callable[[], None]) -> None:
        """Call ``read`` while a group is as the log has it, without appends in flight."""
        read()

    @abstractmethod
    def records(self, group: G) -> list[TimedRecord]:
        """The records that stand for this group in a compacted log; a group that has only offsets has none."""

    @abstractmethod
    def tombstones(self, group: G) -> list[Record]:
        """The end of everything that a group has in the log."""

    # --- deletion

    def prepare_deletion(self, group: G, then: OnChecked) -> None:
        """Delete what a group has elsewhere, before its own records go."""
        then(ErrorCode.NONE)

    @abstractmethod
    def delete(self, group: G, records: tuple[Record, ...], completion: AppendCompletion) -> None:
        """Take a group out, and write these records and tombstones for it."""

    @abstractmethod
    def deleted(self, group: G) -> None:
        """The group is no longer in the log: it is Dead."""

    # --- for people

    def filter_name(self, group: G) -> str:
        """The group's state as filters of ListGroups name it, in lower case."""
        return group.state.lower()

    @abstractmethod
    def view(self, group: G) -> GroupView:
        """The group with all that Kafka's own admin requests do not show."""

    def summary(self, group: G) -> GroupView:
        """The group's view without those lists that cost more than its members."""
        return self.view(group)


def emit_fenced(
    ctx: StepContext, group: Group, error: ErrorCode, member_id: str, group_instance_id: str | None, api: str
) -> None:
    """Report a static member that another one has replaced, if the error is FENCED_INSTANCE_ID."""
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
