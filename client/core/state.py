"""All that a consumer remembers between two steps: one struct of plain data.

The modules beside this one are functions of it: ``lookup.ensure(state, ctx)``. What holds for a part is said where its
functions are. What never changes (settings, assignors) is in the :class:`~rejoin.client.core.step_context.StepContext`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum, IntEnum, auto
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from rejoin.client.assignors import MemberSubscription
from rejoin.client.core.effects import Endpoint
from rejoin.client.core.errors import KafkaError
from rejoin.client.core.fetch.fetched import FetchedBatches
from rejoin.client.core.fetch.session import FetchSessionHandler
from rejoin.client.core.group.consumer.state import ConsumerMembership, LocalAssignment
from rejoin.client.core.inputs import Answered, Failed, Millis, OffsetAndMetadata, Token
from rejoin.client.core.subscription import SubscriptionState
from rejoin.journal.events.client import CommitKind
from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.message import Request, Response
from rejoin.protocol.messages.groups.heartbeat import HeartbeatRequest
from rejoin.protocol.messages.records.list_offsets import ListOffsetsRequest
from rejoin.protocol.registry import Api
from rejoin.protocol.types import TopicPartition

if TYPE_CHECKING:
    from rejoin.client.core.step_context import StepContext

# -- the member


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


# -- requests


class RequestInFlight(NamedTuple):
    """A request that waits for its answer, and the generation at the time it was sent."""

    request_id: int
    api: Api
    request: Request
    version: int
    generation: Generation
    sent_at: Millis
    to: Endpoint | None
    on_answer: OnAnswer
    on_failure: OnFailure


OnAnswer: TypeAlias = "Callable[[ConsumerState, StepContext, RequestInFlight, Response], None]"
OnFailure: TypeAlias = "Callable[[ConsumerState, StepContext, RequestInFlight, KafkaError], None]"


@dataclass(slots=True)
class Requests:
    """Requests that have no answer yet. ``lost`` are given up, and their handlers are yet to be called."""

    in_flight: dict[int, RequestInFlight] = field(default_factory=dict)
    lost: list[RequestInFlight] = field(default_factory=list)
    last_id: int = 0


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


# -- metadata

Racks: TypeAlias = tuple[tuple[str | None, ...], ...]
"""For each partition the racks of its replicas."""


class TopicInfo(NamedTuple):
    """What a consumer knows of a topic."""

    partitions: int
    racks: Racks
    internal: bool


@dataclass(frozen=True, slots=True)
class MetadataSnapshot:
    """What a leader's assignment was computed from; racks count only where the leader itself has one."""

    version: int = 0
    topics: dict[str, tuple[int, tuple[frozenset[str | None], ...]]] = field(default_factory=dict)

    def matches(self, other: MetadataSnapshot) -> bool:
        return self.version == other.version or self.topics == other.topics


@dataclass(slots=True)
class MetadataCache:
    """The last known topics. At most one Metadata request is in flight; updates that are asked for are numbered."""

    version: int = 0
    topics: dict[str, TopicInfo] = field(default_factory=dict)
    topic_errors: dict[str, ErrorCode] = field(default_factory=dict)
    """Why the last answer lacks topics, which are asked for again."""
    error: KafkaError | None = None
    """Raised from the next poll."""
    refreshed_at: Millis | None = None
    """When the last answer came."""
    request_id: int | None = None
    attempts: int = 0
    retry_at: Millis = 0
    update_requested: bool = True
    last_update: int = 1
    """The newest update that was asked for."""
    update_in_flight: int = 0
    """The update that the request in flight, or the last one, answers."""
    update_seen: int = 0


# -- joining


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


# -- offsets


@dataclass(slots=True, eq=False)
class PendingCommit:
    """One commit. ``done`` and ``error`` say how the last attempt, or the whole, ended."""

    kind: CommitKind
    offsets: Mapping[TopicPartition, OffsetAndMetadata]
    token: Token = None
    expires_at: Millis = 0
    then: Callable[[KafkaError | None], None] | None = None
    """Set for a synchronous commit: called once, with how it ended for good."""
    attempts: int = 0
    retry_at: Millis = 0
    request_id: int | None = None
    done: bool = False
    error: KafkaError | None = None


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


@dataclass(slots=True)
class CommitState:
    """The commits that are open."""

    sync: list[PendingCommit] = field(default_factory=list)
    async_open: int = 0
    """Asynchronous commits without an answer."""
    completed: deque[PendingCommit] = field(default_factory=deque)
    """Asynchronous commits whose answers are to be handed out by a call of the user's."""
    fenced: bool = False
    next_auto_at: Millis | None = None

    @property
    def idle(self) -> bool:
        """Whether no commit is under way, and all that the user has still to be handed are commits that went well."""
        return not (self.sync or self.async_open or any(each.error is not None for each in self.completed))


@dataclass(slots=True)
class CommittedFetch:
    """An OffsetFetch for the partitions that have no position yet."""

    partitions: tuple[TopicPartition, ...]
    generation: Generation | None
    request_id: int = 0
    offsets: dict[TopicPartition, OffsetAndMetadata | None] | None = None
    error: KafkaError | None = None


@dataclass(slots=True)
class PositionLookup:
    """The search for positions. ``error`` is raised from the next poll."""

    committed: CommittedFetch | None = None
    attempts: int = 0
    retry_at: Millis = 0
    error: KafkaError | None = None


@dataclass(slots=True)
class LogEndLookup:
    """The search for log ends: at most one ListOffsets is in flight."""

    request_id: int | None = None
    due_at: Millis = 0
    partitions: list[TopicPartition] = field(default_factory=list)
    """What ``request`` asks for; it is sent again while they stay the same."""
    request: ListOffsetsRequest | None = None


