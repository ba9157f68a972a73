"""Connections, and input that is refused before there is a request.

Invalid HTTP is answered as a problem. A client of Kafka's binary protocol is recognised by its first bytes. A head that
does not arrive in time ends its connection.
"""

from __future__ import annotations

import asyncio
from itertools import islice
from typing import Any, Final

import aiohttp
import structlog
from aiohttp import web
from aiohttp.http import RawRequestMessage
from aiohttp.http_exceptions import InvalidURLError, LineTooLong

from rejoin.coordinator.service.arrivals import Arrivals
from rejoin.coordinator.service.http.problems import Problem
from rejoin.coordinator.service.logs import LoggedReasons
from rejoin.coordinator.service.metrics import Metrics

IDLE_SECONDS: Final = 600.0
_LINGER_SECONDS: Final = 2.0
_LOOKS: Final = 4
"""How often a head that is late is looked for, within the time that it has."""
_TOO_LATE: Final = b"HTTP/1.1 408 Request Timeout\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"
_API_VERSIONS: Final = 18
_TLS_HANDSHAKE: Final = b"\x16\x03"
_BINARY: Final = (b"\0", _TLS_HANDSHAKE[:1])
_LONGEST_MESSAGE: Final = 120
_MESSAGES: Final = {
    "Bad status line": "the request line does not end with HTTP/1.0 or HTTP/1.1",
    "Pause on PRI/Upgrade": "HTTP/2; expected HTTP/1.1",
}
"""Texts of the parser that say nothing about the request, with ours."""


class Connection(web.RequestHandler):
    """One connection. ``is_busy`` while a request is handled; ``waits_since`` is when it began to wait for a head.

    ``next_head_since`` is when the first bytes of another head came behind a request that was not answered yet.
    """

    __slots__ = (
        "_body",
        "_body_left",
        "_connections",
        "_is_followed",
        "client_host",
        "is_busy",
        "next_head_since",
        "waits_since",
    )

    def __init__(self, manager: Connections, **settings: Any) -> None:
        super().__init__(manager, **settings)
        self.client_host = "127.0.0.1"
        self.is_busy = False
        self.waits_since: float | None = None
        self.next_head_since: float | None = None
        self._body: aiohttp.StreamReader | None = None
        self._body_left: int | None = 0
        self._is_followed = True
        self._connections = manager

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        self._connections.arrivals.connections += 1
        self.waits_since = self._connections.loop.time()
        peer = transport.get_extra_info("peername")
        if isinstance(peer, tuple):
            self.client_host = str(peer[0])

    def data_received(self, data: bytes) -> None:
        # HTTP begins with a letter, Kafka's protocol with the length of a request.
        if data[:1] in _BINARY and not self.is_busy and self._connections.refuse_binary(data, self):
            if self.transport is not None:
                self.transport.close()
            return
        if self.waits_since is None and not self.is_busy:
            self.waits_since = self.next_head_since or self._connections.loop.time()
        complete = self._body is None or self._body.is_eof()
        queued = len(self._messages)
        super().data_received(data)
        if data:  # aiohttp hands in nothing to go on with what it has
            self._look_for_next_head(data, queued, complete)

    @property
    def head_since(self) -> float | None:
        """Since when this connection waits for a head; none while a request is handled, or between two requests."""
        waits_for_more = self._waiter is not None and not self._waiter.done()
        return (self.waits_since or self.next_head_since) if waits_for_more and not self.is_busy else None

    def _look_for_next_head(self, data: bytes, queued: int, complete: bool) -> None:
        """Notice bytes that follow a whole request without being one, which aiohttp keeps to itself.

        ``complete`` says whether the request before had come completely when these bytes arrived. Bodies in chunks have
        no length: what comes together with the end of one is overlooked.
        """
        if len(self._messages) >= self._max_msg_queue_size or not self._is_followed:
            # So many pipelined requests that aiohttp holds some of them back, and hands them in later.
            self._is_followed, self.next_head_since = False, None
            return
        at: int | None = self._body_left
        if complete:
            at = 0
        for message, body in islice(self._messages, queued, None):
            self._body = body
            end = -1 if at is None else data.find(b"\r\n\r\n", at)
            at = None  # where this one ends is not known, nor where the next one begins
            if isinstance(message, RawRequestMessage) and not message.chunked and end >= 0:
                at = end + 4 + int(message.headers.get("Content-Length", "0"))
        self._body_left = None if at is None else max(0, at - len(data))
        if at is None or at >= len(data):
            self.next_head_since = None
        elif self._body is not None and self.next_head_since is None:
            self.next_head_since = self._connections.loop.time()

    def log_exception(self, *args: Any, **kw: Any) -> None:
        """A body that turns out to be broken is the sender's mistake, and not logged."""
        if not isinstance(kw.get("exc_info"), web.RequestPayloadError):
            super().log_exception(*args, **kw)

    def handle_error(
        self,
        request: web.BaseRequest,
        status: int = 500,
        exc: BaseException | None = None,
        message: str | None = None,
    ) -> web.StreamResponse:
        """Answer what aiohttp itself refuses."""
        self._connections.metrics.problems[status] += 1
        if status < 500:
            response = Problem(status, "invalid-http", parser_problem(exc, message or "")).response()
        else:
            response = Problem(status, "internal-error", "the service failed").response()
        response.force_close()
        return response


