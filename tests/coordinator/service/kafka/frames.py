"""Frames of Kafka's protocol made by hand: what goes over the socket in these tests is not written by our own codec."""

from __future__ import annotations

import asyncio
import ssl
import struct
from types import TracebackType
from typing import Self

CLOSED = b""


def string(text: str) -> bytes:
    return struct.pack(">h", len(text.encode())) + text.encode()


def compact(text: str) -> bytes:
    return bytes([len(text.encode()) + 1]) + text.encode()


def request(key: int, version: int, correlation: int, body: bytes = b"", client_id: str = "test") -> bytes:
    """A request whose header is not flexible."""
    return struct.pack(">hhi", key, version, correlation) + string(client_id) + body


def framed(data: bytes) -> bytes:
    return struct.pack(">i", len(data)) + data


def api_versions(
    version: int,
    correlation: int = 1,
    name: str = "librdkafka",
    software: str = "2.16.0",
    taken_for: tuple[str | None, int] = (None, -1),
) -> bytes:
    """ApiVersions of a client that takes whom it asks for a cluster and node; from version 5 on it says so."""
    if version < 3:
        return request(18, version, correlation)
    cluster, node = taken_for
    peer = (b"\0" if cluster is None else compact(cluster)) + struct.pack(">i", node) if version >= 5 else b""
    return request(18, version, correlation, b"\0" + compact(name) + compact(software) + peer + b"\0")


def heartbeat(group: str, member: str, generation: int = 1, correlation: int = 1) -> bytes:
    """Heartbeat 0."""
    return request(12, 0, correlation, string(group) + struct.pack(">i", generation) + string(member))


def find_coordinator(group: str) -> bytes:
    """FindCoordinator 0."""
    return request(10, 0, 1, string(group))


def join_group(group: str, correlation: int = 1, session_ms: int = 10_000) -> bytes:
    """JoinGroup 0 of a new member."""
    protocols = struct.pack(">i", 1) + string("range") + struct.pack(">i", 0)
    body = string(group) + struct.pack(">i", session_ms) + string("") + string("consumer") + protocols
    return request(11, 0, correlation, body)


class Peer:
    """A client's end of a connection."""

    def __init__(
        self, port: int, tls: ssl.SSLContext | None = None, host: str = "127.0.0.1", server_name: str | None = None
    ) -> None:
        """``server_name`` is the host that the TLS handshake names; unless given, it is ``host``."""
        self._at = (host, port)
        self._tls = tls
        self._server_name = server_name

    async def __aenter__(self) -> Self:
        self._reader, self._writer = await asyncio.open_connection(
            *self._at, ssl=self._tls, server_hostname=self._server_name
        )
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._writer.close()

    def send(self, *requests: bytes) -> None:
        """Send requests, each in a frame, in one piece."""
        self.send_bytes(b"".join(map(framed, requests)))

    def send_bytes(self, data: bytes) -> None:
        self._writer.write(data)

    async def receive(self) -> tuple[int, bytes]:
        """The correlation id of the next response, and what follows it."""
        async with asyncio.timeout(30):
            size = struct.unpack(">i", await self._reader.readexactly(4))[0]
            data = await self._reader.readexactly(size)
        return struct.unpack(">i", data[:4])[0], data[4:]

    async def ask(self, data: bytes) -> bytes:
        self.send(data)
        return (await self.receive())[1]

    async def rest(self) -> bytes:
        """Everything up to the end of the connection."""
        async with asyncio.timeout(30):
            try:
                return await self._reader.read()
            except ConnectionResetError:
                return CLOSED
