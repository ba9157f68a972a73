"""Commits, positions and questions for offsets, as a consumer remembers them."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from rejoin.client.core.errors import KafkaError
from rejoin.client.core.inputs import Millis, OffsetAndMetadata, Token
from rejoin.journal.events.client import CommitKind
from rejoin.protocol.messages.records.list_offsets import ListOffsetsRequest
from rejoin.protocol.types import TopicPartition

if TYPE_CHECKING:
    from rejoin.client.core.state.consumer import ConsumerState
    from rejoin.client.core.state.membership import Generation
    from rejoin.client.core.step_context import StepContext


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
    """Partitions that ``request`` asks for; it is sent again while they stay the same."""
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
