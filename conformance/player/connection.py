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
from dataclasses import dataclass
from typing import Final, TypeAlias

from conformance.player.messages import API_VERSIONS, Json, request_frame, response

Address: TypeAlias = tuple[str, int]


class ConnectionClosed(Exception):
    """The broker closed the connection instead of answering."""


@dataclass
class _Connection:
    """A connection with at most one request in flight."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter


@dataclass
class SentRequest:
    """A request that was sent, and its answer once it is there."""

    number: int
    client: str
    broker: int
    api: str
    version: int
    answer: asyncio.Task[Json]
    answered_at: float = 0.0


class Connections:
    """Connections of all clients to all brokers."""

    def __init__(self, addresses: dict[int, Address], clock: Callable[[], float]) -> None:
        self.addresses: Final = addresses
        self._clock = clock
        self._free: dict[tuple[str, int], list[_Connection]] = {}
        self._all: list[_Connection] = []
        self._correlation_ids = itertools.count(1)

    async def send(
        self,
        number: int,
        client: str,
        broker: int,
        api: str,
        version: int,
        body: Json,
        claimed: int | None = None,
    ) -> SentRequest:
        """Send a request; returns once it is written."""
        correlation_id = next(self._correlation_ids)
        frame = request_frame(api, version, correlation_id, client, body, claimed)
        connection = await self._write(client, broker, frame)
        # ApiVersions alone is answered in an unknown version, too: in the oldest one.
        readable = version if claimed in (None, version) or api != API_VERSIONS else 0
        asked = SentRequest(number, client, broker, api, readable, asyncio.Future())  # type: ignore[arg-type]
        asked.answer = asyncio.create_task(self._answer(connection, asked, correlation_id))
        return asked

    async def ask(self, client: str, broker: int, api: str, version: int, body: Json) -> Json:
        """Send a request and wait for its answer. Raises ConnectionClosed and UnreadableResponse."""
        return await (await self.send(0, client, broker, api, version, body)).answer

    async def send_unanswered(self, client: str, broker: int, api: str, version: int, body: Json) -> None:
        """Send a request that has no answer, such as a Produce with acks 0."""
        frame = request_frame(api, version, next(self._correlation_ids), client, body)
        self._free[client, broker].append(await self._write(client, broker, frame))

    def close(self) -> None:
        """Close every connection. Later requests open new ones."""
        for connection in self._all:
            connection.writer.close()
        self._all.clear()
        self._free.clear()

    async def _write(self, client: str, broker: int, frame: bytes) -> _Connection:
        connection = await self._connection(client, broker)
        connection.writer.write(struct.pack(">i", len(frame)) + frame)
        # A connection that is gone is noticed by whoever reads the answer.
        with suppress(ConnectionError):
            await connection.writer.drain()
        return connection

    async def _answer(self, connection: _Connection, asked: SentRequest, correlation_id: int) -> Json:
        try:
            (length,) = struct.unpack(">i", await connection.reader.readexactly(4))
            frame = await connection.reader.readexactly(length)
        except (asyncio.IncompleteReadError, ConnectionError):
            asked.answered_at = self._clock()
            raise ConnectionClosed from None
        asked.answered_at = self._clock()
        (got,) = struct.unpack(">i", frame[:4])
        if got != correlation_id:
            raise ConnectionClosed(f"answer {got} to request {correlation_id}")
        self._free.setdefault((asked.client, asked.broker), []).append(connection)
        return response(asked.api, asked.version, frame)

    async def _connection(self, client: str, broker: int) -> _Connection:
        free = self._free.setdefault((client, broker), [])
        while free:
            connection = free.pop()
            if not connection.reader.at_eof():
                return connection
        reader, writer = await asyncio.open_connection(*self.addresses[broker])
        connection = _Connection(reader, writer)
        self._all.append(connection)
        return connection
