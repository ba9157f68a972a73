"""The state of a consumer group's member between two steps, and its transitions.

Source: Kafka's MemberState, ConsumerMembershipManager and LocalAssignment.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import Final, NamedTuple, TypeAlias

from rejoin.client.core.errors import KafkaError
from rejoin.client.core.group.streams.tasks import NO_TASKS, StreamsTasks
from rejoin.client.core.inputs import Millis

JOIN_EPOCH: Final = 0
LEAVE_EPOCH: Final = -1
STATIC_LEAVE_EPOCH: Final = -2

TopicIdPartitions: TypeAlias = Mapping[str, frozenset[int]]
"""Partitions by topic id."""


class MembershipState(Enum):
    """Where a consumer stands with its group."""

    UNSUBSCRIBED = auto()
    JOINING = auto()
    RECONCILING = auto()
    """A new assignment is being taken over."""
    ACKNOWLEDGING = auto()
    """It is taken over; the coordinator learns of it with the next heartbeat."""
    STABLE = auto()
    FENCED = auto()
    """The coordinator does not know the member any more; what it had is given up before it joins again."""
    PREPARE_LEAVING = auto()
    LEAVING = auto()
    STALE = auto()
    """It left because no poll came for too long, and comes back with the next one."""
    FATAL = auto()


_S = MembershipState

FOLLOWS: Final[Mapping[MembershipState, frozenset[MembershipState]]] = {
    _S.JOINING: frozenset({_S.UNSUBSCRIBED, _S.FENCED, _S.STALE}),
    _S.RECONCILING: frozenset({_S.JOINING, _S.STABLE, _S.RECONCILING, _S.ACKNOWLEDGING}),
    _S.ACKNOWLEDGING: frozenset({_S.RECONCILING}),
    _S.STABLE: frozenset({_S.JOINING, _S.ACKNOWLEDGING, _S.RECONCILING}),
    _S.FENCED: frozenset({_S.JOINING, _S.STABLE, _S.RECONCILING, _S.ACKNOWLEDGING, _S.PREPARE_LEAVING, _S.LEAVING}),
    _S.PREPARE_LEAVING: frozenset({_S.JOINING, _S.STABLE, _S.RECONCILING, _S.ACKNOWLEDGING, _S.UNSUBSCRIBED}),
    _S.LEAVING: frozenset({_S.PREPARE_LEAVING}),
    _S.STALE: frozenset({_S.LEAVING}),
    _S.UNSUBSCRIBED: frozenset({_S.PREPARE_LEAVING, _S.LEAVING, _S.FENCED}),
    _S.FATAL: frozenset(
        {
            *(_S.JOINING, _S.STABLE, _S.RECONCILING, _S.ACKNOWLEDGING),
            *(_S.PREPARE_LEAVING, _S.LEAVING, _S.UNSUBSCRIBED),
        }
    ),
}
"""The states that each may be entered from. Kafka: MemberState.previousValidStates."""

TAKES_ASSIGNMENTS: Final = frozenset({_S.JOINING, _S.STABLE, _S.RECONCILING, _S.ACKNOWLEDGING})
SENDS_AT_ONCE: Final = frozenset({_S.JOINING, _S.ACKNOWLEDGING, _S.LEAVING})
"""States in which a heartbeat does not wait for the interval."""
SENDS_NOTHING: Final = frozenset({_S.UNSUBSCRIBED, _S.FENCED, _S.STALE, _S.FATAL})
IS_LEAVING: Final = frozenset({_S.PREPARE_LEAVING, _S.LEAVING})
HAS_NO_GROUP: Final = frozenset({_S.UNSUBSCRIBED, _S.FENCED, _S.STALE, _S.FATAL})


class LocalAssignment(NamedTuple):
    """An assignment as this member counts them: it is new with each that differs from the one before."""

    epoch: int
    partitions: TopicIdPartitions


NO_ASSIGNMENT: Final = LocalAssignment(-1, {})


class SentFields(NamedTuple):
    """The fields last sent: a heartbeat carries only those that differ."""

    rebalance_timeout_ms: int = -1
    topics: tuple[str, ...] | None = None
    regex: str | None = None
    assignor: str | None = None
    assignment: LocalAssignment | None = None


NOTHING_SENT: Final = SentFields()


@dataclass(slots=True)
class ConsumerMembership:
    """One member. Its id is made once, and kept for as long as the consumer lives."""

    member_id: str
    state: MembershipState = MembershipState.UNSUBSCRIBED
    epoch: int = JOIN_EPOCH
    is_subscription_new: bool = False
    """The user subscribed; the next poll joins."""
    target: LocalAssignment = NO_ASSIGNMENT
    current: LocalAssignment = NO_ASSIGNMENT
    reconciles: bool = False
    """One assignment is being taken over."""
    joins: int = 0
    """How often it has joined: what was begun before the last time does not go on."""
    topic_names: dict[str, str] = field(default_factory=dict)
    """Names of topics that were assigned, by id: those of deleted ones are needed until they are given up."""

    joined_at: Millis = 0
    """When the last heartbeat that joins was sent."""
    target_received_at: Millis = 0
    interval_ms: int = 0
    due_at: Millis = 0
    retry_at: Millis = 0
    attempts: int = 0
    request_id: int | None = None
    sent: SentFields = NOTHING_SENT

    poll_expires_at: Millis = 0
    is_poll_expired: bool = False
    failure: KafkaError | None = None
    """Raised from the next poll."""

    def enter(self, state: MembershipState) -> None:
        assert self.state in FOLLOWS[state], f"{state.name} does not follow {self.state.name}"
        self.state = state

    @property
    def is_reconciled(self) -> bool:
        return self.current == self.target

    def forget_assignments(self) -> None:
        self.target = self.current = NO_ASSIGNMENT

    def forget_sent(self) -> None:
        """Send everything again: the coordinator may not have it."""
        self.sent = NOTHING_SENT

    def tasks_given_up(self) -> StreamsTasks:
        """Tasks that the member gives up when it leaves or is fenced; only threads of applications have any."""
        return NO_TASKS
