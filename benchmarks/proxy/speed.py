"""The proxy's costs beside a proxy that only copies bytes, and beside none, in one run.

The copying proxy is asyncio on uvloop as ours is: what it takes is the price of standing between. Ours runs as it is,
with a journal, and under control. A proxy has one core to itself; clients and broker share the other, in one process
that never sleeps. Rounds are short and alternate; of each request the round with the least processor time counts, which
other processes have disturbed least. On a busy machine ratios of processor time hold and rates do not, so both are
shown, and aims are checked by processor time.
"""

from __future__ import annotations

import asyncio
import resource
import socket
import sys
import tempfile
import time
from collections import deque
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Final

from rich.table import Table

from benchmarks import printer
from benchmarks.kafka.connections import idle_bytes
from benchmarks.proxy.servers import request_frames, start_broker, start_copying, start_proxy
from benchmarks.server_load import LoadResult, ServerProcess, hammered, loop_factory, never_asleep, on_last_core, served

ROUNDS: Final = 7
QUICK_ROUNDS: Final = 3
SECONDS: Final = 0.4
CONNECTIONS: Final = {"Heartbeat": 64, "Fetch": 4, "Produce": 4}
MANY: Final = 2_000
"""Connections at one time."""
PER_SECOND: Final = 1_000
"""Requests a second for latencies, below what any of the servers can do."""
PACED_TURNS: Final = 40
_PACED_CONNECTIONS: Final = 50

DIRECT: Final = "no proxy"
COPYING: Final = "copying"
OURS: Final = ("rejoin proxy", "--journal", "--control")
AIMED: Final = OURS[:2]
"""Those with aims: under control every request and answer is read and kept."""
LEAST_RATE: Final = 0.7
"""Part of the copying proxy's rate that Produce and Fetch of 1 MiB are to reach."""
MOST_CPU: Final = 2.0
"""Processor time of a heartbeat, as a multiple of the copying proxy's."""
MOST_ADDED_MS: Final = 1.0
"""Latency that the proxy adds at the 99th percentile."""
MOST_GROWTH: Final = 0.1
"""Part by which a proxy's memory may grow from the end of the first round to that of the last."""
FAILS_BEYOND: Final = 1.5
"""How many times an aim may be missed before the benchmark fails."""


@dataclass
class Found:
    """What was measured of one server."""

    loads: dict[str, list[LoadResult]] = field(default_factory=lambda: {name: [] for name in CONNECTIONS})
    p50_ms: float = 0.0
    p99_ms: float = 0.0
    resident: list[int] = field(default_factory=list)
    """Bytes at the end of each round."""
    many: LoadResult | None = None
    """Heartbeats on many connections."""
    idle_bytes: float = 0.0

    def cpu(self, name: str) -> float:
        """The processor time of a request, in µs."""
        return min(each.cpu_micros for each in self.loads[name])

    def rate(self, name: str) -> float:
        """Requests a second."""
        return max(each.per_second for each in self.loads[name])

    def growth(self) -> float:
        """The part by which memory grew from the end of the first round to that of the last."""
        return self.resident[-1] / self.resident[0] - 1 if self.resident else 0.0


class _PacedClient(asyncio.Protocol):
    """Sends when it is time to, and notes how long each answer took. Answers have one size."""

    def __init__(self, request: bytes, took: list[float]) -> None:
        self._request = request
        self._took = took
        self._sent: deque[float] = deque()
        self._bytes = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport: Any = transport

    def send(self) -> None:
        """Send a request now."""
        self._sent.append(time.perf_counter())
        self.transport.write(self._request)

    def data_received(self, data: bytes) -> None:
        if not self._bytes:
            self._size = 4 + int.from_bytes(data[:4], "big")
        self._bytes += len(data)
        now = time.perf_counter()
        while self._bytes >= self._size:
            self._bytes -= self._size
            self._took.append(now - self._sent.popleft())


async def latencies(ports: dict[str, int], request: bytes) -> dict[str, list[float]]:
    """The seconds that each answer takes at a fixed rate of requests, by server and in order of size.

    The servers take turns of a few ms, so that what else the machine does meets all of them.
    """
    loop = asyncio.get_running_loop()
    took: dict[str, list[float]] = {name: [] for name in ports}
    clients: dict[str, list[_PacedClient]] = {}
    for name, port in ports.items():
        made = partial(_PacedClient, request, took[name])
        clients[name] = [(await loop.create_connection(made, "127.0.0.1", port))[1] for _ in range(_PACED_CONNECTIONS)]
    with never_asleep():
        for name in ports:
            await _paced(clients[name], took[name])
            took[name].clear()
        for _ in range(PACED_TURNS):
            for name in ports:
                await _paced(clients[name], took[name])
    for each in clients.values():
        for client in each:
            client.transport.abort()
    await asyncio.sleep(0.05)
    return {name: sorted(each) for name, each in took.items()}


async def _paced(clients: list[_PacedClient], took: list[float]) -> None:
    """One request on each connection, one after the other, until all are answered."""
    expected = len(took) + len(clients)
    began = time.perf_counter()
    for number, client in enumerate(clients):
        while time.perf_counter() < began + number / PER_SECOND:  # noqa: ASYNC110 - an event would cost the load something
            await asyncio.sleep(0)
        client.send()
    while len(took) < expected:  # noqa: ASYNC110
        await asyncio.sleep(0)


