"""Effects: what a driver has to carry out for a node, in the order in which the node asked for it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from rejoin.coordinator.core.inputs import LogEntries, Token, TopicsRecords
from rejoin.journal.events.base import Event
from rejoin.protocol.message import Request, Response
from rejoin.protocol.types import LogPartition, TopicIdPartition, TopicPartition


@dataclass(slots=True)
class Reply:
    """Answer a request."""

    token: Token
    response: Response


@dataclass(slots=True)
class Append:
    """Write records to a partition's log, all or none, and say how it ended with ``Stored``.

    A log whose partition has moved on to a newer epoch must refuse with ``NOT_LEADER_OR_FOLLOWER``. No records means:
    say when everything before is stored.

    The epoch is that of the partition; for a data partition, that of ``leased_by``, whose leader leads it.
    """

    append_id: int
    partition: LogPartition
    epoch: int
    records: LogEntries
    leased_by: TopicPartition | None = None


@dataclass(slots=True)
class ReadLog:
    """Read a partition's log from its start and hand it in with ``LogRead``."""

    partition: LogPartition
    epoch: int


@dataclass(slots=True)
class DeleteLog:
    """Delete the log of a data partition: its topic is gone. No answer is awaited."""

    partition: TopicIdPartition
    epoch: int
    leased_by: TopicPartition


@dataclass(slots=True)
class FollowLog:
    """Hand in this node's copy of a log that another node leads, and all that it gets from now on.

    It comes as ``Replicated``, the first one ``whole``.
    """

    partition: TopicIdPartition


@dataclass(slots=True)
class HighWatermarkMoved:
    """Let the followers of a partition know its high watermark, those that reach the leader. No answer is awaited."""

    partition: TopicIdPartition
    epoch: int
    high_watermark: int


@dataclass(slots=True)
class AlterPartition:
    """Ask the controller for another set of in-sync replicas; it comes with ``ClusterSeen``. Kafka: AlterPartition."""

    partition: TopicIdPartition
    epoch: int
    isr: tuple[int, ...]


@dataclass(slots=True)
class AppendTopics:
    """Write a change to the topics log if its newest version is still ``version``; its end comes as ``TopicsStored``.

    Only a node that was made with a topics log asks for this, and never for two at a time.
    """

    append_id: int
    version: int
    records: TopicsRecords


@dataclass(slots=True)
class SendRequest:
    """Send a request to another node; its end comes back as ``NodeAnswered``, once."""

    send_id: int
    node_id: int
    request: Request
    api_version: int


@dataclass(slots=True)
class ResolveRegexes:
    """Find the topics that match each expression of a group, aside; the result arrives as ``RegexesResolved``.

    ``topics`` are those of this moment that the client may see, and ``version`` is theirs.
    ``core/groups/consumer/regex_resolution.py`` does the work, on any thread.
    """

    partition: TopicPartition
    epoch: int
    group_id: str
    regexes: tuple[str, ...]
    topics: tuple[str, ...]
    version: int


@dataclass(slots=True)
class DeferredEvents:
    """Publish events of a group, which are made when something reads them; ``counts`` has how many of each class.

    Only a node that was made with ``defers_events`` asks for this; others emit the events.
    """

    group_id: str
    counts: Mapping[type[Event], int]
    make: Callable[[], list[Event]]


Effect: TypeAlias = (
    Reply
    | Append
    | ReadLog
    | DeleteLog
    | FollowLog
    | HighWatermarkMoved
    | AlterPartition
    | AppendTopics
    | SendRequest
    | ResolveRegexes
    | DeferredEvents
    | Event
)
