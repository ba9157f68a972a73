"""Requests over HTTP: Kafka's own JSON, posted to the paths of the table of APIs.

This module chooses the node to ask: the bootstrap list first, then the nodes that Metadata answers name.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from errno import ECONNRESET
from ssl import SSLContext
from time import monotonic
from types import TracebackType
from typing import Final, Self
from urllib.parse import urlsplit

import aiohttp
from multidict import istr
from pydantic import ValidationError

from rejoin.client.core.effects import Endpoint
from rejoin.client.core.errors import KafkaError, WrongProtocolError
from rejoin.client.core.inputs import Failure
from rejoin.client.transports.base import SharedTransport, TransportError
from rejoin.client.transports.kafka.address import BrokerAddress
from rejoin.client.transports.nodes import NodeState, ReconnectBackoff
from rejoin.client.transports.probing import Spoken, wrong_protocol
from rejoin.protocol.message import Request, Response
from rejoin.protocol.messages.cluster.metadata import MetadataResponse
from rejoin.protocol.registry import BY_REQUEST

DEFAULT_PORT: Final = 9095

MOST_BYTES: Final = 100_000_000
"""The longest answer that is read. Source: librdkafka's receive.message.max.bytes; Kafka's own client has no limit."""

_CLIENT_ID: Final = istr("Kafka-Client-Id")
_API_VERSION: Final = istr("Kafka-Api-Version")
_CONTENT_TYPE: Final = istr("Content-Type")


class ProblemError(KafkaError):
    """The node refused the request as malformed, or in this version: a fault of the client, or of the address."""

    def __init__(self, url: str, status: int, detail: str) -> None:
        super().__init__(f"{url} answered {status}: {detail}")
        self.status = status
        self.detail = detail


@dataclass(frozen=True, slots=True)
class HttpSecurity:
    """Security of connections: TLS, and the header that logs in."""

    ssl: SSLContext | None = None
    authorization: str | None = field(default=None, repr=False)

    @property
    def headers(self) -> dict[str, str]:
        return {} if self.authorization is None else {"Authorization": self.authorization}


@dataclass(slots=True, eq=False, kw_only=True)
class HttpNode(NodeState):
    """A node by its base URL."""

    url: str

    async def wrong_protocol(self) -> WrongProtocolError | None:
        """The error for a node that speaks another protocol; None where that does not show."""
        parts = urlsplit(self.url)
        assert parts.hostname is not None, "base_url checks it"
        assert parts.port is not None, "base_url sets it"
        address = BrokerAddress(parts.hostname, parts.port)
        return await wrong_protocol(address, Spoken(is_http=True, has_tls=parts.scheme == "https"))


def base_url(server: str) -> str:
    """The base of a server's URLs, from ``HOST:PORT`` or ``http://HOST:PORT``. Raises ValueError."""
    text = server if "//" in server else f"http://{server}"
    problem = ValueError(f"not a server: {server!r}; expected HOST:PORT or http://HOST:PORT, a port from 1 to 65535")
    try:
        parts = urlsplit(text)
        port = (443 if parts.scheme == "https" else DEFAULT_PORT) if parts.port is None else parts.port
    except ValueError:
        raise problem from None
    if parts.scheme not in {"http", "https"} or not parts.hostname or port == 0:
        raise problem
    host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    return f"{parts.scheme}://{host}:{port}{parts.path.rstrip('/')}"


