"""Plays the lives against a real Kafka and writes what each client asked: ``python -m conformance.members [LIFE]``."""

from __future__ import annotations

import argparse
import asyncio
import json
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import Final

from conformance.kafka.broker import Cluster, class_path, kafka_version
from conformance.kafka.cluster_actions import KafkaActions
from conformance.members.consumer_lives import CONSUMER_GROUPS, CONSUMER_LIVES
from conformance.members.exchanged import look, script_lines
from conformance.members.lives import LIVES, RECORDS, TOPICS, Life
from conformance.members.moving_lives import MOVING_LIVES, PARTITIONS
from conformance.members.playing import LifePlayer
from conformance.members.processes import Processes, proxied_cluster
from conformance.members.proxy import HOST, ProxiedExchange, Proxy
from conformance.members.recorded import recorded
from conformance.members.sequences import DIFFERENCES
from conformance.transactions.record import compressed
from rejoin.client import Producer
from rejoin.client.commands.topics.command import main as topics

HERE: Final = Path(__file__).parent
GOLDEN: Final = HERE.parents[1] / "tests" / "golden"
CLIENTS: Final = ("java", "ours")
"""Clients that are compared."""

BROKER: Final = {
    "group.min.session.timeout.ms": "1000",
    "group.initial.rebalance.delay.ms": "300",
    "auto.create.topics.enable": "false",
    "offsets.topic.num.partitions": "1",
    **CONSUMER_GROUPS,
}

PROGRAMS: Final[dict[str, Path | str]] = {
    "java": HERE / "Member.java",
    "confluent": "conformance.members.confluent_member",
    "ours": "conformance.members.member",
}
JAVA_NAMES: Final = {
    "cooperative-sticky": "org.apache.kafka.clients.consumer.CooperativeStickyAssignor",
}


class MemberProcesses(LifePlayer):
    """Members in processes of their own, on a real cluster."""

    def __init__(self, client: str, life: Life, jars: str, cluster: Cluster, proxy: Proxy) -> None:
        super().__init__(client, life, proxy)
        self._cluster, self._processes = cluster, Processes(jars)

    async def play(self) -> None:
        try:
            await super().play()
        finally:
            await self._processes.close()

    async def start(self, name: str, settings: dict[str, str]) -> None:
        for each in DIFFERENCES:
            if (each.life, each.client) == (self.life.name, self.client):
                settings.update(each.settings)
        if self.client == "java":
            settings["enable.metrics.push"] = "false"
            if "partition.assignment.strategy" in settings:
                settings["partition.assignment.strategy"] = JAVA_NAMES[settings["partition.assignment.strategy"]]
        arguments = [self.life.commit, self.life.topics.format(self.client)]
        await self._processes.start(name, PROGRAMS[self.client], arguments, settings, answers=False)

    async def close(self, name: str) -> None:
        self._processes.send(name, "close")
        await self._processes.ended(name)

    async def kill(self, name: str) -> None:
        await self._processes.kill(name)

    async def failed(self, name: str) -> None:
        await self._processes.ended(name)

    def hang(self, name: str, ms: int) -> None:
        self._processes.send(name, f"hang {ms}")

    async def create_topic(self, name: str, partitions: int) -> None:
        await self._topics("--create", "--topic", name, "--partitions", str(partitions))

    async def grow_topic(self, name: str, partitions: int) -> None:
        await self._topics("--alter", "--topic", name, "--partitions", str(partitions))

    async def produce(self, topic: str, records: int) -> None:
        async with Producer(bootstrap_servers=f"{HOST}:{self._proxy.port}") as producer:
            for partition in range(PARTITIONS):
                for number in range(records):
                    await producer.send_and_wait(topic, str(number), partition=partition)

    async def look(self) -> None:
        await look(self._proxy.port, self.group, self.life.topics.format(self.client), range(PARTITIONS))

    async def _topics(self, *arguments: str) -> None:
        server = f"{HOST}:{self._proxy.port}"
        await asyncio.to_thread(topics, ["--bootstrap-server", server, *arguments])

    async def restart_broker(self) -> None:
        await TOGETHER.do(partial(_restart, self._cluster))

    async def move_coordinator(self, to: int) -> None:
        await TOGETHER.do(partial(_move, self._cluster, to))


