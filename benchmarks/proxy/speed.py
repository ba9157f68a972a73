"""The proxy's costs beside a proxy that only copies bytes, and beside none, in one run.

The copying proxy is asyncio on uvloop as ours is: what it takes is the price of standing between. Ours runs as it is,
with a journal, and under control. Clients, broker and proxies share one process and one loop, and take turns of a few
ms. What a proxy takes is the processor time of a request through it, without that of the same request to the broker.
So other processes on the machine, which change rates by several times, change little; the least disturbed round counts.
Requests of 1 MiB cost up to twice as much where a buffer happens to lie badly, so all is set up several times, in
either order.

For memory and 2,000 connections each proxy has a process of its own.
"""

from __future__ import annotations

import asyncio
import socket
import sys
import tempfile
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack, ExitStack
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Final

from rich.table import Table

from benchmarks import printer
from benchmarks.kafka.connections import idle_bytes
from benchmarks.proxy.load import Load
from benchmarks.proxy.servers import answer_frames, request_frames, start_broker, start_copying, start_proxy
from benchmarks.server_load import ServerProcess, hammered, loop_factory, on_last_core, served
from rejoin.posix import allow_many_connections, calm_collector

ROUNDS: Final = 10
"""Rounds of each set-up."""
SET_UPS: Final = 6
QUICK_SET_UPS: Final = 2
REQUESTS: Final = {"Heartbeat": (64, 640), "Fetch": (4, 16), "Produce": (4, 16)}
"""Connections, and requests of a round."""
PER_SECOND: Final = 1_000
"""Requests a second for latencies, below what any of the servers can do."""
PACED_CONNECTIONS: Final = 50
MANY: Final = 2_000
"""Connections at one time."""
WAVES: Final = 3
"""How often as many connections are opened and closed."""
SECONDS: Final = 0.5

DIRECT: Final = "no proxy"
COPYING: Final = "copying"
OURS: Final = ("rejoin proxy", "--journal", "--control")
AIMED: Final = OURS[:2]
"""Proxies with aims: under control every request and answer is read and kept."""
LEAST_RATE: Final = 0.7
"""Part of the copying proxy's rate that Produce and Fetch of 1 MiB are to reach."""
MOST_CPU: Final = 2.0
"""Processor time of a heartbeat, as a multiple of the copying proxy's."""
MOST_ADDED_MS: Final = 1.0
"""Latency that the proxy adds at the 99th percentile."""
MOST_GROWTH: Final = 0.1
"""Part by which a proxy's memory may grow after its first wave of connections."""
FAILS_BEYOND: Final = 2.0
"""How many times an aim may be missed before the benchmark fails."""


@dataclass
class Found:
    """Measurements of one server."""

    rounds: dict[str, list[float]] = field(default_factory=lambda: {api: [] for api in REQUESTS})
    """µs of a request, those of clients and broker included."""
    took: list[float] = field(default_factory=list)
    """Seconds of each answer at a fixed rate."""
    idle_bytes: float = 0.0
    """Memory of one of many connections."""
    many_micros: float = 0.0
    """Processor time of a heartbeat on many connections."""
    resident: list[int] = field(default_factory=list)
    """Bytes of the process after each wave of connections."""

    def micros(self, api: str) -> float:
        """The processor time of a request, clients and broker included."""
        return min(self.rounds[api])

    def at_ms(self, part: float) -> float:
        """The latency below which this part of the answers came, in ms."""
        return sorted(self.took)[int(len(self.took) * part)] * 1_000

    def growth(self) -> float:
        """The part by which memory grew from the end of the first wave to that of the last."""
        return self.resident[-1] / self.resident[0] - 1


Start = Callable[[socket.socket], Awaitable[Any]]


def starts(upstream: int, folder: Path) -> dict[str, Start]:
    """Starters of each proxy in front of a broker."""
    found: dict[str, Start] = {COPYING: partial(start_copying, upstream=upstream)}
    for name in OURS:
        journal = folder if name == "--journal" else None
        found[name] = partial(start_proxy, upstream=upstream, journal=journal, is_controlled=name == "--control")
    return found


async def measure_requests(listener: socket.socket, proxies: dict[str, Start], found: dict[str, Found]) -> None:
    """The cost of a request through each proxy, all of them in this loop."""
    kept: list[Any] = [await start_broker(listener)]
    ports = {DIRECT: listener.getsockname()[1]}
    for name, start in proxies.items():
        own = socket.create_server(("127.0.0.1", 0), backlog=128)
        own.setblocking(False)
        ports[name] = own.getsockname()[1]
        kept.append(await start(own))
    requests, answers = request_frames(), answer_frames()
    loads: dict[str, dict[str, Load]] = {}
    paced: dict[str, Load] = {}
    for name, port in ports.items():
        loads[name] = {api: Load(requests[api], len(answers[api])) for api in REQUESTS}
        for api, load in loads[name].items():
            await load.connect(port, REQUESTS[api][0])
            await load.cpu_micros(REQUESTS[api][1])
        paced[name] = Load(requests["Heartbeat"], len(answers["Heartbeat"]))
        await paced[name].connect(port, PACED_CONNECTIONS)
        await paced[name].paced(PER_SECOND)
        paced[name].took.clear()
    calm_collector()
    for _ in range(ROUNDS):
        for name in ports:
            for api, load in loads[name].items():
                found[name].rounds[api].append(await load.cpu_micros(REQUESTS[api][1]))
            await paced[name].paced(PER_SECOND)
    for name in ports:
        found[name].took += paced[name].took
        for load in (*loads[name].values(), paced[name]):
            load.close()
    await asyncio.sleep(0)
    for each in kept:
        if isinstance(each, AsyncExitStack):
            await each.aclose()
        else:
            each.close()


