"""From the bytes of a request to the core's objects, and from its response to bytes: what runs for every request.

Everything that depends only on API and version is worked out once, in a :class:`WireVersion`.
"""

from __future__ import annotations

import logging
from time import perf_counter
from typing import TYPE_CHECKING, Any, Final, NamedTuple, cast

import structlog

from rejoin.coordinator.core.inputs import Context
from rejoin.coordinator.service.kafka.other_apis import OTHER_APIS
from rejoin.coordinator.service.logs import LoggedReasons
from rejoin.coordinator.service.metrics import ERRORS_TOTAL, ApiMetrics, Metrics
from rejoin.coordinator.service.served_version import NO_ERROR, ServedVersion
from rejoin.protocol.brokers.offered_versions import ADVERTISED_FROM, served
from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.message import Request, Response
from rejoin.protocol.registry import (
    API_VERSIONS,
    CONSUMER_GROUP_HEARTBEAT,
    DEFINED,
    FETCH,
    HEARTBEAT,
    PRODUCE,
    SHARE_FETCH,
    TELEMETRY,
    Api,
)
from rejoin.protocol.wire.codec import (
    Codec,
    RequestHeader,
    codec_of,
    read_request_header,
    unsupported_api_versions_frame,
)
from rejoin.protocol.wire.errors import ResponseTooLarge, SchemaError
from rejoin.protocol.wire.writer import Part

if TYPE_CHECKING:
    from rejoin.coordinator.service.kafka.connection import KafkaConnection
    from rejoin.protocol.messages.cluster.api_versions import ApiVersionsRequest

_LONGEST_CLIENT_ID: Final = 1_024
_LONGEST_HEAD: Final = 2_048
_LONGEST_REPEATED: Final = 512
_REPEATED: Final = (HEARTBEAT, CONSUMER_GROUP_HEARTBEAT)
"""Requests that clients repeat, equal but for the correlation id."""
_MOST_HEADS: Final = 64
_LONGEST_SOFTWARE: Final = 200
_FIRST_WITH_SOFTWARE: Final = 3
_API_AT: Final = 4
_CORRELATION_AT: Final = 8
_CLIENT_AT: Final = 12
_ANSWER_CORRELATION_AT: Final = 4
_ANSWER_BODY_AT: Final = 8
"""Where parts of a frame begin behind its size: of a request, and of an answer."""


class NotServed(Exception):
    """A request that ends its connection. The text names the problem.

    Reasons of one ``kind`` are the same though their texts differ; empty: reasons of the same text are. A request
    that is not offered has its ``version``, and the versions that are ``offered``.
    """

    def __init__(
        self, api: str, reason: str, kind: str = "", *, version: int | None = None, offered: str | None = None
    ) -> None:
        super().__init__(f"{api}: {reason}" if api else reason)
        self.api = api
        self.reason = reason
        self.kind = kind
        self.version = version
        self.offered = offered


class WireVersion(ServedVersion):
    """One version of an API in Kafka's binary form."""

    __slots__ = ("_has_parts", "_kept", "codec", "is_repeated", "metrics", "read")

    def __init__(self, codec: Codec, metrics: ApiMetrics) -> None:
        super().__init__(codec.api, codec.version)
        self.codec = codec
        self.metrics = metrics
        self.read = codec.read_request
        self._has_parts = codec.api is FETCH
        self.is_repeated = codec.api in _REPEATED
        self._kept: dict[ErrorCode, bytes] = {}

    def write(self, correlation_id: int, response: Response, written: list[Part]) -> None:
        """Put the frame of a response behind others."""
        codec = self.codec
        if self._has_parts:
            parts = codec.response_parts(correlation_id, response)
            written += parts
            self.metrics.bytes_out += sum(map(len, parts))
            return
        error = self.bare_error(response) if self.is_only_error else None
        if error is None:
            written.append(codec.response_frame(correlation_id, response))
            return
        kept = self._kept.get(error)
        if kept is None:
            kept = self._kept[error] = codec.response_frame(0, response)
        written.append(kept[:4] + correlation_id.to_bytes(4, "big", signed=True) + kept[8:])


class KafkaRequest:
    """A request on its way, with all that it takes to answer it."""

    __slots__ = ("began", "connection", "context", "correlation_id", "request", "waited", "wire")

    def __init__(
        self,
        wire: WireVersion,
        request: Request,
        context: Context,
        correlation_id: int,
        began: float,
        connection: KafkaConnection | None = None,
    ) -> None:
        """``connection`` says who asks; one that is served again and again does without."""
        self.began = began
        self.connection = connection
        self.wire = wire
        self.request = request
        self.context = context
        self.correlation_id = correlation_id
        self.waited = False


