"""Heartbeats over Kafka's own protocol, beside a server that only echoes frames, the service's own HTTP, and
librdkafka's mock cluster, which is C.

One process each, 64 connections, Heartbeat 4. Rounds alternate, as in ``heartbeats.http``.

Without sockets a heartbeat takes 3.6 µs of Python, and the echo's protocol 0.5: the core's step 1.4, the driver around
it 1.0, the listener 0.7, counting and the bytes of the answer 0.4. The rest of an echo is the kernel and the loop,
which both pay.
"""

from __future__ import annotations

import asyncio
import json
import socket
import struct
import sys
from contextlib import ExitStack
from dataclasses import replace
from statistics import median
from typing import Any, Final

from rich.table import Table

from benchmarks import printer
from benchmarks.heartbeats.http import form_group, http_heartbeat, member_id
from benchmarks.heartbeats.mock_cluster import mock_heartbeat, start_mock_cluster
from benchmarks.server_load import LoadResult, hammer, on_last_core, served
from rejoin.coordinator.config import Settings
from rejoin.coordinator.service import logs
from rejoin.coordinator.service.app import App
from rejoin.coordinator.service.options import Options
from rejoin.posix import calm_collector

ROUNDS: Final = 7
SECONDS: Final = 1.0
AT_MOST: Final = {"echo": 1.6, "HTTP": 0.5}
"""The listener's processor time a request, as a multiple of the other's."""
FAILS_ABOVE: Final[dict[str, float]] = {"echo": 3.1, "HTTP": 0.6}
"""Twice what is reached: beyond that something was lost."""


class _Echo(asyncio.Protocol):
    """Sends back every whole frame, which is the least that a server of this protocol can do."""

    def __init__(self) -> None:
        self._buffer = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport: Any = transport

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        while len(self._buffer) >= 4:
            end = 4 + int.from_bytes(self._buffer[:4], "big")
            if len(self._buffer) < end:
                break
            self._transport.write(self._buffer[:end])
            self._buffer = self._buffer[end:]


async def start_echo(listener: socket.socket) -> Any:
    """The server that knows no Kafka."""
    calm_collector()
    return await asyncio.get_running_loop().create_server(_Echo, sock=listener)


async def start_service(listener: socket.socket) -> Any:
    """The whole service with both listeners; its HTTP port is the one that is known, and shows the other."""
    logs.configure("warning")
    port = listener.getsockname()[1]
    listener.close()
    app = App(Options(settings=Settings(group_initial_rebalance_delay_ms=0), port=port, kafka_port=0))
    await app.start()
    await form_group(app)
    calm_collector()
    return app


def kafka_heartbeat(member: str) -> bytes:
    """Heartbeat 4, as it travels."""
    body = _compact("bench") + struct.pack(">i", 1) + _compact(member) + b"\0\0"
    frame = struct.pack(">hhih", 12, 4, 1, 5) + b"bench\0" + body
    return struct.pack(">i", len(frame)) + frame


def _compact(text: str) -> bytes:
    return bytes([len(text) + 1]) + text.encode()


def kafka_port(port: int) -> int:
    """The port of Kafka's protocol of the service with this HTTP port."""
    with socket.create_connection(("127.0.0.1", port)) as connection:
        connection.sendall(b"GET /cluster HTTP/1.0\r\n\r\n")
        answer = b"".join(iter(lambda: connection.recv(65_536), b""))
    address: str = json.loads(answer.partition(b"\r\n\r\n")[2])["nodes"][0]["listeners"]["PLAINTEXT"]
    return int(address.rpartition(":")[2])


def measure() -> dict[str, list[LoadResult]]:
    """Every server's rounds."""
    found: dict[str, list[LoadResult]] = {"echo": [], "mock cluster": [], "HTTP": [], "Kafka": []}
    with ExitStack() as stack:
        echo = stack.enter_context(served(start_echo))
        mock = stack.enter_context(served(start_mock_cluster))
        service = stack.enter_context(served(start_service))
        member = member_id(service.port)
        kafka = replace(service, port=kafka_port(service.port))
        mock_port, to_mock = mock_heartbeat(mock.port)
        rounds = (
            ("echo", echo, kafka_heartbeat(member)),
            ("mock cluster", replace(mock, port=mock_port), to_mock),
            ("HTTP", service, http_heartbeat(member)),
            ("Kafka", kafka, kafka_heartbeat(member)),
        )
        with on_last_core():
            for _ in range(ROUNDS):
                for name, server, request in rounds:
                    found[name].append(hammer(server, request, seconds=SECONDS))
    assert all(each.answer.endswith(b"\0\0\0\0\0\0\0") for each in found["Kafka"]), "the member is known"
    assert all(each.answer.endswith(b"\0\0\0\0\0\0") for each in found["mock cluster"]), "and so is the other"
    return found


def main() -> int:
    """Measure and print; 1 if half of the speed is lost."""
    found = measure()
    table = Table(title="Heartbeats over Kafka's protocol, 64 connections, one process (median of alternating rounds)")
    for column in ("server", "µs CPU a request", "requests a second", "Kafka ÷ it, by CPU", "wanted"):
        table.add_column(column, justify="left" if column == "server" else "right")
    cpu = {name: median(each.cpu_micros for each in rows) for name, rows in found.items()}
    for name, rows in found.items():
        rate = median(each.per_second for each in rows)
        wanted = f"≤ {AT_MOST[name]}" if name in AT_MOST else ""
        table.add_row(name, f"{cpu[name]:.1f}", f"{rate:,.0f}", f"{cpu['Kafka'] / cpu[name]:.2f}", wanted)
    printer().print(table)
    return int(any(cpu["Kafka"] > most * cpu[name] for name, most in FAILS_ABOVE.items()))


if __name__ == "__main__":
    sys.exit(main())