async def measure_many(listener: socket.socket, servers: dict[str, ServerProcess], found: dict[str, Found]) -> None:
    """The cost of many connections to each proxy, which has a process of its own."""
    broker = await start_broker(listener)
    request = request_frames()["Heartbeat"]
    for name, server in servers.items():
        for _ in range(WAVES):
            found[name].idle_bytes = await idle_bytes(server, server.port, MANY, request)
            load = await hammered(server.port, request, MANY, SECONDS, server.cpu_seconds)
            found[name].many_micros = load.cpu_micros
            found[name].resident.append(server.resident_bytes())
    broker.close()


def measure(set_ups: int) -> dict[str, Found]:
    """Measurements of every server."""
    allow_many_connections()
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        listener = stack.enter_context(socket.create_server(("127.0.0.1", 0), backlog=MANY))
        proxies = starts(listener.getsockname()[1], folder)
        found = {name: Found() for name in (DIRECT, *proxies)}
        for number in range(set_ups):
            order = list(proxies)[:: 1 if number % 2 == 0 else -1]
            with asyncio.Runner(loop_factory=loop_factory()) as runner:
                runner.run(measure_requests(listener.dup(), {name: proxies[name] for name in order}, found))
        servers = {name: stack.enter_context(served(start)) for name, start in proxies.items()}
        with on_last_core(), asyncio.Runner(loop_factory=loop_factory()) as runner:
            runner.run(measure_many(listener, servers, found))
    return found


def own_micros(found: dict[str, Found], name: str, api: str) -> float:
    """The processor time of a request that is the proxy's own, in µs."""
    return max(found[name].micros(api) - found[DIRECT].micros(api), 0.01)


def ratio(found: dict[str, Found], name: str, api: str) -> float:
    """The proxy's own processor time of a request, as a multiple of the copying one's."""
    return own_micros(found, name, api) / own_micros(found, COPYING, api)


def _requests_table(found: dict[str, Found]) -> Table:
    table = Table(title="Requests, records of 1 MiB, one process (best of alternating rounds)")
    for column in ("request", "through", "µs CPU in all", "of the proxy", "CPU ÷ copying", "rate ÷ copying"):
        table.add_column(column, justify="left" if column in ("request", "through") else "right")
    for api in REQUESTS:
        for name, each in found.items():
            own = own_micros(found, name, api)
            times = ratio(found, name, api)
            cells = ("", "", "") if name == DIRECT else (f"{own:.1f}", f"{times:.2f}", f"{1 / times:.2f}")
            table.add_row(api, name, f"{each.micros(api):.1f}", *cells)
    return table


def _others_table(found: dict[str, Found]) -> Table:
    table = Table(title=f"Heartbeats at {PER_SECOND:,} a second; {MANY:,} connections; memory of the process")
    table.add_column("through")
    for column in ("p50 ms", "p99 ms", "p99 added", f"µs CPU of {MANY:,}", "kB each", "MB", "grown"):
        table.add_column(column, justify="right")
    for name, each in found.items():
        p99 = each.at_ms(0.99)
        cells = [f"{value:.3f}" for value in (each.at_ms(0.5), p99, p99 - found[DIRECT].at_ms(0.99))]
        if each.resident:
            cells += [f"{each.many_micros:.1f}", f"{each.idle_bytes / 1_024:.1f}"]
            cells += [f"{each.resident[0] / 2**20:.0f}", f"{each.growth():.0%}"]
        table.add_row(name, *cells)
    return table


def aims(found: dict[str, Found]) -> list[tuple[str, float, float]]:
    """Each aim with what was reached and what was wanted, where less is better."""
    rows = []
    for name in AIMED:
        rows.append((f"{name}: heartbeat, CPU ÷ copying", ratio(found, name, "Heartbeat"), MOST_CPU))
        rows += [
            (f"{name}: {api} of 1 MiB, CPU ÷ copying", ratio(found, name, api), 1 / LEAST_RATE)
            for api in ("Produce", "Fetch")
        ]
        added = found[name].at_ms(0.99) - found[DIRECT].at_ms(0.99)
        rows.append((f"{name}: ms added at p99", added, MOST_ADDED_MS))
        rows.append((f"{name}: memory grown by", found[name].growth(), MOST_GROWTH))
    return rows


def main(*, quick: bool = False) -> int:
    """Measure and print; 1 if an aim is missed by a factor of two."""
    found = measure(QUICK_SET_UPS if quick else SET_UPS)
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
