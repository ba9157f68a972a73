"""Which node is asked: one that answers. Over real sockets, with servers that take everything and answer nothing."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress
from typing import Any

import pytest

from rejoin.client import Consumer, ConsumerRuntime, HttpTransport, KafkaError
from rejoin.client.admin.admin import Admin
from rejoin.client.core.effects import Endpoint
from rejoin.client.core.inputs import Failure
from rejoin.client.transports import http
from rejoin.client.transports.base import TransportError
from rejoin.journal.events.base import Event
from rejoin.journal.events.client import CoordinatorNotFound
from rejoin.protocol.message import Response
from rejoin.protocol.messages.cluster.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from rejoin.protocol.messages.groups.heartbeat import HeartbeatRequest
from tests.client.conftest import Serve

TIMEOUT_MS = 300
WHO = FindCoordinatorRequest(key_type=0, coordinator_keys=("g",))
BEAT = HeartbeatRequest(group_id="g", generation_id=1, member_id="m", group_instance_id=None)


class Hung:
    """As a stopped process: what is sent to it arrives, and that is all."""

    def __init__(self) -> None:
        self.asked = 0
        self.port = 0
        self._server: asyncio.Server | None = None
        self._serving: set[asyncio.Task[Any]] = set()

    async def start(self) -> None:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]

    async def stop(self) -> None:
        assert self._server is not None
        self._server.close()
        for task in self._serving:
            task.cancel()
        await asyncio.gather(*self._serving)
        await self._server.wait_closed()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._serving.add(task)
        with suppress(OSError, asyncio.CancelledError):
            while data := await reader.read(2**16):
                self.asked += data.count(b"POST ")
        writer.close()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"


Hang = Callable[[], Awaitable[Hung]]


@pytest.fixture
async def hang() -> AsyncIterator[Hang]:
    started: list[Hung] = []

    async def start() -> Hung:
        hung = Hung()
        await hung.start()
        started.append(hung)
        return hung

    yield start
    for each in started:
        await each.stop()


async def find(transport: HttpTransport, timeout_ms: int = TIMEOUT_MS) -> Response:
    return await transport.send(None, WHO, 4, timeout_ms=timeout_ms, client_id="c")


async def failure(asking: Awaitable[Response]) -> TransportError:
    with pytest.raises(TransportError) as caught:
        await asking
    return caught.value


async def test_a_node_that_hangs_is_asked_no_more_while_another_answers(serve: Serve, hang: Hang) -> None:
    hung, app = await hang(), await serve()
    async with HttpTransport([hung.url, app.url], reconnect_backoff_ms=0, reconnect_backoff_max_ms=0) as transport:
        lost = await failure(find(transport))
        assert (lost.failure, lost.detail) == (Failure.TIMEOUT, f"{hung.url}: no answer within {TIMEOUT_MS} ms")
        for _ in range(4):
            found = await find(transport, 10_000)
            assert isinstance(found, FindCoordinatorResponse)
            assert found.coordinators[0].port == app.port
    assert hung.asked <= 1, "none, where a busy machine came to it too late"


async def test_a_coordinator_that_hangs_is_not_asked_for_its_successor(serve: Serve, hang: Hang) -> None:
    hung, app = await hang(), await serve()
    async with HttpTransport([hung.url, app.url]) as transport:
        to = Endpoint(1, "127.0.0.1", hung.port)
        lost = await failure(transport.send(to, BEAT, 4, timeout_ms=TIMEOUT_MS, client_id="c"))
        assert lost.failure is Failure.TIMEOUT
        assert isinstance(await find(transport, 10_000), FindCoordinatorResponse)
    assert hung.asked <= 1, "none, where a busy machine came to it too late"


async def test_a_node_that_owes_an_answer_is_not_the_first_to_be_asked_another_question(
    serve: Serve, hang: Hang
) -> None:
    hung, app = await hang(), await serve()
    async with HttpTransport([hung.url, app.url]) as transport:
        waiting = asyncio.ensure_future(find(transport, 60_000))
        await asyncio.sleep(0)
        assert isinstance(await find(transport, 10_000), FindCoordinatorResponse)
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)


async def test_nodes_that_do_not_answer_are_asked_in_rotation(hang: Hang) -> None:
    nodes = [await hang() for _ in range(3)]
    async with HttpTransport([node.url for node in nodes], reconnect_backoff_ms=1) as transport:
        problems = [(await failure(find(transport, 100))).detail for _ in range(6)]
    assert sorted(problems) == sorted(f"{node.url}: no answer within 100 ms" for node in [*nodes, *nodes])


async def test_a_timeout_before_a_node_could_be_asked_counts_against_none(unused_tcp_port: int) -> None:
    """The backoff is not begun anew by those who wait for its end, or it would never come."""
    server = f"127.0.0.1:{unused_tcp_port}"
    async with HttpTransport([server], reconnect_backoff_ms=1_000, reconnect_backoff_max_ms=1_000) as transport:
        assert (await failure(find(transport, 10_000))).failure is Failure.DISCONNECT
        lost = await failure(find(transport, 100))
        assert lost.failure is Failure.TIMEOUT
        assert lost.detail.startswith(f"no node to ask within 100 ms; http://{server}: ")
        async with asyncio.timeout(60):
            while (await failure(find(transport, 100))).failure is not Failure.DISCONNECT:
                pass


async def test_the_problem_names_the_request_once(hang: Hang) -> None:
    hung = await hang()
    events: list[Event] = []
    async with HttpTransport([hung.url]) as transport:
        runtime = ConsumerRuntime(transport, lambda event, at_ms: events.append(event))
        reader = Consumer("t", runtime=runtime, group_id="g", request_timeout_ms=TIMEOUT_MS)
        await reader.start()
        problems: list[str] = []
        async with asyncio.timeout(60):
            while not problems:
                await reader.poll(TIMEOUT_MS)
                problems = [event.problem for event in events if isinstance(event, CoordinatorNotFound)]
        await reader.close()
        runtime.stop()
        assert problems[0] == f"FindCoordinator: {hung.url}: no answer within {TIMEOUT_MS} ms"
        # The rest of the time may be spent on waiting until the node may be asked again.
        again = rf"^Metadata: (no node to ask within \d+ ms; )?{hung.url}: no answer within \d+ ms$"
        with pytest.raises(KafkaError, match=again):
            await Admin(transport, TIMEOUT_MS).list_groups()


async def test_an_answer_without_an_end_is_not_read_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    """The connection is closed, and the node is backed off like any that breaks off."""
    monkeypatch.setattr(http, "MOST_BYTES", 1_000_000)
    sent = 0
    closed = asyncio.Event()

    async def endless(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal sent
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n")
        with suppress(OSError):
            while True:
                writer.write(b"[" * 65_536)
                await writer.drain()
                sent += 65_536
        closed.set()

    server = await asyncio.start_server(endless, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    async with HttpTransport([f"127.0.0.1:{port}"]) as transport:
        with pytest.raises(TransportError, match="an answer of more than 1000000 bytes") as problem:
            await transport.send(None, WHO, 4, timeout_ms=60_000, client_id="c")
        assert problem.value.failure is Failure.DISCONNECT
        await asyncio.wait_for(closed.wait(), 60)
    assert sent < 100_000_000
    server.close()
    await server.wait_closed()
