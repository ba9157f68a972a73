"""Inputs of a node. All that a node learns arrives as one of these, with the time, through ``Node.step``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeAlias

from rejoin.protocol.brokers.listener_address import HTTP, ListenerAddress
from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.message import Request, Response
from rejoin.protocol.records.topics import AnyTopicsRecord
from rejoin.protocol.types import LogPartition, TopicIdPartition, TopicPartition

Millis: TypeAlias = int
"""Whole milliseconds: an instant since 1970, or a length."""

Token: TypeAlias = object
"""Stands for a requester. The core keeps it and gives it back, the very object, in exactly one ``Reply``."""

LogEntries: TypeAlias = tuple[Any, ...]
"""Entries of one partition's log: ``Record`` for an internal topic, ``DataEntry`` for a data partition."""

TopicsRecords: TypeAlias = tuple[AnyTopicsRecord, ...]
"""Parts of one change of the topics, which is stored whole or not at all."""


ANONYMOUS = "User:ANONYMOUS"
"""The principal of a client that did not say who it is."""


@dataclass(slots=True, frozen=True)
class Context:
    """Who asks, and in which version. ``client_host`` is printed as Kafka prints it, ``/127.0.0.1``."""

    api_version: int
    client_id: str = ""
    client_host: str = "/127.0.0.1"
    principal: str = ANONYMOUS
    listener: str = HTTP
    """The listener that the request came in by; addresses in the response are those of its own kind."""
    local_host: str = ""
    """This machine's name or address that the client connected to; empty where it is not known."""
    by_operator: bool = False
    """Whether the request is the operator's, not a client's: limits of requests do not apply."""
    client_port: int | None = None
    """The port that the client connected from, where it is known."""
    software: str = ""
    """The name and version of the client's software, where ApiVersions has said it."""
    by_token: bool = False
    """True where the principal has logged in by a delegation token."""
    connection: str = ""
    """The connection that the request came in by, unlike all others of the node; empty where its end is not seen."""


@dataclass(slots=True)
class Received:
    """A request arrived, already checked to be one of ``context.api_version``."""

    token: Token
    request: Request
    context: Context


@dataclass(slots=True)
class Elapsed:
    """Time has passed: fire the due timers."""


@dataclass(slots=True)
class Stored:
    """An append ended: durable (``NONE``), or failed with the log's own error. Every ``Append`` is answered by one."""

    partition: LogPartition
    epoch: int
    append_id: int
    error: ErrorCode = ErrorCode.NONE


@dataclass(slots=True)
class Elected:
    """This node leads a partition from now on, in this epoch.

    Data partitions are elected only where they have registrations; else they follow ``leased_by``.
    """

    partition: LogPartition
    epoch: int


@dataclass(slots=True)
class Resigned:
    """This node does not lead a partition any more."""

    partition: LogPartition


@dataclass(slots=True)
class LogRead:
    """A piece of the log asked for by ``ReadLog``, in log order; ``end`` is true with the last piece."""

    partition: LogPartition
    epoch: int
    records: LogEntries
    end: bool


@dataclass(slots=True)
class LogDamaged:
    """The log of a data partition, asked for by ``ReadLog``, cannot be read: no more pieces of it will come."""

    partition: TopicIdPartition
    epoch: int


@dataclass(slots=True, frozen=True)
class Broker:
    """A node as clients reach it."""

    node_id: int
    host: str
    port: int
    rack: str | None = None
    endpoints: tuple[ListenerAddress, ...] = ()
    """The listeners beside HTTP's, which has ``host`` and ``port``."""
    without_host: frozenset[str] = frozenset()
    """Listeners on every address of this machine with no host to advertise: each client is sent to the host that it
    connected to, and to ``host`` where that is not known."""

    def endpoint(self, context: Context) -> ListenerAddress:
        """The address of the listener that a request came in by; that of HTTP where there is none of this name.

        Kafka: MetadataCache.getAliveBrokerNode. Differs: Kafka has one address for all clients of a listener.
        """
        found = next((each for each in self.endpoints if each.listener == context.listener), None)
        if found is None:
            found = ListenerAddress(HTTP, self.host, self.port)
        if context.local_host and found.listener in self.without_host:
            return found._replace(host=context.local_host)
        return found


NO_LEADER: Final = -1


@dataclass(frozen=True, slots=True)
class PartitionRegistration:
    """A partition as the controller knows it. Kafka: org.apache.kafka.metadata.PartitionRegistration."""

    replicas: tuple[int, ...]
    """The brokers that keep it, the preferred leader first."""
    isr: tuple[int, ...]
    leader: int
    """Or -1."""
    leader_epoch: int = 0
    adding: tuple[int, ...] = ()
    """Replicas that a reassignment adds, until they are all in sync."""
    removing: tuple[int, ...] = ()
    """Replicas that go with the end of that reassignment."""