class Together:
    """Does something to the brokers once, when all clients ask for it."""

    def __init__(self) -> None:
        self._waiting = 0
        self._done = asyncio.Event()

    async def do(self, what: Callable[[], Awaitable[None]]) -> None:
        self._waiting += 1
        if self._waiting < len(CLIENTS):
            await self._done.wait()
            return
        await what()
        self._waiting = 0
        self._done.set()
        self._done = asyncio.Event()


async def _restart(cluster: Cluster) -> None:
    await cluster.stop(1)
    await cluster.start(1)


async def _move(cluster: Cluster, broker: int) -> None:
    """Make a broker the leader of the one offsets partition."""
    await KafkaActions(cluster).move(0, broker, lambda: None)


TOGETHER: Final = Together()
WARM_UP: Final = Life("warm-up", ("start a", "settle", "close a"))


async def play(lives: list[Life], folder: Path) -> None:
    """Play lives, all clients of each at once, and write what they did below a folder."""
    jars = await class_path()
    clusters: dict[str, list[Life]] = {}
    for life in lives:
        clusters.setdefault(f"{life.brokers} {life.broker_settings}", []).append(life)
    for alike in clusters.values():
        await _play_on(alike[0].brokers, BROKER | alike[0].broker_settings, alike, jars, folder)


async def _play_on(brokers: int, settings: dict[str, str], lives: list[Life], jars: str, folder: Path) -> None:
    """Play lives on a cluster of so many brokers, with a proxy before each."""
    exchanges: list[ProxiedExchange] = []
    async with proxied_cluster(jars, brokers, settings, exchanges) as (cluster, (proxy, *_)):
        await _write_topics(f"{HOST}:{proxy.port}")
        # Not recorded: what a broker does for the first time takes it long.
        await MemberProcesses("ours", WARM_UP, jars, cluster, proxy).play()
        if brokers > 1:
            await _move(cluster, 1)
        for life in lives:
            players = [MemberProcesses(client, life, jars, cluster, proxy) for client in life.clients]
            await asyncio.gather(*(player.play() for player in players))
            _write(life, exchanges, cluster.group_log(), settings, folder)
            print(life.name, flush=True)


def _write(life: Life, exchanges: list[ProxiedExchange], log: str, settings: dict[str, str], folder: Path) -> None:
    """Write what was compared of a life, and of one that moves a group all that was asked and answered."""
    groups = {client: f"{client}-{life.name}" for client in life.clients}
    found = {client: recorded(exchanges, log, groups[client]) for client in CLIENTS if client in groups}
    if found:
        text = json.dumps({"kafka": kafka_version(), **found}, indent=1, ensure_ascii=False)
        (folder / "members").mkdir(parents=True, exist_ok=True)
        (folder / "members" / f"{life.name}.json").write_text(f"{text}\n")
    if life in MOVING_LIVES:
        lines = [
            line
            for client, group in groups.items()
            for line in script_lines(exchanges, client, group, {life.topics.format(client): PARTITIONS}, settings)
        ]
        path = folder / "consumer-groups" / "lives" / f"{life.name}.jsonl.gz"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(compressed(lines))


async def _write_topics(server: str) -> None:
    """Make the topics that are there from the start, with their records."""
    for name, partitions in TOPICS.items():
        arguments = ["--bootstrap-server", server, "--create", "--topic", name, "--partitions", str(partitions)]
        await asyncio.to_thread(topics, arguments)
        async with Producer(bootstrap_servers=server) as producer:
            for partition in range(partitions):
                for number in range(RECORDS):
                    await producer.send_and_wait(name, str(number), partition=partition)


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description="Record the requests of Kafka's Java client and of ours.")
    parser.add_argument("lives", nargs="*", help="lives to play; all without any")
    parser.add_argument("--into", type=Path, default=GOLDEN, help="the folder to write below")
    given = parser.parse_args()
    lives = [life for life in (*LIVES, *CONSUMER_LIVES, *MOVING_LIVES) if not given.lives or life.name in given.lives]
    asyncio.run(play(lives, given.into))


if __name__ == "__main__":
    main()
