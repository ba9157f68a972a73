"""Membership in a group, as a consumer remembers it: state, generation, timers, lookups and joining."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import NamedTuple

from rejoin.client.assignors import MemberSubscription
from rejoin.client.core.errors import KafkaError
from rejoin.client.core.group.consumer.state import LocalAssignment
from rejoin.client.core.inputs import Millis
from rejoin.client.core.state.offsets import PendingCommit
from rejoin.protocol.messages.groups.heartbeat import HeartbeatRequest
from rejoin.protocol.types import TopicPartition


class MemberState(Enum):
    """Where this consumer stands with its group."""

    UNJOINED = auto()
    PREPARING_REBALANCE = auto()
    COMPLETING_REBALANCE = auto()
    STABLE = auto()


REBALANCING = frozenset({MemberState.PREPARING_REBALANCE, MemberState.COMPLETING_REBALANCE})


class Generation(NamedTuple):
    """Which membership this is: the generation, the member id and the assignor that the group chose."""

    generation_id: int
    member_id: str
    protocol: str | None

    def __str__(self) -> str:
        # Kafka: Generation.toString; it travels in the reason of a JoinGroup.
        name = "null" if self.protocol is None else self.protocol
        return f"Generation{{generationId={self.generation_id}, memberId='{self.member_id}', protocol='{name}'}}"


NO_GENERATION = Generation(-1, "", None)


@dataclass(slots=True)
class HeartbeatTimers:
    """A member's three clocks. They count while ``enabled``: from JoinGroup's answer until the membership ends."""

    enabled: bool = False
    failure: KafkaError | None = None
    """Why heartbeats stopped for good; the next poll raises it."""
    attempts: int = 0
    due_at: Millis = 0
    session_expires_at: Millis = 0
    poll_expires_at: Millis = 0
    request: HeartbeatRequest | None = None
    """The last request, which is sent again while the generation stays the same."""


@dataclass(slots=True)
class CoordinatorLookup:
    """The search for the coordinator: at most one FindCoordinator is in flight."""

    request_id: int | None = None
    attempts: int = 0
    retry_at: Millis = 0
    fatal_error: KafkaError | None = None
    """Why the last attempt failed for good; raised in the user's next call."""
    callbacks: list[Callable[[KafkaError | None], None]] = field(default_factory=list)
    """Called once each, when the lookup that runs has ended."""


@dataclass(frozen=True, slots=True)
class MetadataSnapshot:
    """Metadata from which a leader's assignment was computed; racks count only where the leader itself has one."""

    version: int = 0
    topics: dict[str, tuple[int, tuple[frozenset[str | None], ...]]] = field(default_factory=dict)

    def matches(self, other: MetadataSnapshot) -> bool:
        return self.version == other.version or self.topics == other.topics


@dataclass(frozen=True, slots=True)
class Candidates:
    """The members as they described themselves, in the coordinator's order, and the topics any of them wants."""

    members: dict[str, MemberSubscription]
    topics: tuple[str, ...]


@dataclass(slots=True)
class PendingJoin:
    """One try to join: JoinGroup, then SyncGroup. ``outcome`` is the assignment, or why there is none."""

    started_at: Millis
    outcome: bytes | KafkaError | None = None
    candidates: Candidates | None = None
    """As leader: the members that get partitions, until the assignor has run."""
    skip_assignment: bool = False
    """As leader: the group's assignment stands, nothing is computed."""
    metadata_update: int = 0
    """As leader: the metadata update that must be seen before the assignor runs."""


@dataclass(slots=True)
class JoinState:
    """The attempt that runs now, if any, and what the last one was made from."""

    attempt: PendingJoin | None = None
    retry_at: Millis = 0
    snapshot: MetadataSnapshot = MetadataSnapshot()
    """The topics as the last poll saw them."""
    assigned_from: MetadataSnapshot | None = None
    """As leader: the topics as the assignment was computed from them."""
    joined_topics: tuple[str, ...] | None = None
    """The subscription that the last JoinGroup carried."""
    rebalance_began_at: Millis | None = None
    prepare_until: Millis | None = None
    """While preparing: until when the commit before the rebalance is repeated."""
    commit: PendingCommit | None = None
    commit_retry_at: Millis = 0


@dataclass(slots=True)
class Reconciliation:
    """In a consumer group: an assignment that is being taken over, as far as its topics are known."""

    assignment: LocalAssignment
    partitions: list[TopicPartition]
    revoked: list[TopicPartition]
    joins: int
    """How often the member had joined when this began."""
    until: Millis
    """Until when the commit before it is repeated."""
    commit: PendingCommit | None = None
    retry_at: Millis = 0
    committed: bool = False
