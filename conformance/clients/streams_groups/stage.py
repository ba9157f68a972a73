"""A broker behind a proxy, and what lives of applications ask of it: topics, records, descriptions, settings."""

from __future__ import annotations

import asyncio
import socket
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Final, Self, TypeAlias

from confluent_kafka import Consumer, KafkaError, Producer, TopicPartition

from conformance.before_kafka.stand import ProxyBeforeKafka
from conformance.clients.node import running
from conformance.kafka.broker import HOST, Cluster
from conformance.members.proxy import Proxy
from rejoin.conform.judged_broker import JudgedBroker, look
from rejoin.conform.player.connection import BrokerAccess
from rejoin.conform.player.messages import Json
from rejoin.protocol.messages.streams.streams_group_heartbeat import (
    StreamsGroupHeartbeatRequest,
    StreamsGroupHeartbeatResponse,
)

SETTINGS: Final = {
    "group.streams.min.session.timeout.ms": "1000",
    "group.streams.session.timeout.ms": "6000",
    "group.streams.min.heartbeat.interval.ms": "500",
    "group.streams.heartbeat.interval.ms": "500",
    "group.streams.initial.rebalance.delay.ms": "500",
    "group.streams.assignment.interval.ms": "0",
    "group.min.session.timeout.ms": "1000",
    "group.initial.rebalance.delay.ms": "0",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "200",
    "offsets.topic.num.partitions": "1",
    "transaction.state.log.num.partitions": "1",
}
"""Settings of both brokers."""
SECONDS: Final = 90.0
"""Longest wait for each state: instances share a machine."""
PARTITIONS: Final = 3
LINE: Final = "the quick brown fox jumps over the lazy dog"
GROUP, TOPIC = 32, 2
"""Types of resources with settings."""
OF_TOPIC: Final = 1
"""Source of a setting that a topic has of its own. Kafka: ConfigSource.TOPIC_CONFIG."""
SAFE_DOWNGRADE: Final = 2


Restart: TypeAlias = Callable[[], Awaitable[None]]


@dataclass
class StreamsStage:
    """One broker for all lives. All requests pass the proxy."""

    proxy: Proxy
    broker: JudgedBroker
    folder: Path
    restart: Restart
    """Stops the broker and starts it again, with all that it has on disk."""
    address: str
    """Where applications begin."""
    defects: list[str] = field(default_factory=list)
    """Lines of the log of Rejoin that no client should cause; there once it was stopped."""
    written: dict[str, int] = field(default_factory=dict)
    """Lines written so far, by topic."""

    async def ask(self, api: str, body: Json) -> Json:
        """The answer in the newest version that both sides speak."""
        return await self.broker.ask(api, body, self.broker.version(api))

    def had_status(self, group: str, code: int) -> bool:
        """Whether a heartbeat of a group was answered with a status."""
        return any(
            each.request.group_id == group and code in [status.status_code for status in each.response.status or ()]
            for each in self.proxy.exchanges
            if isinstance(each.request, StreamsGroupHeartbeatRequest)
            and isinstance(each.response, StreamsGroupHeartbeatResponse)
        )

    async def make_topics(self, **partitions: int) -> None:
        """Make topics, and wait until they are led."""
        await self.broker.make_topics({name: {"partitions": count} for name, count in partitions.items()})

    async def write(self, topic: str, lines: int, line: str = LINE) -> None:
        """Write lines into the partitions in turn."""
        begin = self.written.get(topic, 0)
        self.written[topic] = begin + lines
        await asyncio.to_thread(_write, self.address, topic, range(begin, begin + lines), line)

    async def counts(self, topic: str) -> dict[str, list[int]]:
        """All committed counts of each word, in their order."""
        return await asyncio.to_thread(_counts, self.address, topic)

    async def described(self, group: str) -> Json:
        """The group, as StreamsGroupDescribe has it."""
        body = {"groupIds": [group], "includeAuthorizedOperations": False, "includeTopologyDescription": False}
        found: Json = (await self.ask("StreamsGroupDescribe", body))["groups"][0]
        return found

    async def listed(self, group: str) -> str:
        """The type and the state of a group."""
        groups = (await self.ask("ListGroups", {"statesFilter": [], "typesFilter": []}))["groups"]
        found = (f"{each['groupType']} {each['groupState']}" for each in groups if each["groupId"] == group)
        return next(found, "none")

    async def offsets(self, group: str, topic: str) -> list[int]:
        """The offsets that a group has committed of a topic."""
        topics = [{"name": topic, "partitionIndexes": list(range(PARTITIONS))}]
        asked = {"groupId": group, "memberId": None, "memberEpoch": -1, "topics": topics}
        answer = await self.broker.ask("OffsetFetch", {"groups": [asked], "requireStable": True}, 9)
        partitions = answer["groups"][0]["topics"][0]["partitions"]
        return [each["committedOffset"] for each in sorted(partitions, key=lambda each: each["partitionIndex"])]

    async def set_group(self, group: str, **settings: str) -> None:
        """Give a group settings of its own; underscores stand for dots."""
        configs = [
            {"name": f"streams.{name.replace('_', '.')}", "configOperation": 0, "value": value}
            for name, value in settings.items()
        ]
        resource = {"resourceType": GROUP, "resourceName": group, "configs": configs}
        answer = await self.ask("IncrementalAlterConfigs", {"resources": [resource], "validateOnly": False})
        assert answer["responses"][0]["errorCode"] == 0, answer

    async def delete_group(self, group: str) -> int:
        """The error of the deletion of a group."""
        code: int = (await self.ask("DeleteGroups", {"groupsNames": [group]}))["results"][0]["errorCode"]
        return code

    async def set_streams_version(self, level: int) -> None:
        """Turn streams groups on or off."""
        update = {"feature": "streams.version", "maxVersionLevel": level, "upgradeType": 1 if level else SAFE_DOWNGRADE}
        answer = await self.broker.ask(
            "UpdateFeatures", {"timeoutMs": 10_000, "featureUpdates": [update], "validateOnly": False}, 1
        )
        assert answer["errorCode"] == 0, answer

    async def topics(self, beginning: str) -> dict[str, list[Any]]:
        """Topics with such names: partitions, and settings of their own."""
        found = (await self.broker.ask("Metadata", {"topics": None}, 1))["topics"]
        counts = {each["name"]: len(each["partitions"]) for each in found if each["name"].startswith(beginning)}
        resources = [
            {"resourceType": TOPIC, "resourceName": name, "configurationKeys": None} for name in sorted(counts)
        ]
        if not resources:
            return {}
        body = {"resources": resources, "includeSynonyms": False, "includeDocumentation": False}
        answer = await self.ask("DescribeConfigs", body)
        return {
            each["resourceName"]: [
                counts[each["resourceName"]],
                {one["name"]: one["value"] for one in each["configs"] if one["configSource"] == OF_TOPIC},
            ]
            for each in answer["results"]
        }


