"""Clients in the process of the servers that they ask: a round is some requests, and costs what the process took."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from typing import Any

from benchmarks.server_load import never_asleep


class _Client(asyncio.Protocol):
    """One connection of a load. Answers have one size, and come in order."""

    def __init__(self, load: Load) -> None:
        self._load = load
        self._bytes = 0
        self._sent: deque[float] = deque()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport: Any = transport

    def send(self) -> None:
        """Send a request now."""
        self._sent.append(time.perf_counter())
        self.transport.write(self._load.request)

    def data_received(self, data: bytes) -> None:
        self._bytes += len(data)
        while self._bytes >= self._load.answer_bytes:
            self._bytes -= self._load.answer_bytes
            self._load.answered(self, time.perf_counter() - self._sent.popleft())


class Load:
    """Connections to one server, with the same request on each."""

    def __init__(self, request: bytes, answer_bytes: int) -> None:
        self.request = request
        self.answer_bytes = answer_bytes
        self.took: list[float] = []
        """Seconds of each answer of the last paced round."""
        self._clients: list[_Client] = []
        self._left = self._awaited = 0
        self._done = asyncio.Event()

    async def connect(self, port: int, connections: int) -> None:
        """Open the connections."""
        loop = asyncio.get_running_loop()
        for _ in range(connections):
            self._clients.append((await loop.create_connection(lambda: _Client(self), "127.0.0.1", port))[1])

    def answered(self, client: _Client, took: float) -> None:
        """An answer is whole: send the next request, if the round has one."""
        self.took.append(took)
        self._awaited -= 1
        if self._left > 0:
            self._left -= 1
            client.send()
        elif self._awaited == 0:
            self._done.set()

    async def cpu_micros(self, count: int) -> float:
        """The processor time of a request, with one in flight on each connection: the whole process's, in µs."""
        self.took.clear()
        self._done.clear()
        self._awaited = count
        self._left = max(count - len(self._clients), 0)
        with never_asleep():
            began = time.process_time()
            for client in self._clients[:count]:
                client.send()
            await self._done.wait()
            used = time.process_time() - began
        return used / count * 1e6

    async def paced(self, per_second: int) -> None:
        """Send one request on each connection, at a fixed rate, and keep how long the answers took."""
        self._done.clear()
        self._awaited = len(self._clients)
        with never_asleep():
            began = time.perf_counter()
            for number, client in enumerate(self._clients):
                while time.perf_counter() < began + number / per_second:  # noqa: ASYNC110 - timers are too coarse
                    await asyncio.sleep(0)
                client.send()
            await self._done.wait()

    def close(self) -> None:
        """Close the connections."""
        for client in self._clients:
            client.transport.abort()
