"""``rejoin proxy`` as a process: memory for a large Fetch and many connections, a journal on a full disk, SIGTERM.

``REJOIN_PROXY_FETCH_MB`` and ``REJOIN_PROXY_CONNECTIONS`` say how much; ``make proxy-bounds`` takes 100 and 2,000.
"""

from __future__ import annotations

import asyncio
import json
import os
import resource
import struct
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

from rejoin.posix import allow_many_connections
from rejoin.protocol.messages.groups.heartbeat import HeartbeatRequest, HeartbeatResponse
from rejoin.protocol.messages.offsets.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
)
from rejoin.protocol.messages.records.fetch import FetchRequest
from tests.proxy.test_relay import fetched
from tests.proxy.wire import FrameClient, ScriptedBroker, codec

FETCH_BYTES: Final = int(os.environ.get("REJOIN_PROXY_FETCH_MB", "24")) * 1_000_000
CONNECTIONS: Final = int(os.environ.get("REJOIN_PROXY_CONNECTIONS", "60"))
JOURNAL_BYTES: Final = 20_000
MORE_BYTES: Final = 16 << 20
PATIENCE: Final = 60.0
HEARTBEAT: Final = HeartbeatRequest(group_id="g", generation_id=1, member_id="m")
PARTITION: Final = OffsetCommitRequestPartition(partition_index=0, committed_offset=1, committed_metadata="m" * 400)
COMMIT: Final = OffsetCommitRequest(group_id="g", topics=(OffsetCommitRequestTopic(name="t", partitions=(PARTITION,)),))


class ProxyProcess:
    """``rejoin proxy`` with a journal that may have so many bytes."""

    def __init__(self, process: asyncio.subprocess.Process, log: Path) -> None:
        self.process, self._log = process, log
        self.port = 0

    def events(self) -> list[dict[str, object]]:
        return [json.loads(line) for line in self._log.read_text().splitlines() if line.startswith("{")]

    async def ready(self) -> None:
        async with asyncio.timeout(PATIENCE):
            while not (found := [each for each in self.events() if each["event"] == "proxy_ready"]):
                assert self.process.returncode is None, self._log.read_text()
                await asyncio.sleep(0.02)
        self.port = int(str(found[0]["bootstrap_servers"]).rpartition(":")[2])

    def memory(self, field: str = "VmRSS") -> int:
        """Resident bytes now, or with VmHWM at most."""
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        return int(status.partition(f"{field}:")[2].split()[0]) << 10


@asynccontextmanager
async def running(broker: ScriptedBroker, folder: Path) -> AsyncIterator[ProxyProcess]:
    server = await asyncio.start_server(broker.accept, "127.0.0.1", 0, backlog=1_024)
    port = server.sockets[0].getsockname()[1]
    log = folder / "log"
    with log.open("w") as handle:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "rejoin", "proxy", "--bootstrap-server", f"127.0.0.1:{port}"),
            *("--listen", "127.0.0.1:0", "--journal", str(folder / "journal")),
            stderr=handle,
            # Compiled modules would be cut short as the journal is.
            env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"},
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (JOURNAL_BYTES, JOURNAL_BYTES)),
        )
    proxy = ProxyProcess(process, log)
    try:
        await proxy.ready()
        yield proxy
    finally:
        if process.returncode is None:
            process.kill()
            await asyncio.wait_for(process.wait(), PATIENCE)
        server.close()
        await broker.stop()
        await server.wait_closed()


async def read_a_large_fetch(proxy: ProxyProcess) -> None:
    client = await FrameClient.connect(proxy.port)
    client.send(FetchRequest(max_wait_ms=0, min_bytes=0, topics=()), 12)
    left = int.from_bytes(await client.reader.readexactly(4), "big")
    assert left > FETCH_BYTES
    async with asyncio.timeout(PATIENCE):
        while left:
            left -= len(await client.reader.read(min(left, 1 << 20)))
    await client.close()


async def round_of_heartbeats(clients: list[FrameClient]) -> None:
    for client in clients:
        client.send(HEARTBEAT)
    for client in clients:
        assert await client.receive() == HeartbeatResponse()


async def test_memory_a_full_disk_and_the_end_of_a_proxy(tmp_path: Path) -> None:
    allow_many_connections()
    large = codec(1, 12).response_frame(1, fetched(FETCH_BYTES))
    broker = ScriptedBroker({"Heartbeat": HeartbeatResponse(), "OffsetCommit": OffsetCommitResponse()})
    broker.on_raw = lambda frame: large if struct.unpack_from(">h", frame)[0] == 1 else None
    async with running(broker, tmp_path) as proxy:
        first = await FrameClient.connect(proxy.port)
        await first.ask(HEARTBEAT)
        await first.ask(COMMIT, 8)

        before = proxy.memory()
        await read_a_large_fetch(proxy)
        of_fetch = proxy.memory("VmHWM") - before
        assert of_fetch < MORE_BYTES, f"{of_fetch:,} bytes for a Fetch of {FETCH_BYTES:,}"

        before = proxy.memory()
        clients = [await FrameClient.connect(proxy.port) for _ in range(CONNECTIONS)]
        await round_of_heartbeats(clients)
        opened = proxy.memory()
        for _ in range(3):
            await round_of_heartbeats(clients)
        flat = proxy.memory() - opened
        each = (opened - before) // CONNECTIONS
        assert flat < MORE_BYTES, f"{flat:,} bytes more while {CONNECTIONS:,} connections are served"
        assert opened - before < MORE_BYTES + CONNECTIONS * (64 << 10), f"{each:,} bytes for each connection"
        for client in clients:
            client.writer.transport.abort()
        print(f"Fetch of {FETCH_BYTES:,}: {of_fetch:,} bytes; each connection {each:,}; later {flat:,} more")

        for _ in range(100):
            assert await first.ask(COMMIT, 8) == OffsetCommitResponse()
        assert [each["level"] for each in proxy.events() if each["event"] == "proxy_journal_not_written"] == ["error"]

        broker.on_raw = lambda _: b""
        came = len(broker.raw)
        first.send(HEARTBEAT)
        await broker.wait_for(came + 1)
        proxy.process.terminate()
        async with asyncio.timeout(PATIENCE):
            while True:  # until the listener is closed
                try:
                    await (await FrameClient.connect(proxy.port)).close()
                except ConnectionError:
                    break
        answer = codec(12, 4).response_frame(int.from_bytes(broker.raw[-1][4:8], "big"), HeartbeatResponse())
        broker.askers[-1].write(answer)
        assert await first.receive() == HeartbeatResponse()
        assert await first.at_end() == b""
        await first.close()
        assert await asyncio.wait_for(proxy.process.wait(), PATIENCE) == 0
