"""Many connections of Kafka's protocol: what an idle one holds in memory, and what it costs to wake parked Fetches.

The memory of an idle connection stands beside that of a server that only echoes frames. A Fetch that waits for records
is woken by one Produce; its processor time must not grow with how many others wait.
"""

from __future__ import annotations

import asyncio
import resource
import sys
from contextlib import ExitStack
from typing import Any, Final

from rich.table import Table

from benchmarks import printer
from benchmarks.heartbeats.kafka import kafka_port, start_echo
from benchmarks.kafka.batches import TOPIC, batch_of, framed, new_topic, produce, start_service
from benchmarks.server_load import ServerProcess, loop_factory, on_last_core, served
from rejoin.protocol.messages.records.fetch import FetchPartition, FetchRequest, FetchTopic
from rejoin.protocol.registry import FETCH

IDLE: Final = 5_000
PARKED: Final = (250, 1_000, 4_000)
IDLE_BYTES: Final = 10_240
"""The most that an idle connection may hold."""
GROWTH: Final = 3.0
"""How much dearer a woken Fetch may become from the smallest number of parked ones to the largest."""
_FETCH_VERSION: Final = 12
_API_VERSIONS: Final = bytes.fromhex("0000000a 0012 0000 00000001 ffff")
_SETTLE_SECONDS: Final = 0.5


class _Peer(asyncio.Protocol):
    """Counts the answers of all."""

    def __init__(self, answered: list[int]) -> None:
        self._answered = answered
        self._data = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport: Any = transport

    def data_received(self, data: bytes) -> None:
        self._data += data
        while len(self._data) >= 4 and len(self._data) >= (end := 4 + int.from_bytes(self._data[:4], "big")):
            self._data = self._data[end:]
            self._answered[0] += 1


async def _connect(port: int, count: int, first: bytes) -> tuple[list[_Peer], list[int]]:
    """So many connections, each with one answered request behind it."""
    loop = asyncio.get_running_loop()
    answered = [0]
    peers = []
    for _ in range(count):
        _, peer = await loop.create_connection(lambda: _Peer(answered), "127.0.0.1", port)
        peer.transport.write(first)
        peers.append(peer)
    await _until(answered, count)
    return peers, answered


async def _until(answered: list[int], count: int) -> None:
    while answered[0] < count:  # noqa: ASYNC110 - an event for each answer would cost more than what is measured
        await asyncio.sleep(0)


async def idle_bytes(server: ServerProcess, port: int, count: int, first: bytes = _API_VERSIONS) -> float:
    """The memory that an idle connection holds, once its ``first`` request is answered."""
    warm, _ = await _connect(port, 50, first)
    before = server.resident_bytes()
    peers, _ = await _connect(port, count, first)
    held = server.resident_bytes() - before
    for peer in (*warm, *peers):
        peer.transport.abort()
    await asyncio.sleep(_SETTLE_SECONDS)
    return held / count


async def wake_micros(server: ServerProcess, port: int, count: int) -> float:
    """The processor time of one parked Fetch, from the Produce that wakes all to the last answer."""
    partition = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1_000)
    topics = (FetchTopic(topic=TOPIC, partitions=(partition,)),)
    waiting = framed(FETCH, _FETCH_VERSION, FetchRequest(max_wait_ms=600_000, min_bytes=1, topics=topics))
    peers, answered = await _connect(port, count, _API_VERSIONS)
    for peer in peers:
        peer.transport.write(waiting)
    await asyncio.sleep(_SETTLE_SECONDS)
    assert answered[0] == count, "every Fetch waits"
    cpu = server.cpu_seconds()
    producer, _ = await _connect(port, 1, produce(batch_of(2_048)))
    await _until(answered, 2 * count)
    used = server.cpu_seconds() - cpu
    for peer in (*producer, *peers):
        peer.transport.abort()
    await asyncio.sleep(_SETTLE_SECONDS)
    return used / count * 1e6


def measure() -> tuple[dict[str, float], dict[int, float]]:
    """Bytes of an idle connection by server, and µs of a woken Fetch by how many are parked."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    with ExitStack() as stack:
        echo, service = (stack.enter_context(served(start)) for start in (start_echo, start_service))
        port = kafka_port(service.port)
        with on_last_core(), asyncio.Runner(loop_factory=loop_factory()) as runner:
            idle = {
                "echo": runner.run(idle_bytes(echo, echo.port, IDLE)),
                "Kafka": runner.run(idle_bytes(service, port, IDLE)),
            }
            woken = {}
            for count in PARKED:
                new_topic(port)
                woken[count] = runner.run(wake_micros(service, port, count))
    return idle, woken


def main() -> int:
    """Measure and print; 1 if an idle connection holds too much, or waking is not linear."""
    idle, woken = measure()
    table = Table(title=f"{IDLE:,} idle connections")
    table.add_column("server")
    table.add_column("kB each", justify="right")
    for name, held in idle.items():
        table.add_row(name, f"{held / 1_024:.1f}")
    console = printer()
    console.print(table)
    table = Table(title="Parked Fetches, woken by one Produce")
    for column in ("parked", "µs CPU each"):
        table.add_column(column, justify="right")
    for count, micros in woken.items():
        table.add_row(f"{count:,}", f"{micros:.1f}")
    console.print(table)
    growth = woken[max(woken)] / max(woken[min(woken)], 0.01)
    console.print(f"{max(woken):,} against {min(woken):,}: {growth:.2f} for each, wanted ≤ {GROWTH}")
    return int(idle["Kafka"] > IDLE_BYTES or growth > GROWTH)


if __name__ == "__main__":
    sys.exit(main())
