"""The coordinator's events: what became of groups, members, offsets, partitions and topics, and why.

Times that end in ``_ms`` are lengths; the instant of an event is its journal row's ``at_ms``. Ownership is shown for
groups of protocol type ``consumer``, whose assignments can be read; others have none.
"""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict

from rejoin.journal.events.base import Event, Long

Ownership = dict[str, dict[str, list[int]]]
"""Who owns what: member id, topic, partitions in ascending order."""

CauseClass = Literal[
    "join-new",
    "rejoin-metadata",
    "rejoin-leader",
    "static-metadata",
    "static-protocol",
    "leave",
    "session-expiry",
    "sync-expiry",
    "store-failure",
    "over-capacity",
    "downgrade",
    "upgrade",
    "rebalance-expiry",
    "did-not-rejoin",
    "topic-metadata",
    "regex-resolved",
    "assignor-changed",
    "partitions-initialized",
    "settings-changed",
    "failover",
]
"""Why a rebalance began. The names are used in Kafka-log parsers too, so that emulated and real evidence compare.

join-new: a member was added. rejoin-metadata: a member came with another subscription or list of protocols.
rejoin-leader: the leader of a Stable group joined again. static-metadata: a static member restarted while the group
completed a rebalance. static-protocol: its restart changed the protocol that the group would choose. leave:
LeaveGroup. session-expiry: no heartbeat in time. sync-expiry: no SyncGroup within the rebalance timeout. store-failure:
the leader's assignment could not be stored. over-capacity: a loaded group is larger than ``group.max.size``.
downgrade: the last member of the consumer protocol has gone, and the group is a classic one again. Only groups of the
consumer protocol have these. upgrade: the first member of that protocol joined a classic group. rebalance-expiry: a
member did not give up partitions within its rebalance timeout. did-not-rejoin: a classic member of such a group did not
send JoinGroup in time. topic-metadata: subscribed topics were created, grew or are gone. regex-resolved: a regular
expression matches other topics. assignor-changed: most members ask for another assignor. partitions-initialized: other
partitions of a share group are initialised than its members have. settings-changed: other settings decide the target of
a streams group, such as its number of standbys. failover: a coordinator loaded a group whose members had not all
reached its epoch.
"""

GroupType = Literal["classic", "consumer", "share", "streams"]
"""The protocol of a group, as ListGroups names it."""

RemovalCause = Literal["left", "session-expiry", "did-not-rejoin", "sync-expiry", "over-capacity", "rebalance-expiry"]


class Cause(BaseModel):
    """Why a rebalance began, and through whom. ``client_reason`` is what the client said (KIP-800), if anything."""

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)

    cause: CauseClass
    member_id: str | None = None
    group_instance_id: str | None = None
    client_reason: str | None = None


class GroupEvent(Event):
    """An event about one group."""

    group_id: str


class GroupCreated(GroupEvent):
    """A group came to be: by a member that asks for an id or joins, or (simple) by a commit from outside any group."""

    offsets_partition: int
    simple: bool
    group_type: GroupType = "classic"


class GroupLoaded(GroupEvent):
    """A group was restored from the offsets log."""

    offsets_partition: int
    state: str
    generation: int
    members: list[str]
    offset_count: int
    group_type: GroupType = "classic"


class GroupStateChanged(GroupEvent):
    """A transition; ``generation`` is the one after it."""

    previous_state: str
    state: str
    generation: int


class GroupDeleted(GroupEvent):
    """A group and its offsets are gone."""

    reason: Literal["requested", "expired"]
    offset_count: int


class MemberIdHandedOut(GroupEvent):
    """A new dynamic member was asked to come back with this id (KIP-394). It is not a member yet."""

    member_id: str
    client_id: str
    client_host: str
    session_timeout_ms: int
    client_reason: str | None


class PendingMemberRemoved(GroupEvent):
    """A handed-out id will not be accepted any more."""

    member_id: str
    cause: RemovalCause


