"""A real Kafka and a node of this broker, both with an authorizer under which everyone may do everything."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Final

from conformance.clients.node import running
from conformance.kafka.broker import HOST, Cluster, class_path

AUTHORIZED: Final[Mapping[str, str]] = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:ANONYMOUS",
}
OF_KAFKA: Final = {"offsets.topic.num.partitions": "1", "delegation.token.secret.key": "a-secret"}
"""Settings of Kafka alone."""


@asynccontextmanager
async def kafka(settings: Mapping[str, str] = AUTHORIZED) -> AsyncIterator[str]:
    """Address of a real broker."""
    async with Cluster(await class_path(), 1, {**OF_KAFKA, **settings}) as cluster:
        yield f"{HOST}:{cluster.ports[1]}"


@asynccontextmanager
async def rejoin(settings: Mapping[str, str] = AUTHORIZED) -> AsyncIterator[str]:
    """Address of a node in memory."""
    node = running(*(part for pair in settings.items() for part in ("-c", "=".join(pair))))
    try:
        yield (await asyncio.to_thread(node.__enter__)).bootstrap_servers
    finally:
        await asyncio.to_thread(node.__exit__, None, None, None)
