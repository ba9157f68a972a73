"""A proxy between clients and a broker that keeps every request with what was answered, by client id.

The broker advertises the proxy's address. ApiVersions answers are cut down to the versions of ours, so that everything
that passes can be read, and both clients speak the same versions.
"""

from __future__ import annotations

import asyncio
import time
from contextlib import suppress
from dataclasses import dataclass
from types import TracebackType
from typing import Final, NamedTuple, Self

from rejoin.protocol.brokers.offered_versions import offered
from rejoin.protocol.message import Request, Response
from rejoin.protocol.messages.cluster.api_versions import ApiVersionsResponse
from rejoin.protocol.messages.groups.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
from rejoin.protocol.messages.records.produce import ProduceRequest
from rejoin.protocol.registry import API_VERSIONS
from rejoin.protocol.wire.codec import codec_of, read_request_header, unsupported_api_versions_frame

HOST: Final = "127.0.0.1"


@dataclass(slots=True)
class ProxiedExchange:
    """A request that passed, when it did, and its answer, if any. A lost answer has its instant alone."""

    client_id: str
    api: str
    version: int
    at: float
    request: Request
    response: Response | None = None
    answered_at: float | None = None


class LostAnswer(NamedTuple):
    """The next answer of an API to clients with ids that begin so is lost, and the connection with it."""

    clients: str
    api: str


class Proxy:
    """Listens on a port of its own; ``port_of_broker`` is where the broker is.

    Proxies of several brokers may share their ``exchanges``, and the answers that they are to lose.
    """

    def __init__(
        self,
        port_of_broker: int,
        exchanges: list[ProxiedExchange] | None = None,
        losing: list[LostAnswer] | None = None,
    ) -> None:
        self.port_of_broker = port_of_broker
        self.exchanges: list[ProxiedExchange] = [] if exchanges is None else exchanges
        self.losing: list[LostAnswer] = [] if losing is None else losing
        self._serving: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._connected, HOST, 0)
        self.port: int = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.close()
        for serving in self._serving:
            serving.cancel()
        await asyncio.gather(*self._serving, return_exceptions=True)

    def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._serving.add(asyncio.create_task(self._serve(reader, writer)))

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there: asyncio.StreamWriter | None = None
        try:
            back, there = await asyncio.open_connection(HOST, self.port_of_broker)
            waiting: asyncio.Queue[tuple[ProxiedExchange | None, bytes]] = asyncio.Queue()
            async with asyncio.TaskGroup() as both:
                both.create_task(self._forward(reader, there, waiting))
                both.create_task(self._return(back, writer, waiting))
        except* (OSError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()
            if there is not None:
                there.close()

    async def _forward(
        self,
        client: asyncio.StreamReader,
        broker: asyncio.StreamWriter,
        waiting: asyncio.Queue[tuple[ProxiedExchange | None, bytes]],
    ) -> None:
        while True:
            frame = await _frame(client)
            header = read_request_header(frame)
            codec = codec_of(header.api_key, header.api_version)
            if codec is None and header.api_key == API_VERSIONS.key:
                refused = unsupported_api_versions_frame(header.correlation_id, 0, API_VERSIONS.max_version)
                waiting.put_nowait((None, refused))
                continue
            exchange = None
            if codec is not None:
                request = codec.read_request(frame, header.body_at)
                exchange = ProxiedExchange(header.client_id, codec.api.name, codec.version, time.monotonic(), request)
                if codec.api is not API_VERSIONS:
                    self.exchanges.append(exchange)
            if exchange is None or not _has_no_answer(exchange.request):
                waiting.put_nowait((exchange, frame))
            broker.write(len(frame).to_bytes(4, "big") + frame)

    async def _return(
        self,
        broker: asyncio.StreamReader,
        client: asyncio.StreamWriter,
        waiting: asyncio.Queue[tuple[ProxiedExchange | None, bytes]],
    ) -> None:
        own = offered()
        while True:
            exchange, sent = await waiting.get()
            if exchange is None and int.from_bytes(sent[:4], "big") == len(sent) - 4:
                client.write(sent)  # Answered here.
                continue
            frame = await _frame(broker)
            header = read_request_header(sent)
            codec = codec_of(header.api_key, header.api_version)
            if exchange is None or codec is None:
                client.write(len(frame).to_bytes(4, "big") + frame)
                continue
            correlation_id, response = codec.read_response_frame(frame)
            if isinstance(response, ApiVersionsResponse):
                kept = tuple(
                    each.model_copy(update={"max_version": min(each.max_version, own[each.api_key][1])})
                    for each in response.api_keys
                    if each.api_key in own
                )
                response = response.model_copy(update={"api_keys": kept})
                client.write(codec.response_frame(correlation_id, response))
                continue
            exchange.answered_at = time.monotonic()
            if self._loses(exchange):
                raise ConnectionResetError
            exchange.response = response
            client.write(len(frame).to_bytes(4, "big") + frame)

    def _loses(self, exchange: ProxiedExchange) -> bool:
        for each in self.losing:
            if exchange.api == each.api and exchange.client_id.startswith(each.clients):
                self.losing.remove(each)
                return True
        return False


def _has_no_answer(request: Request) -> bool:
    return isinstance(request, ProduceRequest) and request.acks == 0


async def _frame(reader: asyncio.StreamReader) -> bytes:
    length = int.from_bytes(await reader.readexactly(4), "big")
    return await reader.readexactly(length)


def _gives_assignment(exchange: ProxiedExchange) -> bool:
    if isinstance(exchange.response, ConsumerGroupHeartbeatResponse):
        assignment = exchange.response.assignment
        return assignment is not None and bool(assignment.topic_partitions)
    return exchange.api == "SyncGroup" and exchange.response is not None


def _moves(exchange: ProxiedExchange) -> bool:
    """Whether a member joins, leaves, or says or is given what it has."""
    if isinstance(exchange.request, ConsumerGroupHeartbeatRequest):
        response = exchange.response
        is_given = isinstance(response, ConsumerGroupHeartbeatResponse) and response.assignment is not None
        return is_given or exchange.request.member_epoch <= 0 or exchange.request.topic_partitions is not None
    return exchange.api in {"JoinGroup", "SyncGroup", "LeaveGroup"}


async def until_member(proxy: Proxy, client_id: str, since: float, at_most: float = 60.0) -> None:
    """Wait until a member has been given its assignment after an instant."""
    async with asyncio.timeout(at_most):
        while not any(
            each.client_id == client_id and each.at >= since and _gives_assignment(each) for each in proxy.exchanges
        ):
            await asyncio.sleep(0.05)


async def until_idle(proxy: Proxy, clients: str, seconds: float, at_most: float = 60.0) -> None:
    """Wait until no member whose client id begins so has joined or left for a while."""
    with suppress(TimeoutError):
        async with asyncio.timeout(at_most):
            while True:
                moves = [each.at for each in proxy.exchanges if each.client_id.startswith(clients) and _moves(each)]
                now = time.monotonic()
                waits = any(
                    each.response is None and each.api == "JoinGroup" and now - each.at < at_most / 2
                    for each in proxy.exchanges
                    if each.client_id.startswith(clients)
                )
                if moves and not waits and now - moves[-1] > seconds:
                    return
                await asyncio.sleep(0.05)
