"""All that a consumer remembers between two steps: one struct of plain data.

The modules beside this one are functions of it: ``lookup.ensure(state, ctx)``. What holds for a part is said where its
functions are. What never changes (settings, assignors) is in the :class:`~rejoin.client.core.step_context.StepContext`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import IntEnum
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from rejoin.client.core.effects import Endpoint
from rejoin.client.core.errors import KafkaError
from rejoin.client.core.group.consumer.state import ConsumerMembership
from rejoin.client.core.inputs import Answered, Failed, Millis, Token
from rejoin.client.core.state.fetching import ClusterCache, FetchState
from rejoin.client.core.state.membership import (
    NO_GENERATION,
    REBALANCING,
    CoordinatorLookup,
    Generation,
    HeartbeatTimers,
    JoinState,
    MemberState,
    Reconciliation,
)
from rejoin.client.core.state.offsets import CommitState, LogEndLookup, PositionLookup, Query
from rejoin.client.core.subscription import SubscriptionState
from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.message import Request, Response
from rejoin.protocol.registry import Api
from rejoin.protocol.types import TopicPartition

if TYPE_CHECKING:
    from rejoin.client.core.share.state import ShareConsumerState
    from rejoin.client.core.step_context import StepContext

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


# -- metadata

Racks: TypeAlias = tuple[tuple[str | None, ...], ...]
"""For each partition the racks of its replicas."""


class TopicInfo(NamedTuple):
    """Metadata of a topic, as the consumer knows it."""

    partitions: int
    racks: Racks
    internal: bool


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
"""Continuation once the listener has returned, or raised."""


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
    share: ShareConsumerState | None = None
    """Of a share consumer: sessions, records in flight and acknowledgements. It has a ``membership`` too."""

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
    """Error of the listener; the poll that goes on after it raises this."""
    closing: Closing = field(default_factory=Closing)

    requests: Requests = field(default_factory=Requests)
    deferred_join_answers: list[Answered | Failed] = field(default_factory=list)
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
    def is_stable(self) -> bool:
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
    def may_change_assignment(self) -> bool:
        """True while the listener can be called: in a poll. Share consumers have none, so always."""
        return self.share is not None or self.user_is_polling

    @property
    def user_is_waiting(self) -> bool:
        """True while a call of the user's is open: only then does the user's thread go on."""
        return self.poll is not None or bool(self.commits.sync) or bool(self.queries) or self.closing.begun
