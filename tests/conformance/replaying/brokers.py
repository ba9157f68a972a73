"""Our own brokers on virtual time, with a recording proxy before each: where lives are played again."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import conformance.members.playing
import conformance.members.proxy
from conformance.members.proxy import LostAnswer, ProxiedExchange, Proxy
from rejoin.client.transports import nodes
from rejoin.client.transports.kafka import broker
from rejoin.coordinator.config import Settings
from rejoin.coordinator.control import clocks
from rejoin.coordinator.in_process_brokers.cluster import BrokerCluster
from rejoin.coordinator.service import clock, logs
from rejoin.coordinator.service.options import ControlOptions, InitialTopic, Options
from rejoin.coordinator.testing import GroupCoordinator
from rejoin.journal import wall_clock
from rejoin.protocol.messages.topics.create_topics import CreatableTopic, CreateTopicsRequest
from tests.conformance.replaying.virtual_time import VirtualLoop

CLOCKS = (wall_clock, nodes, broker, clocks, clock, conformance.members.playing, conformance.members.proxy)
"""The modules that read the time by themselves."""

logs.configure("critical")


@dataclass(frozen=True)
class ProxiedBrokers:
    """The brokers, and what passed between them and simulated processes."""

    kafka: GroupCoordinator
    proxies: list[Proxy]
    exchanges: list[ProxiedExchange]

    async def create_topic(self, name: str, partitions: int) -> None:
        """A topic as clients make it, with real logs."""
        brokers = len(self.proxies)
        wanted = CreatableTopic(
            name=name, num_partitions=partitions, replication_factor=brokers, assignments=(), configs=()
        )
        await self.kafka.call(CreateTopicsRequest(topics=(wanted,)))


@asynccontextmanager
async def proxied_brokers(
    loop: VirtualLoop, count: int, topics: tuple[InitialTopic, ...] = (), **settings: Any
) -> AsyncIterator[ProxiedBrokers]:
    """So many brokers with these settings. Simulated processes reach them by the proxies."""
    given = Settings(offsets_topic_num_partitions=1, transaction_state_log_num_partitions=2, **settings)
    options = Options(settings=given, port=0, kafka_port=0, topics=topics, control=ControlOptions())
    exchanges: list[ProxiedExchange] = []
    losing: list[LostAnswer] = []
    async with BrokerCluster(options, count) as cluster:
        kafka = GroupCoordinator(cluster, loop, has_socket=True)
        ports = [int(server.rpartition(":")[2]) for server in kafka.bootstrap_servers.split(",")]
        proxies = [Proxy(port, exchanges, losing) for port in ports]
        for proxy in proxies:
            await proxy.__aenter__()
        loop.routes = dict(zip(ports, (proxy.port for proxy in proxies), strict=True))
        try:
            yield ProxiedBrokers(kafka, proxies, exchanges)
        finally:
            for proxy in proxies:
                await proxy.__aexit__(None, None, None)
