"""One client's connections to brokers: requests go out, answers come back by correlation id.

A broker takes the next request of a connection only when it has answered the last one. A client that asks while its
JoinGroup waits therefore needs a second connection, and gets one.
"""

from __future__ import annotations

import asyncio
import itertools
import struct
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from ssl import SSLContext
from typing import Any, Final, Protocol, TypeAlias

from rejoin.conform.player.messages import API_VERSIONS, Json, UnreadableResponse, request_frame, response

Address: TypeAlias = tuple[str, int]


MOST_BYTES: Final = 2**26
"""Length of an answer beyond which it is none."""
CONNECT_SECONDS: Final = 10.0


class Translation(Protocol):
    """Names of groups, topics and transactional ids that are others on the broker than in a script."""

    def outgoing(self, api: str, body: Json) -> Json: ...

    def incoming(self, api: str, request: Json, answer: Json) -> Json: ...


class ConnectionLogin(Protocol):
    """Logs in on a new connection."""

    async def __call__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None: ...


@dataclass(frozen=True)
class BrokerAccess:
    """The way to brokers: TLS, a login, and other names, each where there is one."""

    tls: SSLContext | None = None
    login: ConnectionLogin | None = None
    names: Translation | None = None


class ConnectionClosed(Exception):
    """The broker closed the connection instead of answering."""


@dataclass
class _Connection:
    """A connection with at most one request in flight."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter


@dataclass(eq=False)
class SentRequest:
    """A request with its answer, once it is there. ``claimed`` is the version in the header, where it is another."""

    client: str
    broker: int
    api: str
    version: int
    body: Json
    claimed: int | None = None
    is_answered: bool = True
    """False for a request that has no answer, such as a Produce with acks 0."""
    sent_at: float = 0.0
    answer: asyncio.Future[Any] = field(default_factory=asyncio.Future)
    answered_at: float = 0.0


class ClientConnections:
    """Connections of all clients to all brokers."""

    def __init__(
        self, addresses: dict[int, Address], clock: Callable[[], float], access: BrokerAccess | None = None
    ) -> None:
        self.addresses: Final = addresses
        self._access: Final = access or BrokerAccess()
        self._clock = clock
        self._free: dict[tuple[str, int], list[_Connection]] = {}
        self._all: list[_Connection] = []
        self._correlation_ids = itertools.count(1)

    async def send(self, asked: SentRequest) -> None:
        """Send a request; returns once it is written."""
        correlation_id = next(self._correlation_ids)
        names = self._access.names
        body = asked.body if names is None else names.outgoing(asked.api, asked.body)
        frame = request_frame(asked.api, asked.version, correlation_id, asked.client, body, asked.claimed)
        connection = await self._write(asked, frame)
        if asked.is_answered:
            asked.answer = asyncio.create_task(self._answer(connection, asked, correlation_id))
        else:
            self._free[asked.client, asked.broker].append(connection)
            asked.answer.set_result(None)

    async def ask(self, client: str, broker: int, api: str, version: int, body: Json) -> Json:
        """Send a request and wait for its answer. Raises ConnectionClosed and UnreadableResponse."""
        asked = SentRequest(client, broker, api, version, body)
        await self.send(asked)
        answer: Json = await asked.answer
        return answer

    def close(self) -> None:
        """Close every connection. Later requests open new ones."""
        for connection in self._all:
            connection.writer.close()
        self._all.clear()
        self._free.clear()

    async def _write(self, asked: SentRequest, frame: bytes) -> _Connection:
        connection = await self._connection(asked.client, asked.broker)
        connection.writer.write(struct.pack(">i", len(frame)) + frame)
        # Reading the answer reports a lost connection.
        with suppress(ConnectionError):
            await connection.writer.drain()
        return connection

    async def _answer(self, connection: _Connection, asked: SentRequest, correlation_id: int) -> Json:
        try:
            (length,) = struct.unpack(">i", await connection.reader.readexactly(4))
            if not 4 <= length <= MOST_BYTES:
                raise UnreadableResponse(f"{asked.api} v{asked.version}: {length} as the length of an answer")
            frame = await connection.reader.readexactly(length)
        except (asyncio.IncompleteReadError, ConnectionError):
            raise ConnectionClosed from None
        finally:
            asked.answered_at = self._clock()
        (got,) = struct.unpack(">i", frame[:4])
        if got != correlation_id:
            raise ConnectionClosed(f"answer {got} to request {correlation_id}")
        self._free.setdefault((asked.client, asked.broker), []).append(connection)
        # ApiVersions alone is answered in an unknown version, too: in the oldest one.
        is_known = asked.claimed in (None, asked.version) or asked.api != API_VERSIONS
        answer = response(asked.api, asked.version if is_known else 0, frame)
        names = self._access.names
        return answer if names is None else names.incoming(asked.api, asked.body, answer)

    async def _connection(self, client: str, broker: int) -> _Connection:
        free = self._free.setdefault((client, broker), [])
        while free:
            connection = free.pop()
            if not connection.reader.at_eof():
                return connection
        host, port = self.addresses[broker]
        tls = self._access.tls
        async with asyncio.timeout(CONNECT_SECONDS):
            reader, writer = await asyncio.open_connection(
                host, port, ssl=tls, server_hostname=host if tls is not None else None
            )
            connection = _Connection(reader, writer)
            self._all.append(connection)
            if self._access.login is not None:
                await self._access.login(reader, writer)
        return connection
