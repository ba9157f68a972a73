"""Plays the steps of a producer's life. Subclasses start the producers, on a cluster of their own."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod

from conformance.members.proxy import HOST, LostAnswer, Proxy
from conformance.producers.lives import SETTINGS, ProducerLife


class ProducerPlayer(ABC):
    """The producers of one client in one life, which reach the brokers by proxies."""

    def __init__(self, client: str, life: ProducerLife, proxies: list[Proxy]) -> None:
        self.client, self.life = client, life
        self.name = f"{client}-{life.name}"
        """The name of the topic, and the beginning of client ids."""
        self.outcomes: list[str] = []
        self._proxies = proxies

    async def play(self) -> None:
        """All steps, in order."""
        for step in self.life.steps:
            await self._step(step.split())

    async def _step(self, step: list[str]) -> None:
        match step:
            case ["start", name]:
                await self.start(name, self._settings(name))
            case ["sleep", seconds]:
                await asyncio.sleep(float(seconds))
            case ["move", broker]:
                await self.move_leader(int(broker))
            case ["lose", api]:
                self._proxies[0].losing.append(LostAnswer(f"{self.name}.", api))
            case [name, *command]:
                outcome = await self.do(name, " ".join(command))
                self.outcomes.append(f"{name} {' '.join(command)}: {outcome}")

    def _settings(self, name: str) -> dict[str, str]:
        given = {
            "bootstrap.servers": f"{HOST}:{self._proxies[0].port}",
            "client.id": f"{self.name}.{name}",
            **SETTINGS,
            **self.life.settings,
        }
        return {key: value.format(self.name) for key, value in given.items()}

    @abstractmethod
    async def start(self, name: str, settings: dict[str, str]) -> None:
        """Start a producer."""

    @abstractmethod
    async def do(self, name: str, command: str) -> str:
        """Let a producer carry out a command; its outcome."""

    @abstractmethod
    async def move_leader(self, to: int) -> None:
        """Let another broker lead partition 0 of the topic."""