async def until(said: str, is_so: Callable[[], Any], seconds: float = SECONDS) -> None:
    """Wait until something is so; coroutines are awaited. Raises ``TimeoutError`` with the words for it."""
    end = time.monotonic() + seconds
    while True:
        found = is_so()
        if asyncio.iscoroutine(found):
            found = await found
        if found:
            return
        if time.monotonic() > end:
            raise TimeoutError(f"{said}: not within {seconds:g} s")
        await asyncio.sleep(0.2)


def _write(address: str, topic: str, numbers: Iterable[int], line: str) -> None:
    producer = Producer({"bootstrap.servers": address, "client.id": "writer"})
    for number in numbers:
        producer.produce(topic, value=line.encode(), partition=number % PARTITIONS)
    assert producer.flush(30) == 0, "not every line was written"


def _counts(address: str, topic: str) -> dict[str, list[int]]:
    settings = {"bootstrap.servers": address, "client.id": "reader", "group.id": "reader", "enable.partition.eof": True}
    consumer = Consumer(settings | {"enable.auto.commit": False, "isolation.level": "read_committed"})
    found: dict[str, list[int]] = {}
    try:
        consumer.assign([TopicPartition(topic, 0, 0)])
        end = time.monotonic() + 20
        while time.monotonic() < end:
            record = consumer.poll(1)
            if record is None:
                continue
            error = record.error()
            if error is not None and error.code() == KafkaError._PARTITION_EOF:
                return found
            assert error is None, error
            found.setdefault((record.key() or b"").decode(), []).append(int(record.value() or b"0"))
        return found
    finally:
        consumer.close()


@asynccontextmanager
async def streams_stage(name: str, jars: str, folder: Path) -> AsyncIterator[StreamsStage]:
    """A broker behind a proxy to which it sends clients: ``kafka``, ``rejoin``, or ``proxied``.

    The last is Kafka again, and before the proxy that keeps the requests ``rejoin proxy`` stands.
    """
    async with AsyncExitStack() as stack:
        proxy = await stack.enter_async_context(Proxy(0))
        defects: list[str] = []
        restart: Restart
        if name != "rejoin":
            cluster = Cluster(jars, 1, SETTINGS, advertised={1: proxy.port})
            await stack.enter_async_context(cluster)
            proxy.port_of_broker = cluster.ports[1]
            restart = partial(_restart_kafka, cluster)
        else:
            rejoin = _RestartableNode(proxy, folder / "data", defects)
            await stack.enter_async_context(rejoin)
            restart = rejoin.restart
        broker = await look((HOST, proxy.port), BrokerAccess())
        await broker.warm_up("warm-up-")
        address = f"{HOST}:{proxy.port}"
        if name == "proxied":
            before = await stack.enter_async_context(ProxyBeforeKafka(address, folder, logs_in=False))
            stack.callback(lambda: defects.extend(before.defects()))
            stack.push_async_callback(before.stop)
            address = before.bootstrap_servers
        yield StreamsStage(proxy, broker, folder, restart, address, defects)


async def _restart_kafka(cluster: Cluster) -> None:
    await cluster.stop(1)
    await cluster.start(1)


class _RestartableNode:
    """A node of Rejoin with its data on disk, on one port behind a proxy."""

    def __init__(self, proxy: Proxy, data: Path, defects: list[str]) -> None:
        proxy.port_of_broker = _free_port()
        settings = SETTINGS | {"advertised.listeners": f"PLAINTEXT://{HOST}:{proxy.port}"}
        self._options = ["--data", str(data), "--kafka-port", str(proxy.port_of_broker)]
        self._options += [part for pair in settings.items() for part in ("-c", "=".join(pair))]
        self._defects = defects
        self._stack = ExitStack()

    async def __aenter__(self) -> Self:
        await asyncio.to_thread(self._start)
        return self

    async def __aexit__(self, *_: object) -> None:
        await asyncio.to_thread(self._stop)

    async def restart(self) -> None:
        await asyncio.to_thread(self._stop)
        await asyncio.to_thread(self._start)

    def _start(self) -> None:
        self._node = self._stack.enter_context(running(*self._options))

    def _stop(self) -> None:
        self._defects += self._node.defects()
        self._stack.close()


def _free_port() -> int:
    """A port that was free a moment ago: the node's own port file has the one that it advertises."""
    with socket.socket() as listener:
        listener.bind((HOST, 0))
        port: int = listener.getsockname()[1]
        return port