class RepeatedRequest:
    """A request that a connection may get once more, byte for byte but for its correlation id, and its answer.

    The same bytes are the same request. If the core's response is the very object that it was, the answer is the same.
    """

    __slots__ = (
        "_answer",
        "_answer_head",
        "_error",
        "_failed_with",
        "_metrics",
        "body",
        "context",
        "head",
        "request",
        "response",
        "size",
        "wire",
    )

    def __init__(self, call: KafkaRequest, data: bytes, response: Response, answer: bytes | memoryview) -> None:
        """``data`` and ``answer`` are whole frames."""
        self.size = len(data)
        self.head = data[:_CORRELATION_AT]
        self.body = data[_CLIENT_AT:]
        self.wire = call.wire
        self.request = call.request
        self.context = call.context
        self.response = response
        self._metrics = call.wire.metrics
        self._error = call.wire.error_of(response)
        self._failed_with: ErrorCode | None = None if self._error == NO_ERROR else ErrorCode[self._error]
        self._answer_head = bytes(answer[:_ANSWER_CORRELATION_AT])
        self._answer = bytes(answer[_ANSWER_BODY_AT:])

    @staticmethod
    def correlation_id(data: bytes) -> int:
        """The correlation id of a whole frame."""
        return int.from_bytes(data[_CORRELATION_AT:_CLIENT_AT], "big", signed=True)

    def answer_to(self, data: bytes, began: float) -> bytes:
        """The answer to a frame that is the same but for its correlation id. It is counted, as others are."""
        metrics = self._metrics
        metrics.answers[self._error] += 1
        if self._failed_with is not None:
            metrics.count_error(self._failed_with)
        metrics.took.observe((perf_counter() - began) * 1_000)
        return self._answer_head + data[_CORRELATION_AT:_CLIENT_AT] + self._answer


class RequestHead(NamedTuple):
    """A connection's last request of one version of an API, without correlation id and body.

    Clients say the same in every request: ``client`` are the bytes of it, the client id and tagged fields.
    """

    client: bytes
    wire: WireVersion
    context: Context
    body_at: int


