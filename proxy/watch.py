"""The watch: requests about groups, offsets and transactions with their answers, as a broker's request log has them.

``rejoin report``, ``why`` and ``watch`` read the file as they read Kafka's own ``kafka-request.log``. Records, keys and
credentials are in none of these requests. Of heartbeats that say nothing new the first and the last are written, and
one each 30 s.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import orjson

from rejoin.journal.kafka_logs.request_lines import (
    ANONYMOUS,
    UNKNOWN_SOFTWARE,
    LoggedHead,
    LoggedTimes,
    RequestOrigin,
    request_line,
)
from rejoin.protocol.message import Request, Response
from rejoin.protocol.messages.cluster.api_versions import ApiVersionsRequest
from rejoin.protocol.messages.cluster.metadata import (
    MetadataRequest,
    MetadataResponse,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from rejoin.protocol.registry import API_VERSIONS, DEFINED, FETCH, METADATA
from rejoin.protocol.types import ZERO_UUID
from rejoin.protocol.wire.errors import SchemaError
from rejoin.proxy.exchange import ProxiedRequest
from rejoin.proxy.line_file import LineFile

if TYPE_CHECKING:
    from rejoin.proxy.relay import Relay

REPEATED_MS: Final = 30_000
"""How long the same request with the same answer is not written again."""
_MOST_REPEATED: Final = 16
"""Requests of one connection that are compared with the next of their kind."""
_ID_BYTES: Final = 4
"""The correlation id in front of an answer."""
_MOST_TOPICS: Final = 100_000
"""Topics whose ids are known by name."""
_FETCH_MS: Final = 1_000
"""How often a Fetch of one connection is written at most: for positions and ends, not for each batch of records."""

_WATCHED: Final = (
    *("JoinGroup", "SyncGroup", "Heartbeat", "LeaveGroup", "OffsetCommit", "OffsetFetch", "OffsetDelete"),
    *("FindCoordinator", "DescribeGroups", "DeleteGroups", "ListGroups", "TxnOffsetCommit"),
    *("ConsumerGroupHeartbeat", "ConsumerGroupDescribe", "ShareGroupHeartbeat", "ShareGroupDescribe"),
    *("StreamsGroupHeartbeat", "StreamsGroupDescribe", "InitProducerId", "AddPartitionsToTxn", "AddOffsetsToTxn"),
    *("EndTxn", "AlterShareGroupOffsets", "DeleteShareGroupOffsets", "DescribeShareGroupOffsets"),
    *("Metadata", "CreateTopics", "ListOffsets", "Fetch"),
)
WATCHED: Final = frozenset(key for key, api in DEFINED.items() if api.name in _WATCHED) | {API_VERSIONS.key}
"""The keys of the APIs that are looked at. ApiVersions has the client's software, and is not written.

