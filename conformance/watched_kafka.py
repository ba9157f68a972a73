"""Follows a real Kafka while consumers come, leave and hang, and checks what was seen: ``make watch-kafka``."""

from __future__ import annotations

import asyncio
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from conformance.kafka.broker import Cluster, class_path
from rejoin.client import Consumer, Producer
from rejoin.client.admin.admin import Admin
from rejoin.client.transports.addresses import open_transport, split_servers
from rejoin.pipeline.kafka_cluster.observations import ObservedGroup
from rejoin.pipeline.kafka_cluster.polling import polling
from rejoin.pipeline.kafka_cluster.store import ClusterStore
from rejoin.pipeline.kafka_cluster.watching import ClusterWatch
from rejoin.pipeline.why.answer import answer
from rejoin.pipeline.why.watched import WatchedSource
from rejoin.protocol.messages.topics.create_topics import CreatableTopic, CreateTopicsRequest, CreateTopicsResponse

PARTITIONS: Final = 4
BROKER: Final = {
    "group.initial.rebalance.delay.ms": "0",
    "offsets.topic.num.partitions": "1",
    "offsets.topic.replication.factor": "1",
}
STANDS_SECONDS: Final = 75
_TIMEOUT_SECONDS: Final = 60.0


class Scene:
    """A group of one protocol that is being watched."""

    def __init__(self, servers: str, group_id: str, protocol: str, watch: ClusterWatch) -> None:
        self._settings: dict[str, Any] = {
            "bootstrap_servers": servers,
            "group_id": group_id,
            "group_protocol": protocol,
            "auto_offset_reset": "earliest",
            "auto_commit_interval_ms": 1_000,
        }
        self._watch = watch
        self._group_id = group_id
        self._polling: dict[str, asyncio.Task[None]] = {}
        self.hangs = False

    @property
    def group(self) -> ObservedGroup:
        """The group as the watch knows it."""
        return self._watch.groups[self._group_id]

    def start(self, name: str) -> None:
        """A consumer that polls until it is stopped."""
        self._polling[name] = asyncio.create_task(self._poll(name))

    async def _poll(self, name: str) -> None:
        async with Consumer("orders", client_id=name, **self._settings) as consumer:
            while True:
                if self.hangs:
                    await asyncio.sleep(0.1)
                else:
                    await consumer.poll(100)

    async def stop(self, name: str) -> None:
        """The member leaves the group."""
        task = self._polling.pop(name)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    async def until(self, members: int) -> None:
        """Look until the group is Stable with so many members and all partitions have owners."""
        async with asyncio.timeout(_TIMEOUT_SECONDS):
            while True:
                await self._watch.poll()
                last = self._watch.groups.get(self._group_id, ObservedGroup("", "")).last
                stable = last is not None and last.state == "Stable" and len(last.members) == members
                if last is not None and stable and len(last.owners) == PARTITIONS:
                    return
                await asyncio.sleep(0.2)


async def produce(servers: str, records: int) -> None:
    async with Producer(bootstrap_servers=servers) as producer:
        for number in range(records):
            await producer.send("orders", str(number).encode(), partition=number % PARTITIONS)
        await producer.flush()


async def main() -> int:
    """Play it with both protocols; the exit code."""
    jars = await class_path()
    wrong: list[str] = []

    def check(what: str, holds: bool) -> None:
        print(f"{'ok' if holds else 'NO':<4}{what}")
        if not holds:
            wrong.append(what)

    with tempfile.TemporaryDirectory(prefix="watched-") as folder:
        async with Cluster(jars, 1, BROKER) as cluster:
            servers = ",".join(f"{host}:{port}" for host, port in cluster.addresses.values())
            transport = open_transport(split_servers(servers))
            topic = CreatableTopic(
                name="orders", num_partitions=PARTITIONS, replication_factor=1, assignments=(), configs=()
            )
            await Admin(transport, 30_000).ask(CreateTopicsRequest(topics=(topic,)), CreateTopicsResponse)
            await transport.close()
            await produce(servers, 400)
            for protocol in ("classic", "consumer"):
                async with polling(servers) as poller:
                    store = ClusterStore(Path(folder))
                    watch = ClusterWatch(poller, store)
                    await play(servers, protocol, watch, check)
                print("\n".join(answer(WatchedSource(Path(folder)).story(f"by-{protocol}"))))
    return 1 if wrong else 0


async def play(servers: str, protocol: str, watch: ClusterWatch, check: Callable[[str, bool], None]) -> None:
    """One group: two members come, one leaves, and then records come that the last one does not commit."""
    scene = Scene(servers, f"by-{protocol}", protocol, watch)
    scene.start("one")
    await scene.until(1)
    scene.start("two")
    await scene.until(2)
    came = [row["cause_client_id"] for row in scene.group.rebalances if row["cause"] == "join-new"]
    check(f"{protocol}: the second member was seen to join", "two" in came)
    await scene.stop("two")
    await scene.until(1)
    left = [row["cause_client_id"] for row in scene.group.rebalances if row["cause"] == "leave"]
    check(f"{protocol}: it was seen to leave", left == ["two"])
    async with asyncio.timeout(_TIMEOUT_SECONDS):
        while scene.group.status().lag != 0:
            await asyncio.sleep(0.2)
            await watch.poll()
    check(f"{protocol}: all records were seen to be committed", True)
    scene.hangs = True
    await produce(servers, 40)
    found: list[str] = []
    async with asyncio.timeout(STANDS_SECONDS + _TIMEOUT_SECONDS):
        while "owned-not-moving" not in found:
            await asyncio.sleep(1)
            found += [row["finding"] for row in (await watch.poll()).new_findings]
    check(f"{protocol}: a handler that hangs was found", True)
    scene.hangs = False
    await scene.stop("one")
    await watch.poll()


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
