"""A broker that answers as a test wants, a client that writes frames, and the proxy between them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from rejoin.coordinator.control.fault_injection.fault_rules import FaultRule
from rejoin.coordinator.control.fault_injection.faults import Fault, Faults
from rejoin.protocol.message import Request, Response
from rejoin.protocol.messages.cluster.metadata import MetadataRequest, MetadataResponse, MetadataResponseBroker
from rejoin.protocol.registry import BY_REQUEST
from rejoin.protocol.wire.codec import Codec, RequestHeader, codec_of, read_request_header
from rejoin.proxy.faults import ProxyFaults
from rejoin.proxy.service import Proxy, ProxyOptions, Watch

Answer = Response | bytes | None
"""An answer, one that is framed already, or none."""


class SeenRequest(NamedTuple):
    """A request as the broker got it."""

    header: RequestHeader
    request: Any


def codec(key: int, version: int) -> Codec:
    found = codec_of(key, version)
    assert found is not None
    return found


@dataclass
class ScriptedBroker:
    """Reads requests, and answers each by ``answers``: by API name, a response or a function that makes it."""

    answers: dict[str, Any] = field(default_factory=dict)
    seen: list[SeenRequest] = field(default_factory=list)
    raw: list[bytes] = field(default_factory=list)
    askers: list[asyncio.StreamWriter] = field(default_factory=list)
    """By frame: the connection that it came by. The proxy has one of its own."""
    writers: list[asyncio.StreamWriter] = field(default_factory=list)
    on_raw: Callable[[bytes], bytes | None] | None = None
    port: int = 0
    tasks: list[asyncio.Task[None]] = field(default_factory=list)
    came: asyncio.Condition = field(default_factory=asyncio.Condition)

    def accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.tasks.append(asyncio.create_task(self.serve(reader, writer)))

    async def wait_for(self, requests: int) -> None:
        """Return when so many requests have come."""
        async with asyncio.timeout(20), self.came:
            await self.came.wait_for(lambda: len(self.raw) >= requests)

    async def stop(self) -> None:
        for writer in self.writers:
            writer.close()
        for task in self.tasks:
            task.cancel()
        await asyncio.gather(*self.tasks, return_exceptions=True)
        for writer in self.writers:
            with suppress(ConnectionError):
                await writer.wait_closed()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.writers.append(writer)
        try:
            while True:
                frame = await reader.readexactly(int.from_bytes(await reader.readexactly(4), "big"))
                self.raw.append(frame)
                self.askers.append(writer)
                async with self.came:
                    self.came.notify_all()
                answer = self.on_raw(frame) if self.on_raw is not None else None
                if answer is None:
                    answer = self.answer(frame)
                if answer is not None:
                    writer.write(answer)
                    await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    def answer(self, frame: bytes) -> bytes | None:
        header = read_request_header(frame)
        form = codec(header.api_key, header.api_version)
        request = form.read_request(frame, header.body_at)
        self.seen.append(SeenRequest(header, request))
        answer = self.answers.get(form.api.name)
        if answer is None and isinstance(request, MetadataRequest):
            answer = MetadataResponse(brokers=(MetadataResponseBroker(node_id=5, host="127.0.0.1", port=self.port),))
        if callable(answer):
            answer = answer(request)
        return form.response_frame(header.correlation_id, answer) if isinstance(answer, Response) else answer


class FrameClient:
    """Writes requests and reads answers, as a client that has many in flight."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer
        self._sent: list[Codec] = []
        self._number = 0

    @classmethod
    async def connect(cls, port: int) -> FrameClient:
        return cls(*await asyncio.open_connection("127.0.0.1", port, limit=1 << 26))

    def send(
        self, request: Request, version: int | None = None, client_id: str = "c", *, answered: bool = True
    ) -> None:
        api = BY_REQUEST[type(request)]
        form = codec(api.key, api.default_version if version is None else version)
        self._number += 1
        if answered:
            self._sent.append(form)
        self.writer.write(form.request_frame(self._number, client_id, request))

    async def frame(self) -> bytes:
        async with asyncio.timeout(20):
            return await self.reader.readexactly(int.from_bytes(await self.reader.readexactly(4), "big"))

    async def receive(self) -> Any:
        frame = await self.frame()
        return self._sent.pop(0).read_response_frame(frame)[1]

    async def ask(self, request: Request, version: int | None = None, client_id: str = "c") -> Any:
        self.send(request, version, client_id)
        return await self.receive()

    async def at_end(self) -> bytes:
        """The bytes up to the connection's end."""
        async with asyncio.timeout(20):
            try:
                return await self.reader.read()
            except ConnectionError:
                return b""

    async def close(self) -> None:
        self.writer.close()
        with suppress(ConnectionError):
            await self.writer.wait_closed()


@dataclass
class Stand:
    """A broker, a proxy and its rules."""

    broker: ScriptedBroker
    proxy: Proxy
    faults: Faults
    clients: list[FrameClient] = field(default_factory=list)

    def fault(self, **fields: Any) -> Fault:
        return self.faults.add(FaultRule(**fields))

    async def client(self, port: int | None = None) -> FrameClient:
        client = await FrameClient.connect(self.proxy.port if port is None else port)
        self.clients.append(client)
        return client


@asynccontextmanager
async def proxied(
    broker: ScriptedBroker | None = None, watch: Watch | None = None, **options: Any
) -> AsyncIterator[Stand]:
    broker = broker or ScriptedBroker()
    server = await asyncio.start_server(broker.accept, "127.0.0.1", 0, limit=1 << 26)
    broker.port = server.sockets[0].getsockname()[1]
    rules = ProxyFaults(Faults())
    bootstrap = options.pop("bootstrap", (("127.0.0.1", broker.port),))
    proxy = Proxy(ProxyOptions(bootstrap=bootstrap, **options), watch, rules)
    await proxy.start()
    stand = Stand(broker, proxy, rules.faults)
    try:
        yield stand
    finally:
        await rules.stop()
        await proxy.stop()
        for client in stand.clients:
            await client.close()
        server.close()
        await broker.stop()
        await server.wait_closed()
