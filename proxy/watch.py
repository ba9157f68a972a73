"""The watch: requests about groups, offsets and transactions with their answers, as a broker's request log has them.

``rejoin report``, ``why`` and ``watch`` read the file as they read Kafka's own ``kafka-request.log``. Records, keys and
credentials are in none of these requests. A heartbeat that says nothing new is written now and then only.
"""

from __future__ import annotations

import re
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Any, Final

import orjson
import structlog

from rejoin.journal.kafka_logs.request_lines import (
    UNKNOWN_SOFTWARE,
    LoggedHead,
    RequestOrigin,
    RequestTimes,
    request_line,
)
from rejoin.protocol.message import Request, Response
from rejoin.protocol.messages.cluster.api_versions import ApiVersionsRequest
from rejoin.protocol.registry import API_VERSIONS, DEFINED
from rejoin.protocol.wire.errors import SchemaError
from rejoin.proxy.exchange import ProxiedRequest

if TYPE_CHECKING:
    from rejoin.proxy.relay import Relay

REPEATED_SECONDS: Final = 30.0
"""How long the same request with the same answer is not written again."""
_MOST_REPEATED: Final = 16
"""Requests of one connection that are compared with the next of their kind."""
_REOPEN_SECONDS: Final = 5.0

_WATCHED: Final = (
    *("JoinGroup", "SyncGroup", "Heartbeat", "LeaveGroup", "OffsetCommit", "OffsetFetch", "OffsetDelete"),
    *("FindCoordinator", "DescribeGroups", "DeleteGroups", "ListGroups", "TxnOffsetCommit"),
    *("ConsumerGroupHeartbeat", "ConsumerGroupDescribe", "ShareGroupHeartbeat", "ShareGroupDescribe"),
    *("StreamsGroupHeartbeat", "StreamsGroupDescribe", "InitProducerId", "AddPartitionsToTxn", "AddOffsetsToTxn"),
    *("EndTxn", "AlterShareGroupOffsets", "DeleteShareGroupOffsets", "DescribeShareGroupOffsets"),
)
WATCHED: Final = frozenset(key for key, api in DEFINED.items() if api.name in _WATCHED) | {API_VERSIONS.key}
"""The keys of the APIs that are looked at. ApiVersions has the client's software, and is not written."""


class LineFile:
    """A file that lines are appended to. Where that fails, lines are counted as lost, and it is tried again later."""

    def __init__(self, path: Path) -> None:
        """Raises ``OSError`` where the file cannot be opened."""
        self.path = path
        self.lost = 0
        """Lines that could not be written."""
        self._handle: Any = path.open("ab", buffering=0)
        self._failed_at = 0.0
        self._log: Any = structlog.get_logger("proxy").bind()

    def write(self, line: str) -> None:
        """Append a line."""
        if self._handle is None and not self._reopened():
            self.lost += 1
            return
        data = line.encode() + b"\n"
        try:
            written = self._handle.write(data)
            if written != len(data):
                raise OSError(f"{written} of {len(data)} bytes were written")
        except OSError as problem:
            self.lost += 1
            self._failed_at = monotonic()
            self._log.error("proxy_journal_not_written", file=str(self.path), reason=problem.strerror or str(problem))
            self.close()

    def _reopened(self) -> bool:
        if monotonic() - self._failed_at < _REOPEN_SECONDS:
            return False
        try:
            self._handle = self.path.open("ab", buffering=0)
            # What was cut short must not take the next line with it.
            self._handle.write(b"\n")
        except OSError:
            self._handle, self._failed_at = None, monotonic()
            return False
        self._log.warning("proxy_journal_written_again", file=str(self.path), lost=self.lost)
        return True

    def close(self) -> None:
        """Close it; the next line opens it again."""
        handle, self._handle = self._handle, None
        if handle is not None:
            handle.close()


class RequestWatch:
    """Writes a line for each exchange that says something."""

    watched = WATCHED

    def __init__(self, file: LineFile) -> None:
        self.file = file
        self.unreadable = 0
        """Exchanges whose request or answer could not be read; they passed."""
        self._last: dict[Relay, dict[int, tuple[bytes, bytes, float]]] = {}

    def exchanged(self, relay: Relay, exchange: ProxiedRequest) -> None:
        """Write an exchange whose request and answer were kept."""
        if exchange.plan.key == API_VERSIONS.key:
            self._introduced(relay, exchange)
            return
        if not exchange.request and not exchange.answer:
            return
        if self._is_repeated(relay, exchange):
            return
        found = read(exchange)
        if found is None:
            self.unreadable += 1
            return
        request, response = found
        plan = exchange.plan
        version = plan.version
        head = LoggedHead(plan.name, plan.key, version, exchange.correlation_id, exchange.client_id)
        took = exchange.answered_ms - exchange.arrived_ms
        line = request_line(
            round(exchange.answered_ms),
            head,
            RequestOrigin(connection_text(relay), software=software_of(relay)),
            RequestTimes(took, 0.0, took),
            orjson.loads(request.to_json(version)),
            orjson.loads(response.to_json(version)),
        )
        self.file.write(line)

    def connection_ended(self, relay: Relay) -> None:
        """Forget the connection."""
        self._last.pop(relay, None)

    def close(self) -> None:
        """Close the file."""
        self.file.close()

    def _is_repeated(self, relay: Relay, exchange: ProxiedRequest) -> bool:
        """Whether the connection's last exchange of this API was the same, and was written lately."""
        last = self._last.setdefault(relay, {})
        key, answer, now = exchange.plan.key, exchange.answer[4:], monotonic()
        before = last.get(key)
        if before is not None and before[:2] == (exchange.request, answer) and now - before[2] < REPEATED_SECONDS:
            return True
        if key in last or len(last) < _MOST_REPEATED:
            last[key] = (exchange.request, answer, now)
        return False

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
