"""After a stall, what has arrived is taken in before a deadline that passed meanwhile, over real sockets."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, Final

import pytest

from rejoin.coordinator.config import Settings
from rejoin.coordinator.core.inputs import Received
from rejoin.coordinator.core.node import Node
from rejoin.coordinator.service.app import App
from rejoin.coordinator.service.options import ControlOptions, Options
from rejoin.protocol.messages.cluster.find_coordinator import FindCoordinatorRequest

SESSION_MS: Final = 4_000
STALL_SECONDS: Final = 5.0
MEMBERS: Final = 4
SETTINGS: Final = {"group.initial.rebalance.delay.ms": 0, "group.min.session.timeout.ms": 100}


class Client:
    """A member of a group of its own, with plain sockets: what it has sent is in the kernel until it is read."""

    def __init__(self, port: int, name: str) -> None:
        self.port = port
        self.group = name
        self.generation = 0
        self.member_id = ""

    def send(self, path: str, **fields: Any) -> socket.socket:
        body = json.dumps(fields).encode()
        head = f"POST /v1/{path} HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n"
        head += f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
        connection = socket.create_connection(("127.0.0.1", self.port), timeout=60)
        connection.sendall(head.encode() + body)
        return connection

    def call(self, path: str, **fields: Any) -> Any:
        return answer(self.send(path, groupId=self.group, memberId=self.member_id, **fields))

    def join(self) -> None:
        """Become the group's only member."""
        protocols = [{"name": "range", "metadata": ""}]
        fields = {"sessionTimeoutMs": SESSION_MS, "rebalanceTimeoutMs": 60_000, "protocolType": "consumer"}
        for _ in range(2):
            joined = self.call("join-group", **fields, protocols=protocols)
            self.member_id, self.generation = joined["memberId"], joined["generationId"]
        protocol = {"protocolType": "consumer", "protocolName": "range"}
        synced = self.call("sync-group", generationId=self.generation, **protocol, assignments=[])
        assert synced["errorCode"] == 0, synced

    def heartbeat(self) -> socket.socket:
        member = {"memberId": self.member_id, "generationId": self.generation}
        return self.send("heartbeat", groupId=self.group, **member)


def answer(connection: socket.socket) -> Any:
    with connection:
        received = b"".join(iter(lambda: connection.recv(65_536), b""))
    return json.loads(received.partition(b"\r\n\r\n")[2])


def first_removed(port: int) -> str:
    """The group whose member was removed first, once one was."""
    while True:
        with socket.create_connection(("127.0.0.1", port), timeout=60) as connection:
            connection.sendall(b"GET /events?limit=10000 HTTP/1.0\r\n\r\n")
            rows = answer(connection)["events"]
        for row in rows:
            if row["event"] == "member_removed":
                return str(row["group_id"])


def members(port: int) -> tuple[list[Client], Client]:
    """Some that send a heartbeat before the stall ends, and one that does not."""
    clients = [Client(port, f"alive-{number}") for number in range(MEMBERS)]
    silent = Client(port, "silent")
    for client in (*clients, silent):
        client.join()
    return clients, silent


@pytest.mark.parametrize("control", [None, ControlOptions()], ids=["plain", "control"])
async def test_a_blocked_loop_expires_no_session_of_which_a_heartbeat_waits(
    control: ControlOptions | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = Options(port=0, settings=Settings.model_validate(SETTINGS), control=control)
    async with App(options) as app:
        clients, _ = await asyncio.to_thread(members, app.port)
        step = Node.step

        def blocking(node: Node, what: Any, now: int, **late: bool) -> Any:
            """FindCoordinator takes as long as one of many megabytes; heartbeats arrive meanwhile."""
            if isinstance(what, Received) and isinstance(what.request, FindCoordinatorRequest):
                monkeypatch.undo()
                sent.extend(client.heartbeat() for client in clients)
                time.sleep(STALL_SECONDS)
            return step(node, what, now, **late)

        monkeypatch.setattr(Node, "step", blocking)
        sent: list[socket.socket] = []
        asked = clients[0].send("find-coordinator", coordinatorKeys=["g"], keyType=0)
        await asyncio.to_thread(answer, asked)
        answers = await asyncio.to_thread(lambda: [answer(connection) for connection in sent])
        assert [each["errorCode"] for each in answers] == [0] * MEMBERS
        assert await asyncio.to_thread(first_removed, app.port) == "silent"


def test_a_stopped_process_expires_no_session_of_which_a_heartbeat_waits(tmp_path: Path) -> None:
    port_file = tmp_path / "port"
    settings = [part for name, value in SETTINGS.items() for part in ("-c", f"{name}={value}")]
    command = [sys.executable, "-m", "rejoin", "serve", "--port", "0", "--port-file", str(port_file), *settings]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    try:
        deadline = time.monotonic() + 60
        while not port_file.exists() and time.monotonic() < deadline:
            time.sleep(0.01)
        port = int(port_file.read_text())
        clients, _ = members(port)
        os.kill(process.pid, signal.SIGSTOP)
        sent = [client.heartbeat() for client in clients]
        time.sleep(STALL_SECONDS)
        os.kill(process.pid, signal.SIGCONT)
        assert [answer(connection)["errorCode"] for connection in sent] == [0] * MEMBERS
        assert first_removed(port) == "silent"
    finally:
        process.terminate()
        _, logged = process.communicate(timeout=60)
    assert "event_loop_stalled" in logged
