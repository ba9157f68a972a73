"""Effects of a consumer, which its driver applies in the order in which they came about."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, NamedTuple, TypeAlias

from rejoin.client.core.errors import KafkaError
from rejoin.client.core.fetch.consumer_record import ConsumerRecord
from rejoin.client.core.group.streams.tasks import StreamsTasks
from rejoin.client.core.inputs import RecordRange, Token
from rejoin.journal.events.base import Event
from rejoin.protocol.message import Request
from rejoin.protocol.types import TopicPartition


class Endpoint(NamedTuple):
    """A node as Metadata or FindCoordinator name it. As the coordinator it has a connection of its own."""

    # Kafka: the coordinator's connection has the id Integer.MAX_VALUE - node_id.
    node_id: int
    host: str
    port: int
    is_coordinator: bool = False


@dataclass(slots=True)
class Send:
    """Send a request to the node at ``to``, or to any node (None).

    The driver hands in exactly one ``Answered`` or ``Failed``, unless a ``Cancel`` comes first. After ``timeout_ms``
    without an answer that is ``Failed(TIMEOUT)``; 0 and below means that it should not wait at all.
    """

    request_id: int
    to: Endpoint | None
    request: Request
    version: int
    timeout_ms: int


@dataclass(slots=True)
class Cancel:
    """The consumer does not wait for this request any more; an answer to it is ignored."""

    request_id: int


@dataclass(slots=True)
class Disconnect:
    """Give up the connection to a node: what waits there would hold up what comes next."""

    to: Endpoint


CallbackKind: TypeAlias = Literal["revoked", "assigned", "lost"]


@dataclass(slots=True)
class CallListener:
    """Call the user's rebalance listener, and hand in ``CallbackDone`` afterwards; at once where there is no listener.

    Until then the consumer's poll stands still, while heartbeats go on. The listener may commit.

    A thread of an application is handed ``tasks`` as well: those that it gives up, or all that it has from now on, and
    then whether it may process records.
    """

    kind: CallbackKind
    partitions: tuple[TopicPartition, ...]
    tasks: StreamsTasks | None = None
    is_group_ready: bool = True


@dataclass(slots=True)
class PollReturned:
    """The poll ends with these records, or with none. ``records`` has those of each range, where they were fetched."""

    ranges: tuple[RecordRange, ...] = ()
    records: tuple[list[ConsumerRecord], ...] | None = None


@dataclass(slots=True)
class PollFailed:
    """The poll ends with an error."""

    error: KafkaError


@dataclass(slots=True)
class CommitDone:
    """A commit ended. An error of an asynchronous commit is of the kind that Kafka hands to its callback."""

    token: Token
    error: KafkaError | None = None


@dataclass(slots=True)
class OffsetsFound:
    """The answer to a question for offsets."""

    token: Token
    offsets: Mapping[TopicPartition, int | None]
    metadata: Mapping[TopicPartition, str]
    error: KafkaError | None = None


@dataclass(slots=True)
class CallDone:
    """Subscribe, assign, unsubscribe or close is done, or failed."""

    token: Token
    error: KafkaError | None = None


@dataclass(slots=True)
class AcknowledgementsCommitted:
    """A share consumer's commit has ended: for each partition with acknowledgements, their error or None."""

    token: Token
    results: Mapping[TopicPartition, KafkaError | None]


@dataclass(slots=True)
class AcknowledgementCallback:
    """Call a share consumer's callback: acknowledgements of these offsets were taken in, or failed."""

    partition: TopicPartition
    offsets: tuple[int, ...]
    error: KafkaError | None


Effect: TypeAlias = (
    Send
    | Cancel
    | Disconnect
    | CallListener
    | PollReturned
    | PollFailed
    | CommitDone
    | OffsetsFound
    | CallDone
    | AcknowledgementsCommitted
    | AcknowledgementCallback
    | Event
)
