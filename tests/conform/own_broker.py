"""A broker of ours in this process."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from rejoin.coordinator.config import Settings
from rejoin.coordinator.in_process_brokers.cluster import BrokerCluster
from rejoin.coordinator.service.options import ControlOptions, Options
from rejoin.coordinator.testing import GroupCoordinator


@asynccontextmanager
async def own_broker(**settings: object) -> AsyncIterator[tuple[str, int]]:
    """Its address. Settings that it does not have are left out."""
    known = {name: value for name, value in settings.items() if name in Settings.model_fields}
    options = Options(settings=Settings.model_validate(known), port=0, kafka_port=0, control=ControlOptions())
    async with BrokerCluster(options, 1) as cluster:
        kafka = GroupCoordinator(cluster, asyncio.get_running_loop(), has_socket=True)
        host, _, port = kafka.bootstrap_servers.rpartition(":")
        yield host, int(port)
