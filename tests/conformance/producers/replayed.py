"""A producer's life on our own brokers: ours in this process, on virtual time, behind recording proxies."""

from __future__ import annotations

import contextvars
from typing import Any

from conformance.members.proxy import Proxy
from conformance.producers.lives import PARTITIONS, ProducerLife
from conformance.producers.playing import ProducerPlayer
from conformance.producers.producer import CommandedProducer
from conformance.producers.requests import recorded
from rejoin.coordinator.testing import GroupCoordinator
from tests.conformance.replaying.brokers import CLOCKS, proxied_brokers
from tests.conformance.replaying.virtual_time import PROCESS, VirtualLoop, run_virtually


class InProcessPlayer(ProducerPlayer):
    """Our producers as objects of this process."""

    def __init__(self, life: ProducerLife, proxies: list[Proxy], loop: VirtualLoop, kafka: GroupCoordinator) -> None:
        super().__init__("ours", life, proxies)
        self._loop, self._kafka = loop, kafka
        self._producers: dict[str, CommandedProducer] = {}
        self._context = contextvars.copy_context()
        self._context.run(PROCESS.set, self.name)

    async def start(self, name: str, settings: dict[str, str]) -> None:
        producer = self._producers[name] = CommandedProducer(self.name, settings)
        await self._loop.create_task(producer.start(), context=self._context)

    async def do(self, name: str, command: str) -> str:
        return await self._loop.create_task(self._producers[name].do(command), context=self._context)

    async def move_leader(self, to: int) -> None:
        await self._kafka.move_leader(self.name, 0, to)


async def _play(life: ProducerLife, loop: VirtualLoop) -> dict[str, Any]:
    async with proxied_brokers(loop, life.brokers) as brokers:
        player = InProcessPlayer(life, brokers.proxies, loop, brokers.kafka)
        await brokers.create_topic(player.name, PARTITIONS)
        for partition in range(PARTITIONS):
            if life.brokers > 1:
                await brokers.kafka.move_leader(player.name, partition, 1)
        await player.play()
    return recorded(brokers.exchanges, player.name, player.outcomes)


def replayed(life: ProducerLife) -> dict[str, Any]:
    """A life of our producer on our brokers, in the form of a recording on Kafka."""
    return run_virtually(lambda loop: _play(life, loop), *CLOCKS)
