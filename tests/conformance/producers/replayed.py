"""A producer's life on our own brokers: ours in this process, on virtual time, behind recording proxies."""

from __future__ import annotations

import contextvars
from contextlib import AsyncExitStack
from typing import Any

import conformance.members.proxy
from conformance.members.proxy import Exchange, LostAnswer, Proxy
from conformance.producers.lives import PARTITIONS, ProducerLife
from conformance.producers.playing import ProducerPlayer
from conformance.producers.producer import CommandedProducer
from conformance.producers.requests import recorded
from rejoin.client import driver
from rejoin.client.transports import nodes
from rejoin.client.transports.kafka import broker
from rejoin.coordinator.brokers.cluster import BrokerCluster
from rejoin.coordinator.config import Settings
from rejoin.coordinator.control import clocks
from rejoin.coordinator.service import clock, logs
from rejoin.coordinator.service.app import ControlOptions, Options
from rejoin.coordinator.testing import GroupCoordinator
from rejoin.protocol.messages.topics.create_topics import CreatableTopic, CreateTopicsRequest
from tests.conformance.replaying.virtual_time import PROCESS, VirtualLoop, run_virtually

CLOCKS = (driver, nodes, broker, clocks, clock, conformance.members.proxy)


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
    options = Options(
        settings=Settings(offsets_topic_num_partitions=1, transaction_state_log_num_partitions=2),
        port=0,
        kafka_port=0,
        control=ControlOptions(),
    )
    exchanges: list[Exchange] = []
    losing: list[LostAnswer] = []
    async with AsyncExitStack() as stack:
        cluster = await stack.enter_async_context(BrokerCluster(options, life.brokers))
        kafka = GroupCoordinator(cluster, loop, has_socket=True)
        ports = [int(server.rpartition(":")[2]) for server in kafka.bootstrap_servers.split(",")]
        proxies = [await stack.enter_async_context(Proxy(port, exchanges, losing)) for port in ports]
        loop.routes = dict(zip(ports, (proxy.port for proxy in proxies), strict=True))
        player = InProcessPlayer(life, proxies, loop, kafka)
        wanted = CreatableTopic(
            name=player.name, num_partitions=PARTITIONS, replication_factor=life.brokers, assignments=(), configs=()
        )
        await kafka.call(CreateTopicsRequest(topics=(wanted,)))
        for partition in range(PARTITIONS):
            if life.brokers > 1:
                await kafka.move_leader(player.name, partition, 1)
        await player.play()
    return recorded(exchanges, player.name, player.outcomes)


logs.configure("critical")


def replayed(life: ProducerLife) -> dict[str, Any]:
    """What our producer did in a life on our brokers, in the form in which it is recorded on Kafka."""
    return run_virtually(lambda loop: _play(life, loop), *CLOCKS)
