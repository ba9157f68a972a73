"""Records every script from a broker that it starts: ``python -m conformance.record [SET ...] [--only TEXT]``.

One file for each script below ``tests/golden/kafka-4.x/SET/SUBJECT/``, and beside them the lines that the broker's
group coordinator has logged meanwhile.
"""

from __future__ import annotations

import asyncio
import shutil
import time
from functools import partial
from pathlib import Path
from typing import Final

from conformance.command import run
from conformance.kafka.broker import Cluster, kafka_version
from conformance.kafka.cluster_actions import KafkaActions
from conformance.player.recorder import GOLDEN, Recorder, record_sets, text_of
from conformance.steps.language import load_all, script_header
from rejoin.conform.player.connection import Address, ClientConnections
from rejoin.conform.player.messages import Json
from rejoin.conform.player.play import Play, Target
from rejoin.conform.player.recording import events
from rejoin.conform.player.script import Script
from rejoin.conform.steps.player import Steps, find_coordinator, loaded

WARM_UP: Final = Script(
    name="everything-once",
    subject="warm-up",
    run=Steps(
        (
            {"a": "JoinGroup"},
            {"a": "JoinGroup"},
            {"a": "SyncGroup", "give": {"a": "orders-0"}},
            {"a": "Heartbeat"},
            {"a": "OffsetCommit"},
            {"a": "OffsetFetch"},
            {"a": "DescribeGroups"},
            {"a": "LeaveGroup"},
        )
    ),
)
"""Played before the others and not recorded: what a broker does for the first time takes it long."""


async def ready(
    addresses: dict[int, Address], topics: dict[str, int], replicas: int, groups: int
) -> dict[int, tuple[int, int]]:
    """Make the topics, wait until groups can be coordinated, and return the versions by API key."""
    connections = ClientConnections(addresses, time.monotonic)
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


class StepRecorder(Recorder):
    """Records one set of scripts that are written in steps."""

    async def prepare(self, cluster: Cluster, scripts: list[Script]) -> None:
        wanted = self._set
        partitions = int(wanted.settings.get("offsets.topic.num.partitions", "50"))
        topics = {**wanted.topics, **{name: count for script in scripts for name, count in script.more_topics.items()}}
        versions = await ready(cluster.addresses, topics, wanted.brokers, partitions)
        actions = KafkaActions(cluster)
        if wanted.deny:
            await actions.deny(wanted.deny)
        self._target = Target(cluster.addresses, versions, wanted.topics, partitions, actions=actions)
        await Play(WARM_UP, self._target).play()

    async def play(self, cluster: Cluster, script: Script) -> list[Json]:
        lines = events(await Play(script, self._target).play())
        return [{"kafka": kafka_version(), **script_header(self._set, script)}, *lines]

    def write(self, folder: Path, recorded: dict[str, list[Json]], *, is_whole: bool) -> None:
        if is_whole:
            shutil.rmtree(folder / self._set.name, ignore_errors=True)
        for header, *lines in recorded.values():
            path = folder / f"{header['script']}.jsonl"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text_of([header, *lines]))
        if is_whole:
            (folder / self._set.name / "group-coordinator.log").write_text(self.group_log)


if __name__ == "__main__":
    run("scripts", partial(record_sets, StepRecorder, load_all()), GOLDEN)