class MemberJoined(GroupEvent):
    """A member was added. ``state`` is the group's state before; topics are none when they cannot be read."""

    member_id: str
    group_instance_id: str | None
    client_id: str
    client_host: str
    session_timeout_ms: int
    rebalance_timeout_ms: int
    protocols: list[str]
    topics: list[str] | None
    state: str
    client_reason: str | None
    member_type: GroupType = "classic"


class MemberRejoined(GroupEvent):
    """A member sent JoinGroup again and waits. ``changed``: its protocols or metadata differ from before."""

    member_id: str
    group_instance_id: str | None
    protocols: list[str]
    topics: list[str] | None
    state: str
    changed: bool
    client_reason: str | None
    member_type: GroupType = "classic"


class StaticMemberReplaced(GroupEvent):
    """A static member came back under a new id. ``rebalance`` says whether that makes the group rebalance."""

    group_instance_id: str
    old_member_id: str
    member_id: str
    state: str
    rebalance: bool
    client_reason: str | None
    member_type: GroupType = "classic"
    session_timeout_ms: int | None = None


class StaticMemberRestored(GroupEvent):
    """The replacement of a static member could not be stored and was taken back."""

    group_instance_id: str
    member_id: str
    refused_member_id: str
    error: str


class MemberFenced(GroupEvent):
    """A request came from a member id that does not own its instance id any more."""

    group_instance_id: str
    member_id: str
    current_member_id: str
    api: str


class MemberRemoved(GroupEvent):
    """A member is out."""

    member_id: str
    group_instance_id: str | None
    client_id: str
    client_host: str
    cause: RemovalCause
    state: str
    client_reason: str | None


class LeaderChanged(GroupEvent):
    """Another member leads, or none does."""

    previous_leader: str | None
    leader: str | None


class RebalanceStarted(GroupEvent):
    """A join phase began, or a group of the consumer protocol has a new epoch that its members have to reach.

    ``generation`` is the old one; ``join_timeout_ms`` is how long the join phase may take at the most. A group of the
    consumer protocol names no ``members`` unless it was just loaded: one join in a large group must not cost a look at
    all others. They are those of its last ``rebalance_completed``, and who has joined and was removed since.
    """

    generation: int
    previous_state: str
    cause: Cause
    initial: bool
    join_timeout_ms: int | None
    members: list[str] | None
    group_type: GroupType = "classic"


class RebalanceDelayExtended(GroupEvent):
    """The initial delay goes on: a member joined during it (KIP-134)."""

    delay_ms: int
    remaining_ms: int
    member_count: int


class JoinPhaseRepeated(GroupEvent):
    """The join phase ended with static members only, none of which rejoined; it goes on without a new generation."""

    join_timeout_ms: int
    members: list[str]


class JoinPhaseEnded(GroupEvent):
    """A generation began: its members, leader and protocol are fixed. ``absent``: static members that did not come."""

    generation: int
    leader: str
    protocol: str
    members: list[str]
    absent: list[str]
    did_not_rejoin: list[str]
    join_ms: int


class AssignmentReceived(GroupEvent):
    """The leader handed in the assignment; it is being stored."""

    generation: int
    leader: str
    member_count: int
    static_member_count: int
    without_assignment: list[str]


class AssignmentStoreFailed(GroupEvent):
    """The assignment could not be stored; all members start again."""

    generation: int
    error: str


class RebalanceCompleted(GroupEvent):
    """The group is Stable again: why it was not, for how long, and who owned what before and after.

    ``rebalance_ms`` counts from the first RebalanceStarted since the group was last Stable or Empty, ``join_ms`` and
    ``sync_ms`` are the phases of the last one. ``attempts`` counts how often it had to start. ``moved`` are partitions
    whose last owner still is a member and is another now, even if they had no owner for a generation in between;
    ``regained`` are those whose last owner has gone, or which never had one. A static member that came back under a new
    id counts as the same member.

    A group of the consumer protocol has no leader. Its ``join_ms`` last until the target was computed (Assigning),
    its ``sync_ms`` until all members have reached it (Reconciling); only those stop that give something up.
    """

    generation: int
    cause: Cause
    attempts: int
    rebalance_ms: int
    join_ms: int
    sync_ms: int
    leader: str | None
    previous_leader: str | None
    protocol: str
    members_before: list[str]
    members_after: list[str]
    owned_before: Ownership
    owned_after: Ownership
    moved: int
    regained: int
    group_type: GroupType = "classic"


