"""Many JoinGroups parked in one group over loopback and released together by the last one; then the SyncGroups.

Every member has a connection of its own. First the group forms, held by its initial delay. Then its leader joins again,
which starts a rebalance, the others follow and are parked, and the last of them ends it. What is asked: are all
answered, what does a parked join cost in memory, how long from the last join to the last answer, and does the cost grow
with the number of members and not with its square.
"""

from __future__ import annotations

import asyncio
import json
import resource
import socket
import time
from dataclasses import dataclass
from typing import Any, Final

from rich.table import Table

from benchmarks import printer
from benchmarks.server_load import ServerProcess, http_post, loop_factory, on_last_core, served
from rejoin.coordinator.service import logs
from rejoin.coordinator.service.app import App
from rejoin.coordinator.service.options import Options
from rejoin.posix import calm_collector

SIZES: Final = (1_000, 2_000, 5_000, 10_000)
_METADATA: Final = "AAEAAAABAAZvcmRlcnMAAAAAAAAAAA=="
_ASSIGNMENT: Final = "AAEAAAAAAAAAAAAA"
_BACKLOG: Final = 200


async def start_service(listener: socket.socket) -> Any:
    """A node with Kafka's settings: groups wait three seconds for their first members, and longer while more come."""
    _open_files()
    logs.configure("warning")
    app = App(Options())
    await app.runtime.start("127.0.0.1", listener.getsockname()[1])
    await app.service.begin(listener)
    calm_collector()
    return app


def _open_files() -> None:
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


class _Member(asyncio.Protocol):
    """A connection that asks one thing at a time."""

    def __init__(self) -> None:
        self.transport: Any = None
        self._received = b""
        self._size = 0
        self._answered: asyncio.Future[bytes] | None = None
        self.answered_at = 0.0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        self._received += data
        if not self._size:
            head, end, _ = self._received.partition(b"\r\n\r\n")
            if not end:
                return
            self._size = len(head) + 4 + int(head.partition(b"Content-Length: ")[2].split(b"\r\n")[0])
        if len(self._received) >= self._size and self._answered is not None:
            self.answered_at = time.perf_counter()
            self._answered.set_result(self._received.partition(b"\r\n\r\n")[2])

    def ask(self, path: str, body: dict[str, Any]) -> asyncio.Future[bytes]:
        """Send a request; its answer's body."""
        self._received, self._size = b"", 0
        self._answered = asyncio.get_running_loop().create_future()
        self.transport.write(http_post(path, json.dumps(body).encode(), "Kafka-Client-Id: bench\r\n"))
        return self._answered


@dataclass(slots=True)
class ReleaseTimes:
    """What became of one group. Seconds are the processor's unless they say otherwise."""

    members: int
    resident_bytes: int
    parking_cpu: float
    last_join_to_last_answer: float
    release_cpu: float
    first_sync_to_last_answer: float
    sync_cpu: float


def _join(member_id: str) -> dict[str, Any]:
    return {
        "groupId": "bench",
        "sessionTimeoutMs": 300_000,
        "rebalanceTimeoutMs": 300_000,
        "memberId": member_id,
        "protocolType": "consumer",
        "protocols": [{"name": "range", "metadata": _METADATA}],
    }


async def _all(asked: list[asyncio.Future[bytes]]) -> list[dict[str, Any]]:
    return [json.loads(body) for body in await asyncio.gather(*asked)]


async def _connect(port: int, count: int) -> list[_Member]:
    loop = asyncio.get_running_loop()
    members: list[_Member] = []
    for start in range(0, count, _BACKLOG):
        batch = [loop.create_connection(_Member, "127.0.0.1", port) for _ in range(min(_BACKLOG, count - start))]
        members += [member for _, member in await asyncio.gather(*batch)]
    return members


def _sync(answer: dict[str, Any], ids: list[str]) -> dict[str, Any]:
    leads = answer["memberId"] == answer["leader"]
    return {
        "groupId": "bench",
        "generationId": answer["generationId"],
        "memberId": answer["memberId"],
        "protocolType": "consumer",
        "protocolName": "range",
        "assignments": [{"memberId": id_, "assignment": _ASSIGNMENT} for id_ in ids] if leads else [],
    }


