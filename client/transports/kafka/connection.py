"""One connection to a broker: frames out, frames in. Answers come in the order of the requests.

connection = await open_connection(address, client_id, ssl=None)
response = await connection.ask(API_VERSIONS, ApiVersionsRequest(), 0)
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from ssl import SSLContext, SSLError
from typing import Final, NamedTuple, cast

from rejoin.client.core.errors import KafkaError, WrongProtocolError
from rejoin.client.core.inputs import Failure
from rejoin.client.transports.base import TransportError
from rejoin.client.transports.kafka.address import BrokerAddress
from rejoin.protocol.message import Request, Response
from rejoin.protocol.messages.records.produce import ProduceRequest, ProduceResponse
from rejoin.protocol.registry import API_VERSIONS, Api
from rejoin.protocol.wire.codec import Codec, codec_of
from rejoin.protocol.wire.errors import SchemaError

MAX_FRAME_BYTES: Final = 2**31 - 1
"""Kafka: NetworkReceive has no limit in clients; the length has 32 bits."""

_LENGTH_BYTES: Final = 4
_HTTP_LENGTH: Final = int.from_bytes(b"HTTP", "big")
_UNSUPPORTED_VERSION: Final = (35).to_bytes(2, "big")


class UnansweredError(TransportError):
    """The broker ended the connection before its first answer: it speaks another protocol, or is starting."""


class _RequestInFlight(NamedTuple):
    """A request whose answer is still to come."""

    correlation_id: int
    codec: Codec
    future: asyncio.Future[Response]


class BrokerConnection(asyncio.Protocol):
    """An open connection. ``on_lost`` is called once when it ends, with the reason."""

    def __init__(self, address: BrokerAddress, client_id: str) -> None:
        self.address = address
        self.on_lost: Callable[[str], None] | None = None
        self._client_id = client_id
        self._transport: asyncio.WriteTransport | None = None
        self._in_flight: deque[_RequestInFlight] = deque()
        self._last_correlation_id = -1
        self._parts: list[bytes] = []
        self._size = 0
        self._wanted = _LENGTH_BYTES
        self._lost_because: str | None = None
        self.ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        """Done when the transport has ended: with TLS, later than the connection is of use."""

    @property
    def in_flight(self) -> int:
        """How many requests have no answer yet."""
        return len(self._in_flight)

    @property
    def is_open(self) -> bool:
        return self._lost_because is None

    def ask(self, api: Api, request: Request, version: int) -> asyncio.Future[Response]:
        """Send a request; the future gets its answer, or TransportError. Raises SchemaError if it cannot be written."""
        codec = codec_of(api.key, version)
        assert codec is not None, f"{api.name} v{version} has no codec"
        future: asyncio.Future[Response] = asyncio.get_running_loop().create_future()
        if self._lost_because is not None or self._transport is None:
            future.set_exception(self._disconnect_error())
            return future
        self._last_correlation_id = correlation_id = (self._last_correlation_id + 1) & 0x7FFF_FFFF
        frame = codec.request_frame(correlation_id, self._client_id, request)
        if isinstance(request, ProduceRequest) and request.acks == 0:
            # Kafka: with acks=0 there is no answer.
            future.set_result(ProduceResponse())
        else:
            self._in_flight.append(_RequestInFlight(correlation_id, codec, future))
        self._transport.write(frame)
        return future

    def hand_over(self) -> asyncio.WriteTransport | None:
        """The transport, for another protocol to use from here on; None if it has ended. Nothing may be in flight."""
        transport, self._transport = self._transport, None
        return transport if self.is_open else None

    def close(self, reason: str) -> None:
        """End the connection; whatever waits for an answer fails."""
        self._lose(reason)

    def abort(self) -> None:
        """End the transport without waiting for the other side's part in that."""
        if self._transport is not None:
            self._transport.abort()

    def _disconnect_error(self) -> TransportError:
        return TransportError(Failure.DISCONNECT, f"{self.address}: {self._lost_because or 'not connected'}")

    def _lose(self, reason: str, error: Exception | None = None) -> None:
        if self._lost_because is not None:
            return
        self._lost_because = reason
        if self._transport is not None:
            self._transport.close()
        expected, self._in_flight = self._in_flight, deque()
        for each in expected:
            if not each.future.done():
                each.future.set_exception(error or self._disconnect_error())
        if self.on_lost is not None:
            self.on_lost(reason)

    # -- asyncio.Protocol

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.WriteTransport, transport)

    def connection_lost(self, error: Exception | None) -> None:
        if not self.ended.done():
            self.ended.set_result(None)
        self._lose(str(error) if error is not None else "the broker closed the connection")

    def data_received(self, data: bytes) -> None:
        # The parts of a large answer are joined once.
        self._parts.append(data)
        self._size += len(data)
        if self._size < self._wanted:
            return
        data = self._parts[0] if len(self._parts) == 1 else b"".join(self._parts)
        at = 0
        self._wanted = _LENGTH_BYTES
        while len(data) - at >= _LENGTH_BYTES:
            length = int.from_bytes(data[at : at + _LENGTH_BYTES], "big")
            if length == _HTTP_LENGTH or length > MAX_FRAME_BYTES:
                self._wrong_protocol(length)
                return
            if len(data) - at - _LENGTH_BYTES < length:
                self._wanted = _LENGTH_BYTES + length
                break
            stop = at + _LENGTH_BYTES + length
            self._take(data[at + _LENGTH_BYTES : stop])
            if self._lost_because is not None:
                return
            at = stop
        rest = data[at:] if at else data
        self._parts = [rest] if rest else []
        self._size = len(rest)

    def _take(self, frame: bytes) -> None:
        if not self._in_flight:
            self._lose("an answer that no request waits for")
            return
        expected = self._in_flight.popleft()
        try:
            correlation_id, response = _read(expected.codec, frame)
        except SchemaError as problem:
            self._in_flight.appendleft(expected)
            self._lose(f"not an answer to {expected.codec.api.name}: {problem}")
            return
        if correlation_id != expected.correlation_id:
            self._in_flight.appendleft(expected)
            self._lose(f"an answer with correlation id {correlation_id}: expected {expected.correlation_id}")
            return
        if not expected.future.done():
            expected.future.set_result(response)

    def _wrong_protocol(self, length: int) -> None:
        if length == _HTTP_LENGTH:
            text = f"{self.address} speaks HTTP, and was asked in Kafka's protocol; write http://{self.address}"
        else:
            text = f"{self.address} was asked in Kafka's protocol, and answered in another one"
        self._lose(text, WrongProtocolError(text))