class RequestReader:
    """Reads requests and writes responses, of all connections of a node."""

    def __init__(self, metrics: Metrics, release: str) -> None:
        self._metrics = metrics
        self._offered = served(release)
        self._served: dict[tuple[int, int], WireVersion] = {}
        log: Any = structlog.get_logger("coordinator").bind()
        self._log = log
        self._refused = LoggedReasons(ERRORS_TOTAL)
        self._log_requests: bool = log.is_enabled_for(logging.DEBUG)

    def read(self, frame: bytes, connection: KafkaConnection) -> KafkaRequest | bytes:
        """The request in a frame, which has its size in front; or the whole answer, where the core need not be asked.

        Raises :class:`NotServed` for what ends the connection.
        """
        head = connection.heads.get(bytes(frame[_API_AT:_CORRELATION_AT]))
        if head is None or not frame.startswith(head.client, _CLIENT_AT):
            found = self._read_head(frame, connection)
            if isinstance(found, bytes):
                return found
            head = found
        _, wire, context, body_at = head
        try:
            request = wire.read(frame, body_at)
        except SchemaError as problem:
            connection.client_id = context.client_id
            raise NotServed(wire.api.name, f"version {wire.version}: {problem}") from None
        if wire.api is API_VERSIONS and wire.version >= _FIRST_WITH_SOFTWARE:
            software = cast("ApiVersionsRequest", request)
            name = f"{software.client_software_name} {software.client_software_version}"
            connection.software = name[:_LONGEST_SOFTWARE]
        correlation_id = int.from_bytes(frame[_CORRELATION_AT:_CLIENT_AT], "big", signed=True)
        return KafkaRequest(wire, request, context, correlation_id, perf_counter(), connection)

    def _read_head(self, frame: bytes, connection: KafkaConnection) -> RequestHead | bytes:
        """The head of a frame that differs from the last one of its API; or the whole answer."""
        try:
            header = read_request_header(frame[_API_AT:])
        except SchemaError as problem:
            raise NotServed("", str(problem)) from None
        connection.client_id = header.client_id[:_LONGEST_CLIENT_ID]
        wire = self._served.get((header.api_key, header.api_version))
        if wire is None:
            found = self._find(header)
            if isinstance(found, bytes):
                return found
            wire = self._served[header.api_key, header.api_version] = found
        context = _context(header, wire.api, connection)
        body_at = header.body_at + _API_AT
        head = RequestHead(bytes(frame[_CLIENT_AT:body_at]), wire, context, body_at)
        if len(head.client) <= _LONGEST_HEAD:
            if len(connection.heads) >= _MOST_HEADS:
                connection.heads.clear()
            connection.heads[bytes(frame[_API_AT:_CORRELATION_AT])] = head
        return head

    def _find(self, header: RequestHeader) -> WireVersion | bytes:
        """A version that was not asked for before."""
        versions = self._offered.get(header.api_key)
        api = DEFINED.get(header.api_key)
        if api is None or versions is None:
            reason = f"a request with API key {header.api_key}, which is not offered; ApiVersions lists those that are"
            name = OTHER_APIS.get(header.api_key, "") if api is None else api.name
            raise NotServed(name, reason, version=header.api_version, offered="no version")
        oldest, newest = versions
        if not oldest <= header.api_version <= newest:
            if api is API_VERSIONS:
                # Kafka: the one request whose refusal is an answer, in the oldest version.
                self._metrics.api(api.name).count_error(ErrorCode.UNSUPPORTED_VERSION)
                return unsupported_api_versions_frame(header.correlation_id, oldest, newest)
            advertised = ADVERTISED_FROM.get(api.key, oldest)
            says = "as ApiVersions says"
            if advertised != oldest:
                says = f"though ApiVersions says {advertised} to {newest} for the sake of old clients, as Kafka's does"
            raise NotServed(
                api.name,
                f"version {header.api_version}; expected {oldest} to {newest}, {says}",
                version=header.api_version,
                offered=f"{oldest} to {newest}",
            )
        codec = codec_of(header.api_key, header.api_version)
        assert codec is not None, "what is offered has a codec"
        return WireVersion(codec, self._metrics.api(api.name))

    def write(self, call: KafkaRequest, response: Response, written: list[Part]) -> None:
        """Put a request's response behind others, and count it. One that is too large is answered with an error.

        Raises :class:`NotServed` where all that the client can be shown is the end of its connection.
        """
        wire = call.wire
        request: Any = call.request
        is_answered = wire.api is not PRODUCE or request.acks
        if is_answered:
            try:
                wire.write(call.correlation_id, response, written)
            except ResponseTooLarge as problem:
                software = "" if call.connection is None else call.connection.software
                wire.log_too_large(self._log, self._refused, software, call.context, problem)
                response = wire.too_large(request)
                wire.write(call.correlation_id, response, written)
        metrics = wire.metrics
        error = wire.error_of(response)
        if wire.has_nested_errors or error != NO_ERROR:
            refusals = wire.count_errors(response, metrics.errors)
            if not is_answered:
                _check_unanswered(call, response)
            elif refusals is not None:
                software = "" if call.connection is None else call.connection.software
                wire.log_refusals(self._log, self._refused, software, call.context, call.request, refusals)
        millis = (perf_counter() - call.began) * 1_000
        metrics.answers[error] = metrics.answers.get(error, 0) + 1
        (metrics.parked if call.waited else metrics.took).observe(millis)
        if self._log_requests:
            wire.log(self._log, call.context.client_id, error, millis)

    def repeated(
        self, call: KafkaRequest, response: Response, data: bytes, answer: bytes | memoryview
    ) -> RepeatedRequest | None:
        """A frame that was answered at once, kept to answer an equal one faster; none if it must not be."""
        if self._log_requests or len(data) > _LONGEST_REPEATED:
            return None
        return RepeatedRequest(call, data, response, answer)


def _check_unanswered(call: KafkaRequest, response: Any) -> None:
    """Kafka: with acks of 0 nothing is answered, and an error ends the connection."""
    for topic in response.responses:
        for partition in topic.partition_responses:
            if partition.error_code is not ErrorCode.NONE:
                if call.connection is not None:
                    call.connection.client_id = call.context.client_id
                error, name = partition.error_code.name, f"{topic.name or topic.topic_id}-{partition.index}"
                said = "" if partition.error_message is None else f": {partition.error_message}"
                raise NotServed("Produce", f"acks of 0, and {name} refused it: {error}{said}", f"acks of 0: {error}")


def _context(header: RequestHeader, api: Api, connection: KafkaConnection) -> Context:
    """Who asks."""
    client_id = header.client_id
    if len(client_id) > _LONGEST_CLIENT_ID:
        reason = f"a client id of {len(client_id)} characters; expected at most {_LONGEST_CLIENT_ID}"
        raise NotServed(api.name, reason, "a client id that is too long")
    if api is SHARE_FETCH or api in TELEMETRY:
        connection.reports_end = True
    return Context(
        api_version=header.api_version,
        client_id=client_id,
        client_host=f"/{connection.client_host}",
        principal=connection.principal,
        listener=connection.name,
        by_token=connection.by_token,
        connection=connection.identity,
        client_port=connection.client_port,
        software=connection.software,
        local_host=connection.local_host,
    )
