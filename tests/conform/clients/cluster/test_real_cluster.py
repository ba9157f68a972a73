"""Troubles on a cluster behind a proxy: a right client passes, and each trouble meets it."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from rejoin.client import Consumer
from rejoin.client.transports.kafka.broker import Security
from rejoin.conform.clients.cluster.real_cluster import RealCluster, real_cluster
from rejoin.conform.clients.playing import PlayedTrouble, play_on
from rejoin.conform.clients.stage import PlayedNames, TimeLimits
from rejoin.conform.clients.troubles import BY_NAME
from rejoin.coordinator.testing.starting import running
from rejoin.protocol.types import TopicPartition

LIMITS = TimeLimits(start=60, meeting=60, reaction=60, closing=60, away=0.3, held=1.0, watched=0.5)
TROUBLES = ("coordinator-moves", "removed", "new-member", "brokers-restart", "topic-grown")


class RunningConsumer:
    """A consumer in this process."""

    def __init__(self, cluster: RealCluster) -> None:
        self._cluster = cluster
        self.processed: list[tuple[TopicPartition, int]] = []
        self._task = asyncio.ensure_future(self._run())

    @property
    def problem(self) -> str | None:
        return f"ended: {self._task.exception()}" if self._task.done() else None

    async def _run(self) -> None:
        names = self._cluster.names
        async with Consumer(
            bootstrap_servers=self._cluster.bootstrap_servers,
            group_id=names.group,
            auto_offset_reset="earliest",
            auto_commit_interval_ms=500,
            heartbeat_interval_ms=100,
            metadata_max_age_ms=300,
        ) as consumer:
            await consumer.subscribe([names.topic])
            while True:
                for record in await consumer.poll(100):
                    self.processed.append((TopicPartition(record.topic, record.partition), record.offset))

    async def close(self, seconds: float) -> bool:
        self._task.cancel()
        await asyncio.wait((self._task,), timeout=seconds)
        return self._task.done()

    async def kill(self) -> None:
        await self.close(20)


async def play_all(troubles: Sequence[str]) -> list[PlayedTrouble]:
    """Troubles on one cluster, each with a proxy, a topic and a group of its own."""
    settings = {"group.initial.rebalance.delay.ms": 0}
    async with running(settings=settings) as behind:
        servers = behind.bootstrap_servers

        async def one(name: str) -> PlayedTrouble:
            names = PlayedNames.of(name)

            async def start(cluster: RealCluster) -> RunningConsumer:
                return RunningConsumer(cluster)

            async with (
                running(proxy=servers) as proxied,
                real_cluster(proxied, [servers], Security(), names) as cluster,
            ):
                return await play_on(BY_NAME[name], cluster, start, LIMITS, names)

        return await asyncio.gather(*map(one, troubles))


async def test_a_right_client_passes_on_a_cluster_behind_a_proxy() -> None:
    played = await play_all(TROUBLES)
    outcomes = {each.trouble.name: (str(each.verdict.outcome), each.verdict.reason) for each in played}
    assert outcomes == dict.fromkeys(TROUBLES, ("passed", ""))
    courses = {each.trouble.name: each.course for each in played}
    for name in ("coordinator-moves", "removed", "new-member"):
        assert courses[name] is not None, f"{name} met the client"
    assert "Requests through the proxy" in played[0].transcript
