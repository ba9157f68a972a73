"""Requests over a connection of the Kafka listener, and their responses back: as bytes, without a socket."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, cast

from rejoin.coordinator.core.inputs import Context
from rejoin.coordinator.pending_reply import PendingReply
from rejoin.coordinator.service.kafka.connection import KafkaConnection
from rejoin.coordinator.service.kafka.requests import RequestReader
from rejoin.coordinator.service.metrics import Metrics
from rejoin.protocol.message import Request, Response
from rejoin.protocol.registry import BY_REQUEST
from rejoin.protocol.wire.codec import codec_of

CORRELATION_ID = 77


@dataclass
class Transport:
    """Keeps what is written."""

    written: bytes = b""
    is_closed: bool = False

    def get_extra_info(self, _: str) -> tuple[str, int]:
        return ("127.0.0.1", 50_000)

    def write(self, data: bytes) -> None:
        self.written += data

    def writelines(self, parts: list[bytes]) -> None:
        self.written += b"".join(parts)

    def close(self) -> None:
        self.is_closed = True

    abort = close

    def pause_reading(self) -> None:
        """Bytes that are sent arrive whole."""

    resume_reading = pause_reading


class Connections:
    """The listener of a connection, without sockets and without an event loop."""

    max_request_bytes = 2**30
    is_recorded = False

    def __init__(self) -> None:
        self.loop = self
        self.requests = RequestReader(Metrics(), "")
        self.handed_in: tuple[Request, Context] | None = None
        self.pending = PendingReply()

    def submit(self, request: Request, context: Context) -> PendingReply:
        self.handed_in, self.pending = (request, context), PendingReply()
        return self.pending

    def time(self) -> float:
        return 0.0

    def new_identity(self) -> str:
        return "connection"

    def opened(self, _: KafkaConnection) -> None:
        """Nothing is counted."""

    def refuse(self, _: KafkaConnection, problem: Exception) -> None:
        raise AssertionError(f"the listener has not read the request: {problem}")


CONNECTIONS = Connections()
"""Readers and writers of each version are made once."""


class WireExchange:
    """One request on a connection of its own. ``request`` and ``context`` are what the listener hands in."""

    def __init__(self, request: Request, version: int, client_id: str) -> None:
        codec = codec_of(BY_REQUEST[type(request)].key, version)
        assert codec is not None, "the version is known"
        self._codec = codec
        self._transport = Transport()
        connection = KafkaConnection(cast(Any, CONNECTIONS), "PLAINTEXT")
        connection.connection_made(cast(Any, self._transport))
        connection.data_received(codec.request_frame(CORRELATION_ID, client_id, request))
        assert CONNECTIONS.handed_in is not None, "the request came through"
        self.request, self.context = CONNECTIONS.handed_in
        self._pending = CONNECTIONS.pending

    def receive(self, response: Response) -> dict[str, Any]:
        """A response as the client reads it, in JSON."""
        self._pending.response = response
        self._pending.settle()
        data = self._transport.written
        assert int.from_bytes(data[:4], "big") == len(data) - 4, "one frame"
        correlation_id, read = self._codec.read_response_frame(data[4:])
        assert correlation_id == CORRELATION_ID
        found: dict[str, Any] = json.loads(read.to_json(self._codec.version))
        return found
