"""Actions of scripts on a real cluster: move a group's coordinator, stop a broker, start it again."""

from __future__ import annotations

import asyncio
import itertools
import signal
import time
from collections.abc import Callable, Iterable
from typing import Final

from rejoin.conform.player.connection import ClientConnections
from rejoin.conform.player.messages import Json
from rejoin.conform.player.play import StartableCluster
from rejoin.protocol.partitioner import partition_for

OFFSETS_TOPIC: Final = "__consumer_offsets"
PREFERRED: Final = 0
FILLERS: Final = 50
SETTLED_SECONDS: Final = 0.1

_RESOURCES: Final = {"topic": 2, "group": 3, "transactional-id": 5}
_LITERAL, _PREFIXED = 3, 4
_ALL_OPERATIONS: Final = 2
_DENY: Final = 2


class KafkaActions:
    """Acts on a cluster of this machine."""

    def __init__(self, cluster: StartableCluster) -> None:
        self._cluster = cluster

    async def move(self, partition: int, broker: int, begins: Callable[[], None], topic: str = OFFSETS_TOPIC) -> None:
        """Make a broker the leader of a partition: it becomes the first replica, and is elected."""
        others = [number for number in self._cluster.ports if number != broker]
        replicas = [broker, *others]
        body = {
            "timeoutMs": 10_000,
            "topics": [
                {"name": topic, "partitions": [{"partitionIndex": partition, "replicas": replicas}]},
            ],
        }
        await self._ask(broker, "AlterPartitionReassignments", 0, body)
        chosen = [{"topic": topic, "partitions": [partition]}]
        await asyncio.sleep(SETTLED_SECONDS)
        begins()
        async with asyncio.timeout(20):
            while await self._leader(broker, partition, topic) != broker:
                await self._ask(
                    broker,
                    "ElectLeaders",
                    2,
                    {"electionType": PREFERRED, "topicPartitions": chosen, "timeoutMs": 5_000},
                )
                await asyncio.sleep(0.02)

    async def deny(self, what: Iterable[str]) -> None:
        """Deny every operation on resources such as ``group=secret-*``."""
        entries = []
        for one in what:
            kind, _, name = one.partition("=")
            entries.append(
                {
                    "resourceType": _RESOURCES[kind],
                    "resourceName": name.rstrip("*"),
                    "resourcePatternType": _PREFIXED if name.endswith("*") else _LITERAL,
                    "principal": "User:*",
                    "host": "*",
                    "operation": _ALL_OPERATIONS,
                    "permissionType": _DENY,
                }
            )
        await self._ask(next(iter(self._cluster.ports)), "CreateAcls", 3, {"creations": entries})
        await asyncio.sleep(1.0)

    async def stop(self, broker: int, gently: bool) -> None:
        """Kill a broker, as a crash would, or let it hand over first."""
        await self._cluster.stop(broker, signal.SIGTERM if gently else signal.SIGKILL)

    async def restore(self) -> None:
        """Start every broker that a script has left stopped."""
        for broker in self._cluster.stopped:
            await self._cluster.start(broker)

    async def start(self, broker: int) -> None:
        await self._cluster.start(broker)

    async def fill(self, partition: int, partitions: int, broker: int, commits: int) -> None:
        """Write one commit after the other into an offsets partition, by a group that no script uses."""
        names = (f"filler-{number}" for number in itertools.count())
        group = next(name for name in names if partition_for(name, partitions) == partition)
        metadata = {"committedMetadata": "", "partitionIndex": 0, "committedOffset": 1}
        body = {
            "groupId": group,
            "generationIdOrMemberEpoch": -1,
            "memberId": "",
            "topics": [{"name": "orders", "partitions": [metadata]}],
        }
        connections = ClientConnections(self._cluster.addresses, time.monotonic)

        async def some(client: str) -> None:
            for _ in range(commits // FILLERS):
                await connections.ask(client, broker, "OffsetCommit", 5, body)

        await asyncio.gather(*(some(f"filler-{number}") for number in range(FILLERS)))
        connections.close()

    async def _leader(self, broker: int, partition: int, topic: str) -> int:
        answer = await self._ask(broker, "Metadata", 1, {"topics": [{"name": topic}]})
        partitions = {one["partitionIndex"]: one["leaderId"] for one in answer["topics"][0]["partitions"]}
        leader: int = partitions[partition]
        return leader

    async def _ask(self, broker: int, api: str, version: int, body: Json) -> Json:
        connections = ClientConnections(self._cluster.addresses, time.monotonic)
        try:
            return await connections.ask("cluster", broker, api, version, body)
        finally:
            connections.close()
