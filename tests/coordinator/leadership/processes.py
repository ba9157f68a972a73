"""A cluster of real processes on a real PostgreSQL, and consumers in processes of their own."""

from __future__ import annotations

import asyncio
import json
import signal
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import Any

import aiohttp

from rejoin.protocol.partitioner import partition_for
from rejoin.protocol.registry import BY_NAME
from tests.coordinator.durability.service import stop_all
from tests.coordinator.ports import free_port

LEASE_MS = 2_000
SESSION_MS = 60_000
PARTITIONS = 6
TOPIC_PARTITIONS = 6
PATIENCE_SECONDS = 120.0
BUSY = frozenset({14, 15, 16})
"""COORDINATOR_LOAD_IN_PROGRESS, COORDINATOR_NOT_AVAILABLE, NOT_COORDINATOR."""


class NodeProcess:
    """``rejoin serve --store``, always on the same port."""

    def __init__(self, folder: Path, node_id: int, store: str, lease_ms: int = LEASE_MS) -> None:
        self.node_id = node_id
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self._log = folder / f"node-{node_id}.log"
        self._command = [sys.executable, "-m", "rejoin", "serve", "--port", str(self.port), "--store", store]
        self._command += ["--kafka-port", "0"]
        self._command += ["--journal", str(folder / f"journal-{node_id}"), "--topic", f"orders:{TOPIC_PARTITIONS}:50"]
        for setting in (
            f"broker.id={node_id}",
            f"broker.session.timeout.ms={lease_ms}",
            f"offsets.topic.num.partitions={PARTITIONS}",
            "group.initial.rebalance.delay.ms=100",
        ):
            self._command += ["-c", setting]
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        with self._log.open("ab") as log:
            self.process = subprocess.Popen(
                self._command, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT, start_new_session=True
            )

    def send(self, number: signal.Signals) -> None:
        assert self.process is not None
        self.process.send_signal(number)
        if number is signal.SIGKILL:
            self.process.wait()

    @property
    def is_up(self) -> bool:
        return self.process is not None and self.process.poll() is None

    def said(self) -> str:
        return self._log.read_text(errors="replace")[-2_000:]