def _ask_to_sync(members: list[_Member], joined: list[dict[str, Any]]) -> list[asyncio.Future[bytes]]:
    ids = [answer["memberId"] for answer in joined]
    bodies = [_sync(answer, ids) for answer in joined]
    return [member.ask("/v1/sync-group", body) for member, body in zip(members, bodies, strict=True)]


async def _form(members: list[_Member]) -> list[dict[str, Any]]:
    """Bring the group to Stable; the members' JoinGroup answers."""
    given = await _all([member.ask("/v1/join-group", _join("")) for member in members])
    pairs = zip(members, given, strict=True)
    joined = await _all([member.ask("/v1/join-group", _join(answer["memberId"])) for member, answer in pairs])
    await _all(_ask_to_sync(members, joined))
    return joined


async def _release(server: ServerProcess, count: int) -> ReleaseTimes:
    empty = server.resident_bytes()
    members = await _connect(server.port, count)
    formed = await _form(members)
    # The leader first: its JoinGroup is what makes a Stable group rebalance.
    order = sorted(range(count), key=lambda index: formed[index]["memberId"] != formed[index]["leader"])
    members, ids = [members[index] for index in order], [formed[index]["memberId"] for index in order]
    cpu = server.cpu_seconds()
    joining = [member.ask("/v1/join-group", _join(id_)) for member, id_ in zip(members[:-1], ids[:-1], strict=True)]
    await _until_parked(server.port, count - 1)
    memory, parked_cpu = server.resident_bytes() - empty, server.cpu_seconds()
    last_join_at = time.perf_counter()
    joining.append(members[-1].ask("/v1/join-group", _join(ids[-1])))
    joined = await _all(joining)
    answered_at, released_cpu = max(member.answered_at for member in members), server.cpu_seconds()
    assert all(answer["errorCode"] == 0 and answer["generationId"] == 2 for answer in joined)
    assert sum(len(answer["members"]) for answer in joined) == count, "only the leader gets the members"
    sync_at = time.perf_counter()
    synced = await _all(_ask_to_sync(members, joined))
    synced_at, synced_cpu = max(member.answered_at for member in members), server.cpu_seconds()
    assert all(answer["errorCode"] == 0 for answer in synced)
    for member in members:
        member.transport.abort()
    return ReleaseTimes(
        members=count,
        resident_bytes=memory,
        parking_cpu=parked_cpu - cpu,
        last_join_to_last_answer=answered_at - last_join_at,
        release_cpu=released_cpu - parked_cpu,
        first_sync_to_last_answer=synced_at - sync_at,
        sync_cpu=synced_cpu - released_cpu,
    )


async def _until_parked(port: int, count: int) -> None:
    """Wait until the metrics count this many parked joins."""
    while True:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"GET /metrics HTTP/1.0\r\n\r\n")
        page = await reader.read()
        writer.close()
        parked = float(page.partition(b"\nrejoin_parked_joins ")[2].split(b"\n")[0])
        if parked >= count:
            return
        await asyncio.sleep(0.1)


def measure() -> list[ReleaseTimes]:
    """A group of each size, each in a service of its own."""
    _open_files()
    found: list[ReleaseTimes] = []
    for size in SIZES:
        with (
            served(start_service) as server,
            on_last_core(),
            asyncio.Runner(loop_factory=loop_factory()) as runner,
        ):
            found.append(runner.run(_release(server, size)))
    return found


def main() -> None:
    """Measure and print."""
    table = Table(title="JoinGroups of one group, each on a connection of its own, parked and released by the last one")
    columns = (
        "members",
        "memory",
        "kB each",
        "parked",
        "released",
        "synced",
        "last join to last answer",
        "all synced in",
    )
    for column in columns:
        table.add_column(column, justify="right")
    for found in measure():
        each = 1e6 / found.members
        table.add_row(
            f"{found.members:,}",
            f"{found.resident_bytes / 1e6:.0f} MB",
            f"{found.resident_bytes / found.members / 1_000:.1f}",
            f"{found.parking_cpu * each:.0f} µs",
            f"{found.release_cpu * each:.0f} µs",
            f"{found.sync_cpu * each:.0f} µs",
            f"{found.last_join_to_last_answer:.2f} s",
            f"{found.first_sync_to_last_answer:.2f} s",
        )
    table.caption = "µs: the service's processor time for each member; memory: connection, member and parked join"
    printer().print(table)


if __name__ == "__main__":
    main()
