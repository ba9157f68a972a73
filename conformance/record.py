"""Records every script from a broker that it starts: ``python -m conformance.record [SET ...] [--only TEXT]``.

One file for each script below ``tests/golden/kafka-4.x/SET/SUBJECT/``, and beside them the lines that the broker's
group coordinator has logged meanwhile.
"""

from __future__ import annotations

import asyncio
import json
import shutil
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from conformance.command import run
from conformance.kafka.broker import Cluster, class_path, kafka_version
from conformance.kafka.cluster_actions import KafkaActions
from conformance.player.connection import Address, Connections
from conformance.player.messages import Json
from conformance.steps.language import Script, ScriptSet, load_all, script_header
from conformance.steps.player import Player, ScriptFailed, Target, find_coordinator, loaded

GOLDEN: Final = Path(__file__).parent.parent / "tests" / "golden" / "kafka-4.x"
WARM_UP: Final = Script(
    name="everything-once",
    subject="warm-up",
    steps=(
        {"a": "JoinGroup"},
        {"a": "JoinGroup"},
        {"a": "SyncGroup", "give": {"a": "orders-0"}},
        {"a": "Heartbeat"},
        {"a": "OffsetCommit"},
        {"a": "OffsetFetch"},
        {"a": "DescribeGroups"},
        {"a": "LeaveGroup"},
    ),
)
"""Played before the others and not recorded: what a broker does for the first time takes it long."""

AT_ONCE: Final = 6
"""Scripts that are played at the same time on one broker."""


async def ready(
    addresses: dict[int, Address], topics: dict[str, int], replicas: int, groups: int
) -> dict[int, tuple[int, int]]:
    """Make the topics, wait until groups can be coordinated, and return the versions by API key."""
    connections = Connections(addresses, time.monotonic)
    first = next(iter(addresses))

    async def ask(broker: int, api: str, version: int, body: Json) -> Json:
        return await connections.ask("cluster", broker, api, version, body)

    wanted = [
        {"name": name, "numPartitions": count, "replicationFactor": replicas, "assignments": [], "configs": []}
        for name, count in topics.items()
    ]
    await ask(first, "CreateTopics", 2, {"topics": wanted, "timeoutMs": 10_000, "validateOnly": False})
    for broker in addresses:
        while True:
            known = await ask(broker, "Metadata", 1, {"topics": [{"name": name} for name in topics]})
            if all(len(topic["partitions"]) == topics[topic["name"]] for topic in known["topics"]):
                break
            await asyncio.sleep(0.05)
    for number in range(3 * groups):
        group = f"ready-{number}"
        await loaded(connections, group, await find_coordinator(connections, group, first))
    while (await ask(first, "FindCoordinator", 1, {"key": "ready", "keyType": 1}))["errorCode"]:
        await asyncio.sleep(0.05)
    while (await ask(first, "InitProducerId", 1, {"transactionalId": None, "transactionTimeoutMs": 1000}))["errorCode"]:
        await asyncio.sleep(0.05)
    versions = await ask(first, "ApiVersions", 0, {})
    connections.close()
    return {one["apiKey"]: (one["minVersion"], one["maxVersion"]) for one in versions["apiKeys"]}


class Recorder:
    """Records one set."""

    def __init__(self, wanted: ScriptSet, jars: str, folder: Path) -> None:
        self._set = wanted
        self._jars = jars
        self._folder = folder
        self.failed: list[str] = []

    async def record(self, scripts: Iterable[Script]) -> int:
        """Play these scripts; returns how many were recorded."""
        scripts = list(scripts)
        wanted = self._set
        partitions = int(wanted.settings.get("offsets.topic.num.partitions", "50"))
        async with Cluster(self._jars, wanted.brokers, wanted.settings) as cluster:
            topics = {**wanted.topics, **{name: count for script in scripts for name, count in script.topics.items()}}
            versions = await ready(cluster.addresses, topics, wanted.brokers, partitions)
            actions = KafkaActions(cluster)
            if wanted.deny:
                await actions.deny(wanted.deny)
            target = Target(cluster.addresses, versions, wanted.topics, partitions, actions)
            await Player(WARM_UP, target).play()
            slots = asyncio.Semaphore(1 if wanted.alone else AT_ONCE)

            async def one(script: Script) -> None:
                async with slots:
                    await self._one(script, target)
                    if wanted.alone:
                        await actions.restore()

            await asyncio.gather(*(one(script) for script in scripts))
            log = cluster.group_log()
        self._folder.mkdir(parents=True, exist_ok=True)
        if scripts == list(wanted.scripts):
            (self._folder / "group-coordinator.log").write_text(log)
        return len(scripts) - len(self.failed)

    async def _one(self, script: Script, target: Target) -> None:
        try:
            lines = await Player(script, target).play()
        except (ScriptFailed, TimeoutError, ValueError, LookupError, TypeError, OSError) as problem:
            self.failed.append(f"{self._set.name}/{script.subject}/{script.name}: {problem!r}")
            return
        header = {"kafka": kafka_version(), **script_header(self._set, script)}
        write(self._folder / script.subject / f"{script.name}.jsonl", [header, *lines])


def write(path: Path, lines: Iterable[Json]) -> None:
    """One JSON object a line."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{json.dumps(line, ensure_ascii=False, separators=(',', ':'))}\n" for line in lines))


async def record(names: list[str], only: str, folder: Path) -> int:
    """Record sets by name, or all of them. Returns the number of scripts that failed."""
    jars = await class_path()
    failed = 0
    for wanted in load_all():
        if names and wanted.name not in names:
            continue
        scripts = [script for script in wanted.scripts if only in f"{script.subject}/{script.name}"]
        if not scripts:
            continue
        if not only:
            shutil.rmtree(folder / wanted.name, ignore_errors=True)
        started = time.monotonic()
        recorder = Recorder(wanted, jars, folder / wanted.name)
        count = await recorder.record(scripts)
        print(f"{wanted.name}: {count} of {len(scripts)} scripts recorded in {time.monotonic() - started:.0f} s")
        for problem in recorder.failed:
            print(f"  {problem}")
        failed += len(recorder.failed)
    return failed


if __name__ == "__main__":
    run("scripts", record, GOLDEN)
