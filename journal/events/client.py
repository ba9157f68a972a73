"""The consumer's events: what it knew and did, and why.

Times that end in ``_ms`` are lengths; the instant of an event is its journal row's ``at_ms``.
"""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict

from rejoin.journal.events.base import Event, Long, PartitionsByTopic

Offsets = dict[str, dict[int, Long]]
"""Topic to partition to offset, all ascending."""

CommitKind = Literal["sync", "async", "auto", "rebalance", "close"]
"""Who asked for a commit: the user (sync, async), the interval (auto), the start of a rebalance, or close."""


class Range(BaseModel):
    """Records of one partition: from ``start`` up to, and not including, ``end``."""

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)

    topic: str
    partition: int
    start: Long
    end: Long


class ConsumerEvent(Event):
    """An event about one consumer."""

    client_id: str
    group_id: str | None
    group_instance_id: str | None


class MemberEvent(ConsumerEvent):
    """An event about a consumer as a member; the id is empty and the generation -1 while it has none."""

    member_id: str
    generation: int


class Subscribing(ConsumerEvent):
    """The user chose what to read: topics, a pattern, or partitions without a group's help."""

    topics: list[str]
    pattern: str | None
    partitions: PartitionsByTopic


class CoordinatorFound(ConsumerEvent):
    """FindCoordinator named the coordinator."""

    node_id: int
    host: str
    port: int


class CoordinatorNotFound(ConsumerEvent):
    """FindCoordinator failed so many times in a row; emitted for the first, second, fourth, eighth … of them."""

    attempts: int
    problem: str


class CoordinatorLost(ConsumerEvent):
    """The coordinator is not known any more, and is looked up again."""

    cause: str


class RejoinRequested(MemberEvent):
    """Something makes a rebalance necessary; the consumer joins at its next poll."""

    reason: str


class MembershipReset(MemberEvent):
    """The consumer forgot its generation, and its member id unless that was kept. Shown are those before."""

    reason: str
    member_id_kept: bool


class JoinSent(MemberEvent):
    """A JoinGroup went out, with the reason it gives the coordinator."""

    reason: str
    topics: list[str]
    owned: PartitionsByTopic


class GenerationJoined(MemberEvent):
    """JoinGroup was answered: this is the generation now. ``waited_ms``: since JoinGroup was sent."""

    protocol: str
    leader: str
    member_count: int
    waited_ms: int


class GroupJoined(MemberEvent):
    """A heartbeat with epoch 0 was answered: a member of a group of the consumer protocol now (KIP-848).

    ``generation`` is the member's epoch; later ones are no events. ``waited_ms``: since that heartbeat was sent.
    """

    waited_ms: int


class TargetAssignmentReceived(MemberEvent):
    """A heartbeat's answer says what the member should have, and that is new.

    ``unknown_topics``: how many topics of it have an id whose name the client does not know yet; their partitions are
    not in ``partitions``.
    """

    partitions: PartitionsByTopic
    unknown_topics: int


class AssignmentAcknowledged(MemberEvent):
    """A heartbeat goes out that says that the assignment is taken over, and that the member owns ``partitions``.

    ``reconciliation_ms``: since the assignment was received.
    """

    partitions: PartitionsByTopic
    reconciliation_ms: int


class AssignmentComputed(MemberEvent):
    """This leader ran its assignor."""

    assignor: str
    member_count: int
    partition_count: int
    unassigned: int


class AssignmentSkipped(MemberEvent):
    """This static leader came back and keeps the group's assignment (KIP-814)."""


class AssignorFailed(MemberEvent):
    """This leader's assignor raised or broke a rule; the group cannot go on without another rebalance."""

    assignor: str
    problem: str
    topic: str | None
    partition: int | None
    culprit: str | None


class GroupSynced(MemberEvent):
    """SyncGroup was answered. ``rebalance_ms``: since the first JoinGroup of this rebalance was sent."""

    partitions: PartitionsByTopic
    owned: PartitionsByTopic
    rebalance_ms: int


class AssignmentRefused(MemberEvent):
    """The assignment does not match what the consumer subscribes to any more; it joins again."""

    partitions: PartitionsByTopic


class PartitionsAssigned(MemberEvent):
    """Partitions were added; also emitted when none were."""

    partitions: PartitionsByTopic


class PartitionsRevoked(MemberEvent):
    """Partitions were revoked cleanly."""

    partitions: PartitionsByTopic


class PartitionsLost(MemberEvent):
    """Partitions were given up after the membership had ended: another member may own them already."""

    partitions: PartitionsByTopic


class ListenerFailed(MemberEvent):
    """The user's listener raised."""

    callback: Literal["revoked", "assigned", "lost"]
    problem: str


class PositionsFound(MemberEvent):
    """Where partitions start: at what was committed, or where the reset policy led."""

    origin: Literal["committed", "earliest", "latest", "duration"]
    positions: Offsets


class RecordsProcessed(MemberEvent):
    """The user is done with these records."""

    ranges: list[Range]


class CommitSucceeded(MemberEvent):
    """Offsets were committed."""

    kind: CommitKind
    positions: Offsets


class CommitFailed(MemberEvent):
    """Offsets were not committed."""

    kind: CommitKind
    positions: Offsets
    problem: str
    retriable: bool


class HeartbeatFailed(MemberEvent):
    """A heartbeat was answered with an error or not at all."""

    problem: str


class PollTimeoutExceeded(MemberEvent):
    """The user did not poll for ``max.poll.interval.ms``; the consumer gives up its place."""

    max_poll_interval_ms: int


class GroupLeft(MemberEvent):
    """The consumer left the group; ``notified``: whether it sent LeaveGroup."""

    reason: str
    notified: bool


class Fenced(MemberEvent):
    """Another consumer joined with this instance id."""

    api: str


class ConsumerClosed(ConsumerEvent):
    """The consumer is closed."""


EVENT_TYPES: tuple[type[ConsumerEvent], ...] = tuple(
    each
    for each in list(globals().values())
    if isinstance(each, type) and issubclass(each, ConsumerEvent) and not each.__subclasses__()
)
"""Every event of a consumer, for the schema of its journal."""
