"""Plays the lives on a real Kafka and writes what each client asked: ``python -m conformance.producers [LIFE]``."""

from __future__ import annotations

import argparse
import asyncio
import json
from pathlib import Path
from typing import Final

from conformance.kafka.broker import Cluster, class_path, kafka_version
from conformance.kafka.cluster_actions import KafkaActions
from conformance.members.processes import Processes, proxied_cluster
from conformance.members.proxy import HOST, LostAnswer, ProxiedExchange, Proxy
from conformance.producers.lives import LIVES, PARTITIONS, ProducerLife
from conformance.producers.playing import ProducerPlayer
from conformance.producers.requests import recorded
from rejoin.client.commands.topics.command import main as topics

HERE: Final = Path(__file__).parent
GOLDEN: Final = HERE.parents[1] / "tests" / "golden" / "producers"
CLIENTS: Final = ("java", "ours")
PROGRAMS: Final[dict[str, Path | str]] = {"java": HERE / "Producer.java", "ours": "conformance.producers.producer"}
BROKER: Final = {"auto.create.topics.enable": "false", "offsets.topic.num.partitions": "1"}
WARM_UP: Final = ProducerLife(
    "warm-up",
    ("start p", "p init", "p begin", "p send 0 1", "p offsets 1", "p commit", "p close"),
    {"transactional.id": "id-{}"},
)


class ProducerProcesses(ProducerPlayer):
    """Producers in processes of their own, on a real cluster."""

    def __init__(self, client: str, life: ProducerLife, proxies: list[Proxy], jars: str, cluster: Cluster) -> None:
        super().__init__(client, life, proxies)
        self._cluster, self._processes = cluster, Processes(jars)

    async def play(self) -> None:
        server, brokers = f"{HOST}:{self._proxies[0].port}", str(self.life.brokers)
        wanted = ["--topic", self.name, "--partitions", str(PARTITIONS), "--replication-factor", brokers]
        await asyncio.to_thread(topics, ["--bootstrap-server", server, "--create", *wanted])
        for partition in range(PARTITIONS):
            await KafkaActions(self._cluster).move(partition, 1, lambda: None, self.name)
        try:
            await super().play()
        finally:
            await self._processes.close()

    async def start(self, name: str, settings: dict[str, str]) -> None:
        if self.client == "java":
            settings["enable.metrics.push"] = "false"
        await self._processes.start(name, PROGRAMS[self.client], [self.name], settings, answers=True)

    async def do(self, name: str, command: str) -> str:
        return await self._processes.do(name, command)

    async def move_leader(self, to: int) -> None:
        await KafkaActions(self._cluster).move(0, to, lambda: None, self.name)


async def play(lives: list[ProducerLife], folder: Path) -> None:
    """Play lives, both clients of each at once, and write a file for each."""
    jars = await class_path()
    folder.mkdir(parents=True, exist_ok=True)
    for brokers in sorted({life.brokers for life in lives}):
        await _play_on(brokers, [life for life in lives if life.brokers == brokers], jars, folder)


async def _play_on(brokers: int, lives: list[ProducerLife], jars: str, folder: Path) -> None:
    """Play lives on a cluster of so many brokers, with a proxy before each."""
    exchanges: list[ProxiedExchange] = []
    losing: list[LostAnswer] = []
    async with proxied_cluster(jars, brokers, BROKER, exchanges, losing) as (cluster, proxies):
        # Not recorded: what a broker does for the first time takes it long.
        await ProducerProcesses("ours", WARM_UP, proxies, jars, cluster).play()
        for life in lives:
            players = [ProducerProcesses(client, life, proxies, jars, cluster) for client in CLIENTS]
            await asyncio.gather(*(player.play() for player in players))
            found = {player.client: recorded(exchanges, player.name, player.outcomes) for player in players}
            text = json.dumps({"kafka": kafka_version(), **found}, indent=1, ensure_ascii=False)
            (folder / f"{life.name}.json").write_text(text + "\n")
            print(life.name, flush=True)


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description="Record the requests of Kafka's Java producer and of ours.")
    parser.add_argument("lives", nargs="*", help="lives to play; all without any")
    parser.add_argument("--into", type=Path, default=GOLDEN, help="the folder to write to")
    given = parser.parse_args()
    asyncio.run(play([life for life in LIVES if not given.lives or life.name in given.lives], given.into))


if __name__ == "__main__":
    main()
