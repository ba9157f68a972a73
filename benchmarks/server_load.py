"""What the benchmarks of servers share: processes of their own, and a load that costs less than any of them."""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import socket
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import AsyncExitStack, contextmanager
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, Final

from aiohttp import web

Start = Callable[[socket.socket], Awaitable[Any]]
"""Starts a server on a bound socket; what it returns is kept alive."""

_CORES: Final = sorted(os.sched_getaffinity(0))
_CONTEXT: Final = multiprocessing.get_context("spawn")


def loop_factory() -> Any:
    """uvloop's, where it is installed."""
    try:
        import uvloop  # noqa: PLC0415
    except ImportError:
        return None
    return uvloop.new_event_loop


@contextmanager
def on_last_core() -> Iterator[None]:
    """Stay away from the servers meanwhile, where there is more than one core."""
    os.sched_setaffinity(0, {_CORES[-1]})
    try:
        yield
    finally:
        os.sched_setaffinity(0, _CORES)


@contextmanager
def never_asleep() -> Iterator[None]:
    """Let the running loop look for events again and again instead of waiting for them.

    Who writes to a process that sleeps pays for waking it: on a virtual machine 1 µs a heartbeat, and 12 µs a Fetch of
    16 kB. A server that is faster than the load would pay nothing of that, and one that is slower all.
    """
    loop = asyncio.get_running_loop()
    handle: asyncio.Handle

    def look() -> None:
        nonlocal handle
        handle = loop.call_soon(look)

    look()
    try:
        yield
    finally:
        handle.cancel()


@dataclass(slots=True)
class ServerProcess:
    """A server in a process of its own."""

    pid: int
    port: int
    has_passing_threads: bool = False
    """Whether threads end before the process does: only the process knows their time, in hundredths of a second."""

    def cpu_seconds(self) -> float:
        """The processor time it has used."""
        # Of each thread: a store writes in one of its own.
        threads = [each / "schedstat" for each in Path(f"/proc/{self.pid}/task").iterdir()]
        if threads and not self.has_passing_threads and all(each.exists() for each in threads):
            return sum(int(each.read_text().split()[0]) for each in threads) / 1e9
        fields = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def resident_bytes(self) -> int:
        """The memory it holds."""
        return int(Path(f"/proc/{self.pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


@contextmanager
def served(start: Start) -> Iterator[ServerProcess]:
    """Run a server in another process, pinned to the first core."""
    ours, theirs = _CONTEXT.Pipe()
    process = _CONTEXT.Process(target=_serve, args=(start, theirs, _CORES[0]), daemon=True)
    process.start()
    try:
        yield ServerProcess(process.pid or 0, ours.recv())
    finally:
        ours.send(None)
        process.join(5)
        if process.is_alive():
            process.kill()
            process.join()


def _serve(start: Start, pipe: Connection, core: int) -> None:
    os.sched_setaffinity(0, {core})
    with asyncio.Runner(loop_factory=loop_factory()) as runner:
        runner.run(_serve_until_stopped(start, pipe))


async def _serve_until_stopped(start: Start, pipe: Connection) -> None:
    listener = socket.socket()
    listener.bind(("127.0.0.1", 0))
    listener.listen(16_384)
    listener.setblocking(False)
    port = listener.getsockname()[1]
    kept = await start(listener)
    pipe.send(port)
    stop_requested = asyncio.Event()
    asyncio.get_running_loop().add_reader(pipe.fileno(), stop_requested.set)
    await stop_requested.wait()
    if isinstance(kept, AsyncExitStack):
        await kept.aclose()


def aiohttp_app(handler: Callable[[web.Request], Awaitable[web.StreamResponse]], path: str) -> Start:
    """The plainest aiohttp application: one route, no access log."""

    async def start(listener: socket.socket) -> web.AppRunner:
        app = web.Application()
        app.router.add_post(path, handler)
        runner = web.AppRunner(app, access_log=None)
        await runner.setup()
        await web.SockSite(runner, listener).start()
        return runner

    return start


def _is_whole(answer: bytes) -> bool:
    """Whether an answer has arrived, of HTTP or in a frame of Kafka's protocol."""
    if not answer.startswith(b"H"):
        return len(answer) >= 4 and len(answer) == 4 + int.from_bytes(answer[:4], "big")
    head, end, body = answer.partition(b"\r\n\r\n")
    length = int(head.lower().partition(b"content-length: ")[2].split(b"\r\n")[0]) if end else 0
    assert not end or head.startswith(b"HTTP/1.1 200 "), answer
    return bool(end) and len(body) >= length


class _Client(asyncio.Protocol):
    """Sends the same request again as soon as the answer is whole."""

    def __init__(self, request: bytes, counted: list[int]) -> None:
        self._request = request
        self._counted = counted
        self._answer_size = 0
        self._received = 0
        self.transport: Any = None
        self.first = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport
        self.transport.write(self._request)

    def data_received(self, data: bytes) -> None:
        if not self._answer_size:
            self.first += data
            if not _is_whole(self.first):
                return
            self._answer_size = len(self.first)
            self._received = self._answer_size
        else:
            self._received += len(data)
        if self._received >= self._answer_size:
            self._received = 0
            self._counted[0] += 1
            self.transport.write(self._request)


@dataclass(slots=True)
class LoadResult:
    """What one round of load found."""

    per_second: float
    cpu_micros: float
    answer: bytes


async def hammered(
    port: int, request: bytes, connections: int, seconds: float, cpu_seconds: Callable[[], float]
) -> LoadResult:
    """Put a server under load from the running loop; each connection has one request in flight."""
    loop = asyncio.get_running_loop()
    counted = [0]
    clients: list[_Client] = []
    for _ in range(connections):
        _, client = await loop.create_connection(lambda: _Client(request, counted), "127.0.0.1", port)
        clients.append(client)
    with never_asleep():
        await asyncio.sleep(0.2)
        await _counted(counted, connections)
        count, cpu, began = counted[0], cpu_seconds(), time.perf_counter()
        await asyncio.sleep(seconds)
        # Not fewer: answers that were under way at the beginning have cost nothing since then.
        await _counted(counted, count + 2 * connections)
        answered, used, took = counted[0] - count, cpu_seconds() - cpu, time.perf_counter() - began
    for client in clients:
        client.transport.abort()
    await asyncio.sleep(0.05)
    return LoadResult(answered / took, used / answered * 1e6, clients[0].first)


async def _counted(counted: list[int], answers: int) -> None:
    """Wait until there are so many answers: on a busy machine that may take longer than a round."""
    while counted[0] < answers:  # noqa: ASYNC110 - an event would cost the load something
        await asyncio.sleep(0.01)


def hammer(server: ServerProcess, request: bytes, connections: int = 64, seconds: float = 1.0) -> LoadResult:
    """Put a server under load from this process, on the other core."""
    with asyncio.Runner(loop_factory=loop_factory()) as runner:
        return runner.run(hammered(server.port, request, connections, seconds, server.cpu_seconds))


def http_post(path: str, body: bytes, headers: str = "") -> bytes:
    """A request as it travels."""
    head = f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n{headers}"
    return f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body
