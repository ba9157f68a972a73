"""Kafka's ``kafka-reassign-partitions.sh`` and ``kafka-leader-election.sh`` on a real cluster of three brokers.

    python -m conformance.cluster.commands

Writes what they print to the file that a test compares with ``rejoin reassign`` and ``rejoin elect``.
"""

from __future__ import annotations

import asyncio
import json
import shlex
import sys
import tempfile
from base64 import b64decode
from pathlib import Path
from typing import Any, Final

from conformance.clients.programs import HERE, JAVA
from conformance.clients.programs import class_path as tool_path
from conformance.clients.streams_tool import RELEASE
from conformance.clients.tools import TOOLS
from conformance.kafka.broker import HOST, Cluster, class_path
from rejoin import Admin
from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.messages.topics.create_topics import CreateTopicsResponse
from tests.client.commands.cluster.tools import GOLDEN, HELD, arranged, located, topics_request, write_files
from tests.paths import ROOT

BROKERS: Final = 3
TOOL_SECONDS: Final = 120.0
CLASSES: Final = {
    "reassign": f"{TOOLS}.reassign.ReassignPartitionsCommand",
    "elect": f"{TOOLS}.LeaderElectionCommand",
}
COMMANDS: Final = Path(__file__).parent / "tool_commands.txt"
"""Commands in their order, with the tool in front."""

_RUNS: Final = ROOT / "conformance" / "security" / "ToolRuns.java"
_PRODUCER: Final = f"{TOOLS}.ProducerPerformance"


async def _create_topics(servers: str) -> None:
    async with Admin(bootstrap_servers=servers, timeout_ms=60_000) as admin:
        created = await admin.ask(topics_request(), CreateTopicsResponse)
    failed = [topic.error_message for topic in created.topics if topic.error_code is not ErrorCode.NONE]
    assert not failed, f"a topic is not created: {failed}"


async def recorded(servers: str, jars: str, folder: Path) -> list[dict[str, Any]]:
    """The entries of all commands on a cluster."""
    process = await asyncio.create_subprocess_exec(
        *(*JAVA, "-cp", jars, str(_RUNS)),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
        limit=2**20,
    )
    lines, answers = process.stdin, process.stdout
    assert lines is not None, "it is a pipe"
    assert answers is not None, "it is a pipe"

    async def run(*words: str) -> list[bytes]:
        lines.write(("\t".join(words) + "\n").encode())
        async with asyncio.timeout(TOOL_SECONDS):
            return (await answers.readline()).split()

    entries: list[dict[str, Any]] = []
    try:
        size = ("--num-records", "2000", "--record-size", "1000", "--throughput", "-1")
        await run(_PRODUCER, "--topic", HELD, *size, "--bootstrap-server", servers)
        for command in COMMANDS.read_text().splitlines():
            tool, *arguments = shlex.split(command)
            words = [located(word, folder) for word in arguments]
            code, *texts = await run(CLASSES[tool], "--bootstrap-server", servers, *words)
            out, err = (arranged(b64decode(text[1:]).decode()) for text in texts)
            entry = {"tool": tool, "run": " ".join(arguments), "code": int(code), "out": out}
            entries.append(entry | ({"err": err.partition("\n")[0]} if entry["code"] else {}))
    finally:
        process.kill()
        await process.wait()
    return entries


async def record() -> None:
    """Start a cluster, run all commands, and write what they print."""
    jars = tool_path(HERE / "tools", RELEASE)
    with tempfile.TemporaryDirectory(prefix="conformance-") as folder:
        write_files(Path(folder))
        settings = {"auto.create.topics.enable": "false"}
        async with Cluster(await class_path(), BROKERS, settings) as cluster:
            await _create_topics(f"{HOST}:{cluster.ports[1]}")
            entries = await recorded(f"{HOST}:{cluster.ports[1]}", jars, Path(folder))
    GOLDEN.write_text("".join(f"{json.dumps(entry)}\n" for entry in entries))
    print(f"written: {GOLDEN.relative_to(ROOT)}, {len(entries)} runs")


if __name__ == "__main__":
    sys.exit(asyncio.run(record()))