Of Metadata only topics are written that no line has named before; of Fetch one answer a second, without records.
"""


@dataclass(slots=True)
class LastExchange:
    """The last exchange of one API on a connection that was written, and one since then that was not."""

    request: bytes
    answer: bytes
    at_ms: float
    unwritten: ProxiedRequest | None = None

    @classmethod
    def of(cls, exchange: ProxiedRequest) -> LastExchange:
        """Kept parts of an exchange, to compare the next one with."""
        return cls(exchange.request, exchange.answer[_ID_BYTES:], exchange.answered_ms)

    def is_repeated_by(self, exchange: ProxiedRequest) -> bool:
        """True where this was written lately, and the exchange says nothing else."""
        since = exchange.answered_ms - self.at_ms
        if exchange.plan.key == FETCH.key:
            return since < _FETCH_MS
        is_same = (self.request, self.answer) == (exchange.request, exchange.answer[_ID_BYTES:])
        return is_same and since < REPEATED_MS


class RequestWatch:
    """Writes a line for each exchange that says something."""

    watched = WATCHED

    def __init__(self, file: LineFile | None, on_line: Callable[[str], None] | None = None) -> None:
        """Lines go to the file, where there is one, and to ``on_line``."""
        self.file = file
        self.on_line = on_line
        self.unreadable = 0
        """Exchanges whose request or answer could not be read; they passed."""
        self._last: dict[Relay, dict[int, LastExchange]] = {}
        self._topics: dict[str, tuple[str, int]] = {}
        """Names of topics that a line has had, with their numbers of partitions, by id."""
        self._last_ms = 0
        if file is not None:
            file.on_next_file = self._all_topics

    @property
    def lost(self) -> int:
        """Lines that could not be written to the file."""
        return 0 if self.file is None else self.file.lost

    def exchanged(self, relay: Relay, exchange: ProxiedRequest) -> None:
        """Write an exchange whose request and answer were kept, unless it says what the one before said."""
        if exchange.plan.key == API_VERSIONS.key:
            self._introduced(relay, exchange)
            return
        if not exchange.request and not exchange.answer:
            return
        last = self._last.setdefault(relay, {})
        key = exchange.plan.key
        before = last.get(key)
        if before is not None and before.is_repeated_by(exchange):
            before.unwritten = exchange if key != FETCH.key else None
            return
        if before is not None and before.unwritten is not None:
            # It says until when all was as before.
            self._read(relay, before.unwritten)
        if before is not None or len(last) < _MOST_REPEATED:
            last[key] = LastExchange.of(exchange)
        self._read(relay, exchange)

    def _read(self, relay: Relay, exchange: ProxiedRequest) -> None:
        found = read(exchange)
        if found is None:
            self.unreadable += 1
            return
        request, response = found
        if isinstance(response, MetadataResponse):
            named = self._new_topics(response)
            if named is None:
                return
            request, response = MetadataRequest(topics=()), named
        plan = exchange.plan
        head = LoggedHead(plan.name, plan.key, plan.version, exchange.correlation_id, exchange.client_id)
        self._write(exchange, head, relay, request, response)

    def _write(
        self, exchange: ProxiedRequest, head: LoggedHead, relay: Relay, request: Request, response: Response
    ) -> None:
        took = exchange.answered_ms - exchange.arrived_ms
        self._last_ms = round(exchange.answered_ms)
        line = request_line(
            self._last_ms,
            head,
            RequestOrigin(connection_text(relay), relay.principal or ANONYMOUS, software=software_of(relay)),
            LoggedTimes(took, 0.0, took),
            orjson.loads(request.to_json(head.version)),
            orjson.loads(response.to_json(head.version)),
        )
        if self.file is not None:
            self.file.write(line)
        if self.on_line is not None:
            self.on_line(line)

    def _new_topics(self, response: MetadataResponse) -> MetadataResponse | None:
        """An answer with those topics alone that no line has had with this name and this number of partitions."""
        fresh = []
        for topic in response.topics:
            known = self._topics.get(topic.topic_id)
            count = len(topic.partitions) or (known[1] if known is not None else 0)
            if not topic.name or topic.topic_id == ZERO_UUID or known == (topic.name, count):
                continue
            if known is not None or len(self._topics) < _MOST_TOPICS:
                self._topics[topic.topic_id] = (topic.name, count)
                fresh.append(_counted(topic.topic_id, topic.name, count))
        return MetadataResponse(topics=tuple(fresh)) if fresh else None

    def _all_topics(self) -> str:
        """A line with all topics, so that each file of the journal has their names."""
        if not self._topics:
            return ""
        topics = tuple(_counted(topic_id, *known) for topic_id, known in self._topics.items())
        version = METADATA.max_version
        return request_line(
            self._last_ms,
            LoggedHead(METADATA.name, METADATA.key, version, -1, None),
            RequestOrigin(""),
            LoggedTimes(0.0, 0.0, 0.0),
            orjson.loads(MetadataRequest(topics=()).to_json(version)),
            orjson.loads(MetadataResponse(topics=topics).to_json(version)),
        )

    def connection_ended(self, relay: Relay) -> None:
        """Write the last exchanges of the connection that were not, which says how long the client was there."""
        for last in self._last.pop(relay, {}).values():
            if last.unwritten is not None:
                self._read(relay, last.unwritten)

    def close(self) -> None:
        """Close the file."""
        if self.file is not None:
            self.file.close()

    @staticmethod
    def _introduced(relay: Relay, exchange: ProxiedRequest) -> None:
        codec = exchange.plan.codec
        if codec is None or not exchange.request:
            return
        try:
            request = codec.read_request(exchange.request, 0)
        except SchemaError:
            return
        if isinstance(request, ApiVersionsRequest) and request.client_software_name:
            relay.software = f"{request.client_software_name} {request.client_software_version}"


def read(exchange: ProxiedRequest) -> tuple[Request, Response] | None:
    """The request and the answer of an exchange; none where one of them was not kept, or cannot be read."""
    codec = exchange.plan.codec
    if codec is None or not exchange.answer:
        return None
    try:
        request: Any = codec.read_request(exchange.request, 0)
        _, response = codec.read_response_frame(exchange.answer)
    except SchemaError:
        return None
    return request, response


def _counted(topic_id: str, name: str, count: int) -> MetadataResponseTopic:
    """A topic of an answer, of whose partitions the last one alone is named: it says how many there are."""
    last = (MetadataResponsePartition(partition_index=count - 1),) if count else ()
    return MetadataResponseTopic(topic_id=topic_id, name=name, partitions=last)


_SPACE: Final = re.compile(r"\s+")


def software_of(relay: Relay) -> tuple[str, str]:
    """The name and version of a client's software."""
    name, _, version = relay.software.partition(" ")
    return (name, version) if name else UNKNOWN_SOFTWARE


def connection_text(relay: Relay) -> str:
    """Both ends of a connection with its number, as Kafka writes them."""
    host, port = relay.route.address()
    number = relay.name.rpartition("-")[2]
    return f"{host}:{port}-{_SPACE.sub('', relay.client_host)}:{relay.client_port}-{number}"
