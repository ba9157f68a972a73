"""Plays the steps of a life. Subclasses start the members, on a cluster of their own."""

from __future__ import annotations

import asyncio
import time
from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Final

from conformance.members.lives import SETTINGS, Life
from conformance.members.proxy import HOST, Proxy, until_idle, until_member

IDLE_SECONDS: Final = 1.6


class LifePlayer(ABC):
    """The members of one client in one life, in a group of their own, which reach the brokers by a proxy."""

    def __init__(self, client: str, life: Life, proxy: Proxy) -> None:
        self.client, self.life = client, life
        self.group = f"{client}-{life.name}"
        self._proxy = proxy
        self._running: dict[str, float] = {}
        """Members by name, with the instant of their start."""

    async def play(self) -> None:
        """All steps, in order."""
        for step in self.life.steps:
            await self._step(step.format(self.client).split())

    async def _step(self, step: list[str]) -> None:
        match step:
            case ["start", name, *settings]:
                self._running[name] = time.monotonic()
                await self.start(name, self._settings(name, dict(each.split("=", 1) for each in settings)))
            case ["close", name]:
                del self._running[name]
                await self.close(name)
            case ["kill", name]:
                del self._running[name]
                await self.kill(name)
            case ["fails", name]:
                del self._running[name]
                await self.failed(name)
            case ["hang", name, ms]:
                self.hang(name, int(ms))
            case ["settle"]:
                for name, since in self._running.items():
                    await until_member(self._proxy, self.client_id(name), since)
                await until_idle(self._proxy, self.group, IDLE_SECONDS)
            case ["sleep", seconds]:
                await asyncio.sleep(float(seconds))
            case ["topic", name, partitions]:
                await self.create_topic(name, int(partitions))
            case ["grow", name, partitions]:
                await self.grow_topic(name, int(partitions))
            case ["produce", name, records]:
                await self.produce(name, int(records))
            case ["look"]:
                await self.look()
            case ["restart"]:
                await self.restart_broker()
            case ["move", broker]:
                await self.move_coordinator(int(broker))
            case _:
                raise ValueError(f"unknown step {step}")

    def client_id(self, name: str) -> str:
        """The client id of a member."""
        return f"{self.group}.{name}"

    def _settings(self, name: str, own: Mapping[str, str]) -> dict[str, str]:
        settings = {
            "bootstrap.servers": f"{HOST}:{self._proxy.port}",
            "group.id": self.group,
            "client.id": self.client_id(name),
            "group.protocol": self.life.protocol,
            **SETTINGS,
            **self.life.settings,
            **own,
        }
        if settings["group.protocol"] == "consumer":
            # The broker says how long a session is, how often heartbeats come, and who gets what.
            for refused in ("session.timeout.ms", "heartbeat.interval.ms", "partition.assignment.strategy"):
                settings.pop(refused, None)
        return settings

    @abstractmethod
    async def start(self, name: str, settings: dict[str, str]) -> None:
        """Start a member."""

    @abstractmethod
    async def close(self, name: str) -> None:
        """Let a member close its consumer, and wait until it is closed."""

    @abstractmethod
    async def kill(self, name: str) -> None:
        """End a member as by kill -9."""

    @abstractmethod
    async def failed(self, name: str) -> None:
        """Wait until a member has ended by itself."""

    @abstractmethod
    def hang(self, name: str, ms: int) -> None:
        """Let a member take so long over its records."""

    @abstractmethod
    async def create_topic(self, name: str, partitions: int) -> None:
        """Create a topic."""

    @abstractmethod
    async def grow_topic(self, name: str, partitions: int) -> None:
        """Let a topic grow to so many partitions."""

    @abstractmethod
    async def produce(self, topic: str, records: int) -> None:
        """Write so many records to each partition of a topic."""

    @abstractmethod
    async def look(self) -> None:
        """Let an admin client describe the group and its offsets."""

    @abstractmethod
    async def restart_broker(self) -> None:
        """Stop the first broker, and start it again."""

    @abstractmethod
    async def move_coordinator(self, to: int) -> None:
        """Let a broker lead the one offsets partition."""