class GroupEmptied(GroupEvent):
    """The join phase ended without members, or the last member has gone; that uses up a generation, or an epoch."""

    generation: int
    cause: Cause | None
    rebalance_ms: int
    owned_before: Ownership
    group_type: GroupType = "classic"


class CommittedOffset(BaseModel):
    """One partition of a commit."""

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)

    topic: str
    partition: int
    offset: Long
    leader_epoch: int = -1
    metadata: str = ""


class OffsetsCommitted(GroupEvent):
    """Offsets are durable. Empty member id: committed from outside the group. ``producer_id``: within a transaction."""

    member_id: str
    group_instance_id: str | None
    generation: int
    state: str
    offsets: list[CommittedOffset]
    producer_id: Long | None = None


class CommitRefused(GroupEvent):
    """A whole commit was refused."""

    member_id: str
    generation: int
    state: str
    error: str
    offsets: list[CommittedOffset]


class TransactionEnded(GroupEvent):
    """A transaction's offsets of this group became visible, or were dropped."""

    producer_id: Long
    committed: bool
    offsets: list[CommittedOffset]


class OffsetsDeleted(GroupEvent):
    """Committed offsets were forgotten."""

    reason: Literal["requested", "expired", "topic-deleted"]
    offsets: list[CommittedOffset]


class PartitionElected(Event):
    """This node became coordinator for an offsets partition and loads it."""

    topic: str
    partition: int
    epoch: int


class PartitionLoaded(Event):
    """An offsets partition is loaded and served."""

    topic: str
    partition: int
    epoch: int
    load_ms: int
    records: int
    groups: int


class PartitionResigned(Event):
    """This node stopped being coordinator for an offsets partition."""

    topic: str
    partition: int
    epoch: int
    groups: int


class AppendFailed(Event):
    """The offsets log refused or lost an append."""

    topic: str
    partition: int
    epoch: int
    records: int
    error: str


class CoreFailed(Event):
    """Something brought the core into a state that must not be: a bug. The shard is loaded anew from its log."""

    topic: str | None
    partition: int | None
    doing: str
    problem: str


class JournalRowsLost(Event):
    """The journal could not be written for so long that events no longer fit into memory. Their numbers are missing."""

    rows_lost: int


class TopicCreated(Event):
    """A topic with its partitions, and the records a second that each gets; none if its logs are real."""

    topic: str
    topic_id: str
    partition_count: int
    records_per_second: float | None


class TopicGrown(Event):
    """A topic has more partitions."""

    topic: str
    previous_partition_count: int
    partition_count: int


class TopicDeleted(Event):
    """A topic is gone."""

    topic: str
    topic_id: str
    partition_count: int


class ClientMetricsReported(Event):
    """Metrics that a client measured and pushed (KIP-714). One that it did not push, or not measure, is null."""

    client_instance_id: str
    client_id: str
    group_id: str | None
    member_id: str | None
    group_instance_id: str | None
    poll_interval_avg_ms: int | None = None
    poll_interval_max_ms: int | None = None
    rebalance_latency_avg_ms: int | None = None
    rebalance_latency_max_ms: int | None = None
    failed_rebalances: int | None = None
    commit_latency_avg_ms: int | None = None
    commit_latency_max_ms: int | None = None
    fetch_rate: float | None = None
    fetch_latency_avg_ms: int | None = None
    fetch_latency_max_ms: int | None = None
    records_lag_max: Long | None = None
    assigned_partitions: int | None = None
