"""Nodes of a cluster in this process: each with its own connections, its own leases, and a port."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import aiohttp

# Here, since Python 3.11 cannot always compile the assertions of a module that is imported later, from a coroutine.
import rejoin.coordinator.storage.sqlite.log
import rejoin.coordinator.storage.topics_log.sqlite  # noqa: F401
from rejoin.coordinator.config import Settings
from rejoin.coordinator.core.inputs import Context
from rejoin.coordinator.service.app import App
from rejoin.coordinator.service.options import InitialTopic, Options
from rejoin.protocol.message import Request
from rejoin.protocol.partitioner import partition_for
from rejoin.protocol.records.consumer_offsets import offsets_partition
from rejoin.protocol.registry import BY_NAME
from rejoin.protocol.types import TopicPartition

PATIENCE_SECONDS = 90.0
LEASE_MS = 2_000
PARTITIONS = 6


def settings(node_id: int, **more: Any) -> Settings:
    given = {
        "broker_id": node_id,
        "broker_session_timeout_ms": LEASE_MS,
        "offsets_topic_num_partitions": PARTITIONS,
        "group_initial_rebalance_delay_ms": 0,
    }
    return Settings(**(given | more))


def partition_of(group: str) -> TopicPartition:
    """The offsets partition of a group."""
    return offsets_partition(partition_for(group, PARTITIONS))


class Nodes:
    """The nodes of one store."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.apps: dict[int, App] = {}
        self._stack = AsyncExitStack()
        self.session = aiohttp.ClientSession()

    async def start(
        self, node_id: int, url: str | None = None, topics: tuple[InitialTopic, ...] = (), **more: Any
    ) -> App:
        app = App(Options(settings=settings(node_id, **more), port=0, store=url or self.url, topics=topics))
        await app.start()
        self.apps[node_id] = app
        return app

    async def stop(self, node_id: int) -> None:
        await self.apps.pop(node_id).stop()

    async def close(self) -> None:
        await self.session.close()
        for node_id in list(self.apps):
            await self.stop(node_id)

    def leading(self) -> dict[TopicPartition, int]:
        """Partition to the node that leads it; no other may."""
        found: dict[TopicPartition, int] = {}
        for node_id, app in self.apps.items():
            for partition in app.runtime.leading:
                assert partition not in found, f"partition {partition} is led by {found[partition]} and {node_id}"
                found[partition] = node_id
        return found

    def counts(self) -> list[int]:
        leaders = list(self.leading().values())
        return sorted(leaders.count(node_id) for node_id in self.apps)

    async def until_balanced(self) -> None:
        """Wait until everything is led and loaded, evenly, and all nodes know."""

        def reached() -> bool:
            leading, counts = self.leading(), self.counts()
            return (
                len(leading) == PARTITIONS
                and counts[-1] - counts[0] <= 1
                and all(app.runtime.node.leaders == leading for app in self.apps.values())
                and all(len(app.runtime.load_ms) == len(app.runtime.leading) for app in self.apps.values())
            )

        await until(reached, "the offsets partitions are not shared")

    def leader(self, group: str) -> App:
        return self.apps[self.leading()[partition_of(group)]]

    async def ask(self, app: App, request: Request, version: int) -> Any:
        return await app.runtime.submit(request, Context(version, "client")).answer()

    async def call(self, app: App, api: str, body: dict[str, Any], version: int) -> Any:
        """One of Kafka's requests over HTTP."""
        headers = {"Kafka-Api-Version": str(version), "Content-Type": "application/json"}
        async with self.session.post(app.url + BY_NAME[api].path, data=json.dumps(body), headers=headers) as answer:
            assert answer.status == 200, await answer.text()
            return await answer.json()

    async def look(self, app: App, path: str, method: str = "GET") -> tuple[int, Any]:
        headers = {"Content-Type": "application/json"} if method == "POST" else {}
        async with self.session.request(method, app.url + path, headers=headers) as answer:
            return answer.status, await answer.json(content_type=None)


@asynccontextmanager
async def cluster(url: str, *node_ids: int) -> AsyncIterator[Nodes]:
    nodes = Nodes(url)
    try:
        for node_id in node_ids:
            await nodes.start(node_id)
        await nodes.until_balanced()
        yield nodes
    finally:
        await nodes.close()


async def until(condition: Callable[[], bool], what: str) -> None:
    async with asyncio.timeout(PATIENCE_SECONDS):
        while not condition():  # noqa: ASYNC110
            await asyncio.sleep(0.01)
    assert condition(), what