async def measure_all(listener: socket.socket, servers: dict[str, ServerProcess], rounds: int) -> dict[str, Found]:
    """Every server's rounds; the broker is on ``listener``, in this loop."""
    broker = await start_broker(listener)
    requests = request_frames()
    ports = {DIRECT: listener.getsockname()[1]} | {name: each.port for name, each in servers.items()}
    found = {name: Found() for name in ports}
    for _ in range(rounds):
        for name, port in ports.items():
            server = servers.get(name)
            cpu_seconds = time.process_time if server is None else server.cpu_seconds
            for api, request in requests.items():
                load = await hammered(port, request, CONNECTIONS[api], SECONDS, cpu_seconds)
                found[name].loads[api].append(load)
            if server is not None:
                found[name].resident.append(server.resident_bytes())
    for name, took in (await latencies(ports, requests["Heartbeat"])).items():
        found[name].p50_ms = took[len(took) // 2] * 1_000
        found[name].p99_ms = took[len(took) * 99 // 100] * 1_000
    for name, server in servers.items():
        # The first connections get memory that was free already.
        for _ in range(2):
            found[name].idle_bytes = await idle_bytes(server, server.port, MANY, requests["Heartbeat"])
        found[name].many = await hammered(server.port, requests["Heartbeat"], MANY, SECONDS, server.cpu_seconds)
    broker.close()
    return found


def measure(rounds: int) -> dict[str, Found]:
    """What was measured of every server."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        listener = stack.enter_context(socket.create_server(("127.0.0.1", 0), backlog=MANY))
        upstream = listener.getsockname()[1]
        starts: dict[str, Any] = {COPYING: partial(start_copying, upstream=upstream)}
        for name in OURS:
            journal = folder if name == "--journal" else None
            starts[name] = partial(start_proxy, upstream=upstream, journal=journal, is_controlled=name == "--control")
        servers = {name: stack.enter_context(served(start)) for name, start in starts.items()}
        with on_last_core(), asyncio.Runner(loop_factory=loop_factory()) as runner:
            return runner.run(measure_all(listener, servers, rounds))


def _requests_table(found: dict[str, Found]) -> Table:
    table = Table(title="Requests through one process, records of 1 MiB (best of alternating rounds)")
    for column in ("request", "through", "a second", "÷ copying", "µs CPU", "÷ copying"):
        table.add_column(column, justify="left" if column in ("request", "through") else "right")
    for api in CONNECTIONS:
        for name, each in found.items():
            rate = f"{each.rate(api):,.0f}", f"{each.rate(api) / found[COPYING].rate(api):.2f}"
            cpu = f"{each.cpu(api):.1f}", f"{each.cpu(api) / found[COPYING].cpu(api):.2f}"
            table.add_row(api, name, *rate, *(("", "") if name == DIRECT else cpu))
    return table


def _others_table(found: dict[str, Found]) -> Table:
    table = Table(title=f"Heartbeats at {PER_SECOND:,} a second; {MANY:,} connections; memory")
    table.add_column("through")
    for column in ("p50 ms", "p99 ms", "p99 added", f"µs CPU of {MANY:,}", "kB each", "MB at first", "grown"):
        table.add_column(column, justify="right")
    for name, each in found.items():
        latency = each.p50_ms, each.p99_ms, each.p99_ms - found[DIRECT].p99_ms
        cells = [f"{value:.2f}" for value in latency]
        if each.many is not None:
            cells += [f"{each.many.cpu_micros:.1f}", f"{each.idle_bytes / 1_024:.1f}"]
            cells += [f"{each.resident[0] / 2**20:.0f}", f"{each.growth():.0%}"]
        table.add_row(name, *cells)
    return table


def aims(found: dict[str, Found]) -> list[tuple[str, float, float]]:
    """Each aim with what was reached and what was wanted, where less is better."""
    rows = []
    copying, direct = found[COPYING], found[DIRECT]
    for name in AIMED:
        each = found[name]
        rows.append((f"{name}: heartbeat, CPU ÷ copying", each.cpu("Heartbeat") / copying.cpu("Heartbeat"), MOST_CPU))
        rows += [
            (f"{name}: {api} of 1 MiB, CPU ÷ copying", each.cpu(api) / copying.cpu(api), 1 / LEAST_RATE)
            for api in ("Produce", "Fetch")
        ]
        rows.append((f"{name}: ms added at p99", each.p99_ms - direct.p99_ms, MOST_ADDED_MS))
        rows.append((f"{name}: memory grown by", each.growth(), MOST_GROWTH))
    return rows


def main(*, quick: bool = False) -> int:
    """Measure and print; 1 if an aim is missed by half."""
    found = measure(QUICK_ROUNDS if quick else ROUNDS)
    console = printer()
    console.print(_requests_table(found))
    console.print(_others_table(found))
    missed = False
    for what, reached, wanted in aims(found):
        console.print(f"{what}: {reached:.2f}, aim ≤ {wanted:.2f}: {'met' if reached <= wanted else 'missed'}")
        missed |= reached > FAILS_BEYOND * wanted
    return int(missed)


if __name__ == "__main__":
    sys.exit(main())