def _read(codec: Codec, frame: bytes) -> tuple[int, Response]:
    if (
        codec.api is API_VERSIONS
        and codec.version > 0
        and frame[_LENGTH_BYTES : _LENGTH_BYTES + 2] == (_UNSUPPORTED_VERSION)
    ):
        # Kafka: a broker that does not know the version answers in version 0.
        oldest = codec_of(API_VERSIONS.key, 0)
        assert oldest is not None
        codec = oldest
    return codec.read_response_frame(frame)


async def open_connection(address: BrokerAddress, client_id: str, ssl: SSLContext | None) -> BrokerConnection:
    """Connect, over TLS where a context is given. Raises TransportError, and KafkaError where TLS is refused."""
    loop = asyncio.get_running_loop()
    try:
        _, connection = await loop.create_connection(
            lambda: BrokerConnection(address, client_id),
            address.host,
            address.port,
            ssl=ssl,
            server_hostname=address.host if ssl is not None else None,
        )
    except SSLError as error:
        # Kafka: SslAuthenticationException. Trying again would not help.
        raise KafkaError(f"{address}: the TLS handshake failed: {error}") from error
    except ConnectionResetError as error:
        raise UnansweredError(Failure.DISCONNECT, f"{address}: the broker closed the connection") from error
    except (OSError, UnicodeError) as error:
        # A host that is no name, as a..b, cannot be encoded.
        raise TransportError(Failure.DISCONNECT, f"{address}: {error}") from error
    return connection
