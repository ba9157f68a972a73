"""Inputs of a consumer: each arrives with the time, through its one door.

A token stands for a caller that waits: the core keeps it and gives the same object back, in exactly one effect.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple, TypeAlias

from rejoin.client.core.group.streams.tasks import TaskId
from rejoin.protocol.message import Response
from rejoin.protocol.types import TopicPartition

Millis: TypeAlias = int
"""Whole milliseconds: an instant since 1970, or a length."""

Token: TypeAlias = object


class RecordRange(NamedTuple):
    """Records of one partition: from ``start`` up to, and not including, ``end``."""

    topic: str
    partition: int
    start: int
    end: int


class OffsetAndMetadata(NamedTuple):
    """A committed offset: the next one to read, with metadata of the committer's own.

    ``leader_epoch`` is that of the last record read, or -1: by it the next reader finds a truncated log.
    """

    offset: int
    metadata: str = ""
    leader_epoch: int = -1


class GroupMetadata(NamedTuple):
    """A consumer's membership, as of the last assignment."""

    group_id: str
    generation_id: int = -1
    member_id: str = ""
    group_instance_id: str | None = None


class OffsetReset(Enum):
    """Where a partition without a position starts; the value is the timestamp that ListOffsets understands."""

    LATEST = -1
    EARLIEST = -2


Reset: TypeAlias = OffsetReset | int
"""Where a position without an offset comes from: an end of the log, or the first record since a time."""


class Failure(Enum):
    """Why a request has no answer."""

    DISCONNECT = "disconnect"
    TIMEOUT = "timeout"


@dataclass(slots=True)
class Subscribed:
    """Read these topics, or all whose whole name matches a pattern. No topics at all means: unsubscribe.

    ``regex`` is matched by the coordinator, which takes the consumer protocol.
    """

    topics: tuple[str, ...] = ()
    pattern: str | None = None
    token: Token = None
    regex: str | None = None


@dataclass(slots=True)
class Unsubscribed:
    """Read nothing any more. Answered by ``CallDone``."""

    token: Token = None


@dataclass(slots=True)
class Assigned:
    """Read exactly these partitions, without the group's help. No partitions at all means: unsubscribe."""

    partitions: tuple[TopicPartition, ...]
    token: Token = None


@dataclass(slots=True)
class Polled:
    """The user asks for records and waits at most ``timeout_ms``. Answered by ``PollReturned`` or ``PollFailed``."""

    timeout_ms: int
    max_records: int | None = None
    partitions: frozenset[TopicPartition] | None = None


@dataclass(slots=True)
class Processed:
    """The user is done with these records: an event for the journal, of no consequence for the consumer."""

    ranges: tuple[RecordRange, ...]


@dataclass(slots=True)
class Answered:
    """A request was answered."""

    request_id: int
    response: Response


@dataclass(slots=True)
class Failed:
    """A request will not be answered."""

    request_id: int
    failure: Failure
    detail: str = ""


@dataclass(slots=True)
class CallbackDone:
    """The listener returned, or raised."""

    error: BaseException | None = None


@dataclass(slots=True)
class CommitAsked:
    """Commit these offsets, or every position. Answered by ``CommitDone``.

    A synchronous commit is repeated until it succeeds, fails for good, or its time is over; an asynchronous one is
    tried once, and its answer comes during a later poll, commit or close.
    """

    token: Token
    offsets: Mapping[TopicPartition, OffsetAndMetadata] | None = None
    sync: bool = True
    timeout_ms: int | None = None


@dataclass(slots=True)
class CommittedAsked:
    """Ask for committed offsets. Answered by ``OffsetsFound``; None where nothing is committed."""

    token: Token
    partitions: tuple[TopicPartition, ...]
    timeout_ms: int | None = None


@dataclass(slots=True)
class OffsetsAsked:
    """Ask for offsets by time: ms since 1970, -1 the end, -2 the beginning. Answered by ``OffsetsFound``."""

    token: Token
    timestamps: Mapping[TopicPartition, int]
    timeout_ms: int | None = None


@dataclass(slots=True)
class PositionAsked:
    """Ask for the position of an assigned partition, waiting until it has one. Answered by ``OffsetsFound``."""

    token: Token
    partition: TopicPartition
    timeout_ms: int | None = None


@dataclass(slots=True)
class Sought:
    """Go on from this offset, or from where a reset leads."""

    partitions: tuple[TopicPartition, ...]
    to: int | OffsetReset


@dataclass(slots=True)
class Paused:
    """Return no records of these partitions until they are resumed; the group does not notice."""

    partitions: tuple[TopicPartition, ...]


@dataclass(slots=True)
class Resumed:
    """The opposite of ``Paused``."""

    partitions: tuple[TopicPartition, ...]


@dataclass(slots=True)
class RebalanceEnforced:
    """Join again at the next poll, for a reason of the user's (KIP-800)."""

    reason: str = ""


@dataclass(frozen=True, slots=True)
class TasksMeasured:
    """The state of tasks has got so far: sums of changelog offsets reached, and of the ends of the changelogs.

    Tasks are those that run, or are on disk. Only threads of applications have any.
    """

    offsets: Mapping[TaskId, int]
    end_offsets: Mapping[TaskId, int]


@dataclass(frozen=True, slots=True)
class ShutdownAsked:
    """The thread wants all instances of its application to end; the next heartbeat asks for that."""


@dataclass(slots=True)
class Closed:
    """Commit if auto-commit is on, give everything up, leave the group if dynamic. Answered by ``CallDone``.

    With ``leave`` false the group gets no LeaveGroup: the process means to come back.
    """

    token: Token = None
    timeout_ms: int | None = None
    leave: bool = True


@dataclass(slots=True)
class Woken:
    """The poll that runs now, or else the next one, raises ``WakeupError``."""


@dataclass(slots=True)
class Elapsed:
    """Time has passed: handle due timers."""


Input: TypeAlias = (
    Subscribed
    | Unsubscribed
    | Assigned
    | Polled
    | Processed
    | Answered
    | Failed
    | CallbackDone
    | CommitAsked
    | CommittedAsked
    | OffsetsAsked
    | PositionAsked
    | Sought
    | Paused
    | Resumed
    | RebalanceEnforced
    | TasksMeasured
    | ShutdownAsked
    | Closed
    | Woken
    | Elapsed
)
