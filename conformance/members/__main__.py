"""Plays the lives against a real Kafka and writes what each client asked: ``python -m conformance.members [LIFE]``."""

from __future__ import annotations

import argparse
import asyncio
import json
import re
import sys
import time
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from functools import partial
from pathlib import Path
from typing import Final

from conformance.kafka.broker import JAVA, Cluster, class_path, kafka_version
from conformance.kafka.cluster_actions import KafkaActions
from conformance.members.lives import LIVES, RECORDS, SETTINGS, TOPICS, Life
from conformance.members.proxy import HOST, Exchange, Proxy, until_member, until_quiet
from conformance.members.sequences import backoffs, sequences
from rejoin.client import Producer
from rejoin.client.commands.topics.command import main as topics

HERE: Final = Path(__file__).parent
GOLDEN: Final = HERE.parents[1] / "tests" / "golden" / "members"
CLIENTS: Final = ("java", "ours")
QUIET_SECONDS: Final = 1.6

BROKER: Final = {
    "group.min.session.timeout.ms": "1000",
    "group.initial.rebalance.delay.ms": "300",
    "auto.create.topics.enable": "false",
    "offsets.topic.num.partitions": "1",
}

JAVA_NAMES: Final = {
    "cooperative-sticky": "org.apache.kafka.clients.consumer.CooperativeStickyAssignor",
}


class Members:
    """The members of one client in one life."""

    def __init__(self, client: str, life: Life, jars: str, cluster: Cluster, proxy: Proxy) -> None:
        self.client, self.life = client, life
        self.prefix = f"{client}-{life.name}"
        self._jars, self._cluster, self._proxy = jars, cluster, proxy
        self._processes: dict[str, asyncio.subprocess.Process] = {}
        self._running: dict[str, float] = {}
        """Members by name, with the instant of their start."""

    async def play(self) -> None:
        """All steps, in order."""
        try:
            for step in self.life.steps:
                match step.split():
                    case ["restart"]:
                        await TOGETHER.do(partial(_restart, self._cluster))
                    case ["move", broker]:
                        await TOGETHER.do(partial(_move, self._cluster, int(broker)))
                    case _:
                        await self._step(step.format(self.client).split())
        finally:
            for process in self._processes.values():
                if process.returncode is None:
                    process.kill()
                    await process.wait()

    async def _step(self, step: list[str]) -> None:
        match step:
            case ["start", name, *settings]:
                await self._start(name, dict(each.split("=", 1) for each in settings))
            case ["close", name]:
                del self._running[name]
                self._tell(name, "close")
                await asyncio.wait_for(self._processes[name].wait(), 40)
            case ["kill", name]:
                del self._running[name]
                self._processes[name].kill()
                await self._processes[name].wait()
            case ["hang", name, ms]:
                self._tell(name, f"hang {ms}")
            case ["settle"]:
                for name, since in self._running.items():
                    await until_member(self._proxy, f"{self.prefix}.{name}", since)
                await until_quiet(self._proxy, self.prefix, QUIET_SECONDS)
            case ["sleep", seconds]:
                await asyncio.sleep(float(seconds))
            case ["topic", name, partitions]:
                await self._topics("--create", "--topic", name, "--partitions", partitions)
            case ["grow", name, partitions]:
                await self._topics("--alter", "--topic", name, "--partitions", partitions)
            case _:
                raise ValueError(f"unknown step {step}")

    async def _topics(self, *arguments: str) -> None:
        server = f"{HOST}:{self._proxy.port}"
        await asyncio.to_thread(topics, ["--bootstrap-server", server, *arguments])

    def _tell(self, name: str, command: str) -> None:
        stdin = self._processes[name].stdin
        assert stdin is not None
        stdin.write(f"{command}\n".encode())

    async def _start(self, name: str, own: dict[str, str]) -> None:
        life = self.life
        settings = {
            "bootstrap.servers": f"{HOST}:{self._proxy.port}",
            "group.id": self.prefix,
            "client.id": f"{self.prefix}.{name}",
            **SETTINGS,
            **life.settings,
            **own,
        }
        if self.client == "java":
            settings["group.protocol"] = "classic"
            settings["enable.metrics.push"] = "false"
            if "partition.assignment.strategy" in settings:
                settings["partition.assignment.strategy"] = JAVA_NAMES[settings["partition.assignment.strategy"]]
            command = [*JAVA, "-cp", self._jars, str(HERE / "Member.java")]
        else:
            command = [sys.executable, "-m", "conformance.members.member"]
        self._running[name] = time.monotonic()
        pairs = [f"{key}={value}" for key, value in settings.items()]
        self._processes[name] = await asyncio.create_subprocess_exec(
            *command,
            life.commit,
            life.topics.format(self.client),
            *pairs,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.DEVNULL,
        )


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
    """Play lives, both clients of each at once, and write a file for each."""
    jars = await class_path()
    for brokers in sorted({life.brokers for life in lives}):
        await _play_on(brokers, [life for life in lives if life.brokers == brokers], jars, folder)