class Connections(web.Server):
    """Makes connections, and closes those whose head does not arrive within ``head_seconds``."""

    def __init__(self, handler: Any, metrics: Metrics, arrivals: Arrivals, head_seconds: float) -> None:
        super().__init__(handler, handler_cancellation=True)
        self.loop = asyncio.get_running_loop()
        self.metrics = metrics
        self.arrivals = arrivals
        self._head_seconds = head_seconds
        self._look: asyncio.TimerHandle | None = None
        self._logged = LoggedReasons("rejoin_problems_total")
        self._log: Any = structlog.get_logger("coordinator").bind()

    def __call__(self) -> Connection:
        if self._look is None:
            self._look = self.loop.call_later(self._head_seconds / _LOOKS, self._look_again)
        return Connection(
            self, loop=self.loop, access_log=None, keepalive_timeout=IDLE_SECONDS, lingering_time=_LINGER_SECONDS
        )

    def stop_looking(self) -> None:
        """Close nothing any more for a late head."""
        if self._look is not None:
            self._look.cancel()

    def refuse_binary(self, data: bytes, connection: Connection) -> bool:
        """Say once for each client that it takes this port for another; false where the bytes are neither's."""
        if data[:1] == b"\0":
            problem = f"a Kafka client{binary_client(data)} spoke the binary protocol; this port is HTTP"
        elif data.startswith(_TLS_HANDSHAKE):
            problem = "a TLS handshake; this port is HTTP without TLS, http:// and not https://"
        else:
            return False
        self.metrics.problems[400] += 1
        logged = self._logged.to_log(connection.client_host, problem)
        if logged is not None:
            self._log.warning("binary_protocol", client=connection.client_host, problem=logged)
        return True

    def _look_again(self) -> None:
        oldest = self.loop.time() - self._head_seconds
        connections = self.connections
        for each in connections:
            assert isinstance(each, Connection)
            since = each.head_since
            if since is not None and since < oldest and each.transport is not None:
                self.metrics.problems[408] += 1
                each.transport.write(_TOO_LATE)
                each.transport.close()
        # Without connections there is nothing to look for; the next one starts it again.
        self._look = self.loop.call_later(self._head_seconds / _LOOKS, self._look_again) if connections else None


def parser_problem(problem: BaseException | None, message: str) -> str:
    """The reason why aiohttp or its parser refused a request. Their own texts show bytes of it, or nothing."""
    if isinstance(problem, LineTooLong):
        return f"the request line or a header is too long; expected at most {problem.args[1]} bytes"
    if isinstance(problem, InvalidURLError):
        return "this is not valid HTTP: the request line has no path or URL that can be read"
    first = next(iter(message.strip().splitlines()), "").rstrip(" :.")[:_LONGEST_MESSAGE]
    if not first:
        return "this is not valid HTTP"
    return f"this is not valid HTTP: {_MESSAGES.get(first) or first[0].lower() + first[1:]}"


def binary_client(data: bytes) -> str:
    """Which client sent Kafka's first request, as `` (librdkafka 2.16)``; empty where the bytes do not say.

    Kafka: ApiVersions from version 3 on carries the name and version of the software; else there is the client id.
    """
    try:
        key, version = (int.from_bytes(data[at : at + 2], "big") for at in (4, 6))
        length = int.from_bytes(data[12:14], "big", signed=True)
        end = 14 + max(length, 0)
        names = [data[14:end]]
        if key == _API_VERSIONS and version >= 3:
            # Behind the header's tagged fields come two compact strings.
            at = end + 1
            names = []
            for _ in range(2):
                size = data[at]
                names.append(data[at + 1 : at + size])
                at += size
        text = " ".join(name.decode("ascii") for name in names if name)
    except (IndexError, UnicodeDecodeError):
        return ""
    return f" ({text})" if text and text.isprintable() else ""