class Cluster:
    """The nodes, the consumers, and an observer."""

    def __init__(self, folder: Path, nodes: list[NodeProcess]) -> None:
        self.folder = folder
        self.nodes = nodes
        self.consumers: list[subprocess.Popen[bytes]] = []
        self.session = aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=10))

    async def close(self) -> None:
        await self.session.close()
        stop_all(self.consumers)
        for node in self.nodes:
            if node.is_up:
                node.send(signal.SIGCONT)
        stop_all([node.process for node in self.nodes if node.process is not None])

    def consume(self, name: str, group: str, *options: str, session_ms: int = SESSION_MS) -> None:
        """A process of consumers that commit after each poll and write a journal."""
        servers = ",".join(f"http://127.0.0.1:{node.port}" for node in self.nodes)
        command = [sys.executable, "-m", "rejoin", "consume", "--bootstrap-server", servers, "--group", group]
        command += ["--topic", "orders", "--commit", "sync", "--client-id", name, "--log-level", "warning"]
        command += ["--session-timeout-ms", str(session_ms), "--heartbeat-interval-ms", "300", *options]
        command += ["-c", "retry.backoff.max.ms=300", "--journal", str(self.folder / "consumers")]
        with (self.folder / f"{name}.log").open("ab") as log:
            self.consumers.append(
                subprocess.Popen(
                    command, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT, start_new_session=True
                )
            )

    # -- asking

    async def call(self, node: NodeProcess, api: str, body: dict[str, Any], version: int) -> Any:
        """One of Kafka's requests; none where there is no answer."""
        headers = {"Kafka-Api-Version": str(version), "Content-Type": "application/json"}
        with suppress(aiohttp.ClientError, OSError, TimeoutError):
            async with self.session.post(node.url + BY_NAME[api].path, data=json.dumps(body), headers=headers) as got:
                return await got.json() if got.status == 200 else None
        return None

    async def look(self, node: NodeProcess, path: str) -> Any:
        """What a node shows: JSON, or text; none where it does not answer."""
        with suppress(aiohttp.ClientError, OSError, TimeoutError):
            async with self.session.get(node.url + path) as got:
                return json.loads(text) if (text := await got.text()).startswith("{") else text
        return None

    async def leaders(self, among: list[NodeProcess]) -> dict[int, int]:
        """Partition to node id, as those who lead and have loaded them say themselves."""
        found: dict[int, int] = {}
        for node in among:
            shown = await self.look(node, "/cluster")
            for partition in (shown or {"partitions": []})["partitions"]:
                if partition["state"] == "active":
                    found[partition["partition"]] = node.node_id
        return found

    async def led_by(self, among: list[NodeProcess]) -> dict[int, int]:
        """Wait until these nodes lead everything, each its part; returns partition to node id."""
        found: dict[int, int] = {}

        async def reached() -> bool:
            found.clear()
            found.update(await self.leaders(among))
            leaders = list(found.values())
            counts = [leaders.count(node.node_id) for node in among]
            return len(leaders) == PARTITIONS and max(counts) - min(counts) <= 1

        await self.until(reached, "the offsets partitions are not led")
        return found

    async def coordinator(self, group: str, among: list[NodeProcess]) -> NodeProcess:
        """The one of these nodes that coordinates a group, as they say themselves."""
        while True:
            for node in among:
                found = await self.call(node, "FindCoordinator", {"keyType": 0, "coordinatorKeys": [group]}, 4)
                if found is not None and found["coordinators"][0]["errorCode"] == 0:
                    port = found["coordinators"][0]["port"]
                    for each in among:
                        if each.port == port:
                            return each
            await asyncio.sleep(0.01)

    async def ask(self, group: str, api: str, body: dict[str, Any], version: int, among: list[NodeProcess]) -> Any:
        """Ask a group's present coordinator until its answer is not a retriable error."""
        give_up_at = time.monotonic() + PATIENCE_SECONDS
        while True:
            answer = await self.call(await self.coordinator(group, among), api, body, version)
            if answer is not None and _error(answer) not in BUSY:
                return answer
            assert time.monotonic() < give_up_at, f"{group} has no coordinator: {answer}"
            await asyncio.sleep(0.01)

    async def generation(self, group: str, among: list[NodeProcess] | None = None) -> int:
        """The generation of a group as these nodes show it, or all, once it is Stable."""
        found: list[int] = []

        async def is_stable() -> bool:
            for node in self.nodes if among is None else among:
                view = await self.look(node, f"/groups/{group}")
                if isinstance(view, dict) and view.get("state") == "Stable":
                    found.append(int(view["generation"]))
                    return True
            return False

        await self.until(is_stable, f"{group} is not Stable")
        return found[0]

    async def joined(self, sizes: dict[str, int], among: list[NodeProcess]) -> None:
        """Wait until these groups are Stable and have so many members."""

        async def reached() -> bool:
            views = [await self.look(node, "/groups") or {"groups": []} for node in among]
            found = {group["groupId"]: group for view in views for group in view["groups"]}
            shown = [found.get(group, {"members": 0, "state": ""}) for group in sizes]
            return all(
                group["members"] == size and group["state"] == "Stable"
                for group, size in zip(shown, sizes.values(), strict=True)
            )

        await self.until(reached, f"not all consumers are in: {sizes}")

    async def group_led_by(self, node: NodeProcess, *options: str, session_ms: int) -> str:
        """A Stable group of two consumers that a node coordinates: a busy machine may cost a node its lease."""
        for attempt in range(5):
            leaders = await self.led_by(self.nodes)
            partition = next(partition for partition, led in leaders.items() if led == node.node_id)
            group = group_in(partition, skipped=attempt)
            for name in ("first", "second"):
                self.consume(name, group, *options, session_ms=session_ms)
            await self.joined({group: 2}, self.nodes)
            if partition in await self.leaders([node]):
                return group
            await self.end_consumers()
        raise AssertionError(f"node {node.node_id} kept its partitions in no try\n{node.said()}")

    async def end_consumers(self) -> None:
        """SIGTERM to all consumers; they end well."""
        for consumer in self.consumers:
            consumer.send_signal(signal.SIGTERM)
        for consumer in self.consumers:
            assert await asyncio.to_thread(consumer.wait, 60) == 0
        self.consumers.clear()

    async def until(self, reached: Callable[[], Awaitable[bool]], what: str) -> None:
        give_up_at = time.monotonic() + PATIENCE_SECONDS
        while not await reached():
            if time.monotonic() > give_up_at:
                raise AssertionError("\n".join([what, *(node.said() for node in self.nodes)]))
            await asyncio.sleep(0.05)


def _error(answer: dict[str, Any]) -> int:
    if "errorCode" in answer:
        return int(answer["errorCode"])
    return int(answer["topics"][0]["partitions"][0]["errorCode"])


def group_in(partition: int, skipped: int = 0) -> str:
    """A group's name that belongs to an offsets partition, after some that belong there, too."""
    names = (f"sitters-{n}" for n in range(10_000))
    return next(islice((name for name in names if partition_for(name, PARTITIONS) == partition), skipped, None))