async def _play_on(brokers: int, lives: list[Life], jars: str, folder: Path) -> None:
    """Play lives on a cluster of so many brokers, with a proxy before each."""
    exchanges: list[Exchange] = []
    async with AsyncExitStack() as stack:
        proxies = {number: await stack.enter_async_context(Proxy(0, exchanges)) for number in range(1, brokers + 1)}
        advertised = {number: proxy.port for number, proxy in proxies.items()}
        cluster = await stack.enter_async_context(Cluster(jars, brokers, BROKER, advertised=advertised))
        for number, proxy in proxies.items():
            proxy.port_of_broker = cluster.ports[number]
        proxy = proxies[1]
        await _write_topics(f"{HOST}:{proxy.port}")
        folder.mkdir(parents=True, exist_ok=True)
        # Not recorded: what a broker does for the first time takes it long.
        await Members("ours", WARM_UP, jars, cluster, proxy).play()
        if brokers > 1:
            await _move(cluster, 1)
        for life in lives:
            await asyncio.gather(*(Members(client, life, jars, cluster, proxy).play() for client in CLIENTS))
            found = recording(life, proxy)
            log = cluster.group_log()
            found["transitions"] = {client: transitions(log, f"{client}-{life.name}") for client in CLIENTS}
            text = json.dumps({"kafka": kafka_version(), **found}, indent=1, ensure_ascii=False)
            (folder / f"{life.name}.json").write_text(text + "\n")
            print(life.name, flush=True)


async def _write_topics(server: str) -> None:
    """Make the topics that are there from the start, with their records."""
    for name, partitions in TOPICS.items():
        arguments = ["--bootstrap-server", server, "--create", "--topic", name, "--partitions", str(partitions)]
        await asyncio.to_thread(topics, arguments)
        async with Producer(bootstrap_servers=server) as producer:
            for partition in range(partitions):
                for number in range(RECORDS):
                    await producer.send_and_wait(name, str(number), partition=partition)


def recording(life: Life, proxy: Proxy) -> dict[str, dict[str, object]]:
    """The sequences of each member, by client; a restarted member is one."""
    found: dict[str, dict[str, object]] = {}
    for client in CLIENTS:
        prefix = f"{client}-{life.name}."
        ids = sorted({each.client_id for each in proxy.exchanges if each.client_id.startswith(prefix)})
        found[client] = {
            name.removeprefix(prefix): sequences(each for each in proxy.exchanges if each.client_id == name)
            for name in ids
        }
    if life.brokers > 1:
        found["backoffs"] = {
            client: backoffs(each for each in proxy.exchanges if each.client_id.startswith(f"{client}-{life.name}."))
            for client in CLIENTS
        }
    return found


def transitions(log: str, group: str) -> list[str]:
    """What the group coordinator logged of a group's generations."""
    pattern = rf"Stabilized group {re.escape(group)} generation (\d+) .*with (\d+) members"
    return [f"Stable {match[1]} with {match[2]}" for match in re.finditer(pattern, log)]


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description="Record the requests of Kafka's Java client and of ours.")
    parser.add_argument("lives", nargs="*", help="lives to play; all without any")
    parser.add_argument("--into", type=Path, default=GOLDEN, help="the folder to write to")
    given = parser.parse_args()
    asyncio.run(play([life for life in LIVES if not given.lives or life.name in given.lives], given.into))


if __name__ == "__main__":
    main()
