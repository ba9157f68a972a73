"""Kafka's ``kafka-streams-groups.sh`` on a real Kafka and on Rejoin: what it prints, beside each other.

    python -m conformance.clients.streams_tool [--record]

A group of two members is made by requests alone, so that both brokers have it epoch for epoch, and the tool is run at
each stage of its life. ``--record`` writes requests and outputs of Kafka to the file that a test plays again.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Final

from conformance.clients.node import running
from conformance.clients.programs import HERE, JAVA
from conformance.clients.programs import class_path as tool_path
from conformance.clients.tools import TOOLS
from conformance.kafka.broker import HOST, Cluster, class_path, kafka_version
from rejoin.client import Producer
from rejoin.conform.judged_broker import JudgedBroker, look
from rejoin.conform.player.connection import BrokerAccess
from tests.client.commands.streams_tool import GOLDEN, arranged
from tests.paths import ROOT

RELEASE: Final = "4.4.0"
"""The tools of this release: those of the releases before have fewer options."""
COMMAND: Final = f"{TOOLS}.streams.StreamsGroupCommand"
TOOL_SECONDS: Final = 60.0
GROUP: Final = "app"
WORDS, COUNTS = "app-words-repartition", "app-counts-changelog"
GROUP_SETTINGS: Final = {
    "streams.initial.rebalance.delay.ms": "0",
    "streams.assignment.interval.ms": "0",
    "streams.num.standby.replicas": "1",
}
PARTITIONS: Final = 2
NO_TASKS: Final[dict[str, Any]] = {"activeTasks": [], "standbyTasks": [], "warmupTasks": []}


def _topic(name: str) -> dict[str, Any]:
    return {"name": name, "partitions": 0, "replicationFactor": 1, "topicConfigs": []}


def _subtopology(number: int, **given: Any) -> dict[str, Any]:
    names = ("sourceTopics", "sourceTopicRegex", "stateChangelogTopics", "repartitionSinkTopics")
    empty: dict[str, Any] = {name: [] for name in (*names, "repartitionSourceTopics", "copartitionGroups")}
    return {"subtopologyId": str(number)} | empty | given


def topology(source: str) -> dict[str, Any]:
    """Words of a topic are counted: a repartition topic between two subtopologies, and a store with its changelog."""
    first = _subtopology(0, sourceTopics=[source], repartitionSinkTopics=[WORDS])
    second = _subtopology(1, repartitionSourceTopics=[_topic(WORDS)], stateChangelogTopics=[_topic(COUNTS)])
    return {"epoch": 0, "subtopologies": [first, second]}


class ToolRun:
    """Requests and runs of the tool on one broker, in their order, with the outputs."""

    def __init__(self, broker: JudgedBroker, servers: str, jars: str) -> None:
        self.entries: list[dict[str, Any]] = []
        self._broker, self._servers, self._jars = broker, servers, jars
        self._epochs: dict[str, int] = {}

    async def ask(self, api: str, body: dict[str, Any], highest: int | None = None) -> dict[str, Any]:
        version = self._broker.version(api, highest)
        answer = await self._broker.ask(api, body, version)
        self.entries.append({"ask": api, "version": version, "body": body})
        return answer

    async def produce(self, topic: str, partition: int, count: int) -> None:
        async with Producer(bootstrap_servers=self._servers) as producer:
            for number in range(count):
                await producer.send(topic, str(number).encode(), partition=partition)
            await producer.flush()
        self.entries.append({"produce": topic, "partition": partition, "records": count})

    async def tool(self, arguments: str) -> None:
        """Run the tool. Members beat before, as it takes seconds to start."""
        for member in list(self._epochs):
            await self.beat(member)
        command = [*JAVA, "-cp", self._jars, COMMAND, "--bootstrap-server", self._servers, *arguments.split()]
        process = await asyncio.create_subprocess_exec(
            *command,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
        )
        async with asyncio.timeout(TOOL_SECONDS):
            out, _ = await process.communicate()
        self.entries.append({"run": arguments, "code": process.returncode, "out": arranged(out.decode())})

    async def join(self, member: str, group: str = GROUP, source: str = "lines") -> None:
        given = {"topology": topology(source), "processId": f"process-of-{member}", "rebalanceTimeoutMs": 300_000}
        await self._heartbeat(member, 0, group, **given, clientTags=[], **NO_TASKS)

    async def beat(self, member: str, **given: Any) -> None:
        await self._heartbeat(member, self._epochs[member], GROUP, **given)

    async def leave(self, member: str, group: str = GROUP) -> None:
        await self._heartbeat(member, -1, group)
        self._epochs.pop(member, None)

    async def _heartbeat(self, member: str, epoch: int, group: str, **given: Any) -> None:
        body: dict[str, Any] = {"groupId": group, "memberId": member, "memberEpoch": epoch}
        body |= {"endpointInformationEpoch": 0, "instanceId": None, "rackId": None, "rebalanceTimeoutMs": -1}
        optional = ("topology", *NO_TASKS, "processId", "userEndpoint", "clientTags", "taskOffsets", "taskEndOffsets")
        body |= dict.fromkeys(optional) | {"shutdownApplication": False} | given
        answer = await self.ask("StreamsGroupHeartbeat", body)
        if group == GROUP:
            self._epochs[member] = answer["memberEpoch"]

    async def commit(self, member: str, topic: str, partition: int, offset: int) -> None:
        index = {"partitionIndex": partition, "committedOffset": offset, "committedLeaderEpoch": -1}
        body = {"groupId": GROUP, "generationIdOrMemberEpoch": self._epochs[member], "memberId": member}
        committed = [{"name": topic, "partitions": [index | {"committedMetadata": ""}]}]
        body |= {"groupInstanceId": None, "topics": committed}
        await self.ask("OffsetCommit", body, 9)


async def play(run: ToolRun) -> None:
    """The life of a group."""
    topics: list[dict[str, Any]] = [
        {"name": name, "numPartitions": PARTITIONS, "replicationFactor": 1, "assignments": [], "configs": []}
        for name in ("lines", "other")
    ]
    await run.ask("CreateTopics", {"topics": topics, "timeoutMs": 10_000, "validateOnly": False})
    for group in (GROUP, "waiting"):
        configs = [{"name": name, "configOperation": 0, "value": value} for name, value in GROUP_SETTINGS.items()]
        resource = {"resourceType": 32, "resourceName": group, "configs": configs}
        await run.ask("IncrementalAlterConfigs", {"resources": [resource], "validateOnly": False})
    await run.produce("lines", 0, 5)
    await run.produce("lines", 1, 3)
    await run.join("w", "waiting", "nowhere")
    await run.tool("--describe --group waiting --state")
    await run.leave("w", "waiting")
    await _two_members(run)
    await _without_members(run)


async def _two_members(run: ToolRun) -> None:
    await run.join("a")
    await run.tool("--list")
    await run.tool(f"--describe --group {GROUP} --members --verbose")
    tasks = [{"subtopologyId": number, "partitions": [0, 1]} for number in "01"]
    await run.beat("a", activeTasks=tasks, standbyTasks=[], warmupTasks=[])
    await run.commit("a", "lines", 0, 2)
    for form in ("", "--verbose", "--offsets", "--members", "--members --verbose", "--state", "--state --verbose"):
        await run.tool(f"--describe --group {GROUP} {form}".strip())
    await run.tool(f"--describe --group {GROUP} --topology")
    await run.join("b")
    await run.beat("a", activeTasks=tasks, standbyTasks=[], warmupTasks=[])
    await run.tool(f"--describe --group {GROUP} --members --verbose")
    await run.tool("--list --state")
    await run.tool("--list --state stable,reconciling")
    await run.tool(f"--reset-offsets --group {GROUP} --all-input-topics --to-earliest --execute")
    await run.tool(f"--delete --group {GROUP}")
    await run.tool(f"--delete-offsets --group {GROUP} --input-topic lines:0")
    await run.leave("b")
    await run.leave("a")


async def _without_members(run: ToolRun) -> None:
    for form in ("", "--members", "--state"):
        await run.tool(f"--describe --group {GROUP} {form}".strip())
    await run.tool("--list --state empty")
    reset = f"--reset-offsets --group {GROUP}"
    for rest in (
        "--all-input-topics --to-latest --dry-run",
        "--input-topic lines:0 --shift-by 1 --execute --export",
        "--input-topic lines --to-earliest --dry-run",
        "--input-topic other --to-earliest --dry-run",
        f"--all-input-topics --to-earliest --execute --delete-internal-topic {COUNTS}",
    ):
        await run.tool(f"{reset} {rest}")
    await run.tool(f"--delete-offsets --group {GROUP} --input-topic nowhere")
    await run.tool(f"--delete-offsets --group {GROUP} --all-input-topics")
    await run.tool(f"--delete --group {GROUP} --group nowhere --delete-all-internal-topics")
    await run.tool("--delete --group waiting")
    await run.tool(f"--delete --group {GROUP}")
    await run.tool(f"--describe --group {GROUP}")
    await run.tool("--list --state")


@asynccontextmanager
async def _kafka(jars: str) -> AsyncIterator[str]:
    async with Cluster(jars, 1, {"offsets.topic.num.partitions": "1"}) as cluster:
        yield f"{HOST}:{cluster.ports[1]}"


@asynccontextmanager
async def _rejoin() -> AsyncIterator[str]:
    node = running()
    yield (await asyncio.to_thread(node.__enter__)).bootstrap_servers
    await asyncio.to_thread(node.__exit__, None, None, None)


async def lived(servers: str, jars: str) -> list[dict[str, Any]]:
    """The entries of the life on a broker."""
    host, port = servers.split(":")
    broker = await look((host, int(port)), BrokerAccess())
    await broker.warm_up("warm-up-")
    run = ToolRun(broker, servers, jars)
    await play(run)
    return run.entries


async def compare(*, record: bool) -> int:
    """Play on both, and print each command with what differs; the exit code."""
    jars = tool_path(HERE / "tools", RELEASE)
    async with _kafka(await class_path()) as servers:
        theirs = await lived(servers, jars)
    if record:
        GOLDEN.write_text("".join(f"{json.dumps(entry)}\n" for entry in theirs))
        print(f"written: {GOLDEN.relative_to(ROOT)}")
    async with _rejoin() as servers:
        ours = await lived(servers, jars)
    different = 0
    print(f"kafka-streams-groups.sh {RELEASE} on Kafka {kafka_version()} and on Rejoin")
    for one, other in zip(theirs, ours, strict=True):
        if "run" not in one:
            continue
        is_same = (one["code"], one["out"]) == (other["code"], other["out"])
        different += not is_same
        print(f"{'same' if is_same else 'DIFFERENT'}: {one['run']}")
        if not is_same:
            print(f"--- Kafka, {one['code']}\n{one['out']}\n--- Rejoin, {other['code']}\n{other['out']}")
    return 1 if different else 0


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description="Run kafka-streams-groups.sh on a real Kafka and on Rejoin.")
    parser.add_argument("--record", action="store_true", help="write what Kafka prints for the test")
    return asyncio.run(compare(record=parser.parse_args().record))


if __name__ == "__main__":
    sys.exit(main())