@dataclass(slots=True, eq=False)
class Query:
    """A question of the user's for offsets. ``attempt`` tries to answer it."""

    token: Token
    expires_at: Millis
    attempt: Callable[[ConsumerState, StepContext, Query], None]
    in_flight: set[int] = field(default_factory=set)
    """Requests of this attempt that have no answer yet: one to each leader that was asked."""
    found: dict[TopicPartition, int | None] = field(default_factory=dict)
    attempts: int = 0
    retry_at: Millis = 0
    metadata: dict[TopicPartition, str] = field(default_factory=dict)


# -- fetching


class LeaderAndEpoch(NamedTuple):
    """The node that leads a partition, and its epoch."""

    node_id: int
    epoch: int


@dataclass(slots=True)
class ClusterCache:
    """The nodes, and what they lead, as far as records are fetched. Epochs never go back while the topic id stays."""

    nodes: dict[int, Endpoint] = field(default_factory=dict)
    topic_ids: dict[str, str] = field(default_factory=dict)
    leaders: dict[TopicPartition, LeaderAndEpoch] = field(default_factory=dict)
    asked_topics: set[str] = field(default_factory=set)
    """Topics that questions were about; they are asked for beside the subscribed ones."""


class BufferedFetch(NamedTuple):
    """What was fetched of a partition and is not handed out yet."""

    partition: TopicPartition
    batches: FetchedBatches


@dataclass(slots=True)
class FetchState:
    """Fetching: at most one request in flight to each node. Keys are node ids."""

    sessions: dict[int, FetchSessionHandler] = field(default_factory=dict)
    in_flight: dict[int, int] = field(default_factory=dict)
    retry_at: dict[int, Millis] = field(default_factory=dict)
    buffered: deque[BufferedFetch] = field(default_factory=deque)


# -- the user's calls


@dataclass(slots=True)
class Poll:
    """The poll that runs now."""

    until: Millis
    max_records: int
    only: frozenset[TopicPartition] | None
    metadata_update: int = 0
    """With a pattern: the metadata update to be seen before joining."""


class ClosePhase(IntEnum):
    """How far close has come."""

    OPEN = 0
    COMMITTING = 1
    AWAITING_ASYNC = 2
    GIVING_UP = 3
    AWAITING_ANSWERS = 4
    CLOSED = 5


@dataclass(slots=True)
class Closing:
    """A call of close: what was asked for, and how far it has come."""

    phase: ClosePhase = ClosePhase.OPEN
    token: Token = None
    leave: bool = True
    until: Millis = 0
    error: KafkaError | None = None

    @property
    def begun(self) -> bool:
        return self.phase is not ClosePhase.OPEN


ListenerDone: TypeAlias = Callable[[BaseException | None], None]
"""What goes on once the listener has returned, or raised."""


@dataclass(slots=True)
class ConsumerState:
    """One consumer. ``needs_prepare``: what is owned must be looked at before the next JoinGroup."""

    member_state: MemberState = MemberState.UNJOINED
    generation: Generation = NO_GENERATION
    group_generation: Generation = NO_GENERATION
    """The generation of the last assignment, as ``group_metadata`` shows it."""
    is_leader: bool = False
    rejoin_needed: bool = True
    rejoin_reason: str = ""
    needs_prepare: bool = True
    coordinator: Endpoint | None = None
    heartbeat: HeartbeatTimers = field(default_factory=HeartbeatTimers)
    lookup: CoordinatorLookup = field(default_factory=CoordinatorLookup)
    join: JoinState = field(default_factory=JoinState)
    membership: ConsumerMembership | None = None
    """Of a member that uses the consumer protocol. ``generation`` has its member epoch then, and ``join`` is unused."""
    reconciliation: Reconciliation | None = None

    subscription: SubscriptionState = field(default_factory=SubscriptionState)
    metadata: MetadataCache = field(default_factory=MetadataCache)
    positions: PositionLookup = field(default_factory=PositionLookup)
    log_ends: LogEndLookup = field(default_factory=LogEndLookup)
    cluster: ClusterCache = field(default_factory=ClusterCache)
    fetching: FetchState = field(default_factory=FetchState)
    commits: CommitState = field(default_factory=CommitState)

    poll: Poll | None = None
    woken: bool = False
    queries: list[Query] = field(default_factory=list)
    listener_done: ListenerDone | None = None
    """Set while the user's thread is in the listener."""
    listener_error: KafkaError | None = None
    """What the listener raised; the poll that goes on after it raises this."""
    closing: Closing = field(default_factory=Closing)

    requests: Requests = field(default_factory=Requests)
    held_join_answers: list[Answered | Failed] = field(default_factory=list)
    """Answers to JoinGroup that wait for the next poll."""

    @property
    def rebalancing(self) -> bool:
        return self.member_state in REBALANCING

    @property
    def stable_generation(self) -> Generation | None:
        return self.generation if self.member_state is MemberState.STABLE else None

    @property
    def generation_was_reset(self) -> bool:
        """True when there is no generation; the member id may have been kept."""
        return self.generation.generation_id == NO_GENERATION.generation_id and self.generation.protocol is None

    @property
    def settled(self) -> bool:
        """True for a stable member that knows no reason to join again."""
        return self.member_state is MemberState.STABLE and not self.rejoin_needed and self.join.attempt is None

    @property
    def in_listener(self) -> bool:
        """True while the user's thread is in the listener."""
        return self.listener_done is not None

    @property
    def user_is_polling(self) -> bool:
        return self.poll is not None and self.listener_done is None

    @property
    def user_is_waiting(self) -> bool:
        """True while a call of the user's is open: only then does the user's thread go on."""
        return self.poll is not None or bool(self.commits.sync) or bool(self.queries) or self.closing.begun