Registrations: TypeAlias = Mapping[LogPartition, PartitionRegistration]


@dataclass(slots=True)
class ClusterSeen:
    """The cluster as far as it is known: the live nodes, and who leads each partition (missing: none).

    ``registrations`` has all partitions where a controller decides on each of them. Without it, the leader of an
    offsets partition leads the data partitions that belong to it.
    """

    brokers: tuple[Broker, ...]
    leaders: dict[TopicPartition, int]
    registrations: Registrations | None = None


@dataclass(slots=True)
class FollowersFetched:
    """How far the followers of a data partition have got: by broker, the end offset of its log.

    Those that do not fetch now are ``silent``: they come back into sync no sooner than they do.
    """

    partition: TopicIdPartition
    epoch: int
    end_offsets: Mapping[int, int]
    silent: tuple[int, ...] = ()


@dataclass(slots=True)
class Replicated:
    """This node has copied more of a log that another node leads, or has heard of a high watermark.

    With ``whole`` the entries are all of the copy, which replaces what was there; it is also the answer to
    ``FollowLog``. The high watermark is no later than the end of the copy.
    """

    partition: TopicIdPartition
    entries: LogEntries
    high_watermark: int
    whole: bool = False


@dataclass(slots=True)
class TopicsStored:
    """An ``AppendTopics`` ended: stored as ``version``, failed, or ``overtaken`` by a change that was stored before.

    A node that was overtaken gets the other changes first, with ``TopicsChanged``, and decides again.
    """

    append_id: int
    version: int = 0
    error: ErrorCode = ErrorCode.NONE
    overtaken: bool = False


@dataclass(slots=True)
class TopicsChanged:
    """Changes from the topics log, in log order, each with its version; those that are known already do no harm.

    ``version`` is that of the log behind them. ``whole`` says that they are all that there is: other topics are gone.
    With ``shares_events`` the node that made a change has emitted its events for all.
    """

    changes: tuple[tuple[int, TopicsRecords], ...]
    version: int
    whole: bool = False
    shares_events: bool = False


@dataclass(slots=True)
class NodeAnswered:
    """A ``SendRequest`` has ended: with the response, or with none where the other node could not be reached."""

    send_id: int
    response: Response | None


@dataclass(slots=True)
class RegexesResolved:
    """A ``ResolveRegexes`` has ended: with the topics that match each expression, or with none where it failed."""

    partition: TopicPartition
    epoch: int
    group_id: str
    topics: Mapping[str, frozenset[str]] | None
    version: int


@dataclass(slots=True)
class ConnectionLost:
    """A connection by which a share session was opened is gone."""

    connection: str


class ControlInput:
    """Something that does not happen by itself: a test asks for it, and has checked that it is possible."""

    __slots__ = ()


@dataclass(slots=True)
class SessionLost(ControlInput):
    """A member's session, or the time in which a handed-out id may be used, is over now, whenever it was due."""

    group_id: str
    member_id: str


@dataclass(slots=True)
class RecordsWritten(ControlInput):
    """Records were produced: the end offset of a synthetic log moves on by so many at once."""

    topic: str
    partition: int
    records: int


@dataclass(slots=True)
class CompactionWanted(ControlInput):
    """Compacted logs that are led here are cleaned now, however little of them is dirty: of one topic, or of all."""

    topic: str | None


@dataclass(slots=True)
class LockExpired(ControlInput):
    """The lock of a record in a share group is over now; that of a batch in one state ends for all of its records."""

    group_id: str
    topic: str
    partition: int
    offset: int


@dataclass(slots=True)
class RecordReleased(ControlInput):
    """The member that holds a record in a share group releases it, without a request: its session is as before."""

    group_id: str
    topic: str
    partition: int
    offset: int


@dataclass(frozen=True, slots=True)
class PersisterFault(ControlInput):
    """Requests of this node to share coordinators for a group are not sent, ``count`` times; -1: all, 0: no more.

    It is answered with the error; none: not at all, as by a node that is gone.
    """

    group_id: str
    operation: Literal["initialize", "read", "write", "delete", "summary"]
    error: ErrorCode | None
    count: int


@dataclass(frozen=True, slots=True)
class FetchWaited(ControlInput):
    """A Fetch waits no longer: its client is gone, or its time is over by the machine's clock."""

    token: Token


Input: TypeAlias = (
    Received
    | Elapsed
    | Stored
    | Elected
    | Resigned
    | LogRead
    | LogDamaged
    | ClusterSeen
    | FollowersFetched
    | Replicated
    | TopicsStored
    | TopicsChanged
    | NodeAnswered
    | RegexesResolved
    | ConnectionLost
    | ControlInput
)