class HttpTransport(SharedTransport):
    """Connections to a cluster, for any number of consumers of one event loop."""

    def __init__(
        self,
        servers: Sequence[str],
        *,
        reconnect_backoff_ms: int = 50,
        reconnect_backoff_max_ms: int = 1_000,
        security: HttpSecurity | None = None,
    ) -> None:
        self._security = security or HttpSecurity()
        self._bootstrap = [HttpNode(url=base_url(server)) for server in servers]
        # The other nodes of a cluster are reached as the first one is: answers have no scheme.
        self._scheme = urlsplit(self._bootstrap[0].url).scheme if servers else "http"
        self._known: list[HttpNode] = []
        self._nodes: dict[str, HttpNode] = {node.url: node for node in self._bootstrap}
        self._backoff = ReconnectBackoff.of_ms(reconnect_backoff_ms, reconnect_backoff_max_ms)
        self._session: aiohttp.ClientSession | None = None
        self._last_problem = ""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        session, self._session = self._session, None
        if session is not None:
            await session.close()

    async def send(
        self, to: Endpoint | None, request: Request, version: int, *, timeout_ms: int, client_id: str
    ) -> Response:
        """See :class:`rejoin.client.transports.base.Transport`."""
        api = BY_REQUEST[type(request)]
        node: HttpNode | None = None
        try:
            async with asyncio.timeout(max(0, timeout_ms) / 1_000):
                body = request.to_json(version)
                headers = {_CLIENT_ID: client_id, _API_VERSION: str(version), _CONTENT_TYPE: "application/json"}
                node = await self._usable(to)
                answer = await self._post(node, api.path, body, headers)
        except TimeoutError as error:
            raise TransportError(Failure.TIMEOUT, self._timed_out(node, timeout_ms)) from error
        try:
            response = api.response.from_json(answer)
        except ValidationError as error:
            raise ProblemError(f"{node.url}{api.path}", 200, f"not an answer to {api.name}: {error}") from error
        if isinstance(response, MetadataResponse):
            self._learn(response)
        return response

    async def _post(self, node: HttpNode, path: str, body: bytes, headers: dict[istr, str]) -> bytes:
        if self._session is None:
            # Not aiohttp's own limit of 100 connections: parked JoinGroups would take them all.
            self._session = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(limit=0, ssl=self._security.ssl or True),
                headers=self._security.headers,
                timeout=aiohttp.ClientTimeout(total=None, sock_connect=10),
                skip_auto_headers=["User-Agent"],
            )
        node.in_flight += 1
        try:
            async with self._session.post(node.url + path, data=body, headers=headers) as answer:
                content = await _content(answer)
        except (aiohttp.ClientError, OSError) as error:
            self._last_problem = f"{node.url}: {_reason(error)}"
            node.fail(self._backoff, self._last_problem)
            if _is_unanswered(error) and not node.has_answered:
                # Kafka's brokers close the connection without an answer.
                self._last_problem = f"{node.url} closed the connection before it answered"
                if (wrong := await node.wrong_protocol()) is not None:
                    raise wrong from error
            raise TransportError(Failure.DISCONNECT, self._last_problem) from error
        finally:
            node.in_flight -= 1
        if answer.status == 200:
            node.succeed()
            self._last_problem = ""
            return content
        detail = _problem(content)
        if answer.status >= 500:
            problem = f"{node.url} answered {answer.status}: {detail}"
            node.fail(self._backoff, problem)
            raise TransportError(Failure.DISCONNECT, problem)
        raise ProblemError(node.url + path, answer.status, detail)

    # -- nodes

    async def _usable(self, to: Endpoint | None) -> HttpNode:
        """The node to ask, after its backoff if every candidate has one."""
        candidates = [self._node_at(to.host, to.port)] if to is not None else [*self._known, *self._bootstrap]
        now = monotonic()
        ready = [node for node in candidates if node.usable_at <= now]
        if ready:
            return min(ready, key=self._reluctance)
        node = min(candidates, key=lambda node: node.usable_at)
        await asyncio.sleep(max(0.0, node.usable_at - monotonic()))
        return node

    def _reluctance(self, node: HttpNode) -> tuple[float, bool, int]:
        """Least for the node to ask first: one that answers, of the cluster itself, with the fewest requests waiting.

        Where all have failed, the one whose failure is the longest ago comes next.
        """
        # Differs: Kafka prefers a connection that stands, and starts to look at a random node.
        return node.failed_at, node not in self._known, node.in_flight

    def _timed_out(self, node: HttpNode | None, timeout_ms: int) -> str:
        """Count it against the node that was asked; while every node backs off, there may be none."""
        if node is None:
            return f"no node to ask within {timeout_ms} ms; {self._last_problem}"
        # Kafka: handleTimedOutRequests. A node that does not answer in time is disconnected from, and backed off.
        self._last_problem = f"{node.url}: no answer within {timeout_ms} ms"
        node.fail(self._backoff, self._last_problem)
        return self._last_problem

    def _node(self, url: str) -> HttpNode:
        return self._nodes.setdefault(url, HttpNode(url=url))

    def _node_at(self, host: str, port: int) -> HttpNode:
        return self._node(base_url(f"{self._scheme}://{_address(host, port)}"))

    def _learn(self, response: MetadataResponse) -> None:
        if response.brokers:
            self._known = [self._node_at(node.host, node.port) for node in response.brokers]


def _is_unanswered(error: Exception) -> bool:
    """Whether the connection, or its TLS handshake, was ended by the node."""
    if isinstance(error, aiohttp.ClientConnectorError):
        return isinstance(error.os_error, ConnectionResetError)
    return isinstance(error, aiohttp.ServerDisconnectedError) or getattr(error, "errno", None) == ECONNRESET


def _reason(error: Exception) -> str:
    """Why there is no answer. aiohttp's own text names TLS for addresses without it."""
    if isinstance(error, aiohttp.ClientConnectorError) and not isinstance(error, aiohttp.ClientSSLError):
        return f"cannot connect: {error.os_error.strerror or error.os_error}"
    return str(error) or type(error).__name__


def _address(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


async def _content(answer: aiohttp.ClientResponse) -> bytes:
    """The body of an answer. One that is too long breaks the connection."""
    parts: list[bytes] = []
    left = MOST_BYTES
    async for part in answer.content.iter_any():
        left -= len(part)
        if left < 0:
            answer.close()
            raise aiohttp.ClientPayloadError(f"an answer of more than {MOST_BYTES} bytes; the connection is closed")
        parts.append(part)
    return parts[0] if len(parts) == 1 else b"".join(parts)


def _problem(content: bytes) -> str:
    try:
        problem = json.loads(content)
        return str(problem.get("detail") or problem.get("title"))
    except (ValueError, AttributeError, RecursionError):
        return content[:200].decode("utf-8", "replace")
