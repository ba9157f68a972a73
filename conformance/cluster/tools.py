"""Kafka's tools for elections, reassignments, directories and the quorum, on a real Kafka and on Rejoin.

    python -m conformance.cluster.tools

Prints each command with ``same``, or with both outputs. Sizes, offsets, times, ports and paths are left out.
"""

from __future__ import annotations

import asyncio
import json
import re
import sys
import tempfile
from pathlib import Path
from typing import Final

from conformance.clients.node import running
from conformance.clients.programs import HERE, JAVA
from conformance.clients.programs import class_path as tool_path
from conformance.clients.streams_tool import RELEASE
from conformance.clients.tools import TOOLS
from conformance.kafka.broker import HOST, Cluster, class_path, kafka_version
from rejoin.conform.judged_broker import JudgedBroker, look
from rejoin.conform.player.connection import BrokerAccess

TOOL_SECONDS: Final = 120.0
TOPIC: Final = "orders"
_ELECTION: Final = "LeaderElectionCommand"
_REASSIGNMENT: Final = "reassign.ReassignPartitionsCommand"
_QUORUM: Final = "MetadataQuorumCommand"
COMMANDS: Final = (
    (_ELECTION, "--election-type preferred --all-topic-partitions"),
    (_ELECTION, f"--election-type preferred --topic {TOPIC} --partition 0"),
    (_ELECTION, f"--election-type unclean --topic {TOPIC} --partition 0"),
    (_ELECTION, "--election-type preferred --topic nowhere --partition 0"),
    (_REASSIGNMENT, "--generate --topics-to-move-json-file $topics --broker-list 1"),
    (_REASSIGNMENT, "--execute --reassignment-json-file $same"),
    (_REASSIGNMENT, "--verify --reassignment-json-file $same"),
    (_REASSIGNMENT, "--execute --reassignment-json-file $other"),
    (_REASSIGNMENT, "--cancel --reassignment-json-file $same"),
    (_REASSIGNMENT, "--list"),
    (_QUORUM, "describe --status"),
    (_QUORUM, "describe --replication"),
    ("LogDirsCommand", f"--describe --topic-list {TOPIC}"),
    ("BrokerApiVersionsCommand", ""),
    ("ClusterTool", "unregister --id 9"),
)
"""Class of each tool, and its arguments."""

_MASKED: Final = (
    (re.compile(r"localhost:\d+|127\.0\.0\.1:\d+"), "ADDRESS"),
    (re.compile(r"(?m)^(\w+:\s+)\d+$"), r"\1N"),
    (re.compile(r"(?m)^(ClusterId:\s+)\S+$"), r"\1ID"),
    (re.compile(r"(?m)^(1\s+\S+\s+).*(Leader|Follower)\s*$"), r"\1\2"),
    (re.compile(r'"(size|totalBytes|usableBytes)":-?\d+'), r'"\1":N'),
    (re.compile(r'"logDir":"[^"]*"|"/[^"]*"'), '"PATH"'),
)


async def _run(jars: str, tool: str, given: list[str], servers: str) -> str:
    """The exit code of a tool, and what it prints."""
    # This one takes the servers behind its own command.
    place = ["--bootstrap-server", servers]
    command = [*JAVA, "-cp", jars, f"{TOOLS}.{tool}"]
    command += [*given, *place] if tool == "ClusterTool" else [*place, *given]
    process = await asyncio.create_subprocess_exec(
        *command,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
    )
    async with asyncio.timeout(TOOL_SECONDS):
        out, _ = await process.communicate()
    text = f"{process.returncode}\n{out.decode()}"
    for pattern, mask in _MASKED:
        text = pattern.sub(mask, text)
    # The order of partitions and replicas is that of hash maps.
    return "\n".join(sorted(line.rstrip() for line in text.splitlines()))


def _files(folder: Path) -> dict[str, str]:
    """The files that reassignments are read from, by placeholder."""
    contents: dict[str, object] = {"topics": {"version": 1, "topics": [{"topic": TOPIC}]}}
    for name, broker in (("same", 1), ("other", 2)):
        entry = {"topic": TOPIC, "partition": 0, "replicas": [broker], "log_dirs": ["any"]}
        contents[name] = {"version": 1, "partitions": [entry]}
    for name, content in contents.items():
        (folder / f"{name}.json").write_text(json.dumps(content))
    return {f"${name}": str(folder / f"{name}.json") for name in contents}


async def _outputs(servers: str, jars: str, files: dict[str, str]) -> list[str]:
    """The output of each tool at a broker with one topic."""
    host, port = servers.split(":")
    broker: JudgedBroker = await look((host, int(port)), BrokerAccess())
    topic = {"name": TOPIC, "numPartitions": 1, "replicationFactor": 1, "assignments": [], "configs": []}
    creation = {"topics": [topic], "timeoutMs": 10_000, "validateOnly": False}
    await broker.ask("CreateTopics", creation, broker.version("CreateTopics"))
    found = []
    for tool, arguments in COMMANDS:
        found.append(await _run(jars, tool, [files.get(each, each) for each in arguments.split()], servers))
    return found


async def compare() -> int:
    """Run all tools on both, and print which outputs differ; the exit code."""
    jars = tool_path(HERE / "tools", RELEASE)
    with tempfile.TemporaryDirectory(prefix="conformance-") as folder:
        files = _files(Path(folder))
        async with Cluster(await class_path(), 1, {"offsets.topic.num.partitions": "1"}) as cluster:
            theirs = await _outputs(f"{HOST}:{cluster.ports[1]}", jars, files)
        with running("-c", "broker.id=1") as node:
            ours = await _outputs(node.bootstrap_servers, jars, files)
    print(f"tools of {RELEASE} on Kafka {kafka_version()} and on Rejoin")
    different = 0
    for (tool, arguments), one, other in zip(COMMANDS, theirs, ours, strict=True):
        different += one != other
        print(f"{'same' if one == other else 'DIFFERENT'}: {tool} {arguments}")
        if one != other:
            print(f"--- Kafka\n{one}\n--- Rejoin\n{other}")
    return 1 if different else 0


if __name__ == "__main__":
    sys.exit(asyncio.run(compare()))
