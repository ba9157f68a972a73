"""A life on our own coordinator: our members in this process, on virtual time, behind a recording proxy."""

from __future__ import annotations

import asyncio
import contextvars
import io
from collections import deque
from contextlib import redirect_stdout
from typing import Any

from conformance.members import member
from conformance.members.consumer_lives import CONSUMER_GROUPS
from conformance.members.lives import RECORDS, TOPICS, Life
from conformance.members.playing import LifePlayer
from conformance.members.proxy import Proxy
from conformance.members.recorded import recorded
from rejoin.coordinator.service.options import InitialTopic
from rejoin.coordinator.testing import GroupCoordinator
from tests.conformance.replaying.brokers import CLOCKS, proxied_brokers
from tests.conformance.replaying.virtual_time import PROCESS, VirtualLoop, run_virtually

BROKER_AWAY_SECONDS = 3.0


class InProcessPlayer(LifePlayer):
    """Our members as tasks. Each is a simulated process, which can be killed."""

    def __init__(self, life: Life, proxy: Proxy, loop: VirtualLoop, kafka: GroupCoordinator) -> None:
        super().__init__("ours", life, proxy)
        self._loop, self._kafka = loop, kafka
        self._commands: dict[str, deque[str]] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}

    async def start(self, name: str, settings: dict[str, str]) -> None:
        process = self.client_id(name)
        commands = self._commands[name] = deque()
        context = contextvars.copy_context()
        context.run(PROCESS.set, process)
        self._loop.start(process)
        playing = member.play(self.life.commit, self.life.topics.format(self.client), settings, commands)
        self._tasks[name] = self._loop.create_task(playing, context=context)

    async def close(self, name: str) -> None:
        self._commands[name].append("close")
        await self._tasks.pop(name)

    async def kill(self, name: str) -> None:
        self._loop.kill(self.client_id(name))
        task = self._tasks.pop(name)
        task.cancel()
        await asyncio.wait([task])

    async def failed(self, name: str) -> None:
        await self._tasks.pop(name)

    def hang(self, name: str, ms: int) -> None:
        self._commands[name].append(f"hang {ms}")

    async def create_topic(self, name: str, partitions: int) -> None:
        await self._kafka.set_topic(name, partitions)

    async def grow_topic(self, name: str, partitions: int) -> None:
        await self._kafka.set_topic(name, partitions)

    async def produce(self, topic: str, records: int) -> None:
        await self._kafka.produce(topic, None, records)

    async def look(self) -> None:
        """Another test replays the requests of the admin client."""

    async def restart_broker(self) -> None:
        await self._kafka.stop_broker(1)
        await asyncio.sleep(BROKER_AWAY_SECONDS)
        await self._kafka.start_broker(1)

    async def move_coordinator(self, to: int) -> None:
        await self._kafka.move_leader(group=self.group, to=to)


async def _play(life: Life, loop: VirtualLoop) -> dict[str, Any]:
    topics = tuple(InitialTopic(name, partitions) for name, partitions in TOPICS.items())
    given = {**CONSUMER_GROUPS, **life.broker_settings}
    consumer_groups = {name.replace(".", "_"): value for name, value in given.items()}
    settings = {"group_initial_rebalance_delay_ms": 300, "group_min_session_timeout_ms": 1_000, **consumer_groups}
    async with proxied_brokers(loop, life.brokers, topics, **settings) as brokers:
        kafka = brokers.kafka
        for topic in TOPICS:
            await kafka.produce(topic, None, RECORDS)
        player = InProcessPlayer(life, brokers.proxies[0], loop, kafka)
        if life.brokers > 1:
            await player.move_coordinator(1)
        await player.play()
        log = await kafka.broker_log("4.0", group=player.group)
    return recorded(brokers.exchanges, log, player.group)


def replayed(life: Life) -> dict[str, Any]:
    """A life of our client on our coordinator, in the form of a recording on Kafka."""
    with redirect_stdout(io.StringIO()):
        return run_virtually(lambda loop: _play(life, loop), *CLOCKS)
