"""Heartbeats through the whole service, beside two aiohttp servers that do nothing of what it does.

One process each, 64 connections, the same request. ``messages`` reads and writes the same pydantic models; ``constant``
returns the same bytes whatever comes. Rounds alternate, so that whatever else the machine does meets all of them;
processor time a request travels better than requests a second.
"""

from __future__ import annotations

import json
import socket
from contextlib import ExitStack
from statistics import median
from typing import Any, Final

from aiohttp import web
from rich.table import Table

from benchmarks import printer
from benchmarks.server_load import LoadResult, aiohttp_app, hammer, http_post, on_last_core, served
from rejoin.coordinator.config import Settings
from rejoin.coordinator.core.inputs import Context
from rejoin.coordinator.service import logs
from rejoin.coordinator.service.app import App
from rejoin.coordinator.service.options import Options
from rejoin.posix import calm_collector
from rejoin.protocol.messages.groups.heartbeat import HeartbeatRequest, HeartbeatResponse
from rejoin.protocol.messages.groups.join_group import JoinGroupRequest, JoinGroupRequestProtocol, JoinGroupResponse
from rejoin.protocol.messages.groups.sync_group import SyncGroupRequest, SyncGroupRequestAssignment

ROUNDS: Final = 7
SECONDS: Final = 1.0
PATH: Final = "/v1/heartbeat"
AT_LEAST: Final = {"messages": 0.85, "constant": 0.6}
_ANSWER: Final = b'{"throttleTimeMs":0,"errorCode":0}'


async def _constant(request: web.Request) -> web.Response:
    await request.read()
    return web.Response(body=_ANSWER, content_type="application/json")


async def _messages(request: web.Request) -> web.Response:
    HeartbeatRequest.parse(await request.read(), 4)
    return web.Response(body=HeartbeatResponse().to_json(4), content_type="application/json")


async def start_constant(listener: socket.socket) -> Any:
    """The server that reads nothing."""
    calm_collector()
    return await aiohttp_app(_constant, PATH)(listener)


async def start_messages(listener: socket.socket) -> Any:
    """The server that knows the messages and nothing else."""
    calm_collector()
    return await aiohttp_app(_messages, PATH)(listener)


async def start_service(listener: socket.socket) -> Any:
    """The whole service, with a Stable group of one member."""
    logs.configure("warning")
    app = App(Options(settings=Settings(group_initial_rebalance_delay_ms=0)))
    await app.runtime.start("127.0.0.1", listener.getsockname()[1])
    await form_group(app)
    await app.service.begin(listener)
    calm_collector()
    return app


async def form_group(app: App) -> None:
    """Make a Stable group of one member."""
    submit, who = app.runtime.submit, Context(api_version=3, client_id="bench")
    protocols = (JoinGroupRequestProtocol(name="range", metadata=b""),)
    joined = await submit(
        JoinGroupRequest(
            group_id="bench",
            session_timeout_ms=300_000,
            rebalance_timeout_ms=300_000,
            member_id="",
            protocol_type="consumer",
            protocols=protocols,
        ),
        who,
    ).answer()
    assert isinstance(joined, JoinGroupResponse)
    assignment = SyncGroupRequestAssignment(member_id=joined.member_id, assignment=b"")
    sync = SyncGroupRequest(
        group_id="bench", generation_id=joined.generation_id, member_id=joined.member_id, assignments=(assignment,)
    )
    await submit(sync, who).answer()


def http_heartbeat(member: str) -> bytes:
    """The request, as it travels."""
    body = {"groupId": "bench", "generationId": 1, "memberId": member, "groupInstanceId": None}
    return http_post(PATH, json.dumps(body, separators=(",", ":")).encode(), "Kafka-Client-Id: bench\r\n")


def member_id(port: int) -> str:
    """The member of that group, as the service shows it."""
    with socket.create_connection(("127.0.0.1", port)) as connection:
        connection.sendall(b"GET /groups/bench HTTP/1.0\r\n\r\n")
        answer = b"".join(iter(lambda: connection.recv(65_536), b""))
    found: str = json.loads(answer.partition(b"\r\n\r\n")[2])["members"][0]["memberId"]
    return found


def measure() -> dict[str, list[LoadResult]]:
    """Every server's rounds."""
    starts = {"constant": start_constant, "messages": start_messages, "service": start_service}
    with ExitStack() as stack:
        servers = {name: stack.enter_context(served(start)) for name, start in starts.items()}
        request = http_heartbeat(member_id(servers["service"].port))
        found: dict[str, list[LoadResult]] = {name: [] for name in servers}
        with on_last_core():
            for _ in range(ROUNDS):
                for name, server in servers.items():
                    found[name].append(hammer(server, request, seconds=SECONDS))
    assert all(_ANSWER in each.answer for rows in found.values() for each in rows), "every server answers the same"
    return found


def main() -> None:
    """Measure and print."""
    found = measure()
    table = Table(title="Heartbeats over HTTP, 64 connections, one process (median of alternating rounds)")
    for column in ("server", "µs CPU a request", "requests a second", "service ÷ it, by CPU", "by rate", "wanted"):
        table.add_column(column, justify="left" if column == "server" else "right")
    cpu = {name: median(each.cpu_micros for each in rows) for name, rows in found.items()}
    rate = {name: median(each.per_second for each in rows) for name, rows in found.items()}
    for name in found:
        by_cpu, by_rate = cpu[name] / cpu["service"], rate["service"] / rate[name]
        wanted = f"≥ {AT_LEAST[name]}" if name in AT_LEAST else ""
        table.add_row(name, f"{cpu[name]:.1f}", f"{rate[name]:,.0f}", f"{by_cpu:.2f}", f"{by_rate:.2f}", wanted)
    printer().print(table)


if __name__ == "__main__":
    main()
